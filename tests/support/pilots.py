"""The pilot of `holdfast try`, as if it had timed a model."""

from holdfast.cli.measure.pilot import Pilot


def pilot_of(seconds, cut=0.0, per_round=2.0):
    """A pilot of four replies of at most 64 tokens, which took so long together."""
    return Pilot(4, start=0, per_token=seconds / 64, limit=64, cut=cut, per_round=per_round)
