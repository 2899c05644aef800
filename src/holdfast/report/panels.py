"""How series look on the page of a drift run, and their panels: a chart by round with its
numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.report.charts import COLOURS, Chart, Line, line_chart, round_top
from holdfast.report.wording import with_interval

CAPTIONS = {
    "stability": ("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": ("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": (
        "Attention mass on the agent’s system prompt",
        "mean over heads, layers and tokens of its replies",
    ),
    "divergence": (
        "Divergence from a fresh dialog",
        "nats per token of its replies",
    ),
}


@dataclass(frozen=True)
class Look:
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
    chart: Chart


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


def legend(series: Sequence[Series]) -> list[Look]:
    """The look of every series; other runs than the first are dashed, and so are colours used a
    second time.
    """
    return [
        Look(item.label, place % COLOURS, item.run != series[0].run or place >= COLOURS)
        for place, item in enumerate(series)
    ]


def colour_of(series: Sequence[Series], item: Series) -> int:
    """The index of the colour a series has everywhere on the page."""
    return list(series).index(item) % COLOURS


def panel(series: Sequence[Series], kind: str) -> Panel:
    """The chart of one of `series.MEASURED`."""
    estimates = [estimate_columns(item.values(kind)) for item in series]
    rounds = max(item.rounds for item in series)
    title, meaning = CAPTIONS[kind]
    chart = line_chart(
        _lines(series, estimates),
        rounds,
        title,
        _describe(series, estimates),
        top=1.0 if kind in KINDS else _top(estimates),
    )
    readings = [_readings(series, estimates, number, kind) for number in range(rounds)]
    return Panel(title, meaning, rounds, json.dumps(readings), chart)


def small_chart(
    series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], title: str
) -> Chart:
    """One of many charts; estimates are by series, empty where a series has none."""
    rounds = max(item.rounds for item in series)
    lines = _lines(series, estimates)
    return line_chart(lines, rounds, title, _describe(series, estimates), small=True)


def numbers(series: Sequence[Series], kinds: Sequence[str]) -> tuple[NumbersRow, ...]:
    """The panels as a table: mean, interval and standard deviation of every point."""
    rows = []
    for kind in kinds:
        for item in series:
            if item.measured(kind):
                estimates = estimate_columns(item.values(kind))
                cells = tuple(_cell(point, kind) for point in estimates)
                rows.append(NumbersRow(item.label, kind, len(item.records), cells))
    return tuple(rows)


def _lines(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> list[Line]:
    return [
        Line(look.label, points, look.colour, look.dashed)
        for look, points in zip(legend(series), estimates, strict=True)
    ]


def _top(estimates: Sequence[Sequence[Estimate]]) -> float:
    """A round number above every mean and its standard deviation."""
    points = [point for points in estimates for point in points]
    return round_top([point.mean + (point.sd or 0.0) for point in points if point.mean is not None])


def _describe(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> str:
    """The first and last mean of every series, for those who do not see the chart."""
    parts = []
    for line in _lines(series, estimates):
        if measured := line.measured:
            (first, start, _), (last, end, _) = measured[0], measured[-1]
            parts.append(f"{line.label}: {start:.2f} at round {first}, {end:.2f} at round {last}")
    return "; ".join(parts) + "."


def _readings(
    series: Sequence[Series], estimates: Sequence[Sequence[Estimate]], number: int, kind: str
) -> list[list[object]]:
    """What is read at a round: [colour, label, value, interval, sd] of each series that has one."""
    read: list[list[object]] = []
    for look, points in zip(legend(series), estimates, strict=True):
        if number < len(points) and (cell := _cell(points[number], kind)):
            read.append([look.colour, look.label, cell.value, cell.interval, cell.sd])
    return read


def _cell(point: Estimate, kind: str) -> Cell | None:
    if point.mean is None:
        return None
    digits = 2 if kind in KINDS else 3
    text = with_interval(point, lambda number: f"{number:.{digits}f}")
    value, _, interval = text.partition(" ")
    return Cell(value, interval, "" if point.sd is None else f"{point.sd:.{digits}f}")
