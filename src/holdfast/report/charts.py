"""The geometry of charts, in user units of `templates/charts.svg.j2`; CSS sets the colours."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.analysis.statistics import Estimate

COLOURS = 6  # --series-0 to --series-5 in page.css, and as many dash patterns
MAX_ROUND_COLUMNS = 16  # a table with more rounds has a row for each instead
MAX_DOTS = 24  # a curve with more means has no dots
DASHES = 3  # patterns of dashed lines
MAX_UNFOLDED = 6  # small charts of a section; the others are folded away
_MAX_NUMBERED_ROUNDS = 12  # on an axis
_NEAR = 4.0  # units; lines that are closer cover one another
_STEPS = (1, 2, 5, 10, 20, 25, 50, 100)  # between numbered rounds
_Point = tuple[float, float]


class RoundMean(NamedTuple):
    """A round in which a curve has a mean."""

    round: int
    mean: float
    estimate: Estimate


class EndLabel(NamedTuple):
    """The last mean of a curve, written beside its end."""

    x: float
    y: float
    colour: int
    text: str


@dataclass(frozen=True)
class Curve:
    """A series' estimates by round, its colour (an index), and its pattern of dashes."""

    label: str
    points: Sequence[Estimate]
    colour: int
    dash: int = 0  # solid; or one of `DASHES` patterns in page.css, from 1

    @property
    def measured(self) -> list[RoundMean]:
        """The rounds that have a mean."""
        return [
            RoundMean(number, point.mean, point)
            for number, point in enumerate(self.points, start=1)
            if point.mean is not None
        ]

    @property
    def has_dots(self) -> bool:
        """Whether the means are few enough to draw a dot for each."""
        return len(self.measured) <= MAX_DOTS


@dataclass(frozen=True)
class Chart:
    """Curves by round: band = 95% interval, whiskers = one standard deviation, dots = means."""

    title: str
    description: str  # read by screen readers, with the title
    curves: Sequence[Curve]  # each has at least one mean
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
        if self.small:
            return (1, self.rounds) if self.rounds > 1 else (1,)
        return rounds_to_number(self.rounds)

    def x(self, round: int) -> float:
        """The x coordinate of a round."""
        span = self.width - self.left - self.right
        if self.rounds <= 1:
            return self.left + span / 2
        return self.left + span * (round - 1) / (self.rounds - 1)

    def y(self, value: float) -> float:
        """The y coordinate of a value, clipped to the axis."""
        inside = min(max(value, 0.0), self.top)
        return self.above + (self.height - self.above - self.below) * (1 - inside / self.top)

    def path(self, curve: Curve) -> list[_Point]:
        """The means of a curve, as points."""
        return [(self.x(number), self.y(mean)) for number, mean, _ in curve.measured]

    def band(self, curve: Curve) -> list[_Point]:
        """The outline of a curve's intervals: its upper ends, then its lower ends backwards."""
        ends = [
            (self.x(number), self.y(point.low), self.y(point.high))
            for number, _, point in curve.measured
            if point.low is not None and point.high is not None
        ]
        return [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]

    def width_of(self, curve: Curve) -> float:
        """The width of a curve's line, which grows with each later curve that covers part of it."""
        later = self.curves[self.curves.index(curve) + 1 :]
        return 2.1 + 2.4 * sum(self._covers(later_curve, curve) for later_curve in later)

    @property
    def has_covered_curve(self) -> bool:
        """Whether a curve is drawn wider, as a later one covers part of it."""
        return any(self.width_of(curve) > self.width_of(self.curves[-1]) for curve in self.curves)

    def _covers(self, later_curve: Curve, curve: Curve) -> bool:
        """Whether another curve lies on a curve for two rounds in a row, or in its only round."""
        other_heights = {number: self.y(mean) for number, mean, _ in later_curve.measured}
        near = [
            number in other_heights and abs(self.y(mean) - other_heights[number]) < _NEAR
            for number, mean, _ in curve.measured
        ]
        if len(near) < 2:
            return all(near)
        return any(first and second for first, second in itertools.pairwise(near))

    def whiskers(self, curve: Curve) -> str:
        """An SVG path of one standard deviation up and down; an end beyond the axis has no cap."""
        shift = 4.0 * (self.curves.index(curve) - (len(self.curves) - 1) / 2)
        path = ""
        for number, mean, point in curve.measured:
            if point.sd is None:
                continue
            x = self.x(number) + shift
            low = mean - point.sd
            high = mean + point.sd
            path += f"M{x:.1f} {self.y(low):.1f}V{self.y(high):.1f}"
            for end in (low, high):
                if 0 <= end <= self.top:
                    path += f"M{x - 2:.1f} {self.y(end):.1f}h4"
        return path

    @property
    def ends(self) -> Iterator[EndLabel]:
        """Labels of the last means, moved apart so that they do not overlap."""
        gap = 12.0 if self.small else 14.0
        floor = self.height - self.below + 2
        curves = sorted(
            self.curves, key=lambda curve: (self.y(curve.measured[-1].mean), curve.colour)
        )
        heights = [self.y(curve.measured[-1].mean) for curve in curves]
        for above, below in itertools.pairwise(range(len(curves))):
            heights[below] = max(heights[below], heights[above] + gap)
        digits = 2 if self.top > 0.5 else 3
        for index, curve in enumerate(curves):
            last = curve.measured[-1]
            height = min(heights[index], floor - (len(curves) - 1 - index) * gap)
            yield EndLabel(self.x(last.round), height, curve.colour, f"{last.mean:.{digits}f}")


def shrink(chart: Chart) -> Chart:
    """Resizes a chart for small multiples."""
    return replace(chart, small=True, width=240, height=150, left=26, right=34, above=10, below=22)


def spark_path(values: Sequence[float | None]) -> list[_Point]:
    """The points of a sparkline of values from 0 to 1: 76 by 28 units with a margin of 3."""
    step = 70 / max(1, len(values) - 1)
    return [
        (3 + index * step, 3 + 22 * (1 - value))
        for index, value in enumerate(values)
        if value is not None
    ]


def round_top(values: Sequence[float]) -> float:
    """The top of a y axis from 0: at or above every value, and with quarters that are round."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(largest))
    return next(step * size for step in (1, 2, 4, 6, 8, 10) if step * size >= largest * 0.999999)


def rounds_to_number(rounds: int) -> tuple[int, ...]:
    """The rounds that an axis numbers: all of them, or the first, the last and some between.

    >>> rounds_to_number(3), rounds_to_number(32)
    ((1, 2, 3), (1, 5, 10, 15, 20, 25, 32))
    """
    step = next((step for step in _STEPS if rounds <= _MAX_NUMBERED_ROUNDS * step), rounds)
    if step == 1:
        return tuple(range(1, rounds + 1))
    middle_rounds = [number for number in range(step, rounds, step) if rounds - number > step / 2]
    return (1, *middle_rounds, rounds)
