"""The tables of the few lines that matter: methods side by side by round, methods against none, and
rule by method.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.comparisons import Comparison, baseline_of, compare
from holdfast.analysis.rules import compare_rules, rule_rows
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.analysis.verdicts import CANNOT_TELL, HOLDS_ZERO, tell
from holdfast.report.rounds import numbered
from holdfast.report.sentences import counted, fall
from holdfast.report.wording import aligned, plain, signed

WIDTH = 100
_GAP = 2
_MOST_ROUNDS = 24  # lines; the page has every round


def listed(rounds: int) -> tuple[int, ...]:
    """The rounds of a table; of many, those that an axis would number."""
    return tuple(range(1, rounds + 1)) if rounds <= _MOST_ROUNDS else numbered(rounds)


def judged(value: Estimate, above: str, below: str) -> str:
    """'-0.31 [-0.40, -0.22], falls', or '+0.02 [-0.02, +0.07], cannot tell'."""
    return f"{signed(value)}, {tell(value).word(above, below)}"


def by_round(series: Sequence[Series]) -> list[str]:
    """Stability by round, a column per method."""
    numbers = listed(max(item.rounds for item in series))
    columns = [["round", *(f"{number:>5}" for number in numbers)]]
    for item in series:
        points = estimate_columns(item.stability)
        cells = [plain(points[at - 1]) if at <= len(points) else "" for at in numbers]
        columns.append([item.method, *cells])
    return [f"Stability by round, {counted(series)}:", *_side_by_side(columns)]


def against_none(series: Sequence[Series]) -> list[str]:
    """A line per method: what it changes at the last round and over all; nothing of one method."""
    compared, apart = [], []
    for item in series:
        if (baseline := baseline_of(series, item)) is None:
            continue
        if pair := compare(item, baseline):
            compared.append(pair)
        else:
            apart.append(no_pairs(item, baseline))
    return [*_compared(compared), *apart]


def no_pairs(item: Series, baseline: Series) -> str:
    """Says that two methods are not compared."""
    return f"{item.method} and {baseline.method} share no conversations, so they are not compared."


def _compared(pairs: Sequence[Comparison]) -> list[str]:
    if not pairs:
        return []
    rows = [("", f"at round {pairs[0].series.rounds}", "over all rounds")]
    rows += [
        (
            pair.series.method,
            judged(pair.stability_last, "higher", "lower"),
            judged(pair.stability_mean, "higher", "lower"),
        )
        for pair in pairs
    ]
    title = f"Stability minus that with {pairs[0].baseline.method}, on the same conversations:"
    told = [tell(value) for pair in pairs for value in (pair.stability_last, pair.stability_mean)]
    # that an interval holds 0 can be seen in the table
    reasons = dict.fromkeys(verdict.why for verdict in told if verdict.why not in ("", HOLDS_ZERO))
    return [title, *aligned(rows, "  "), *(f"  {CANNOT_TELL}, as {why}" for why in reasons)]


def rules_by_method(series: Sequence[Series]) -> list[str]:
    """A line per rule: the first method's first and last round, and the last of the others; of one
    method, when the rule was lost. Nothing without rules.
    """
    rows = rule_rows(series)
    if not rows:
        return []
    first, names = series[0], list(dict.fromkeys(row.name for row in rows))
    columns = [["", "", *names]]
    if first.rounds > 1:
        start = {row.name: plain(row.points[0]) for row in rows if row.series is first}
        columns.append([first.method, "round 1", *(start.get(name, "") for name in names)])
    words = {
        (pair.row.series, pair.row.name): tell(pair.last).word("higher", "lower")
        for pair in compare_rules(series, rows)
        if tell(pair.last).sign
    }
    for item in series:
        cells = {
            row.name: f"{plain(row.points[-1])} {words.get((item, row.name), '')}".rstrip()
            for row in rows
            if row.series is item
        }
        columns.append([item.method, f"round {item.rounds}", *(cells.get(n, "") for n in names)])
    if len(series) == 1:
        columns.append(["", "", *(fall(row) for row in rows)])
        return ["Rule by rule, stability:", *_side_by_side(columns)]
    return [
        f"Rule by method, stability; higher or lower than with {first.method} where this run can"
        " tell:",
        *_side_by_side(columns),
    ]


def _side_by_side(columns: Sequence[Sequence[str]]) -> list[str]:
    """Columns as lines; those that do not fit stand below, again behind the first column."""
    widths = [max(map(len, column)) for column in columns]
    blocks: list[list[int]] = [[]]
    room = 0
    for at in range(1, len(columns)):
        if blocks[-1] and widths[at] > room:
            blocks.append([])
        if not blocks[-1]:
            room = WIDTH - widths[0] - _GAP
        blocks[-1].append(at)
        room -= widths[at] + _GAP
    lines: list[str] = []
    for block in blocks:
        shown = [(columns[at], widths[at]) for at in (0, *block)]
        lines += [
            (" " * _GAP).join(column[row].ljust(width) for column, width in shown).rstrip()
            for row in range(len(columns[0]))
        ]
        lines.append("")
    return lines[:-1]
