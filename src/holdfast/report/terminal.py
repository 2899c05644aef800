"""What a run prints when it ends, in plain text: in short, or in every detail."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

import numpy as np

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.baseline import Baseline, baseline_beside
from holdfast.analysis.comparisons import baseline_of, compare, overall_change
from holdfast.analysis.rules import RuleComparison, RuleRow, compare_rules, rule_rows
from holdfast.analysis.series import KINDS, Series, read_series
from holdfast.analysis.statistics import estimate_columns
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, tell
from holdfast.records import RunData
from holdfast.report.collapse import collapse_lines
from holdfast.report.next_step import finding_of, next_step
from holdfast.report.overview import (
    WIDTH,
    against_none,
    by_round,
    judged,
    listed,
    no_pairs,
    rules_by_method,
)
from holdfast.report.sentences import baseline_hint, baseline_lines, broken_text, fall, opening
from holdfast.report.wording import aligned, plain, signed

_ACROSS = 2  # methods side by side: 80 columns
_RULES_ACROSS = 3  # rules side by side, whose names are longer


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
        paragraphs = [*_in_detail(series, baseline), [*_accuracies(series), *notes]]
        paragraphs.append(sentences)
    else:
        paragraphs = [sentences, *_in_short(series, baseline), notes]
    rules = rule_rows(series[:1])
    if rules and not baseline:
        paragraphs.append(_wrapped(baseline_hint(rules)))
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


def _in_short(series: Sequence[Series], baseline: Baseline | None) -> list[list[str]]:
    """Paragraphs; of a single method with its adoption and the intervals of every round."""
    rules = rules_by_method(series, baseline)
    if len(series) > 1:
        return [by_round(series), against_none(series), rules]
    return [_block(series), _accuracies(series), rules]


def _in_detail(series: Sequence[Series], baseline: Baseline | None) -> list[list[str]]:
    blocks = [_block(series[at : at + _ACROSS]) for at in range(0, len(series), _ACROSS)]
    return [*blocks, [*_changes(series), *_comparisons(series)], *_rules(series, baseline)]


def _notes(series: Sequence[Series], baseline: Baseline | None) -> list[str]:
    """Why there are no intervals, and what the probes score without a system prompt."""
    lines = []
    if any(len(item.records) < 2 for item in series):
        lines.append(
            "No intervals with fewer than two conversations: one cannot show how much they vary."
        )
    for line in baseline_lines(baseline) if baseline else ():
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="    ")
    return lines


def _block(series: Sequence[Series]) -> list[str]:
    columns: list[tuple[str, list[str]]] = []
    groups = []
    for item in series:
        measured = [
            kind for kind in KINDS if kind == "stability" or not np.isnan(item.values(kind)).all()
        ]
        cells = [
            (kind, [plain(e) for e in estimate_columns(item.values(kind))]) for kind in measured
        ]
        columns += cells
        groups.append((f"{item.method} ({len(item.records)} conversations)", len(cells)))
    widths = [max(len(head), *map(len, cells)) for head, cells in columns]
    for position, (name, count) in zip(_starts(groups), groups, strict=True):
        room = sum(widths[position : position + count]) + 2 * (count - 1)
        widths[position + count - 1] += max(0, len(name) - room)
    top = "       " + "  ".join(
        name.ljust(sum(widths[at : at + count]) + 2 * (count - 1))
        for at, (name, count) in zip(_starts(groups), groups, strict=True)
    )
    head = "round  " + "  ".join(
        name.ljust(width) for (name, _), width in zip(columns, widths, strict=True)
    )
    body = [
        f"{row + 1:>5}  "
        + "  ".join(
            cells[row].ljust(width) for (_, cells), width in zip(columns, widths, strict=True)
        )
        for row in (number - 1 for number in listed(series[0].rounds))
    ]
    return [line.rstrip() for line in (top, head, *body)]


def _rules(series: Sequence[Series], baseline: Baseline | None) -> list[list[str]]:
    """Paragraphs: for each method its rules by round, and when each was lost; nothing without
    rules.
    """
    paragraphs = []
    for item in series:
        rows = rule_rows([item])
        if not rows:
            continue
        blocks = [
            _rule_block(rows[at : at + _RULES_ACROSS], item.rounds)
            for at in range(0, len(rows), _RULES_ACROSS)
        ]
        title = f"Rule by rule, {item.method}: stability by round, and its change to the last"
        blocks[0].insert(0, title)
        paragraphs += [*blocks, [line for row in rows for line in _rule_lines(row, baseline)]]
    return [*paragraphs, _rules_compared(series)]


def _rule_lines(row: RuleRow, baseline: Baseline | None) -> list[str]:
    """Whether and when a rule was lost."""
    if row.never_followed:
        return [f"  {row.name}: {fall(row)}"]
    moved = f"{signed(row.changes[-1])}; " if row.series.rounds > 1 else ""
    return [f"  {row.name}: {moved}{fall(row, baseline)}", f"    {broken_text(row)}"]


def _rules_compared(series: Sequence[Series]) -> list[str]:
    """A table of each rule under each method, minus no fix; nothing of one method."""
    compared = compare_rules(series, rule_rows(series))
    if not compared:
        return []
    rows = [("", f"at round {series[0].rounds}", "over all rounds")]
    for against, pairs in itertools.groupby(compared, lambda pair: pair.against):
        rows.append((f"{against.name}, {against.series.method}", plain(against.points[-1]), ""))
        rows += [
            (
                f"  {pair.row.series.method}",
                judged(pair.last, "higher", "lower"),
                judged(pair.mean, "higher", "lower"),
            )
            for pair in pairs
        ]
    baseline = compared[0].against.series.method
    return [
        f"Rule by method, minus {baseline} on the same conversations:",
        *aligned(rows, "  "),
        *_reasons(compared, series[0].rounds),
    ]


def _reasons(compared: Sequence[RuleComparison], rounds: int) -> list[str]:
    """Why the table cannot tell, with the places of each reason; without those where the interval
    includes 0, which can be seen in the table.
    """
    places: dict[str, list[str]] = {}
    for pair in compared:
        for value, at in ((pair.last, f"round {rounds}"), (pair.mean, "all rounds")):
            if (why := tell(value).why) and why != INCLUDES_ZERO:
                place = f"{pair.row.name} with {pair.row.series.method} ({at})"
                places.setdefault(why, []).append(place)
    lines = []
    for why, there in places.items():
        told = "; ".join(there) if len(there) < 2 * len(compared) else "everywhere"
        lines += textwrap.wrap(
            f"{CANNOT_TELL}, as {why}: {told}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    return lines


def _accuracies(series: Sequence[Series]) -> list[str]:
    """At the first and the last round, where all rules of a prompt are scored on one reply."""
    lines = []
    for item in series:
        accuracy = accuracy_of(item)
        if accuracy is not None:
            lines.append(f"Accuracy, {item.method}, at round 1 and round {item.rounds}:")
            for name, points in (
                ("prompt level", accuracy.prompt_level),
                ("instruction level", accuracy.instruction_level),
            ):
                lines.append(f"  {name}: {plain(points[0])} and {plain(points[-1])}")
    return lines


def _rule_block(rows: Sequence[RuleRow], rounds: int) -> list[str]:
    numbers = listed(rounds)
    cells = [[row.name, *(plain(row.points[number - 1]) for number in numbers)] for row in rows]
    widths = [max(map(len, column)) for column in cells]
    names = ["round", *(f"{number:>5}" for number in numbers)]
    padded = [
        [cell.ljust(width) for cell in column] for column, width in zip(cells, widths, strict=True)
    ]
    return ["  ".join(row).rstrip() for row in zip(names, *padded, strict=True)]


def _starts(groups: Sequence[tuple[str, int]]) -> list[int]:
    starts, at = [], 0
    for _, count in groups:
        starts.append(at)
        at += count
    return starts


def _changes(series: Sequence[Series]) -> list[str]:
    if series[0].rounds < 2:
        return []
    lines = [f"Change from round 1 to {series[0].rounds}, paired by conversation [95 % interval]:"]
    for item in series:
        moved = {kind: overall_change(item, kind) for kind in KINDS}
        lines += [
            f"  {item.method}: {kind} {judged(value, 'rises', 'falls')}"
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
            lines.append(no_pairs(item, baseline))
            continue
        lines.append(f"{item.method} minus {baseline.method}, on the same {pairs.n} conversations:")
        for kind, last, mean in (
            ("stability", pairs.stability_last, pairs.stability_mean),
            ("adoption", pairs.adoption_last, pairs.adoption_mean),
        ):
            if mean.mean is not None:
                lines += [
                    f"  {kind} at round {item.rounds} {judged(last, 'higher', 'lower')}",
                    f"  {kind} over all rounds {judged(mean, 'higher', 'lower')}",
                ]
    return lines
