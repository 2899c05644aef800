"""The page section with the verdict of `holdfast check` on every prompt and rule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import NOTHING, Estimate
from holdfast.records.check_records import Check, CheckedCell, PromptCheck
from holdfast.report.charts import Chart, Curve
from holdfast.report.check_sentences import (
    NO_CLEAR_FAILURE,
    caveats,
    comparison_text,
    missing_text,
    numbers_text,
    percentage,
    reason,
    rule_text,
    sentence,
    totals,
    verdict_word,
)
from holdfast.report.series_charts import NamedChart

_WORDS = {FAIL: "fails", UNDECIDED: "undecided", PASS: "passes"}  # in display order
_CURVE_COLOUR = 1
_BAR_COLOUR = 5
_MAX_PROMPTS_NAMED = 3  # below the headline


@dataclass(frozen=True)
class VerdictRow:
    """The verdict on a prompt or on one of its rules."""

    prompt: str
    rule: str  # "" for the prompt as a whole
    verdict: str
    why: str
    conversations: int
    decided_after: int
    series_index: int  # of the series that has its conversations

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return _WORDS[self.verdict]


@dataclass(frozen=True)
class CheckSection:
    """The check of one run."""

    label: str  # of its series
    check: Check
    share: float  # the largest probability that an end of an interval is wrong
    rows: list[VerdictRow]  # prompts in suite order, each followed by its rules
    charts: list[NamedChart]  # by prompt and rule, failures first


def check_sections(
    checks: Sequence[Check | None], labels: Sequence[str], all_series: Sequence[Series]
) -> list[CheckSection]:
    """The sections of the runs that have a check."""
    index_of = {(series.run, series.method): index for index, series in enumerate(all_series)}
    sections = []
    for check, label in zip(checks, labels, strict=True):
        if check is None:
            continue
        index = index_of.get((label, check.method))
        if index is not None:
            sections.append(_section(check, all_series[index].label, index))
    return sections


def _section(check: Check, label: str, index: int) -> CheckSection:
    """The section of a check whose conversations are those of the series at `index`."""
    return CheckSection(
        label=label,
        check=check,
        share=max(checked.error for checked in check.prompts),
        rows=[row for checked in check.prompts for row in _rows(checked, check, index)],
        charts=[chart for checked in _failures_first(check) for chart in _charts(checked, check)],
    )


def check_headline(check: Check) -> str:
    """The totals; of a single prompt, its verdict and the chance that it is wrong."""
    if len(check.prompts) > 1:
        return totals(check.prompts, check.terms)
    (checked,) = check.prompts
    text = _status(checked, check)
    if sentences := caveats(check.prompts, check.terms):
        return f"{text}. {' '.join(sentences)}"
    # "undecided" is no verdict, and passing without a bar does not prove that there was no fall
    is_fall_unproven = check.terms.min_stability is None and checked.verdict == PASS
    if checked.verdict == UNDECIDED or is_fall_unproven:
        return f"{text}."
    return (
        f"{text}. The chance that this verdict is wrong is at most {percentage(check.terms.error)}."
    )


def check_lines(check: Check) -> list[str]:
    """The caveats, and a sentence on each of the first prompts that do not pass.

    Returns [] for a single prompt, on which the headline says all this.
    """
    if len(check.prompts) == 1:
        return []
    limits = " ".join(caveats(check.prompts, check.terms))
    failing = [checked for checked in _failures_first(check) if checked.verdict != PASS]
    lines = [f"{_status(checked, check)}." for checked in failing[:_MAX_PROMPTS_NAMED]]
    more = len(failing) - len(lines)
    if more:
        prompts = "One more prompt" if more == 1 else f"{more:,} more prompts"
        lines.append(f"{prompts} did not pass.")
    return [limits, *lines]


def _status(checked: PromptCheck, check: Check) -> str:
    """'late fails: below 0.9 in round 3: 0.00 [0.00, 0.41] (12 conversations)'."""
    word = _WORDS[checked.verdict]
    if checked.verdict == UNDECIDED:
        open_as = verdict_word(checked, check.terms)
        verb = "has" if open_as == NO_CLEAR_FAILURE else "is"
        word = f"{verb} {open_as}"
    return f"{checked.id} {word}: {sentence(checked, check.terms)}"


def _failures_first(check: Check) -> list[PromptCheck]:
    """Failing prompts first, then undecided ones, then the rest; each in suite order."""
    return sorted(check.prompts, key=lambda checked: list(_WORDS).index(checked.verdict))


def _rows(checked: PromptCheck, check: Check, index: int) -> Iterator[VerdictRow]:
    """The row of a prompt, then one for each of its rules."""

    def row(rule: str, verdict: str, why: str) -> VerdictRow:
        return VerdictRow(
            prompt=checked.id,
            rule=rule,
            verdict=verdict,
            why=why,
            conversations=len(checked.records),
            decided_after=checked.decided_after,
            series_index=index,
        )

    why = reason(checked, check.terms)
    if checked.comparison is not None and why != comparison_text(checked.comparison):
        why = f"{why}; {comparison_text(checked.comparison)}"
    if missing := missing_text(checked):
        why = f"{why}; {missing}"
    yield row("", checked.verdict, why)
    for rule in checked.rules:
        yield row(rule.rule, rule.verdict, rule_text(rule, checked, check.terms))


def _charts(checked: PromptCheck, check: Check) -> Iterator[NamedChart]:
    """A chart per rule of a prompt: means by round with their bounds, and the bar."""
    for rule in dict.fromkeys(cell.rule for cell in checked.cells):
        cells = [cell for cell in checked.cells if cell.rule == rule]
        name = checked.id if rule is None else f"{checked.id}, {rule}"
        yield NamedChart(name, len(checked.records), _chart(name, cells, check.terms.min_stability))


def _chart(name: str, cells: Sequence[CheckedCell], bar: float | None) -> Chart:
    points = [
        NOTHING if cell.mean is None else Estimate(0, cell.mean, None, cell.low, cell.high)
        for cell in cells
    ]
    curves = [Curve(name, points, _CURVE_COLOUR)]
    text = "; ".join(f"round {cell.round}: {numbers_text(cell)}" for cell in cells)
    if bar is not None:
        level = [Estimate(0, bar, None, None, None)] * len(cells)
        curves.insert(0, Curve("bar", level, _BAR_COLOUR, dash=1))
        text = f"{text}; the bar is {bar:g}"
    measured = [curve for curve in curves if curve.measured]
    return Chart(f"Keeps {name}", f"{text}.", measured, len(cells))
