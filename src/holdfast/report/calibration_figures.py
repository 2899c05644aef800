"""The figures of a calibration: what a method gives and costs, and its stability by round."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.choosing import front
from holdfast.analysis.statistics import SCORES, estimate_columns
from holdfast.errors import cut
from holdfast.plurals import count_of
from holdfast.report import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

_DARK = "#222222"
_MAX_LEGEND_CHARACTERS = 28  # of the name of a sweep
_DISTANCES = (6, 12, 20, 30, 42, 56, 72)  # of a label from its point, in points
_DIRECTIONS = ((1, 0.6), (-1, 0.6), (1, -0.9), (-1, -0.9), (0, 1), (0, -1), (1, 0), (-1, 0))
_MARKER_RADIUS = 3  # of a point, in points
_CURVE_DISTANCE = 0.06  # rounds by which the whiskers of two curves are apart
_MIN_JOINED_DISTANCE = 15  # points; a line joins a label that is farther away to its point


@dataclass(frozen=True)
class _CandidateCurve:
    """The stability of a candidate by round."""

    candidate: Candidate
    style: figures.CurveStyle
    label: str


@dataclass(frozen=True)
class _PointLabel:
    """A label of the point (x, y), in the coordinates of the data."""

    text: str
    x: float
    y: float
    colour: str


def write_calibration_figures(calibration: Calibration, budget: float, folder: Path) -> list[Path]:
    """Writes `trade_off` and `by_round` (Li et al. 2024, Figures 5 and 6) as SVG and PNG."""
    with figures.styled():
        trade_off = _draw_trade_off(calibration)
        by_round = _draw_by_round(calibration, budget)
        return figures.save({"trade_off": trade_off, "by_round": by_round}, folder)


def _draw_trade_off(calibration: Calibration) -> Figure:
    """Draws the stability of every setting over its cost in capability."""
    figure, (axis,) = figures.panels(1, 1, 6.4, 4.4)
    none = calibration.none
    start = float(np.nanmean(none.stability))
    axis.axhline(start, color="#888888", linewidth=0.8, linestyle=":")
    axis.plot(0, start, marker="s", markersize=5, color=_DARK, linestyle="", label="none")
    labels: list[_PointLabel] = []
    for number in range(len(calibration.names)):
        labels += _draw_sweep(axis, calibration, number, start)
    corners = sorted(
        (calibration.mean_drop(candidate), start + calibration.mean_gain(candidate))
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
        f"{count_of(len(none.stability), 'conversation')} per setting; whiskers: 95% bootstrap"
        " intervals of the paired difference to none"
    )
    figures.legend_below(figure, *axis.get_legend_handles_labels(), note)
    _place_labels(figure, axis, labels)
    return figure


def _draw_sweep(
    axis: Axes, calibration: Calibration, number: int, start: float
) -> list[_PointLabel]:
    """Draws a sweep from the stability without a fix, `start`; returns its candidates' labels."""
    candidates = calibration.sweeps[number]
    drops = [calibration.drop(candidate) for candidate in candidates]
    gains = [calibration.gain(candidate) for candidate in candidates]
    x = figures.means(drops)
    y = [start + gain for gain in figures.means(gains)]
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
        label=_sweep_label(*calibration.names[number]),
        marker="o",
        markersize=4,
        markevery=slice(1, None),
    )
    return [
        _PointLabel(candidate.value, drop, stability, curve.colour)
        for candidate, drop, stability in zip(candidates, x, y, strict=True)
    ]


def _draw_by_round(calibration: Calibration, budget: float) -> Figure:
    """Draws the stability by round, of each method at the setting closest to the budget."""
    figure, (axis,) = figures.panels(1, 1, 6.4, 3.8)
    curves = [_CandidateCurve(calibration.none, figures.CurveStyle(_DARK, "--"), "none")]
    for number, (name, parameter) in enumerate(calibration.names):
        closest = calibration.closest(calibration.sweeps[number], budget)
        lost = f"{calibration.mean_drop(closest):+.1f} lost"
        label = f"{_sweep_label(name, parameter)}={closest.value} ({lost})"
        curves.append(_CandidateCurve(closest, figures.style_of(number + 1), label))
    for index, curve in enumerate(curves):
        _draw_curve(axis, curve, shift=_CURVE_DISTANCE * (index - (len(curves) - 1) / 2))
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


def _draw_curve(axis: Axes, curve: _CandidateCurve, shift: float) -> None:
    """Draws a curve by round, shifted to one side so that its whiskers do not cover others."""
    points = estimate_columns(curve.candidate.by_round, SCORES)
    is_measured = ~np.isnan(figures.means(points))
    x = (np.arange(1, len(points) + 1) + shift)[is_measured]
    y = figures.means(points)[is_measured]
    colour = curve.style.colour
    figures.error_bars(axis, x, y, colour, figures.whiskers(points)[:, is_measured])
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


def _sweep_label(name: str, parameter: str) -> str:
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


def _place_labels(figure: Figure, axis: Axes, labels: Sequence[_PointLabel]) -> None:
    """Writes labels around their points; everything else in the figure must be drawn already."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles the layout
    frame = axis.get_window_extent(renderer)
    points = axis.transData.transform([(label.x, label.y) for label in labels]).reshape(-1, 2)
    occupied_boxes = [
        Bbox.from_extents(x, y, x, y).padded(_MARKER_RADIUS * figure.dpi / 72) for x, y in points
    ]
    for label in sorted(labels, key=lambda label: (label.x, label.y)):
        text = axis.annotate(
            label.text,
            xy=(label.x, label.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=7,
            color=label.colour,
            va="center",
        )
        text.set_in_layout(False)
        occupied_boxes.append(_move_to_free_place(text, frame, occupied_boxes, renderer))
        if max(map(abs, text.xyann)) > _MIN_JOINED_DISTANCE:
            _join_to_point(axis, label, text.xyann)


def _move_to_free_place(
    text: Annotation, frame: Bbox, occupied_boxes: Sequence[Bbox], renderer: RendererBase
) -> Bbox:
    """Moves a label to the nearest free place within the frame, or to the last if none is free;
    returns its box there.
    """
    for distance, (across, up) in itertools.product(_DISTANCES, _DIRECTIONS):
        text.xyann = (across * distance, up * distance)
        text.set_horizontalalignment(_alignment(across))
        box = text.get_window_extent(renderer).padded(1)
        if _contains(frame, box) and not any(box.overlaps(other) for other in occupied_boxes):
            break
    return box


def _join_to_point(axis: Axes, label: _PointLabel, offset: tuple[float, float]) -> None:
    """Draws a thin line from a point to its label, which is at this offset."""
    axis.annotate(
        "",
        xy=(label.x, label.y),
        xytext=offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": label.colour, "linewidth": 0.4, "alpha": 0.6},
    ).set_in_layout(False)


def _contains(outer: Bbox, inner: Bbox) -> bool:
    """Whether a box lies within another."""
    return (
        outer.containsx(inner.x0)
        and outer.containsx(inner.x1)
        and outer.containsy(inner.y0)
        and outer.containsy(inner.y1)
    )


def _alignment(across: float) -> Literal["left", "right", "center"]:
    """The alignment of a label that lies to the right (1), left (-1) or above its point (0)."""
    if across == 0:
        return "center"
    return "left" if across > 0 else "right"
