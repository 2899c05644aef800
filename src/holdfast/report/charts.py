"""The geometry of charts, in user units of `templates/charts.svg.j2`; CSS sets the colours."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.analysis.statistics import Estimate

COLOURS = 6  # --series-0 to --series-5 in page.css, and as many dash patterns
MOST_ACROSS = 16  # most rounds that a table shows as columns; more become rows
MOST_DOTS = 24  # most means of a curve to draw a dot for each
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


def small(chart: Chart) -> Chart:
    """The chart, resized for small multiples."""
    return replace(chart, small=True, width=240, height=150, left=26, right=34, above=10, below=22)


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
