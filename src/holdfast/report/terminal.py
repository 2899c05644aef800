"""The text that a drift run prints when it ends; the page has every table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.estimate_rows import EstimateRow, row_of, rule_rows
from holdfast.analysis.row_differences import difference, rule_differences
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, MIN_SAMPLES
from holdfast.plurals import count_of, from_to
from holdfast.records import Run, read_run
from holdfast.records.drift_summary import Baseline
from holdfast.records.mean_estimate import Judged
from holdfast.report.baseline_sentences import baseline_hint, baseline_lines
from holdfast.report.charts import rounds_to_number
from holdfast.report.collapse_section import collapse_lines
from holdfast.report.context_section import survival_lines, truncation_lines
from holdfast.report.opening_sentences import opening
from holdfast.report.run_title import nothing_measured
from holdfast.report.score_phrases import describe_conversations, fall_text
from holdfast.report.wording import (
    ONLY_SHARED,
    WIDTH,
    aligned,
    mean_text,
    needs_note,
    other_prompts,
    plain,
    signed,
    wrapped,
)

_MAX_ROUND_LINES = 24  # of a table with a line for each round; the page has every round
_MAX_ROUND_COLUMNS = 10  # of a table with a column for each round


def table(run: Run | Path | str) -> str:
    """A summary for the terminal: sentences, stability by round and method, and rules by method.

    Args:
        run: the run, or its folder.
    """
    return results_text(results_of(run if isinstance(run, Run) else read_run(run)))


def results_text(results: DriftResults) -> str:
    """Like `table`, for results that are already read."""
    all_series = results.series
    baseline = results.baseline
    if reason := nothing_measured(results.run.conversations):
        return "\n".join(wrapped([reason])) + "\n"
    rules = rule_rows(all_series)
    sentences = [
        *truncation_lines(all_series),
        *opening(until_prompt_lost(all_series), results.findings, baseline),
        *collapse_lines(results),
        *survival_lines(all_series, results.run),
    ]
    rule_blocks = _rules_by_method(all_series, rules, baseline)
    if len(all_series) > 1:
        tables = [_means_table(all_series), _difference_table(all_series), rule_blocks]
    else:
        tables = [_round_table(all_series[0]), _accuracy_lines(all_series[0]), rule_blocks]
    paragraphs = [wrapped(sentences), *tables, _notes(all_series, baseline)]
    if rules and not baseline:
        hint = baseline_hint([row for row in rules if row.series is all_series[0]])
        paragraphs.append(wrapped([hint]))
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


def _notes(all_series: Sequence[Series], baseline: Baseline | None) -> list[str]:
    """Notes on the differences and on missing intervals, and the scores without a system prompt.

    Often [].
    """
    lines = []
    pairs = [difference(all_series, series, "stability") for series in all_series[1:]]
    if any(
        needs_note(pair.last_round, pair.row.points[-1].mean, pair.against.points[-1].mean)
        for pair in pairs
        if pair
    ):
        lines += wrapped([ONLY_SHARED])
    if any(len(series.records) < 2 for series in all_series):
        lines.append(
            "No intervals with fewer than two conversations: one cannot show how much they vary."
        )
    if baseline:
        lines += wrapped(baseline_lines(baseline), rest="    ")
    return lines


def _means_table(all_series: Sequence[Series]) -> list[str]:
    """The mean stability by round, with a line for each series."""
    rounds = max(series.rounds for series in all_series)
    numbers = range(1, rounds + 1) if rounds <= _MAX_ROUND_COLUMNS else rounds_to_number(rounds)
    rows = [["round", *(f"{number:>4}" for number in numbers)]]
    for series in all_series:
        means = [mean_text(point) for point in row_of(series, "stability").points]
        means += ["–"] * (rounds - len(means))
        rows.append([series.method, *(f"{means[number - 1]:>4}" for number in numbers)])
    return [f"Stability by round, {describe_conversations(all_series)}:", *aligned(rows, "  ")]


def _round_table(series: Series) -> list[str]:
    """Every score with its interval, with a line for each probed round, or for some if many."""
    rounds = _probed_rounds(series)
    if len(rounds) > _MAX_ROUND_LINES:
        rounds = list(rounds_to_number(series.rounds))
    columns = [["", "", "round", *(f"{number:>5}" for number in rounds)]]
    head = (series.method, count_of(len(series.records), "conversation"))
    for kind in KINDS:
        if kind == "stability" or series.measured(kind):
            points = row_of(series, kind).points
            columns.append([*head, kind, *(plain(points[number - 1]) for number in rounds)])
            head = ("", "")  # only the first column has one
    return _side_by_side(columns)


def _probed_rounds(series: Series) -> list[int]:
    """The rounds with a score, from 1; `--probe-every` leaves out others."""
    columns = [column for kind in KINDS for column in np.nonzero(~np.isnan(series.values(kind)))[1]]
    return sorted({int(column) + 1 for column in columns})


def _accuracy_lines(series: Series) -> list[str]:
    """The accuracies in the first and the last round.

    Returns [] unless one reply is scored on all rules of a prompt.
    """
    if not (accuracy := accuracy_of(series)):
        return []
    return [
        f"Accuracy, {series.method}, at round 1 and round {series.rounds}:",
        *(
            f"  {level} level: {plain(points[0])} and {plain(points[-1])}"
            for level, points in accuracy.items()
        ),
    ]


def _difference_table(all_series: Sequence[Series]) -> list[str]:
    """The gain of each method in the last round and over all, and why any of them is unclear."""
    first = all_series[0].method
    rows = [("", f"round {all_series[0].rounds}", "all rounds")]
    unclear: dict[str, list[str]] = {}  # the differences with each reason that the reader misses
    not_compared = []
    for series in all_series[1:]:
        if (pair := difference(all_series, series, "stability")) is None:
            not_compared.append(
                f"{series.method} and {first} share no conversations, so they are not compared."
            )
            continue
        values = (pair.last_round, pair.over_all_rounds)
        rows.append((series.method, _difference_text(values[0]), _difference_text(values[1])))
        if any(value.other_prompts for value in values):
            rows.append(("", other_prompts(values[0]), other_prompts(values[1])))
        for period, value in zip(rows[0][1:], values, strict=True):
            # the reader sees that an interval includes 0
            if value.why and value.why != INCLUDES_ZERO:
                unclear.setdefault(value.why, []).append(f"{series.method}, {period}")
    if len(rows) == 1:
        return not_compared
    return [
        f"Difference from {first} in stability, on the same conversations [95% interval]:",
        *aligned(rows, "  "),
        *(
            f"  {CANNOT_TELL}, as {why}"
            if len(unclear) == 1
            else f"  {'; '.join(where)}: {CANNOT_TELL}, as {why}"
            for why, where in unclear.items()
        ),
        *not_compared,
    ]


def _difference_text(value: Judged) -> str:
    """'+0.09 [+0.02, +0.15], higher', or '..., cannot tell'."""
    return f"{signed(value)}, {value.verdict}"


def _rules_by_method(
    all_series: Sequence[Series],
    rules: Sequence[EstimateRow],
    baseline: Baseline | None,
) -> list[str]:
    """A line per rule: the first method's first and last round, and the others' last.

    Returns [] if no prompt has several rules.
    """
    if not rules:
        return []
    if len(all_series) == 1:
        return _rules_of_one_method(all_series[0], rules, baseline)
    first = all_series[0]
    names = list(dict.fromkeys(row.group for row in rules))
    clear_differences = {
        pair.row: pair.last_round.verdict
        for pair in rule_differences(all_series, rules)
        if pair.last_round.sign
    }
    columns = [["", "", *(_with_count(name, rules) for name in names)]]
    if first.rounds > 1:
        scores = _scores_by_rule(first, rules, 0, {})
        columns.append([first.method, "round 1", *(scores.get(name, "") for name in names)])
    for series in all_series:
        scores = _scores_by_rule(series, rules, -1, clear_differences)
        cells = [scores.get(name, "") for name in names]
        columns.append([series.method, f"round {series.rounds}", *cells])
    title = f"Stability by rule and method (higher, lower: a clear difference from {first.method}):"
    return [title, *_side_by_side(columns)]


def _with_count(name: str, rules: Sequence[EstimateRow]) -> str:
    """A rule's name, and in how many conversations of each method it was scored if those are few:
    'short (n = 3 to 12, too few to tell)'.
    """
    counts = sorted(row.n for row in rules if row.group == name)
    if counts[0] >= MIN_SAMPLES:
        return name
    too_few = "too few to tell" if counts[-1] < MIN_SAMPLES else "some too few to tell"
    return f"{name} (n = {from_to(counts[0], counts[-1])}, {too_few})"


def _scores_by_rule(
    series: Series,
    rules: Sequence[EstimateRow],
    index: int,
    words: Mapping[EstimateRow, str],
) -> dict[str, str]:
    """The means of a series by rule.

    Args:
        index: of the round, from 0; -1 for the last.
        words: by row, a word that follows its mean.
    """
    rows = [row for row in rules if row.series is series]
    return {
        row.group: f"{mean_text(row.drawn[index])} {words.get(row, '')}".rstrip() for row in rows
    }


def _rules_of_one_method(
    series: Series, rules: Sequence[EstimateRow], baseline: Baseline | None
) -> list[str]:
    """A line per rule: the first and the last round with intervals, and when it is lost."""
    columns = [["", *(row.group for row in rules)]]
    if series.rounds > 1:
        columns.append(["round 1", *(plain(row.drawn[0]) for row in rules)])
    columns.append([f"round {series.rounds}", *(plain(row.drawn[-1]) for row in rules)])
    columns.append(["", *(fall_text(row, baseline) for row in rules)])
    return ["Rule by rule, stability:", *_side_by_side(columns)]


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
    lines: list[str] = []
    for block in blocks:
        rows = [row for row in zip(*block, strict=True) if any(row)]  # no blank header
        if lines:
            lines.append("")
        lines += aligned(rows)
    return lines
