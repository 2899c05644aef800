"""The section of the page with the verdict of `holdfast check` on every prompt and rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.analysis.check_file import Check, rules_of
from holdfast.analysis.checks import FAIL, PASS, UNDECIDED, Cell, PromptCheck
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import NOTHING, Estimate
from holdfast.report.charts import Chart, Curve, NamedChart
from holdfast.report.checks import (
    fall_text,
    numbers_text,
    percentage,
    reason,
    rule_text,
    sentence,
    totals,
)

WORDS = {PASS: "passes", FAIL: "fails", UNDECIDED: "undecided"}
_ORDER = (FAIL, UNDECIDED, PASS)
_CURVE, _BAR = 1, 5  # colours
_MOST_NAMED = 3  # prompts that do not pass, in the sentence below the headline


@dataclass(frozen=True)
class VerdictRow:
    """A prompt, or one of its rules, with its verdict.

    Attributes:
        prompt: its id.
        rule: the rule's; "" for the prompt as a whole.
        verdict: `PASS`, `FAIL` or `UNDECIDED`.
        why: what decides, with its interval.
        conversations: that its numbers are of.
        decided_after: how many of them the prompt's verdict took.
        at: the place of the series that holds them.
    """

    prompt: str
    rule: str
    verdict: str
    why: str
    conversations: int
    decided_after: int
    at: int

    @property
    def word(self) -> str:
        return WORDS[self.verdict]


@dataclass(frozen=True)
class CheckSection:
    """The check of one run.

    Attributes:
        label: of its series.
        method: under which the prompts were checked.
        bar, error: what was asked; no bar where prompts were only compared with an earlier run.
        share: of the error, at most, of each end of an interval.
        rows: prompts in the order of the suite, each with its rules behind it.
        charts: of prompts and rules by round, with their confidence sequences; what fails first.
    """

    label: str
    method: str
    bar: float | None
    error: float
    share: float
    rows: tuple[VerdictRow, ...]
    charts: tuple[NamedChart, ...]


def check_sections(
    checks: Sequence[Check | None], labels: Sequence[str], series: Sequence[Series]
) -> list[CheckSection]:
    """The checks of those runs that have one.

    Args:
        checks, labels: by run.
        series: of all runs.
    """
    places = {(item.run, item.method): index for index, item in enumerate(series)}
    return [
        _section(check, series[index].label, index)
        for check, label in zip(checks, labels, strict=True)
        if check is not None and (index := places.get((label, check.method))) is not None
    ]


def check_headline(check: Check) -> str:
    """How many prompts pass, fail and are undecided, or the verdict on the only one; and at what
    error.
    """
    if len(check.prompts) > 1:
        return totals(check.prompts, check.terms)
    (checked,) = check.prompts
    text = _status(checked, check)
    barless = check.terms.min_stability is None
    # undecided is no verdict; and who passes without a bar shows no fall, not that there is none
    if checked.verdict == UNDECIDED or (barless and checked.verdict == PASS):
        return f"{text}."
    return (
        f"{text}. The chance that this verdict is wrong is at most {percentage(check.terms.error)}."
    )


def check_lines(check: Check) -> list[str]:
    """A sentence on each of the first prompts that do not pass, where there are several prompts."""
    if len(check.prompts) == 1:
        return []
    wanting = [checked for checked in _ordered(check) if checked.verdict != PASS]
    lines = [f"{_status(checked, check)}." for checked in wanting[:_MOST_NAMED]]
    more = len(wanting) - len(lines)
    return [*lines, f"{more} more do{'es' if more == 1 else ''} not pass."] if more else lines


def _status(checked: PromptCheck, check: Check) -> str:
    """'late fails: below 0.9 in round 3: 0.00 [0.00, 0.41] (12 conversations)'."""
    word = "is undecided" if checked.verdict == UNDECIDED else WORDS[checked.verdict]
    return f"{checked.id} {word}: {sentence(checked, check.terms)}"


def _section(check: Check, label: str, index: int) -> CheckSection:
    rows = [row for checked in check.prompts for row in _rows(checked, check, index)]
    charts = [chart for checked in _ordered(check) for chart in _charts(checked, check)]
    return CheckSection(
        label=label,
        method=check.method,
        bar=check.terms.min_stability,
        error=check.terms.error,
        share=max(checked.error for checked in check.prompts),
        rows=tuple(rows),
        charts=tuple(charts),
    )


def _ordered(check: Check) -> list[PromptCheck]:
    """Those that fail first, then the undecided; each in the order of the suite."""
    return sorted(check.prompts, key=lambda checked: _ORDER.index(checked.verdict))


def _rows(checked: PromptCheck, check: Check, index: int) -> Iterator[VerdictRow]:
    """A prompt, and behind it its rules."""
    counts = (len(checked.records), checked.decided_after)
    why = reason(checked, check.terms)
    if checked.fall is not None and why != fall_text(checked.fall):
        why = f"{why}; {fall_text(checked.fall)}"
    if checked.unanswered:
        why = f"{why}; {checked.unanswered} probes were not asked or not answered"
    yield VerdictRow(checked.id, "", checked.verdict, why, *counts, index)
    for rule in rules_of(checked, check.terms.min_stability):
        text = rule_text(rule, checked, check.terms)
        yield VerdictRow(checked.id, rule.rule, rule.verdict, text, *counts, index)


def _charts(checked: PromptCheck, check: Check) -> Iterator[NamedChart]:
    """A chart of each rule of a prompt: means by round, what is certain of them, and the bar."""
    for rule in dict.fromkeys(cell.rule for cell in checked.cells):
        cells = [cell for cell in checked.cells if cell.rule == rule]
        name = checked.id if rule is None else f"{checked.id}, {rule}"
        yield NamedChart(name, len(checked.records), _chart(name, cells, check.terms.min_stability))


def _chart(name: str, cells: Sequence[Cell], bar: float | None) -> Chart:
    points = [
        NOTHING if cell.mean != cell.mean else Estimate(0, cell.mean, None, cell.low, cell.high)
        for cell in cells
    ]
    curves = [Curve(name, points, _CURVE)]
    text = "; ".join(f"round {cell.round}: {numbers_text(cell)}" for cell in cells)
    if bar is not None:
        level = [Estimate(0, bar, None, None, None)] * len(cells)
        curves.insert(0, Curve("bar", level, _BAR, dashed=True))
        text = f"{text}; the bar is {bar:g}"
    return Chart(f"Keeps {name}", f"{text}.", [c for c in curves if c.measured], len(cells))
