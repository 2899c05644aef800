"""Line charts as inline SVG, drawn for the page: colours come from its style sheet, so they follow
light and dark.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from holdfast.analysis.statistics import Estimate

COLOURS = 6  # --series-0 to --series-5 in page.css, and as many dash patterns


@dataclass(frozen=True)
class Line:
    """One curve: its estimates per round, its colour (an index) and whether it is dashed (a
    control).
    """

    label: str
    points: Sequence[Estimate]
    colour: int
    dashed: bool = False


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


def line_chart(
    lines: Sequence[Line],
    rounds: int,
    title: str,
    describe: str,
    *,
    top: float = 1.0,
    small: bool = False,
    ends: bool = True,
) -> str:
    """The SVG of one panel: band = 95 % interval, hairline whiskers = one standard deviation, dots
    = means.

    Args:
        lines: the curves; a curve without any mean is left out.
        rounds: length of the x axis.
        title, describe: read to those who do not see the chart.
        top: largest y value.
        small: for small multiples, with fewer labels and no whiskers.
        ends: write the last value of each curve beside it.
    """
    lines = [line for line in lines if any(point.mean is not None for point in line.points)]
    frame = (
        Frame(240, 150, 26, 34 if ends else 10, 10, 22, rounds, top)
        if small
        else Frame(460, 300, 34, 42 if ends else 14, 12, 40, rounds, top)
    )
    parts = [_grid(frame, small)]
    parts += [_band(frame, line) for line in lines]
    if not small:
        shift = [4.0 * (i - (len(lines) - 1) / 2) for i in range(len(lines))]
        parts += [_whiskers(frame, line, dx) for line, dx in zip(lines, shift, strict=True)]
    parts += [_curve(frame, line, small) for line in lines]
    if ends:
        parts.append(_end_labels(frame, lines, small))
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img"'
        f' aria-label="{escape(title)}. {escape(describe)}" data-left="{frame.left:g}"'
        f' data-right="{frame.right:g}" data-above="{frame.above:g}"'
        f' data-below="{frame.below:g}">{"".join(parts)}<line class="cursor" y1="{frame.above:g}"'
        f' y2="{frame.height - frame.below:g}" visibility="hidden"/></svg>'
    )


def spark_line(values: Sequence[float | None]) -> str:
    """A tiny curve for a table cell, from 0 to 1; decorative, as the cells beside it hold the
    numbers.
    """
    width, height = 76, 28
    step = (width - 6) / max(1, len(values) - 1)
    points = [
        (3 + i * step, 3 + (height - 6) * (1 - value))
        for i, value in enumerate(values)
        if value is not None
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    end = f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2.2"/>' if points else ""
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" aria-hidden="true"><line x1="0"'
        f' x2="{width}" y1="{height - 3}" y2="{height - 3}"/><polyline points="{path}"/>{end}</svg>'
    )


def difference_mark(item: Estimate, reach: float) -> str:
    """A dot and its interval on an axis from -reach to +reach around a line at 0; decorative, as
    above.
    """
    width, height = 150, 20
    middle = width / 2

    def x(value: float) -> float:
        return middle + (middle - 4) * max(-1.0, min(1.0, value / reach))

    if item.mean is None:
        return ""
    bar = (
        ""
        if item.low is None or item.high is None
        else (
            f'<line class="interval" x1="{x(item.low):.1f}" x2="{x(item.high):.1f}" y1="10"'
            ' y2="10"/>'
        )
    )
    return (
        f'<svg class="difference" viewBox="0 0 {width} {height}" aria-hidden="true"><line'
        f' class="zero" x1="{middle}" x2="{middle}" y1="0" y2="{height}"/>{bar}<circle'
        f' cx="{x(item.mean):.1f}" cy="10" r="3.6"/></svg>'
    )


def round_top(values: Sequence[float]) -> float:
    """A round number at or above every value, for a y axis that starts at 0."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(largest))
    return next(
        step * size for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * size >= largest * 0.999999
    )


def axis_number(value: float) -> str:
    """0, 0.25, 0.5, 1: as short as it can be."""
    return f"{value:.3g}"


