"""The charts of the series of a run by measure, category and rule, and the numbers in them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import COLOURS, DASHES, Chart, Curve, round_top
from holdfast.report.wording import two_places, with_interval


class Caption(NamedTuple):
    """The title of a chart, and a line on what it measures."""

    title: str
    meaning: str


CAPTIONS = {  # by kind, from `series.MEASURED`
    "stability": Caption("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": Caption("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": Caption(
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
    """Small charts, and the numbers in them."""

    charts: list[NamedChart]
    numbers: list[CurveGroup]


class NumberCell(NamedTuple):
    """The numbers of a round, as text."""

    mean: str
    interval: str  # "" without one
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


def groups_of(rows: Iterable[EstimateRow]) -> list[CurveGroup]:
    """Converts rows of categories or rules to groups."""
    return [CurveGroup(row.group, row.series, row.n, row.drawn) for row in rows]


def multiples(all_series: Sequence[Series], groups: Sequence[CurveGroup], title: str) -> Multiples:
    """A small chart for each group name, which replaces the {} in `title`."""
    groups_by_name: dict[str, dict[Series, CurveGroup]] = {}
    for group in groups:
        groups_by_name.setdefault(group.name, {})[group.series] = group
    charts = []
    numbers: list[CurveGroup] = []
    for name, groups_by_series in groups_by_name.items():
        points = [
            groups_by_series[series].points if series in groups_by_series else ()
            for series in all_series
        ]
        count = max(group.n for group in groups_by_series.values())
        charts.append(NamedChart(name, count, chart_of(all_series, points, title.format(name))))
        numbers += groups_by_series.values()
    return Multiples(charts, numbers)


def chart_of(
    all_series: Sequence[Series],
    estimates: Sequence[Sequence[Estimate]],
    title: str,
    top: float = 1.0,
) -> Chart:
    """Charts the estimates of each series; series without a mean are left out."""
    pairs = zip(legend_of(all_series), estimates, strict=True)
    curves = [replace(entry, points=points) for entry, points in pairs]
    curves = [curve for curve in curves if curve.measured]
    description = "; ".join(map(_describe_curve, curves)) + "."
    return Chart(title, description, curves, max(series.rounds for series in all_series), top)


def _describe_curve(curve: Curve) -> str:
    """'none: 0.95 at round 1, 0.71 at round 8'."""
    first = curve.measured[0]
    last = curve.measured[-1]
    return (
        f"{curve.label}: {two_places(first.mean)} at round {first.round},"
        f" {two_places(last.mean)} at round {last.round}"
    )


def legend_of(all_series: Sequence[Series]) -> list[Curve]:
    """A curve without points for each series, with the colour and dashes that all charts use.

    The curves of the first run are solid. Those of each further run have dashes of their own, as
    have curves whose colour is used again.
    """
    runs = list(dict.fromkeys(series.run for series in all_series))
    curves = []
    for index, series in enumerate(all_series):
        pattern = runs.index(series.run) or index // COLOURS
        dash = (pattern - 1) % DASHES + 1 if pattern else 0
        curves.append(Curve(series.legend, (), index % COLOURS, dash))
    return curves


def panel(all_series: Sequence[Series], kind: str) -> Panel:
    """The panel of a kind from `series.MEASURED`."""
    estimates = [row_of(series, kind).points for series in all_series]
    title, meaning = CAPTIONS[kind]
    top = 1.0
    if kind not in KINDS:
        points = [point for points in estimates for point in points if point.mean is not None]
        top = round_top([(point.mean or 0.0) + (point.sd or 0.0) for point in points])
    chart = chart_of(all_series, estimates, title, top)
    rounds = range(chart.rounds)
    readings = [_readings_at(index, all_series, estimates, kind) for index in rounds]
    return Panel(title, meaning, chart.rounds, json.dumps(readings), chart)


def _readings_at(
    index: int, all_series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], kind: str
) -> list[list[int | str]]:
    """The colour, the label and the numbers of each series in a round, given its index from 0."""
    return [
        [curve.colour, curve.label, *cell]
        for curve, points in zip(legend_of(all_series), estimates, strict=True)
        if index < len(points) and (cell := cell_of(points[index], kind))
    ]


def number_rows(all_series: Sequence[Series], kinds: Sequence[str]) -> list[NumberRow]:
    """The numbers of panels, with a row for each kind and series."""
    rows = [
        row_of(series, kind) for kind in kinds for series in all_series if series.measured(kind)
    ]
    return [
        NumberRow(
            label=row.series.label,
            kind=row.measure,
            n=row.n,
            cells=[cell_of(point, row.measure) for point in row.points],
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
