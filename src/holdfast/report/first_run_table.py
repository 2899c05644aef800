"""The text that a first run (`holdfast try`) prints: its findings, and a table of its rules."""

from collections import Counter

from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimate_rows import EstimateRow, row_of, rule_rows
from holdfast.analysis.series import Series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.plurals import count_of
from holdfast.report.collapse_section import collapse_lines
from holdfast.report.context_section import truncation_lines
from holdfast.report.opening_sentences import opening
from holdfast.report.run_title import nothing_measured
from holdfast.report.score_phrases import fall_text
from holdfast.report.wording import ONLY_SHARED, aligned, needs_note, plain, with_verdict, wrapped


def first_table(results: DriftResults) -> str:
    """The findings of the run in a sentence or two, and a line per rule of the unsteered model."""
    run = results.run
    series = results.series[0]
    if reason := nothing_measured(run.conversations):
        return "\n".join(wrapped([reason])) + "\n"
    sentences = [
        *truncation_lines(results.series),
        *opening(until_prompt_lost(results.series), results.findings, results.baseline),
        *collapse_lines(results),
    ]
    size = f"{count_of(len(series.records), 'conversation')} of {count_of(series.rounds, 'round')}"
    points = [point for row in _unsteered_rows(results) for point in row.points]
    interval = " [95% interval]" if any(point.low is not None for point in points) else ""
    lines = [
        *wrapped(sentences),
        "",
        f"How well each rule is kept, from 0 to 1{interval}, in {size}:",
        *aligned(_rule_table(results), "  "),
    ]
    rows = filter(_shows_change, _unsteered_rows(results))
    if any(needs_note(row.change, row.points[-1].mean, row.points[0].mean) for row in rows):
        lines += wrapped([ONLY_SHARED])
    return "\n".join(lines) + "\n"


def _unsteered_rows(results: DriftResults) -> list[EstimateRow]:
    """The rows of the unsteered model: one per rule, or one for all prompts."""
    series = results.series[0]
    rules = [row for row in rule_rows(results.series) if row.series is series]
    return rules or [row_of(series, "stability")]


def _rule_table(results: DriftResults) -> list[tuple[str, ...]]:
    """The rules with their scores, the header first; rules without a score come last."""
    series = results.series[0]
    rows = _unsteered_rows(results)
    table: list[tuple[str, ...]] = [("", "round 1", f"round {series.rounds}", "change")]
    for row in rows:
        name = row.group if row.rule else "all prompts"
        table.append((name, plain(row.points[0]), plain(row.points[-1]), _change_text(row)))
    scored_rules = {row.rule for row in rows}
    for rule, reasons in _unscored_rules(series).items():
        if rule not in scored_rules:
            table.append((rule, "–", "–", _why_not_judged(reasons)))
    return table


def _unscored_rules(series: Series) -> dict[str, Counter[str]]:
    """By rule, how many replies could not be scored, counted by reason."""
    reasons: dict[str, Counter[str]] = {}
    for record in series.records:
        for probe in record.unscored:
            if probe.kind == "stability" and probe.rule:
                reasons.setdefault(probe.rule, Counter())[probe.why] += 1
    return reasons


def _why_not_judged(reasons: Counter[str]) -> str:
    replies = count_of(reasons.total(), "reply")
    if set(reasons) == {"cut"}:
        return f"not judged: {replies} cut before the end (--max-new-tokens raises the limit)"
    return f"not judged: {replies} that could not be scored"


def _change_text(row: EstimateRow) -> str:
    """The change from the first round to the last with its verdict, or why there is none."""
    return with_verdict(row.change, "rises", "falls") if _shows_change(row) else fall_text(row)


def _shows_change(row: EstimateRow) -> bool:
    return row.n >= MIN_SAMPLES and not row.never_followed