def _grid(frame: Frame, small: bool) -> str:
    out = []
    for share in (0, 0.5, 1) if small else (0, 0.25, 0.5, 0.75, 1):
        y = frame.y(share * frame.top)
        out.append(
            f'<line class="{"axis" if share == 0 else "grid"}" x1="{frame.left:g}"'
            f' x2="{frame.width - frame.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        if not small or share != 0.5:
            out.append(
                f'<text class="tick" x="{frame.left - 6:g}" y="{y + 4:.1f}"'
                f' text-anchor="end">{axis_number(share * frame.top)}</text>'
            )
    every = max(1, math.ceil(frame.rounds / 12))
    shown = {1, frame.rounds} if small else set(range(1, frame.rounds + 1, every)) | {1}
    for round in sorted(shown):
        out.append(
            f'<text class="tick" x="{frame.x(round):.1f}"'
            f' y="{frame.height - frame.below + (15 if small else 17):.1f}"'
            f' text-anchor="middle">{round}</text>'
        )
    if not small:
        out.append(
            f'<text class="tick name" x="{(frame.left + frame.width - frame.right) / 2:.1f}"'
            f' y="{frame.height - 4:g}" text-anchor="middle">round</text>'
        )
    return "".join(out)


def _band(frame: Frame, line: Line) -> str:
    seen = [
        (frame.x(i), point) for i, point in enumerate(line.points, start=1) if point.low is not None
    ]
    if not seen:
        return ""
    upper = [f"{x:.1f},{frame.y(point.high or 0.0):.1f}" for x, point in seen]
    lower = [f"{x:.1f},{frame.y(point.low or 0.0):.1f}" for x, point in reversed(seen)]
    if len(seen) == 1:  # a single round has no width to fill
        x = seen[0][0]
        return (
            f'<line class="interval s{line.colour}" x1="{x:.1f}" x2="{x:.1f}"'
            f' y1="{upper[0].split(",")[1]}" y2="{lower[0].split(",")[1]}"/>'
        )
    return f'<polygon class="band s{line.colour}" points="{" ".join(upper + lower)}"/>'


def _whiskers(frame: Frame, line: Line, dx: float) -> str:
    """Hairlines of one standard deviation; an end that leaves 0 to 1 is cut at the edge and has no
    cap.
    """
    out = []
    for round, point in enumerate(line.points, start=1):
        if point.sd is None or point.mean is None:
            continue
        x, ends = frame.x(round) + dx, (point.mean - point.sd, point.mean + point.sd)
        out.append(f"M{x:.1f} {frame.y(ends[0]):.1f}V{frame.y(ends[1]):.1f}")
        out += [f"M{x - 2:.1f} {frame.y(end):.1f}h4" for end in ends if 0 <= end <= frame.top]
    return f'<path class="whisker s{line.colour}" d="{"".join(out)}"/>' if out else ""


def _curve(frame: Frame, line: Line, small: bool) -> str:
    seen = [
        (frame.x(i), frame.y(point.mean))
        for i, point in enumerate(line.points, start=1)
        if point.mean is not None
    ]
    kind = f"s{line.colour}{' dashed' if line.dashed else ''}"
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in seen)
    radius = 0 if small else 2.8
    dots = (
        "".join(
            f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in seen
        )
        if radius
        else ""
    )
    return f'<polyline class="curve {kind}" points="{path}"/>{dots}'


def _end_labels(frame: Frame, lines: Sequence[Line], small: bool) -> str:
    """The last mean of each curve at its end, pushed apart where they would overlap."""
    gap = 12.0 if small else 14.0
    ends = []
    for line in lines:
        last = [
            (i, point.mean)
            for i, point in enumerate(line.points, start=1)
            if point.mean is not None
        ][-1]
        ends.append([frame.y(last[1]), line.colour, last[1], frame.x(last[0])])
    ends.sort()
    for before, after in itertools.pairwise(ends):
        after[0] = max(after[0], before[0] + gap)
    floor = frame.height - frame.below + 2
    for i, end in enumerate(reversed(ends)):
        end[0] = min(end[0], floor - i * gap)
    return "".join(
        f'<text class="end s{colour}" x="{x + 8:.1f}"'
        f' y="{y + 4:.1f}">{_end(value, frame.top)}</text>'
        for y, colour, value, x in ends
    )


def _end(value: float, top: float) -> str:
    return f"{value:.2f}" if top > 0.5 else f"{value:.3f}"
