"""The table of `holdfast suite test`, and the turns that are scored otherwise than labelled."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.measure_tests import Disagreement, MeasureTest
from holdfast.analysis.statistics import Estimate
from holdfast.plurals import count_of
from holdfast.report.wording import aligned


def measure_tests_table(tests: Sequence[MeasureTest]) -> str:
    """The precision and recall of every measure, and each disagreement on a line."""
    header = ("rule", "measure", "follows", "breaks", "precision", "recall", "")
    table = aligned([header, *map(_row, tests)])
    return "\n".join([*table, "", *_disagreement_lines(tests)])


def _row(test: MeasureTest) -> tuple[str, ...]:
    note = test.untested or ""
    if not note and not test.turns:
        note = "no labelled turns"
    return (
        test.rule,
        test.measure,
        str(test.follows),
        str(test.breaks),
        _share(test.precision),
        _share(test.recall),
        note,
    )


def _share(share: Estimate) -> str:
    """'0.92 (0.85 to 0.97)'; a hyphen if nothing was measured."""
    if share.mean is None:
        return "-"
    if share.low is None or share.high is None:
        return f"{share.mean:.2f}"
    return f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f})"


def _disagreement_lines(tests: Sequence[MeasureTest]) -> Iterator[str]:
    count = sum(len(test.disagreements) for test in tests)
    turns = sum(test.turns for test in tests)
    if not count:
        yield f"Every labelled turn is scored as labelled ({count_of(turns, 'turn')})."
        return
    yield f"{count} of {count_of(turns, 'labelled turn')} scored otherwise than labelled:"
    for test in tests:
        for turn in test.disagreements:
            yield f"  {test.rule}, {turn.source}: {_label_and_score(turn)}: {turn.text!r}"


def _label_and_score(turn: Disagreement) -> str:
    if turn.score is None:
        return f"labelled {turn.label}, not scored, as the rule does not apply to it"
    return f"labelled {turn.label}, scored {turn.score:.2f} ({turn.reason})"
