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
    caveat_lines,
    comparison_text,
    missing_text,
    numbers_text,
    percentage,
    rule_text,
    totals_sentence,
    verdict_reason,
    verdict_sentence,
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
        share=max(prompt_check.error for prompt_check in check.prompts),
        rows=[row for prompt_check in check.prompts for row in _rows(prompt_check, check, index)],
        charts=[
            chart
            for prompt_check in _failures_first(check)
            for chart in _charts(prompt_check, check)
        ],
    )


def check_headline(check: Check) -> str:
    """The totals; of a single prompt, its verdict and the chance that it is wrong."""
    if len(check.prompts) > 1:
        return totals_sentence(check.prompts, check.terms)
    (prompt_check,) = check.prompts
    text = _status(prompt_check, check)
    if sentences := caveat_lines(check.prompts, check.terms):
        return f"{text}. {' '.join(sentences)}"
    # "undecided" is no verdict, and passing without a bar does not prove that there was no fall
    is_fall_unproven = check.terms.min_stability is None and prompt_check.verdict == PASS
    if prompt_check.verdict == UNDECIDED or is_fall_unproven:
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
    limits = " ".join(caveat_lines(check.prompts, check.terms))
    failing_prompts = [
        prompt_check for prompt_check in _failures_first(check) if prompt_check.verdict != PASS
    ]
    lines = [
        f"{_status(prompt_check, check)}." for prompt_check in failing_prompts[:_MAX_PROMPTS_NAMED]
    ]
    num_unnamed = len(failing_prompts) - len(lines)
    if num_unnamed:
        prompts = "One more prompt" if num_unnamed == 1 else f"{num_unnamed:,} more prompts"
        lines.append(f"{prompts} did not pass.")
    return [limits, *lines]


def _status(prompt_check: PromptCheck, check: Check) -> str:
    """'late fails: below 0.9 in round 3: 0.00 [0.00, 0.41] (12 conversations)'."""
    word = _WORDS[prompt_check.verdict]
    if prompt_check.verdict == UNDECIDED:
        open_verdict = verdict_word(prompt_check, check.terms)
        verb = "has" if open_verdict == NO_CLEAR_FAILURE else "is"
        word = f"{verb} {open_verdict}"
    return f"{prompt_check.id} {word}: {verdict_sentence(prompt_check, check.terms)}"


def _failures_first(check: Check) -> list[PromptCheck]:
    """Failing prompts first, then undecided ones, then the rest; each in suite order."""
    return sorted(check.prompts, key=lambda prompt_check: list(_WORDS).index(prompt_check.verdict))


def _rows(prompt_check: PromptCheck, check: Check, index: int) -> Iterator[VerdictRow]:
    """The row of a prompt, then one for each of its rules."""

    def row(rule: str, verdict: str, why: str) -> VerdictRow:
        return VerdictRow(
            prompt=prompt_check.id,
            rule=rule,
            verdict=verdict,
            why=why,
            conversations=len(prompt_check.records),
            decided_after=prompt_check.decided_after,
            series_index=index,
        )

    why = verdict_reason(prompt_check, check.terms)
    if prompt_check.comparison is not None and why != comparison_text(prompt_check.comparison):
        why = f"{why}; {comparison_text(prompt_check.comparison)}"
    if missing_scores := missing_text(prompt_check):
        why = f"{why}; {missing_scores}"
    yield row("", prompt_check.verdict, why)
    for rule in prompt_check.rules:
        yield row(rule.rule, rule.verdict, rule_text(rule, prompt_check, check.terms))


def _charts(prompt_check: PromptCheck, check: Check) -> Iterator[NamedChart]:
    """A chart per rule of a prompt: means by round with their bounds, and the bar."""
    for rule in dict.fromkeys(cell.rule for cell in prompt_check.cells):
        cells = [cell for cell in prompt_check.cells if cell.rule == rule]
        name = prompt_check.id if rule is None else f"{prompt_check.id}, {rule}"
        yield NamedChart(
            name, len(prompt_check.records), _chart(name, cells, check.terms.min_stability)
        )


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
    measured_curves = [curve for curve in curves if curve.measured]
    return Chart(f"Keeps {name}", f"{text}.", measured_curves, len(cells))
