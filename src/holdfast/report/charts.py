"""The charts of the page, in user units of `templates/charts.svg.j2`; CSS sets the colours."""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.analysis.estimates import EstimateRow, row_of
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.report.wording import with_interval

COLOURS = 6  # --series-0 to --series-5 in page.css, and as many dash patterns
MOST_ACROSS = 16  # most rounds that a table shows as columns; more become rows
MOST_DOTS = 24  # most means of a curve to draw a dot for each
CAPTIONS = {
    "stability": ("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": ("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": (
        "Attention mass on the agent’s system prompt",
        "mean over heads, layers and tokens of its replies",
    ),
}
DASHES = 3  # patterns of dashed lines
_NUMBERED = 12  # an axis numbers every round up to this many
_APART = 4.0  # units; lines that are closer cover one another
_STEPS = (1, 2, 5, 10, 20, 25, 50, 100)
_Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A series' estimates by round, its colour (an index), and its pattern of dashes."""

    label: str
    points: Sequence[Estimate]
    colour: int
    dash: int = 0  # solid; or one of `DASHES` patterns in page.css, from 1

    @property
    def measured(self) -> list[tuple[int, float, Estimate]]:
        """Number, mean and estimate of each round that has a mean."""
        return [
            (number, point.mean, point)
            for number, point in enumerate(self.points, start=1)
            if point.mean is not None
        ]

    @property
    def has_dots(self) -> bool:
        """Whether the means are few enough to draw a dot for each."""
        return len(self.measured) <= MOST_DOTS


@dataclass(frozen=True)
class Chart:
    """Curves by round: band = 95% interval, whiskers = one standard deviation, dots = means."""

    title: str
    description: str  # read by screen readers, with the title
    curves: Sequence[Curve]  # only those with a mean
    rounds: int  # length of the x axis
    top: float = 1.0  # largest y value; the axis starts at 0
    small: bool = False  # for small multiples, with fewer labels and no whiskers
    width: int = 460  # of the plotting area plus margins
    height: int = 300
    left: int = 34
    right: int = 42
    above: int = 12
    below: int = 40

    @property
    def levels(self) -> tuple[float, ...]:
        """Grid lines, as shares of the y axis."""
        return (0, 0.5, 1) if self.small else (0, 0.25, 0.5, 0.75, 1)

    @property
    def ticks(self) -> tuple[int, ...]:
        """The rounds that the x axis numbers."""
        return tuple(dict.fromkeys((1, self.rounds))) if self.small else numbered(self.rounds)

    def x(self, round: int) -> float:
        """The x coordinate of a round."""
        span = self.width - self.left - self.right
        return self.left + (span * (round - 1) / (self.rounds - 1) if self.rounds > 1 else span / 2)

    def y(self, value: float) -> float:
        """The y coordinate of a value, clipped to the axis."""
        inside = min(max(value, 0.0), self.top)
        return self.above + (self.height - self.above - self.below) * (1 - inside / self.top)

    def path(self, curve: Curve) -> list[_Point]:
        """The means of a curve, as points."""
        return [(self.x(number), self.y(mean)) for number, mean, _ in curve.measured]

    def band(self, curve: Curve) -> list[_Point]:
        """The outline of a curve's intervals; a single interval gives only two points."""
        ends = [
            (self.x(number), self.y(point.low), self.y(point.high))
            for number, _, point in curve.measured
            if point.low is not None and point.high is not None
        ]
        return [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]

    def width_of(self, curve: Curve) -> float:
        """The width of a curve's line: more for each later one that covers a part of it."""
        later = self.curves[self.curves.index(curve) + 1 :]
        return 2.1 + 2.4 * sum(self._covers(other, curve) for other in later)

    def _covers(self, other: Curve, curve: Curve) -> bool:
        """Whether two curves coincide from one round to the next, or in their only one."""
        theirs = {number: self.y(mean) for number, mean, _ in other.measured}
        near = [
            number in theirs and abs(self.y(mean) - theirs[number]) < _APART
            for number, mean, _ in curve.measured
        ]
        return any(map(all, itertools.pairwise(near))) if len(near) > 1 else all(near)

    def whiskers(self, curve: Curve) -> str:
        """An SVG path of one standard deviation each way; an end beyond the axis has no cap."""
        aside = 4.0 * (self.curves.index(curve) - (len(self.curves) - 1) / 2)
        path = ""
        for number, mean, point in curve.measured:
            if point.sd is None:
                continue
            x, ends = self.x(number) + aside, (mean - point.sd, mean + point.sd)
            path += f"M{x:.1f} {self.y(ends[0]):.1f}V{self.y(ends[1]):.1f}"
            for end in ends:
                if 0 <= end <= self.top:
                    path += f"M{x - 2:.1f} {self.y(end):.1f}h4"
        return path

    @property
    def ends(self) -> Iterator[tuple[float, float, int, str]]:
        """Labels of the last means, moved apart to avoid overlap: x, y, colour and text."""
        gap = 12.0 if self.small else 14.0
        floor = self.height - self.below + 2
        last = [(*curve.measured[-1][:2], curve.colour) for curve in self.curves]
        last.sort(key=lambda end: (self.y(end[1]), end[2]))
        heights = [self.y(mean) for _, mean, _ in last]
        for above, below in itertools.pairwise(range(len(last))):
            heights[below] = max(heights[below], heights[above] + gap)
        for index, (number, mean, colour) in enumerate(last):
            height = min(heights[index], floor - (len(last) - 1 - index) * gap)
            yield self.x(number), height, colour, f"{mean:.{2 if self.top > 0.5 else 3}f}"


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


def small(chart: Chart) -> Chart:
    """The chart, resized for small multiples."""
    return replace(chart, small=True, width=240, height=150, left=26, right=34, above=10, below=22)


def chart_of(
    series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], title: str, top: float = 1.0
) -> Chart:
    """Charts the estimates of each series; series without a mean are left out."""
    pairs = zip(looks(series), estimates, strict=True)
    curves = [replace(look, points=points) for look, points in pairs]
    curves = [curve for curve in curves if curve.measured]
    parts = []
    for curve in curves:
        (first, start, _), (last, end, _) = curve.measured[0], curve.measured[-1]
        parts.append(f"{curve.label}: {start:.2f} at round {first}, {end:.2f} at round {last}")
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


# label, kind, conversations, and a cell per round: mean, interval and standard deviation
NumberRow = tuple[str, str, int, list[tuple[str, str, str] | None]]


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
        (row.series.label, row.measure, row.n, [cell_of(p, row.measure) for p in row.points])
        for row in rows
    ]


