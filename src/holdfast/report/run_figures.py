"""The figures of a drift run: stability, adoption and mass by round, by category and by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.estimate_rows import EstimateRow, category_rows, row_of, rule_rows
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import MAX_DOTS, round_top
from holdfast.report.figures import (
    COLOURS,
    CurveStyle,
    error_bars,
    legend_below,
    panels,
    save,
    styled,
)
from holdfast.report.wording import two_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_TITLES = {
    "stability": "How well the model keeps its prompt (stability)",
    "adoption": "How far it takes on the other’s (adoption)",
    "mass": "Attention mass on the prompt",
}
_MAX_RULES = 9  # in the figure of the rules; more would be too small to read
_MIN_DISTANCE = 0.07  # between two numbers right of the axis, as a share of it
_WHISKERS_APART = 0.05  # rounds between the whiskers of two curves, so that both can be seen
_BAND = "band: 95% bootstrap interval"

Styles = Mapping[Series, CurveStyle]  # in the order of the legend
Lines = dict[Series, "Line2D"]  # the line that shows a series, for the legend


@dataclass(frozen=True)
class _Curve:
    """A curve of a panel: the estimate of a series in each round."""

    series: Series
    style: CurveStyle
    points: Sequence[Estimate]


def write_figures(
    all_series: Sequence[Series], folder: Path, *, whiskers: bool = False
) -> list[Path]:
    """Writes `drift`, `categories_...`, `rules` and `mass`, each as SVG and PNG.

    Figures for which the runs have no data are left out. The bytes depend only on the records:
    there is no date in them, and identifiers are fixed.

    Args:
        whiskers: whether drift and mass show one standard deviation, as in the papers.
    """
    styles = {
        series: _style_of(series, number, all_series[0].run)
        for number, series in enumerate(all_series)
    }
    with styled():
        figures = {"drift": _draw_drift(styles, whiskers=whiskers)}
        for kind in KINDS:
            category_figure = _draw_categories(styles, kind)
            if category_figure is not None:
                figures[f"categories_{kind}"] = category_figure
        rule_figure = _draw_rules(styles)
        if rule_figure is not None:
            figures["rules"] = rule_figure
        if any(series.measured("mass") for series in all_series):
            figures["mass"] = _draw_mass(styles, whiskers=whiskers)
        return save(figures, folder)


def _style_of(series: Series, number: int, first_run: str) -> CurveStyle:
    """The style of a series.

    Lines are dashed once all colours are used, and in runs after the first.
    """
    dashed = number >= len(COLOURS) or series.run != first_run
    return CurveStyle(COLOURS[number % len(COLOURS)], "--" if dashed else "-")


def _draw_drift(styles: Styles, *, whiskers: bool) -> Figure:
    """Draws a panel for each kind of score, by round."""
    kinds = [kind for kind in KINDS if any(series.measured(kind) for series in styles)]
    # a single panel must be wide enough for the note
    figure, axes = panels(len(kinds), len(kinds), 4.6 if len(kinds) > 1 else 6.4, 3.2)
    lines: Lines = {}
    for kind, axis in zip(kinds, axes, strict=True):
        curves = [
            _Curve(series, style, row_of(series, kind).points) for series, style in styles.items()
        ]
        lines |= _draw_panel(axis, curves, _TITLES[kind], whiskers=whiskers)
        _write_last_means(axis, curves)
        axis.set_xlabel("round")
    note = f"{_BAND} over conversations"
    if whiskers:
        note = f"{note}; whisker: one standard deviation"
    _draw_legend(figure, styles, lines, note)
    return figure


def _draw_mass(styles: Styles, *, whiskers: bool) -> Figure:
    """Draws the mass by round, for the series that have it."""
    figure, (axis,) = panels(1, 1, 4.6, 3.2)
    curves = [
        _Curve(series, style, row_of(series, "mass").points)
        for series, style in styles.items()
        if series.measured("mass")
    ]
    lines = _draw_panel(axis, curves, _TITLES["mass"], whiskers=whiskers)
    points = [point for curve in curves for point in curve.points if point.mean is not None]
    top = round_top([(point.mean or 0.0) + (point.sd or 0.0) for point in points])
    axis.set(xlabel="round", ylim=(0, top))
    note = "mean over heads, layers and tokens of the agent’s replies"
    _draw_legend(figure, styles, lines, note)
    return figure


def _draw_categories(styles: Styles, kind: str) -> Figure | None:
    """Draws a panel for each category of prompts; None if there are none."""
    rows = [row for series in styles for row in category_rows(series, kind)]
    names = sorted({row.group for row in rows})
    return _draw_groups(styles, rows, names, f"{_TITLES[kind]}, by category and round; {_BAND}")


def _draw_rules(styles: Styles) -> Figure | None:
    """Draws a panel for each rule; None if there are none, or too many."""
    rows = rule_rows(list(styles))
    names = list(dict.fromkeys(row.group for row in rows))
    if len(names) > _MAX_RULES:
        return None
    return _draw_groups(styles, rows, names, f"{_TITLES['stability']}, by rule and round; {_BAND}")


def _draw_groups(
    styles: Styles, rows: Sequence[EstimateRow], names: Sequence[str], note: str
) -> Figure | None:
    """Draws a panel for each name, with the rows of that group; None without names."""
    if not names:
        return None
    figure, axes = panels(len(names), min(3, len(names)), 2.6, 2.1)
    lines: Lines = {}
    for name, axis in zip(names, axes, strict=True):
        curves = [
            _Curve(row.series, styles[row.series], row.drawn) for row in rows if row.group == name
        ]
        lines |= _draw_panel(axis, curves, name.replace("_", " ").replace("$", r"\$"))
    _draw_legend(figure, styles, lines, note)
    return figure


def _draw_panel(
    axis: Axes, curves: Sequence[_Curve], title: str, *, whiskers: bool = False
) -> Lines:
    """Draws curves with their bands into a panel; returns the lines of those with a mean."""
    from matplotlib.ticker import MaxNLocator

    lines: Lines = {}
    for index, curve in enumerate(curves):
        if all(point.mean is None for point in curve.points):
            continue
        if whiskers:
            middle = (len(curves) - 1) / 2
            _draw_whiskers(axis, curve, _WHISKERS_APART * (index - middle))
        lines[curve.series] = _draw_curve(axis, curve)
    axis.set(title=title, ylim=(0, 1.02))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return lines


def _draw_curve(axis: Axes, curve: _Curve) -> Line2D:
    """Draws the means of a series and the band of their intervals."""
    ends = [(point.mean, point.low, point.high) for point in curve.points]
    mean, low, high = np.array(ends, dtype=float).T
    rounds = np.arange(1, len(mean) + 1)
    axis.fill_between(rounds, low, high, color=curve.style.colour, alpha=0.15, linewidth=0)
    (line,) = axis.plot(
        rounds,
        mean,
        curve.style.line,
        gid="curve",  # in the SVG
        color=curve.style.colour,
        linewidth=1.6,
        marker="o" if len(mean) <= MAX_DOTS else "",
        markersize=3,
    )
    return line


def _draw_whiskers(axis: Axes, curve: _Curve, shift: float) -> None:
    """Draws one standard deviation up and down, `shift` rounds beside the points."""
    spreads = [(point.mean, point.sd) for point in curve.points]
    mean, deviation = np.array(spreads, dtype=float).T
    rounds = np.arange(1, len(mean) + 1)
    error_bars(axis, rounds + shift, mean, curve.style.colour, deviation)


def _write_last_means(axis: Axes, curves: Sequence[_Curve]) -> None:
    """Writes the last mean of each curve to its right, if there is room for all of them."""
    measured_curves = [
        curve for curve in curves if curve.points and curve.points[-1].mean is not None
    ]
    measured_curves.sort(key=lambda curve: curve.points[-1].mean or 0.0)
    means = [curve.points[-1].mean or 0.0 for curve in measured_curves]
    if any(above - below < _MIN_DISTANCE for below, above in pairwise(means)):
        return
    for curve, mean in zip(measured_curves, means, strict=True):
        axis.annotate(
            two_places(mean),
            (len(curve.points), mean),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=curve.style.colour,
            fontsize=9,
        )


def _draw_legend(figure: Figure, styles: Styles, lines: Lines, note: str) -> None:
    """Draws a legend with an entry for each series that some panel shows."""
    drawn_series = [series for series in styles if series in lines]
    names = [series.legend.replace("$", r"\$") for series in drawn_series]
    legend_below(figure, [lines[series] for series in drawn_series], names, note)
