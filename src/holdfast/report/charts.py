"""Where the marks of a chart stand, in user units of its SVG; `templates/charts.svg.j2` draws them.

Colours come from the style sheet of the page, so they follow light and dark.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.analysis.statistics import Estimate
from holdfast.report.rounds import MOST_DOTS, numbered

COLOURS = 6  # --series-0 to --series-5 in page.css, and as many dash patterns
_Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One curve: its estimates per round, its colour (an index) and whether it is dashed (a
    control).
    """

    label: str
    points: Sequence[Estimate]
    colour: int
    dashed: bool = False

    @property
    def measured(self) -> list[tuple[int, float, Estimate]]:
        """Round, mean and estimate, where there is a mean."""
        return [
            (number, point.mean, point)
            for number, point in enumerate(self.points, start=1)
            if point.mean is not None
        ]


@dataclass(frozen=True)
class Frame:
    """The plotting area in user units; y runs from 0 to top."""

    width: float
    height: float
    left: float
    right: float
    above: float
    below: float
    rounds: int
    top: float = 1.0

    def x(self, round: int) -> float:
        span = self.width - self.left - self.right
        return self.left + (span * (round - 1) / (self.rounds - 1) if self.rounds > 1 else span / 2)

    def y(self, value: float) -> float:
        inside = min(max(value, 0.0), self.top)
        return self.above + (self.height - self.above - self.below) * (1 - inside / self.top)


@dataclass(frozen=True)
class Level:
    """A horizontal line of the grid, or the axis, with its number; "" for none."""

    y: float
    is_axis: bool
    label: str


@dataclass(frozen=True)
class Curve:
    """One line as it is drawn.

    Attributes:
        colour, dashed: its look.
        path: its means.
        band: the outline of its 95 % intervals; empty where there are fewer than two.
        bar: x and both ends of its only interval; None where there are none or several.
        whisker: an SVG path of hairlines, one standard deviation each; "" for none.
        dots: whether its means have dots.
    """

    colour: int
    dashed: bool
    path: tuple[_Point, ...]
    band: tuple[_Point, ...]
    bar: tuple[float, float, float] | None
    whisker: str
    dots: bool


@dataclass(frozen=True)
class End:
    """The last mean of a curve, written beside its end."""

    x: float
    y: float
    colour: int
    text: str


@dataclass(frozen=True)
class Chart:
    """A line chart by round: band = 95 % interval, hairline whiskers = one standard deviation,
    dots = means.
    """

    frame: Frame
    title: str
    describe: str
    small: bool
    levels: tuple[Level, ...]
    ticks: tuple[int, ...]
    curves: tuple[Curve, ...]
    ends: tuple[End, ...]


@dataclass(frozen=True)
class Spark:
    """A tiny curve for a table cell, from 0 to 1; decorative, as the cells beside it hold the
    numbers.
    """

    path: tuple[_Point, ...]
    width: int = 76
    height: int = 28


@dataclass(frozen=True)
class Mark:
    """A mean and its interval on an axis around a line at 0; decorative, as above.

    Attributes:
        x: of the mean; None where there is none.
        low, high: ends of the interval; None where there is none.
    """

    x: float | None
    low: float | None = None
    high: float | None = None
    width: int = 150
    height: int = 20

    @property
    def middle(self) -> float:
        """Where 0 is."""
        return self.width / 2


def line_chart(
    lines: Sequence[Line],
    rounds: int,
    title: str,
    describe: str,
    *,
    top: float = 1.0,
    small: bool = False,
) -> Chart:
    """The marks of one panel.

    Args:
        lines: the curves; a curve without any mean is left out.
        rounds: length of the x axis.
        title, describe: read to those who do not see the chart.
        top: largest y value.
        small: for small multiples, with fewer labels and no whiskers.
    """
    lines = [line for line in lines if line.measured]
    frame = (
        Frame(240, 150, 26, 34, 10, 22, rounds, top)
        if small
        else Frame(460, 300, 34, 42, 12, 40, rounds, top)
    )
    aside = [4.0 * (place - (len(lines) - 1) / 2) for place in range(len(lines))]
    return Chart(
        frame=frame,
        title=title,
        describe=describe,
        small=small,
        levels=tuple(_levels(frame, small)),
        ticks=_ticks(rounds, small),
        curves=tuple(_curve(frame, line, small, dx) for line, dx in zip(lines, aside, strict=True)),
        ends=tuple(_ends(frame, lines, small)),
    )