def cell_of(point: Estimate, kind: str) -> tuple[str, str, str] | None:
    """Mean, interval and standard deviation as text; None if nothing was measured."""
    if point.mean is None:
        return None
    digits = 2 if kind in KINDS else 3
    value, _, interval = with_interval(point, lambda number: f"{number:.{digits}f}").partition(" ")
    return value, interval, "" if point.sd is None else f"{point.sd:.{digits}f}"


def spark_path(values: Sequence[float | None]) -> list[_Point]:
    """A sparkline of values from 0 to 1, 76 by 28 units with a margin of 3."""
    step = 70 / max(1, len(values) - 1)
    places = enumerate(values)
    return [(3 + at * step, 3 + 22 * (1 - value)) for at, value in places if value is not None]


def round_top(values: Sequence[float]) -> float:
    """A number at or above every value whose quarters are round, for a y axis from 0."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(largest))
    return next(step * size for step in (1, 2, 4, 6, 8, 10) if step * size >= largest * 0.999999)


def numbered(rounds: int) -> tuple[int, ...]:
    """The rounds that an axis numbers: all, or the first, the last, and round numbers between.

    >>> numbered(3), numbered(32), numbered(100)
    ((1, 2, 3), (1, 5, 10, 15, 20, 25, 32), (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    """
    step = next((step for step in _STEPS if rounds <= _NUMBERED * step), rounds)
    if step == 1:
        return tuple(range(1, rounds + 1))
    between = [number for number in range(step, rounds, step) if rounds - number > step / 2]
    return (1, *between, rounds)
