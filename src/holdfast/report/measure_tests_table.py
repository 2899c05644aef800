"""The table of `holdfast suite test`, and the turns that are scored otherwise than labelled."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.measure_tests import MeasureTest, ScoredTurn
from holdfast.analysis.statistics import Estimate
from holdfast.plurals import count_of
from holdfast.report.wording import aligned


def measure_tests_table(tests: Sequence[MeasureTest]) -> str:
    """The precision and recall of every measure, and each disagreement on a line."""
    header = ("rule", "measure", "follows", "breaks", "precision", "recall", "")
    rows = [header, *map(_row, tests)]
    lines = [*aligned(rows), *_disagreements(tests)]
    return "\n".join(lines)


def _row(test: MeasureTest) -> tuple[str, ...]:
    follows = sum(turn.labelled.follows for turn in test.turns)
    note = test.untested or ("" if test.turns else "no labelled turns")
    shares = (test.precision, test.recall)
    counts = (str(follows), str(len(test.turns) - follows))
    return (test.rule, test.measure, *counts, *map(_share, shares), note)


def _share(share: Estimate) -> str:
    if share.mean is None:
        return "-"
    if share.low is None or share.high is None:
        return f"{share.mean:.2f}"
    return f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f})"


def _disagreements(tests: Sequence[MeasureTest]) -> Iterator[str]:
    found = [(test, turn) for test in tests for turn in test.disagreements]
    total = sum(len(test.turns) for test in tests)
    if not found:
        yield f"\nEvery labelled turn is scored as labelled ({count_of(total, 'turn')})."
        return
    yield f"\n{len(found)} of {count_of(total, 'labelled turn')} scored otherwise than labelled:"
    for test, turn in found:
        yield f"  {test.rule}, {turn.source}: {_scored(turn)}: {turn.labelled.shown!r}"


def _scored(turn: ScoredTurn) -> str:
    label = "follows" if turn.labelled.follows else "breaks"
    if turn.score is None:
        return f"labelled {label}, not scored, as the rule does not apply to it"
    return f"labelled {label}, scored {turn.score.value:.2f} ({turn.score.reason})"
