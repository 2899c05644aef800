"""The figures of a calibration: what a method gives and costs, and its stability by round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.candidates import Calibration, Candidate
from holdfast.analysis.choosing import front
from holdfast.analysis.statistics import SCORES, estimate, estimate_columns
from holdfast.errors import cut
from holdfast.report import figures
from holdfast.report.point_labels import PointLabel, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DARK = "#222222"
_MAX_LEGEND_CHARACTERS = 28  # of the name of a sweep


@dataclass(frozen=True)
class _Curve:
    """The stability of a candidate by round."""

    candidate: Candidate
    style: figures.CurveStyle
    label: str


def write_calibration_figures(calibration: Calibration, budget: float, folder: Path) -> list[Path]:
    """Writes `trade_off` and `by_round` (Li et al. 2024, Figures 5 and 6) as SVG and PNG."""
    with figures.styled():
        trade_off = _trade_off(calibration)
        by_round = _by_round(calibration, budget)
        return figures.save({"trade_off": trade_off, "by_round": by_round}, folder)


def _trade_off(calibration: Calibration) -> Figure:
    """Draws the stability of every setting over its cost in capability."""
    figure, (axis,) = figures.panels(1, 1, 6.4, 4.4)
    none = calibration.none
    start = none.mean_stability()
    axis.axhline(start, color="#888888", linewidth=0.8, linestyle=":")
    axis.plot(0, start, marker="s", markersize=5, color=_DARK, linestyle="", label="none")
    labels: list[PointLabel] = []
    for number in range(len(calibration.names)):
        labels += _draw_sweep(axis, calibration, number, start)
    corners = sorted(
        (calibration.mean_drop(candidate), candidate.mean_stability())
        for candidate, is_on_front in zip(calibration.candidates, front(calibration), strict=True)
        if is_on_front
    )
    axis.plot(
        *zip(*corners, strict=True),
        label="Pareto front",
        linestyle="",
        marker="o",
        markersize=10,
        markerfacecolor="none",
        markeredgecolor=_DARK,
        markeredgewidth=0.9,
    )
    axis.set(
        title="what a method gives, and what it costs",
        xlabel=f"lost on {_capability_name(calibration)}: {calibration.unit}",
        ylabel="stability, mean over rounds",
    )
    axis.set_ylim(max(0.0, axis.get_ylim()[0]), min(1.02, axis.get_ylim()[1]))
    axis.grid(True, axis="x")
    note = (
        f"{len(none.stability)} conversations per setting; whiskers: 95% bootstrap intervals of"
        " the paired difference to none"
    )
    figures.legend_below(figure, *axis.get_legend_handles_labels(), note)
    place_labels(figure, axis, labels)
    return figure


def _draw_sweep(
    axis: Axes, calibration: Calibration, number: int, start: float
) -> list[PointLabel]:
    """Draws a sweep from the stability without a fix, `start`; returns its candidates' labels."""
    candidates = calibration.sweeps[number]
    drops = [calibration.drop(candidate) for candidate in candidates]
    gains = [calibration.gain(candidate) for candidate in candidates]
    x = figures.means(drops)
    y = figures.means([estimate(candidate.stability, SCORES) for candidate in candidates])
    curve = figures.style_of(number + 1)
    # what is measured is the difference from no method, so the whiskers in both directions are
    # intervals of paired differences
    figures.error_bars(axis, x, y, curve.colour, figures.whiskers(gains), figures.whiskers(drops))
    axis.plot(
        [0, *x],
        [start, *y],
        curve.line,
        color=curve.colour,
        linewidth=1.3,
        label=_label(*calibration.names[number]),
        marker="o",
        markersize=4,
        markevery=slice(1, None),
    )
    return [
        PointLabel(candidate.value, drop, stability, curve.colour)
        for candidate, drop, stability in zip(candidates, x, y, strict=True)
    ]


def _by_round(calibration: Calibration, budget: float) -> Figure:
    """Draws the stability by round, of each method at the setting closest to the budget."""
    figure, (axis,) = figures.panels(1, 1, 6.4, 3.8)
    curves = [_Curve(calibration.none, figures.CurveStyle(_DARK, "--"), "none")]
    for number, (name, parameter) in enumerate(calibration.names):
        closest = calibration.closest(calibration.sweeps[number], budget)
        lost = f"{calibration.mean_drop(closest):+.1f} lost"
        label = f"{_label(name, parameter)}={closest.value} ({lost})"
        curves.append(_Curve(closest, figures.style_of(number + 1), label))
    for index, curve in enumerate(curves):
        points = estimate_columns(curve.candidate.by_round, SCORES)
        rounds = np.arange(1, len(points) + 1) + 0.06 * (index - (len(curves) - 1) / 2)
        measured = ~np.isnan(figures.means(points))
        x = rounds[measured]
        y = figures.means(points)[measured]
        colour = curve.style.colour
        figures.error_bars(axis, x, y, colour, figures.whiskers(points)[:, measured])
        axis.plot(
            x,
            y,
            curve.style.line,
            color=colour,
            label=curve.label,
            linewidth=1.5,
            marker="o",
            markersize=3,
        )
    axis.set(
        title=f"stability by round, each method at its setting closest to {budget:g} points lost",
        xlabel="round",
        ylabel="stability",
        xticks=range(1, calibration.none.by_round.shape[1] + 1),
        ylim=(0, 1.02),
    )
    note = (
        f"lost on {_capability_name(calibration)}, {calibration.unit}; whiskers: 95% bootstrap"
        " intervals over conversations"
    )
    figures.legend_below(figure, *axis.get_legend_handles_labels(), note)
    return figure


def _label(name: str, parameter: str) -> str:
    """The name of a sweep in the legend; long lists of heads are cut."""
    return f"{cut(name, _MAX_LEGEND_CHARACTERS)}, {parameter}".replace("$", r"\$")


def _capability_name(calibration: Calibration) -> str:
    """The name of the capability; of a file, without its folders."""
    kind, _, path = calibration.about.capability.partition(":")
    if kind == "mmlu":
        return "MMLU"
    file = path.rstrip("/").rpartition("/")[2]
    name = f"{kind} {file}" if file else kind
    return name.replace("$", r"\$")