def spark_line(values: Sequence[float | None]) -> Spark:
    """The curve of values from 0 to 1."""
    spark = Spark(())
    step = (spark.width - 6) / max(1, len(values) - 1)
    path = tuple(
        (3 + place * step, 3 + (spark.height - 6) * (1 - value))
        for place, value in enumerate(values)
        if value is not None
    )
    return Spark(path)


def difference_mark(value: Estimate, reach: float) -> Mark:
    """The marks of a difference on an axis from -reach to +reach."""
    middle = Mark(None).middle

    def x(number: float) -> float:
        return middle + (middle - 4) * max(-1.0, min(1.0, number / reach))

    if value.mean is None:
        return Mark(None)
    if value.low is None or value.high is None:
        return Mark(x(value.mean))
    return Mark(x(value.mean), x(value.low), x(value.high))


def round_top(values: Sequence[float]) -> float:
    """A round number at or above every value, for a y axis that starts at 0."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(largest))
    return next(
        step * size for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * size >= largest * 0.999999
    )


def _levels(frame: Frame, small: bool) -> Iterator[Level]:
    for share in (0, 0.5, 1) if small else (0, 0.25, 0.5, 0.75, 1):
        value = share * frame.top
        label = "" if small and share == 0.5 else f"{value:.3g}"  # 0, 0.25, 1: as short as can be
        yield Level(frame.y(value), share == 0, label)


def _ticks(rounds: int, small: bool) -> tuple[int, ...]:
    """The rounds that are numbered."""
    if small:
        return (1, rounds) if rounds > 1 else (1,)
    return numbered(rounds)


def _curve(frame: Frame, line: Line, small: bool, dx: float) -> Curve:
    bounded = [
        (frame.x(number), frame.y(point.low), frame.y(point.high))
        for number, _, point in line.measured
        if point.low is not None and point.high is not None
    ]
    several = len(bounded) > 1
    upper = [(x, high) for x, _, high in bounded]
    lower = [(x, low) for x, low, _ in reversed(bounded)]
    return Curve(
        colour=line.colour,
        dashed=line.dashed,
        path=tuple((frame.x(number), frame.y(mean)) for number, mean, _ in line.measured),
        band=(*upper, *lower) if several else (),
        bar=bounded[0] if bounded and not several else None,  # one round has no width to fill
        whisker="" if small else "".join(_whiskers(frame, line, dx)),
        dots=not small and len(line.measured) <= MOST_DOTS,
    )


def _whiskers(frame: Frame, line: Line, dx: float) -> Iterator[str]:
    """Hairlines of one standard deviation; an end that leaves 0 to 1 is cut at the edge and has no
    cap.
    """
    for number, mean, point in line.measured:
        if point.sd is None:
            continue
        x, ends = frame.x(number) + dx, (mean - point.sd, mean + point.sd)
        yield f"M{x:.1f} {frame.y(ends[0]):.1f}V{frame.y(ends[1]):.1f}"
        for end in ends:
            if 0 <= end <= frame.top:
                yield f"M{x - 2:.1f} {frame.y(end):.1f}h4"


def _ends(frame: Frame, lines: Sequence[Line], small: bool) -> list[End]:
    """The last mean of each curve at its end, pushed apart where they would overlap."""
    gap = 12.0 if small else 14.0
    floor = frame.height - frame.below + 2
    digits = 2 if frame.top > 0.5 else 3
    last = [(line, *line.measured[-1][:2]) for line in lines]
    last.sort(key=lambda end: (frame.y(end[2]), end[0].colour))
    heights = [frame.y(mean) for _, _, mean in last]
    for above, below in itertools.pairwise(range(len(last))):
        heights[below] = max(heights[below], heights[above] + gap)
    for place in range(len(last)):
        room = (len(last) - 1 - place) * gap
        heights[place] = min(heights[place], floor - room)
    return [
        End(frame.x(number), height, line.colour, f"{mean:.{digits}f}")
        for (line, number, mean), height in zip(last, heights, strict=True)
    ]
