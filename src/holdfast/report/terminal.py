"""The text that a run prints when it ends; its page has every table."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from holdfast.analysis import estimates
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.method_differences import difference, rule_differences
from holdfast.analysis.prompt_effect import Baseline
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of
from holdfast.records import Run, read_run
from holdfast.report.baseline_sentences import baseline_hint, baseline_lines
from holdfast.report.charts import numbered
from holdfast.report.collapse_section import collapse_lines
from holdfast.report.context_section import survival_lines, truncation_lines
from holdfast.report.opening_sentences import counted, nothing_measured, opening
from holdfast.report.rule_falls import fall
from holdfast.report.wording import WIDTH, aligned, other_prompts, plain, signed

_MAX_ROUND_LINES = 24  # most rounds as lines; the page has every round
_MAX_ROUND_COLUMNS = 10  # most rounds as columns


def table(run: Run | Path | str) -> str:
    """A summary of a run, or of the run in a folder: its sentences, stability by round and method,
    and rules by method.
    """
    return results_text(results_of(run if isinstance(run, Run) else read_run(run)))


def results_text(results: DriftResults) -> str:
    """The same of results that are known."""
    run = results.run
    series = results.series
    baseline = results.baseline
    if nothing := nothing_measured(run.conversations):
        return "\n".join(textwrap.wrap(nothing, WIDTH)) + "\n"
    rules = estimates.rule_rows(series)
    lines = [
        *truncation_lines(series),
        *opening(until_prompt_lost(series), results.findings, baseline),
    ]
    lines += [*collapse_lines(results), *survival_lines(series, run)]
    sentences = [part for line in lines for part in textwrap.wrap(line, WIDTH)]
    notes = _notes(series, baseline)
    by_method = _rules_by_method(series, rules, baseline)
    if len(series) > 1:
        paragraphs = [sentences, _means(series), _against_none(series), by_method, notes]
    else:
        first = series[0]
        paragraphs = [sentences, _by_round(first), _accuracies(first), by_method, notes]
    if rules and not baseline:
        hint = baseline_hint([row for row in rules if row.series is series[0]])
        paragraphs.append(textwrap.wrap(hint, WIDTH))
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


def _notes(series: Sequence[Series], baseline: Baseline | None) -> list[str]:
    """Why there are no intervals, and the scores without a system prompt."""
    lines = []
    if any(len(item.records) < 2 for item in series):
        lines.append(
            "No intervals with fewer than two conversations: one cannot show how much they vary."
        )
    for line in baseline_lines(baseline) if baseline else ():
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="    ")
    return lines


def _means(series: Sequence[Series]) -> list[str]:
    rounds = max(item.rounds for item in series)
    numbers = range(1, rounds + 1) if rounds <= _MAX_ROUND_COLUMNS else numbered(rounds)
    rows = [["round", *(f"{number:>4}" for number in numbers)]]
    for item in series:
        means = [_mean(point) for point in estimates.row_of(item, "stability").points]
        means += ["–"] * (rounds - len(means))
        rows.append([item.method, *(f"{means[number - 1]:>4}" for number in numbers)])
    return [f"Stability by round, {counted(series)}:", *aligned(rows, "  ")]


def _by_round(item: Series) -> list[str]:
    """Every score with its interval, one line per probed round; if many, those an axis numbers."""
    shown = probed_rounds(item)
    if len(shown) > _MAX_ROUND_LINES:
        shown = list(numbered(item.rounds))
    columns = [["", "", "round", *(f"{number:>5}" for number in shown)]]
    head = (item.method, count_of(len(item.records), "conversation"))
    for kind in KINDS:
        if kind == "stability" or item.measured(kind):
            points = estimates.row_of(item, kind).points
            columns.append([*head, kind, *(plain(points[number - 1]) for number in shown)])
            head = ("", "")
    return _side_by_side(columns)


def probed_rounds(item: Series) -> list[int]:
    """The rounds with a score, from 1; `--probe-every` leaves out others."""
    measured = [number for kind in KINDS for number in np.nonzero(~np.isnan(item.values(kind)))[1]]
    return sorted({int(number) + 1 for number in measured})


def _mean(value: Estimate) -> str:
    return "–" if value.mean is None else f"{value.mean:.2f}"


def _accuracies(item: Series) -> list[str]:
    """Accuracies in the first and last round, if one reply is scored on all rules of a prompt."""
    if not (accuracy := accuracy_of(item)):
        return []
    return [
        f"Accuracy, {item.method}, at round 1 and round {item.rounds}:",
        *(
            f"  {level} level: {plain(points[0])} and {plain(points[-1])}"
            for level, points in accuracy.items()
        ),
    ]


def _against_none(series: Sequence[Series]) -> list[str]:
    """The gain of each method in the last round and over all, and why any of them is unclear."""
    rows = [("", f"round {series[0].rounds}", "all rounds")]
    reasons = []
    apart = []
    for item in series[1:]:
        if (pair := difference(series, item, "stability")) is None:
            apart.append(
                f"{item.method} and {series[0].method} share no conversations, so they are not"
                " compared."
            )
            continue
        rows.append((item.method, _with_word(pair.last), _with_word(pair.mean)))
        if pair.last.other_prompts or pair.mean.other_prompts:
            rows.append(("", other_prompts(pair.last), other_prompts(pair.mean)))
        reasons += [verdict_on(pair.last).why, verdict_on(pair.mean).why]
    if not rows[1:]:
        return apart
    first = series[0].method
    return [
        f"Difference from {first} in stability, on the same conversations [95% interval]:",
        *aligned(rows, "  "),
        *(
            f"  {CANNOT_TELL}, as {why}"
            for why in dict.fromkeys(reasons)
            if why not in ("", INCLUDES_ZERO)  # the reader sees that an interval includes 0
        ),
        *apart,
    ]


def _with_word(value: Estimate) -> str:
    """'+0.09 [+0.02, +0.15], higher', or '..., cannot tell'."""
    return f"{signed(value)}, {verdict_on(value).word('higher', 'lower')}"


def _rules_by_method(
    series: Sequence[Series], rules: Sequence[estimates.EstimateRow], baseline: Baseline | None
) -> list[str]:
    """A line per rule: the first method's first and last round, and the others' last."""
    if not rules:
        return []
    first = series[0]
    names = list(dict.fromkeys(row.group for row in rules))
    clear = {
        pair.row: f" {verdict_on(pair.last).word('higher', 'lower')}"
        for pair in rule_differences(series, rules)
        if verdict_on(pair.last).sign
    }
    write = plain if len(series) == 1 else _mean

    def cells(item: Series, number: int, words: Mapping[estimates.EstimateRow, str]) -> list[str]:
        """The scores of a series in a round, from 0, each followed by its word."""
        scores = {
            row.group: write(row.drawn[number]) + words.get(row, "")
            for row in rules
            if row.series is item
        }
        return [scores.get(name, "") for name in names]

    notes: dict[str, str] = {}
    if len(series) > 1:
        few = [row for row in rules if row.n < MIN_SAMPLES]
        notes = {row.group: f" (n = {row.n}, too few to tell)" for row in few}
    columns = [["", "", *(name + notes.get(name, "") for name in names)]]
    if first.rounds > 1:
        columns.append([first.method, "round 1", *cells(first, 0, {})])
    for item in series:
        columns.append([item.method, f"round {item.rounds}", *cells(item, -1, clear)])
    if len(series) == 1:
        columns.append(["", "", *(fall(row, baseline) for row in rules)])
        return ["Rule by rule, stability:", *_side_by_side([column[1:] for column in columns])]
    title = f"Stability by rule and method (higher, lower: a clear difference from {first.method}):"
    return [title, *_side_by_side(columns)]


def _side_by_side(columns: Sequence[Sequence[str]]) -> list[str]:
    """Columns as lines; those that do not fit go below, with the first column repeated."""
    blocks: list[list[Sequence[str]]] = []
    room = 0
    for column in columns[1:]:
        width = 2 + max(map(len, column))
        if not blocks or width > room:
            blocks.append([columns[0]])
            room = WIDTH - max(map(len, columns[0]))
        blocks[-1].append(column)
        room -= width
    tables = [filter(any, zip(*block, strict=True)) for block in blocks]  # no blank header
    paragraphs = [aligned(list(rows)) for rows in tables]
    return [line for lines in paragraphs for line in ("", *lines)][1:]
