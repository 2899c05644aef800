"""What the sections of the drift page show: estimates, cells and charts, without markup but the
charts'.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.analysis.comparisons import (
    Comparison,
    baseline_of,
    by_category,
    compare,
    overall_change,
)
from holdfast.analysis.rules import RuleRow, rule_rows
from holdfast.analysis.series import KINDS, Series, category_of
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.report.charts import COLOURS, Line, difference_mark, line_chart, round_top
from holdfast.report.sentences import broken_text, fall
from holdfast.report.wording import with_interval

CAPTIONS = {
    "stability": ("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": ("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": (
        "Attention mass on the agent’s system prompt",
        "mean over heads, layers and tokens of its replies",
    ),
}
SHOWN_CATEGORIES = 6  # the rest is folded


@dataclass(frozen=True)
class LegendEntry:
    """A series with the look it has everywhere on the page."""

    label: str
    colour: int
    dashed: bool


@dataclass(frozen=True)
class Panel:
    """A chart by round; points is JSON: per round, [colour, label, value, interval, sd] of each
    series.
    """

    title: str
    meaning: str
    rounds: int
    points: str
    chart: Markup


@dataclass(frozen=True)
class Cell:
    """An estimate as text; empty where there is no interval or deviation."""

    value: str
    interval: str
    sd: str


@dataclass(frozen=True)
class NumbersRow:
    """One series of one panel; None where a round was not measured."""

    label: str
    kind: str
    n: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class ChangeRow:
    """The change of a series from its first round to its last."""

    label: str
    stability: Estimate
    adoption: Estimate
    n: int


@dataclass(frozen=True)
class Drift:
    """Stability and adoption per round; single where a series has one conversation, and so no
    interval.
    """

    panels: tuple[Panel, ...]
    numbers: tuple[NumbersRow, ...]
    changes: tuple[ChangeRow, ...]
    single: bool


@dataclass(frozen=True)
class Marked:
    """A difference and its drawing."""

    estimate: Estimate
    mark: Markup


@dataclass(frozen=True)
class MethodRow:
    """A series against its baseline on n pairs; no cells where the two cannot be compared."""

    label: str
    against: str
    colour: int
    n: int
    cells: tuple[Marked, ...]


@dataclass(frozen=True)
class NamedChart:
    """The chart of a category or a rule, with the number of its conversations."""

    name: str
    n: int
    chart: Markup


@dataclass(frozen=True)
class CategoryRow:
    """A category in one series."""

    name: str
    label: str
    points: Sequence[Estimate]


@dataclass(frozen=True)
class Categories:
    """Small multiples by the category of the prompt that is scored, and their numbers."""

    kind: str
    title: str
    whose: str
    charts: tuple[NamedChart, ...]
    rows: tuple[CategoryRow, ...]


@dataclass(frozen=True)
class RuleLine:
    """A rule in one series; in words when it was lost and how many conversations broke it."""

    row: RuleRow
    fall: str
    broken: str


@dataclass(frozen=True)
class Rules:
    """Small multiples by rule, and their numbers."""

    charts: tuple[NamedChart, ...]
    lines: tuple[RuleLine, ...]


@dataclass(frozen=True)
class Attention:
    """Attention mass per round."""

    legend: list[LegendEntry]
    panel: Panel
    numbers: tuple[NumbersRow, ...]


def drift_section(series: Sequence[Series]) -> Drift:
    """Stability and adoption per round for every series, and their change from first to last
    round.
    """
    kinds = [kind for kind in KINDS if any(item.measured(kind) for item in series)]
    changes = tuple(
        ChangeRow(
            item.label,
            overall_change(item, "stability"),
            overall_change(item, "adoption"),
            len(item.records),
        )
        for item in series
    )
    single = any(len(item.records) < 2 for item in series)
    return Drift(
        tuple(_panel(series, kind) for kind in kinds), _numbers(series, kinds), changes, single
    )


def methods_section(series: Sequence[Series]) -> list[MethodRow]:
    """Each series against its baseline on the same pairs; empty for a single series."""
    others = [
        (item, baseline) for item in series if (baseline := baseline_of(series, item)) is not None
    ]
    compared = [(item, baseline, compare(item, baseline)) for item, baseline in others]
    estimates = [point for *_, result in compared if result for point in _estimates(result)]
    ends = [end for point in estimates for end in (point.mean, point.low, point.high)]
    reach = round_top([abs(end) for end in ends if end is not None])
    rows = []
    for item, baseline, result in compared:
        shown = _estimates(result) if result else ()
        cells = tuple(Marked(point, Markup(difference_mark(point, reach))) for point in shown)
        n = result.n if result else 0
        rows.append(MethodRow(item.label, baseline.label, colour_of(series, item), n, cells))
    return rows


def categories_section(series: Sequence[Series]) -> list[Categories]:
    """By the category of the prompt that is scored, for each kind; empty where no prompt has
    one.
    """
    return [block for kind in KINDS if (block := _categories(series, kind)).charts]


def rules_section(series: Sequence[Series]) -> Rules | None:
    """Stability rule by rule; None where no prompt gives several."""
    rows = rule_rows(series)
    rounds = max(item.rounds for item in series)
    charts = []
    for name in dict.fromkeys(row.name for row in rows):
        of_rule = [row for row in rows if row.name == name]
        by_series = {row.series: row.points for row in of_rule}
        points = [by_series.get(item, ()) for item in series]
        lines, told = _lines(series, points), _describe(series, points)
        drawn = line_chart(lines, rounds, f"Keeps {name}", told, small=True)
        charts.append(NamedChart(name, max(row.n for row in of_rule), Markup(drawn)))
    told_rows = tuple(RuleLine(row, fall(row), broken_text(row)) for row in rows)
    return Rules(tuple(charts), told_rows) if rows else None


def attention_section(series: Sequence[Series]) -> Attention | None:
    """Attention mass on the prompt per round; None where records carry none."""
    if not any(item.measured("mass") for item in series):
        return None
    shown = [
        entry for entry, item in zip(legend(series), series, strict=True) if item.measured("mass")
    ]
    return Attention(shown, _panel(series, "mass"), _numbers(series, ["mass"]))


def legend(series: Sequence[Series]) -> list[LegendEntry]:
    """The look of every series."""
    return [
        LegendEntry(item.label, at % COLOURS, _dashed(series, item))
        for at, item in enumerate(series)
    ]


def colour_of(series: Sequence[Series], item: Series) -> int:
    """The index of the colour a series has everywhere on the page."""
    return list(series).index(item) % COLOURS


def _dashed(series: Sequence[Series], item: Series) -> bool:
    """Other runs than the first are dashed, and so are colours used a second time."""
    return item.run != series[0].run or list(series).index(item) >= COLOURS


def _lines(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> list[Line]:
    looks = legend(series)
    return [
        Line(look.label, points, look.colour, look.dashed)
        for look, points in zip(looks, estimates, strict=True)
    ]


def _panel(series: Sequence[Series], kind: str) -> Panel:
    estimates = [estimate_columns(item.values(kind)) for item in series]
    rounds = max(item.rounds for item in series)
    flat = [point for points in estimates for point in points]
    peak = [point.mean + (point.sd or 0.0) for point in flat if point.mean is not None]
    title, meaning = CAPTIONS[kind]
    top = round_top(peak) if kind == "mass" else 1.0
    chart = line_chart(
        _lines(series, estimates), rounds, title, _describe(series, estimates), top=top
    )
    data = [_readings(series, estimates, number, _digits(kind)) for number in range(rounds)]
    return Panel(title, meaning, rounds, json.dumps(data), Markup(chart))


def _readings(
    series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], number: int, digits: int
) -> list[list[object]]:
    """What is read at a round: [colour, label, value, interval, sd] of each series that has one."""
    read: list[list[object]] = []
    for at, (item, points) in enumerate(zip(series, estimates, strict=True)):
        if number < len(points) and (cell := _cell(points[number], digits)):
            read.append([at % COLOURS, item.label, cell.value, cell.interval, cell.sd])
    return read


def _digits(kind: str) -> int:
    return 3 if kind == "mass" else 2


def _cell(point: Estimate, digits: int) -> Cell | None:
    if point.mean is None:
        return None
    value, _, interval = with_interval(point, lambda number: f"{number:.{digits}f}").partition(" ")
    return Cell(value, interval, "" if point.sd is None else f"{point.sd:.{digits}f}")


def _describe(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> str:
    told = []
    for item, points in zip(series, estimates, strict=True):
        seen = [
            (i, point.mean) for i, point in enumerate(points, start=1) if point.mean is not None
        ]
        if seen:
            (first, start), (last, end) = seen[0], seen[-1]
            told.append(f"{item.label}: {start:.2f} at round {first}, {end:.2f} at round {last}")
    return "; ".join(told) + "."


def _numbers(series: Sequence[Series], kinds: Sequence[str]) -> tuple[NumbersRow, ...]:
    """The panels as a table: mean, interval and standard deviation of every point."""
    return tuple(
        NumbersRow(item.label, kind, len(item.records), _cells(item, kind))
        for kind in kinds
        for item in series
        if item.measured(kind)
    )


def _cells(item: Series, kind: str) -> tuple[Cell | None, ...]:
    return tuple(_cell(point, _digits(kind)) for point in estimate_columns(item.values(kind)))


def _estimates(result: Comparison) -> tuple[Estimate, ...]:
    return result.stability_last, result.stability_mean, result.adoption_last, result.adoption_mean


def _categories(series: Sequence[Series], kind: str) -> Categories:
    by_series = [by_category(item, kind) for item in series]
    names = sorted({name for categories in by_series for name in categories})
    rounds = max(item.rounds for item in series)
    charts = []
    for name in names:
        estimates = [categories.get(name, []) for categories in by_series]
        title = f"{CAPTIONS[kind][0]}: {name.replace('_', ' ')}"
        lines = _lines(series, estimates)
        chart = line_chart(lines, rounds, title, _describe(series, estimates), small=True)
        count = max(
            sum(category_of(record, kind) == name for record in item.records) for item in series
        )
        charts.append(NamedChart(name, count, Markup(chart)))
    rows = tuple(
        CategoryRow(name, item.label, categories[name])
        for name in names
        for item, categories in zip(series, by_series, strict=True)
        if name in categories
    )
    whose = "the agent’s" if kind == "stability" else "the user’s"
    return Categories(kind, CAPTIONS[kind][0], whose, tuple(charts), rows)
