"""The text that a run prints when it ends: in short, or in every detail."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from holdfast.analysis.baseline import Baseline, baseline_beside
from holdfast.analysis.comparisons import baseline_of, compare, overall_change
from holdfast.analysis.rules import RuleRow, accuracy_of, compare_rules, rule_rows
from holdfast.analysis.series import KINDS, Series, read_series
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, tell
from holdfast.records import RunData
from holdfast.report.charts import numbered
from holdfast.report.collapse import collapse_lines
from holdfast.report.next_step import finding_of, next_step
from holdfast.report.sentences import (
    baseline_hint,
    baseline_lines,
    broken_text,
    counted,
    fall,
    opening,
)
from holdfast.report.wording import aligned, other_prompts, plain, signed, with_verdict

WIDTH = 100
_MOST_ROUNDS = 24  # lines; the page has every round
_MOST_ACROSS = 10  # rounds as columns


def table(run: RunData, details: bool = False) -> str:
    """A run in short: its sentences, stability by round and method, and rule by method.

    Args:
        run: a run.
        details: with every method's adoption, changes and differences, and each rule by round; all
            of it is on the page as well.

    Raises:
        RecordsError: the run has no finished conversation yet.
    """
    series = read_series(run)
    baseline = baseline_beside(run, series[0])
    lines = [*opening(series, baseline), *collapse_lines(series, run)]
    sentences = [part for line in lines for part in _wrapped(line)]
    notes = _notes(series, baseline)
    if details:
        paragraphs = [
            _by_round(series),
            [*_changes(series), *_comparisons(series)],
            *_rules(series, baseline),
            [*_accuracies(series), *notes],
            sentences,
        ]
    elif len(series) > 1:
        means = _means(series)
        paragraphs = [sentences, means, _against_none(series), _rules_by_method(series), notes]
    else:
        rules = _rules_by_method(series, baseline)
        paragraphs = [sentences, _by_round(series), _accuracies(series), rules, notes]
    rows = rule_rows(series[:1])
    if rows and not baseline:
        paragraphs.append(_wrapped(baseline_hint(rows)))
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


def left_out(run: RunData) -> str:
    """Names the tables that only the details have; "" where there are no more."""
    series = read_series(run)
    parts = ["each rule by round"] if rule_rows(series[:1]) else []
    parts += ["changes from round 1"] if series[0].rounds > 1 else []
    if len(series) > 1:
        parts += ["adoption"] if any(item.measured("adoption") for item in series) else []
        parts += ["accuracy"] if _accuracies(series) else []
    if not parts:
        return ""
    return "\n".join(_wrapped(f"With --details, and on the page: {', '.join(parts)}."))


def next_line(run: RunData) -> str:
    """The next step, as a sentence or a command."""
    return next_step(finding_of(run, read_series(run)))


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH)


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


# --- By round


def _means(series: Sequence[Series]) -> list[str]:
    """Mean stability by round, a line per method."""
    rounds = max(item.rounds for item in series)
    numbers = range(1, rounds + 1) if rounds <= _MOST_ACROSS else numbered(rounds)
    rows = [["round", *(f"{number:>4}" for number in numbers)]]
    for item in series:
        means = [_mean(point) for point in estimate_columns(item.stability)]
        means += ["–"] * (rounds - len(means))
        rows.append([item.method, *(f"{means[number - 1]:>4}" for number in numbers)])
    return [f"Stability by round, {counted(series)}:", *aligned(rows, "  ")]


def _by_round(series: Sequence[Series]) -> list[str]:
    """Every score of every method with its interval; rounds go down."""
    listed = _listed(series[0].rounds)
    columns = [["", "", "round", *(f"{number:>5}" for number in listed)]]
    for item in series:
        kinds = [kind for kind in KINDS if kind == "stability" or item.measured(kind)]
        for kind in kinds:
            points = estimate_columns(item.values(kind))
            head = (item.method, f"{len(item.records)} conversations") if kind == kinds[0] else ""
            cells = (plain(points[number - 1]) for number in listed)
            columns.append([*(head or ("", "")), kind, *cells])
    return _side_by_side(columns)


def _listed(rounds: int) -> Sequence[int]:
    """The rounds that are lines; of many, those that an axis would number."""
    return range(1, rounds + 1) if rounds <= _MOST_ROUNDS else numbered(rounds)


def _mean(value: Estimate) -> str:
    return "–" if value.mean is None else f"{value.mean:.2f}"


def _accuracies(series: Sequence[Series]) -> list[str]:
    """At the first and the last round, where all rules of a prompt are scored on one reply."""
    lines = []
    for item in series:
        if accuracy := accuracy_of(item):
            first, last = (
                {"prompt": accuracy.prompt_level[at], "instruction": accuracy.instruction_level[at]}
                for at in (0, -1)
            )
            lines.append(f"Accuracy, {item.method}, at round 1 and round {item.rounds}:")
            lines += [f"  {n} level: {plain(first[n])} and {plain(last[n])}" for n in first]
    return lines


# --- Differences


def _against_none(series: Sequence[Series]) -> list[str]:
    """The gain of each method in the last round and over all; nothing of one method."""
    rows: list[tuple[str, str, str]] = []
    apart: list[str] = []
    gains: list[Estimate] = []
    against = ""
    for item in series:
        if (baseline := baseline_of(series, item)) is None:
            continue
        if (pair := compare(item, baseline)) is None:
            apart.append(_no_pairs(item, baseline))
            continue
        last, mean = pair.stability_last, pair.stability_mean
        against = against or baseline.method
        rows = rows or [("", f"round {item.rounds}", "all rounds")]
        rows.append((item.method, _verdict(last), _verdict(mean)))
        if last.other_prompts or mean.other_prompts:
            rows.append(("", other_prompts(last), other_prompts(mean)))
        gains += [last, mean]
    if not rows:
        return apart
    title = f"Difference from {against} in stability, on the same conversations [95 % interval]:"
    return [title, *aligned(rows, "  "), *_reasons(gains), *apart]


def _verdict(value: Estimate) -> str:
    return f"{signed(value)}, {tell(value).word('higher', 'lower')}"


def _reasons(values: Sequence[Estimate]) -> list[str]:
    """Why a table cannot tell; that an interval includes 0 can be seen in it."""
    reasons = dict.fromkeys(tell(value).why for value in values)
    return [f"  {CANNOT_TELL}, as {why}" for why in reasons if why not in ("", INCLUDES_ZERO)]


def _no_pairs(item: Series, baseline: Series) -> str:
    return f"{item.method} and {baseline.method} share no conversations, so they are not compared."


def _changes(series: Sequence[Series]) -> list[str]:
    if series[0].rounds < 2:
        return []
    lines = [f"Change from round 1 to {series[0].rounds}, paired by conversation [95 % interval]:"]
    for item in series:
        moved = {kind: overall_change(item, kind) for kind in KINDS}
        lines += [
            f"  {item.method}: {kind} {with_verdict(value, 'rises', 'falls')}"
            for kind, value in moved.items()
            if value.mean is not None
        ]
    return lines


def _comparisons(series: Sequence[Series]) -> list[str]:
    lines = []
    for item in series:
        if (baseline := baseline_of(series, item)) is None:
            continue
        if (pairs := compare(item, baseline)) is None:
            lines.append(_no_pairs(item, baseline))
            continue
        lines.append(f"{item.method} minus {baseline.method}, on the same {pairs.n} conversations:")
        names = (f"at round {item.rounds}", "over all rounds")
        lines += [
            f"  {kind} {names[at % 2]} {with_verdict(value, 'higher', 'lower')}"
            for at, (kind, value) in enumerate(
                zip((*KINDS[:1] * 2, *KINDS[1:] * 2), pairs.estimates, strict=True)
            )
            if value.mean is not None
        ]
    return lines


# --- Rules


def _rules_by_method(series: Sequence[Series], baseline: Baseline | None = None) -> list[str]:
    """A line per rule: the first method's first and last round, and the last of the others; of one
    method, with intervals and when the rule was lost. Nothing without rules.
    """
    rows = rule_rows(series)
    if not rows:
        return []
    first, names = series[0], list(dict.fromkeys(row.name for row in rows))
    write = plain if len(series) == 1 else _mean
    columns = [["", "", *names]]
    if first.rounds > 1:
        start = {row.name: write(row.points[0]) for row in rows if row.series is first}
        columns.append([first.method, "round 1", *(start.get(name, "") for name in names)])
    words = {
        (pair.row.series, pair.row.name): tell(pair.last).word("higher", "lower")
        for pair in compare_rules(series, rows)
        if tell(pair.last).sign
    }
    for item in series:
        cells = {
            row.name: f"{write(row.points[-1])} {words.get((item, row.name), '')}".rstrip()
            for row in rows
            if row.series is item
        }
        columns.append([item.method, f"round {item.rounds}", *(cells.get(n, "") for n in names)])
    title = f"Stability by rule and method (higher, lower: a clear difference from {first.method}):"
    if len(series) == 1:
        columns.append(["", "", *(fall(row, baseline) for row in rows)])
        title = "Rule by rule, stability:"
    return [title, *_side_by_side(columns)]


def _rules(series: Sequence[Series], baseline: Baseline | None) -> list[list[str]]:
    """Paragraphs: for each method its rules by round, and when each was lost; then each rule under
    each method, minus no fix. Nothing without rules.
    """
    paragraphs = []
    for item in series:
        if rows := rule_rows([item]):
            listed = _listed(item.rounds)
            columns = [["round", *(f"{number:>5}" for number in listed)]]
            columns += [[row.name, *(plain(row.points[at - 1]) for at in listed)] for row in rows]
            title = f"Rule by rule, {item.method}: stability by round, and its change to the last"
            paragraphs.append([title, *_side_by_side(columns)])
            paragraphs.append([line for row in rows for line in _rule_lines(row, baseline)])
    if compared := compare_rules(series, rule_rows(series)):
        cells = [("", f"at round {series[0].rounds}", "over all rounds")]
        for pair in compared:
            last, mean = (with_verdict(v, "higher", "lower") for v in (pair.last, pair.mean))
            cells.append((f"{pair.row.name}, {pair.row.series.method}", last, mean))
        baseline_method = compared[0].against.series.method
        values = [value for pair in compared for value in (pair.last, pair.mean)]
        title = f"Rule by method, minus {baseline_method} on the same conversations:"
        paragraphs.append([title, *aligned(cells, "  "), *_reasons(values)])
    return paragraphs


def _rule_lines(row: RuleRow, baseline: Baseline | None) -> list[str]:
    """Whether and when a rule was lost."""
    if row.never_followed:
        return [f"  {row.name}: {fall(row)}"]
    moved = f"{signed(row.changes[-1])}; " if row.series.rounds > 1 else ""
    return [f"  {row.name}: {moved}{fall(row, baseline)}", f"    {broken_text(row)}"]


def _side_by_side(columns: Sequence[Sequence[str]]) -> list[str]:
    """Columns as lines; those that do not fit stand below, again behind the first column."""
    blocks: list[list[Sequence[str]]] = []
    room = 0
    for column in columns[1:]:
        width = 2 + max(map(len, column))
        if not blocks or width > room:
            blocks.append([columns[0]])
            room = WIDTH - max(map(len, columns[0]))
        blocks[-1].append(column)
        room -= width
    paragraphs = [aligned(list(zip(*block, strict=True))) for block in blocks]
    return [line for lines in paragraphs for line in ("", *lines)][1:]
