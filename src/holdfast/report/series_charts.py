"""The charts and their numbers of the series of a run: by measure, category and rule."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.analysis.estimates import EstimateRow, row_of
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import COLOURS, DASHES, Chart, Curve, round_top
from holdfast.report.wording import with_interval

CAPTIONS = {
    "stability": ("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": ("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": (
        "Attention mass on the agent’s system prompt",
        "mean over heads, layers and tokens of its replies",
    ),
}


class CurveGroup(NamedTuple):
    """The estimates by round of one series in a group of n conversations, such as a category."""

    name: str
    series: Series
    n: int
    points: Sequence[Estimate]


class NamedChart(NamedTuple):
    """A small chart with its name and number of conversations."""

    name: str
    n: int
    chart: Chart


class Multiples(NamedTuple):
    """Small charts, and the numbers that they show."""

    charts: list[NamedChart]
    numbers: list[CurveGroup]


def groups_of(rows: Iterable[EstimateRow]) -> list[CurveGroup]:
    """Converts rows of categories or rules to groups."""
    return [CurveGroup(row.group, row.series, row.n, row.drawn) for row in rows]


def multiples(series: Sequence[Series], groups: Sequence[CurveGroup], title: str) -> Multiples:
    """A small chart for each group name, which replaces the {} in `title`."""
    by_name: dict[str, dict[Series, CurveGroup]] = {}
    for group in groups:
        by_name.setdefault(group.name, {})[group.series] = group
    charts = []
    for name, by_series in by_name.items():
        points = [by_series[item].points if item in by_series else () for item in series]
        count = max(group.n for group in by_series.values())
        charts.append(NamedChart(name, count, chart_of(series, points, title.format(name))))
    return Multiples(
        charts, [group for by_series in by_name.values() for group in by_series.values()]
    )


def chart_of(
    series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], title: str, top: float = 1.0
) -> Chart:
    """Charts the estimates of each series; series without a mean are left out."""
    pairs = zip(looks(series), estimates, strict=True)
    curves = [replace(look, points=points) for look, points in pairs]
    curves = [curve for curve in curves if curve.measured]
    parts = []
    for curve in curves:
        first = curve.measured[0]
        last = curve.measured[-1]
        parts.append(
            f"{curve.label}: {first.mean:.2f} at round {first.round}, {last.mean:.2f} at round"
            f" {last.round}"
        )
    description = "; ".join(parts) + "."
    return Chart(title, description, curves, max(item.rounds for item in series), top)


def looks(series: Sequence[Series]) -> list[Curve]:
    """The style of every series on the page: each other run has its dashes, as have reused
    colours.
    """
    runs = list(dict.fromkeys(item.run for item in series))

    def dash(index: int, item: Series) -> int:
        number = runs.index(item.run) or index // COLOURS
        return (number - 1) % DASHES + 1 if number else 0

    return [
        Curve(item.legend, (), index % COLOURS, dash(index, item))
        for index, item in enumerate(series)
    ]


class NumberCell(NamedTuple):
    """The numbers of a round, as text."""

    mean: str
    interval: str
    deviation: str  # "" for fewer than two conversations


class NumberRow(NamedTuple):
    """The numbers behind a curve."""

    label: str  # of its series
    kind: str
    n: int  # conversations
    cells: list[NumberCell | None]  # by round; None where nothing was measured


@dataclass(frozen=True)
class Panel:
    """A chart by round; `readings` (JSON) lists [colour, label, value, interval, sd] by round."""

    title: str
    meaning: str
    rounds: int
    readings: str
    chart: Chart


def panel(series: Sequence[Series], kind: str) -> Panel:
    """The panel of a kind from `series.MEASURED`."""
    estimates = [row_of(item, kind).points for item in series]
    title, meaning = CAPTIONS[kind]
    means = [point for points in estimates for point in points if point.mean is not None]
    top = 1.0 if kind in KINDS else round_top([(p.mean or 0) + (p.sd or 0.0) for p in means])
    chart = chart_of(series, estimates, title, top)
    readings = [
        [
            [look.colour, look.label, *cell]
            for look, points in zip(looks(series), estimates, strict=True)
            if number < len(points) and (cell := cell_of(points[number], kind))
        ]
        for number in range(chart.rounds)
    ]
    return Panel(title, meaning, chart.rounds, json.dumps(readings), chart)


def number_rows(series: Sequence[Series], kinds: Sequence[str]) -> list[NumberRow]:
    """Panels as a table, with a row for each kind and series."""
    rows = [row_of(item, kind) for kind in kinds for item in series if item.measured(kind)]
    return [
        NumberRow(
            row.series.label,
            row.measure,
            row.n,
            [cell_of(point, row.measure) for point in row.points],
        )
        for row in rows
    ]


def cell_of(point: Estimate, kind: str) -> NumberCell | None:
    """The numbers of an estimate; None if nothing was measured."""
    if point.mean is None:
        return None
    digits = 2 if kind in KINDS else 3
    value, _, interval = with_interval(point, lambda number: f"{number:.{digits}f}").partition(" ")
    deviation = "" if point.sd is None else f"{point.sd:.{digits}f}"
    return NumberCell(value, interval, deviation)
