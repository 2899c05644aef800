"""The table of a first run: how well each rule is kept in the first round and in the last."""

from collections import Counter

from holdfast.analysis import estimates
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.series import Series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.plurals import count_of
from holdfast.report.collapse_section import collapse_lines
from holdfast.report.context_section import truncation_lines
from holdfast.report.opening_sentences import nothing_measured, opening
from holdfast.report.rule_falls import fall
from holdfast.report.wording import aligned, plain, with_verdict, wrapped


def first_table(results: DriftResults) -> str:
    """The findings of the run in a sentence or two, and a line per rule of the unsteered model."""
    run = results.run
    series = results.series[0]
    if nothing := nothing_measured(run.conversations):
        return "\n".join(wrapped([nothing])) + "\n"
    sentences = [
        *truncation_lines(results.series),
        *opening(until_prompt_lost(results.series), results.findings, results.baseline),
        *collapse_lines(results),
    ]
    size = f"{count_of(len(series.records), 'conversation')} of {count_of(series.rounds, 'round')}"
    lines = [
        *wrapped(sentences),
        "",
        f"How well each rule is kept, from 0 to 1 [95% interval], in {size}:",
        *aligned(_table(results), "  "),
    ]
    return "\n".join(lines) + "\n"


def _table(results: DriftResults) -> list[tuple[str, ...]]:
    """The rules with their scores, the header first; rules without a score come last."""
    series = results.series[0]
    rules = [row for row in estimates.rule_rows(results.series) if row.series is series]
    rows = rules or [estimates.row_of(series, "stability")]
    table: list[tuple[str, ...]] = [("", "round 1", f"round {series.rounds}", "change")]
    for row in rows:
        name = row.group if row.rule else "all prompts"
        table.append((name, plain(row.points[0]), plain(row.points[-1]), _change(row)))
    scored = {row.rule for row in rows}
    for rule, reasons in _unscored_rules(series).items():
        if rule not in scored:
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


def _change(row: estimates.EstimateRow) -> str:
    """The change from the first round to the last with its verdict, or why there is none."""
    if row.n < MIN_SAMPLES or row.never_followed:
        return fall(row)
    return with_verdict(row.change, "rises", "falls")
