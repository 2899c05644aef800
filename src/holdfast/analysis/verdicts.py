"""The single rule for what may be said of a number; docs/verdicts.md gives the reasons.

Every verdict, headline and recommendation passes through here, with two exceptions: verdicts of
checks and logs at a bar come from `sequential`, and the one on canaries from a sign test
(`truncation`).

An estimate is reported as above or below 0 only if it rests on at least `MIN_SAMPLES` conversations
and its deciding interval lies on one side of 0. The deciding interval is wider than 95% if the run
may be read again: a run whose verdict is uncertain can be extended, and looking until something is
certain would be wrong far more often than 5% of the time. `error_at` divides the 5% among the
looks.
"""

from dataclasses import fields
from typing import Final, Literal

from holdfast.analysis.statistics import ERROR
from holdfast.records.mean_estimate import Estimate, Judged, excludes_zero

MIN_SAMPLES = 20
_FIRST_LOOK = 0.8  # the first look's share of the error; each later one gets half of the rest
CANNOT_TELL: Final = "cannot tell"
INCLUDES_ZERO = "its interval includes 0"
Support = Literal["supported", "contradicted", "undecided", "not judged"]
SUPPORTED: Final = "supported"
CONTRADICTED: Final = "contradicted"
UNDECIDED: Final = "undecided"
NOT_JUDGED: Final = "not judged"  # nothing was measured, or the model scores 0 whatever it is asked


def error_at(look: int) -> float:
    """Returns the probability with which a verdict at this look, from 1, may be wrong.

    All looks sum to 5%. This is Bonferroni's bound, which needs no assumption on how far apart the
    looks are. The first look gets most, as most runs are read once: 4%, then 0.5%, 0.25%, ...
    """
    if look == 1:
        return _FIRST_LOOK * ERROR
    return (1 - _FIRST_LOOK) * ERROR * 0.5 ** (look - 1)


def verdict_on(value: Estimate, shared_by: int = 1) -> Judged:
    """Decides whether an estimate is above or below 0; returns it with the verdict.

    Args:
        shared_by: how many verdicts share the error for which the deciding interval was made.
    """
    why = _doubt(value, shared_by)
    verdict = CANNOT_TELL
    if why is None:
        verdict = "higher" if value.mean is not None and value.mean > 0 else "lower"
    estimate = {field.name: getattr(value, field.name) for field in fields(Estimate)}
    return Judged(**estimate, verdict=verdict, why=why)


def _doubt(value: Estimate, shared_by: int) -> str | None:
    """Says why an estimate may be on either side of 0; None if it is certainly on one."""
    if value.mean is None:
        return "nothing was measured"
    if few := too_few(value):
        return few
    if value.deciding is None:
        return "it has no interval"
    if value.sd is not None and max(value.sd, abs(value.mean)) < 1e-9:
        return f"none of {value.n} differ"
    if not excludes_zero(*value.deciding):
        return _too_near(value, shared_by) if value.excludes_zero else INCLUDES_ZERO
    return None


def _too_near(value: Estimate, shared_by: int) -> str:
    """Explains a verdict for which the 95% interval excludes 0, but the deciding one does not."""
    assert value.deciding is not None
    low, high = value.deciding
    if shared_by > 1:
        occasion = f"one of {shared_by} comparisons"
    else:
        occasion = "a run that may be extended and read again"
    return f"{occasion} needs a wider interval, [{low:+.3f}, {high:+.3f}], and that includes 0"


def too_few(value: Estimate) -> str:
    """Says that there are too few conversations or samples for a verdict; "" if not."""
    return "" if value.n >= MIN_SAMPLES else f"n = {value.n}, fewer than {MIN_SAMPLES}"


def judge(value: Estimate, sign: int) -> Support:
    """Returns whether an estimate supports or contradicts that the number has this sign."""
    side = verdict_on(value).sign
    if not side:
        return UNDECIDED
    return SUPPORTED if side == sign else CONTRADICTED


def all_of(*verdicts: str) -> Support:
    """Combines the verdicts on the parts of a claim, which holds if all of them do."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    return UNDECIDED if UNDECIDED in verdicts else SUPPORTED


def within(value: Estimate, low: float, high: float) -> Support:
    """Returns whether an estimate supports or contradicts that the number lies from `low` to
    `high`: its whole deciding interval must lie between them, or beyond one of them.
    """
    if too_few(value) or value.deciding is None:
        return UNDECIDED
    lower, upper = value.deciding
    if low <= lower and upper <= high:
        return SUPPORTED
    if upper < low or lower > high:
        return CONTRADICTED
    return UNDECIDED
