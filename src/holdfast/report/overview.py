"""The short tables: methods by round, methods against none, and rule by method."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.baseline import Baseline
from holdfast.analysis.comparisons import Comparison, baseline_of, compare
from holdfast.analysis.rules import compare_rules, rule_rows
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, Verdict, tell
from holdfast.report.rounds import numbered
from holdfast.report.sentences import counted, fall
from holdfast.report.wording import aligned, other_prompts, plain, signed

WIDTH = 100
_GAP = 2
_MOST_ROUNDS = 24  # lines; the page has every round
_MOST_ACROSS = 10  # rounds as columns


def listed(rounds: int) -> tuple[int, ...]:
    """The rounds of a table; of many, those that an axis would number."""
    return tuple(range(1, rounds + 1)) if rounds <= _MOST_ROUNDS else numbered(rounds)


def judged(value: Estimate, above: str, below: str) -> str:
    """'-0.31 [-0.40, -0.22], falls; other prompts [-0.43, -0.19]', or '+0.02 [-0.02, +0.07], cannot
    tell'.
    """
    others = f"; {other_prompts(value)}" if value.other_prompts else ""
    return f"{_verdict(value, above, below)}{others}"


def _verdict(value: Estimate, above: str, below: str) -> str:
    return f"{signed(value)}, {tell(value).word(above, below)}"


def by_round(series: Sequence[Series]) -> list[str]:
    """Mean stability by round, a line per method."""
    rounds = max(item.rounds for item in series)
    numbers = range(1, rounds + 1) if rounds <= _MOST_ACROSS else numbered(rounds)
    rows = [["round", *(f"{number:>4}" for number in numbers)]]
    for item in series:
        means = [point.mean for point in estimate_columns(item.stability)[:rounds]]
        cells = [means[at - 1] if at <= len(means) else None for at in numbers]
        rows.append([item.method, *("   –" if mean is None else f"{mean:.2f}" for mean in cells)])
    return [f"Stability by round, {counted(series)}:", *aligned(rows, "  ")]


def against_none(series: Sequence[Series]) -> list[str]:
    """The gain of each method in the last round and over all; nothing of one method."""
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
    rows: list[tuple[str, ...]] = [("", f"round {pairs[0].series.rounds}", "all rounds")]
    verdicts: list[Verdict] = []
    for pair in pairs:
        gains = pair.stability_last, pair.stability_mean
        verdicts += map(tell, gains)
        rows.append((pair.series.method, *(_verdict(gain, "higher", "lower") for gain in gains)))
        if any(gain.other_prompts for gain in gains):
            rows.append(("", *map(other_prompts, gains)))
    title = (
        f"Difference from {pairs[0].baseline.method} in stability, on the same conversations"
        " [95 % interval]:"
    )
    # that an interval includes 0 can be seen in the table
    reasons = dict.fromkeys(why for verdict in verdicts if (why := verdict.why) != INCLUDES_ZERO)
    reasons.pop("", None)
    return [title, *aligned(rows, "  "), *(f"  {CANNOT_TELL}, as {why}" for why in reasons)]


def rules_by_method(series: Sequence[Series], baseline: Baseline | None = None) -> list[str]:
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
    if len(series) == 1:
        columns.append(["", "", *(fall(row, baseline) for row in rows)])
        return ["Rule by rule, stability:", *_side_by_side(columns)]
    return [
        f"Stability by rule and method (higher, lower: a clear difference from {first.method}):",
        *_side_by_side(columns),
    ]


def _mean(value: Estimate) -> str:
    return "–" if value.mean is None else f"{value.mean:.2f}"


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
