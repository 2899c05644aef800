"""The figures of a drift run: stability, adoption and mass by round, by category and by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.estimates import EstimateRow, category_rows, row_of, rule_rows
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import MOST_DOTS, round_top
from holdfast.report.figures import (
    COLOURS,
    CurveStyle,
    error_bars,
    legend_below,
    panels,
    save,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {
    "stability": "How well the model keeps its prompt (stability)",
    "adoption": "How far it takes on the other’s (adoption)",
    "mass": "Attention mass on the prompt",
}
_MOST_RULES = 9  # in the figure of the rules; more cannot be read
_APART = 0.07  # of the axis, between two numbers at its right
_BAND = "band: 95% bootstrap interval"
_CURVE = "curve"  # the group of the lines that the legend names


def write_figures(series: Sequence[Series], folder: Path, whiskers: bool = False) -> list[Path]:
    """Writes drift, categories, and rules and mass if there are any, each as SVG and PNG.

    With `whiskers`, drift and mass show one standard deviation, as in the papers. The bytes
    depend only on the records: no date, fixed identifiers.
    """
    looks = {
        item: _Look(
            item.legend,
            CurveStyle(
                COLOURS[index % len(COLOURS)],
                "--" if index >= len(COLOURS) or item.run != series[0].run else "-",
            ),
            whiskers,
        )
        for index, item in enumerate(series)
    }
    with styled():
        figures = {"drift": _drift(looks)}
        for kind in KINDS:
            drawn = _categories(looks, kind)
            if drawn is not None:
                figures[f"categories_{kind}"] = drawn
        if (rules := _rules(looks)) is not None:
            figures["rules"] = rules
        if any(item.measured("mass") for item in series):
            figures["mass"] = _mass(looks)
        return save(figures, folder)


@dataclass(frozen=True)
class _Look:
    """The style of a series in every figure of a run; whiskers show standard deviations."""

    label: str
    style: CurveStyle
    whiskers: bool

    def draw(self, axis: Axes, points: Sequence[Estimate], aside: float = 0.0) -> None:
        """Draws a curve with its band; whiskers are shifted by `aside` rounds."""
        rounds = np.arange(1, len(points) + 1)
        mean, low, high, sd = np.array(
            [(point.mean, point.low, point.high, point.sd) for point in points], dtype=float
        ).T
        if np.isnan(mean).all():
            return
        axis.fill_between(rounds, low, high, color=self.style.colour, alpha=0.15, linewidth=0)
        if self.whiskers:
            error_bars(axis, rounds + aside, mean, self.style.colour, sd)
        axis.plot(
            rounds,
            mean,
            self.style.line,
            gid=_CURVE,
            label=self.label.replace("$", r"\$"),
            color=self.style.colour,
            linewidth=1.6,
            marker="o" if len(points) <= MOST_DOTS else "",
            markersize=3,
        )


def _draw(axis: Axes, curves: Sequence[tuple[_Look, Sequence[Estimate]]], title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    for index, (look, points) in enumerate(curves):
        look.draw(axis, points, 0.05 * (index - (len(curves) - 1) / 2))
    axis.set(title=title, ylim=(0, 1.02))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _write_ends(axis: Axes, curves: Sequence[tuple[_Look, Sequence[Estimate]]]) -> None:
    """Writes the last mean of each curve to its right, where there is room for them all."""
    ends = sorted(
        (points[-1].mean, look.style.colour, len(points))
        for look, points in curves
        if points and points[-1].mean is not None
    )
    if any(above[0] - below[0] < _APART for below, above in pairwise(ends)):
        return
    for mean, colour, at in ends:
        axis.annotate(
            f"{mean:.2f}",
            (at, mean),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
        )


def _drift(looks: dict[Series, _Look]) -> Figure:
    kinds = [kind for kind in KINDS if any(item.measured(kind) for item in looks)]
    # a single panel must be wide enough for the note
    figure, axes = panels(len(kinds), len(kinds), 4.6 if len(kinds) > 1 else 6.4, 3.2)
    for kind, axis in zip(kinds, axes, strict=True):
        curves = [(look, row_of(item, kind).points) for item, look in looks.items()]
        _draw(axis, curves, _NAMES[kind])
        _write_ends(axis, curves)
        axis.set_xlabel("round")
    has_whiskers = any(look.whiskers for look in looks.values())
    deviation = "; whisker: one standard deviation" if has_whiskers else ""
    _legend(figure, f"{_BAND} over conversations{deviation}")
    return figure


def _mass(looks: dict[Series, _Look]) -> Figure:
    figure, (axis,) = panels(1, 1, 4.6, 3.2)
    measured = [(look, item) for item, look in looks.items() if item.measured("mass")]
    curves = [(look, row_of(item, "mass").points) for look, item in measured]
    _draw(axis, curves, _NAMES["mass"])
    points = [point for _, points in curves for point in points if point.mean is not None]
    top = round_top([(point.mean or 0.0) + (point.sd or 0.0) for point in points])
    axis.set(xlabel="round", ylim=(0, top))
    _legend(figure, "mean over heads, layers and tokens of the agent’s replies")
    return figure


def _categories(looks: dict[Series, _Look], kind: str) -> Figure | None:
    rows = [row for item in looks for row in category_rows(item, kind)]
    names = sorted({row.group for row in rows})
    return _grouped(looks, rows, names, f"{_NAMES[kind]}, by category and round; {_BAND}")


def _rules(looks: dict[Series, _Look]) -> Figure | None:
    rows = rule_rows(list(looks))
    names = list(dict.fromkeys(row.group for row in rows))
    if len(names) > _MOST_RULES:
        return None
    return _grouped(looks, rows, names, f"{_NAMES['stability']}, by rule and round; {_BAND}")


def _grouped(
    looks: dict[Series, _Look], rows: Sequence[EstimateRow], names: Sequence[str], note: str
) -> Figure | None:
    """A panel for each name, with the rows of that group; None without names."""
    if not names:
        return None
    figure, axes = panels(len(names), min(3, len(names)), 2.6, 2.1)
    plain = {item: replace(look, whiskers=False) for item, look in looks.items()}
    for name, axis in zip(names, axes, strict=True):
        curves = [(plain[row.series], row.drawn) for row in rows if row.group == name]
        _draw(axis, curves, name.replace("_", " ").replace("$", r"\$"))
    _legend(figure, note)
    return figure


def _legend(figure: Figure, note: str) -> None:
    """One entry per series; built here, as legends of axes skip names that start with "_"."""
    curves = {
        str(line.get_label()): line
        for axis in reversed(figure.axes)
        for line in axis.get_lines()
        if line.get_gid() == _CURVE
    }
    order = sorted(curves, key=lambda label: COLOURS.index(str(curves[label].get_color())))
    legend_below(figure, [curves[label] for label in order], order, note)
