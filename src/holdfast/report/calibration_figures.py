"""The figures of `holdfast calibrate`: stability against cost (Li et al. 2024, Figure 5), and
stability by round at equal cost (Figure 6).
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.calibration import Calibration
from holdfast.analysis.choice import front
from holdfast.analysis.statistics import estimate, estimate_columns
from holdfast.report.figures import COLOURS, means, panels, save, styled, whiskers
from holdfast.report.labels import Label, legend_below, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = ("-", "--", ":", "-.")
_LONG = 28  # letters of a sweep's name in the legend


def write_calibration_figures(calibration: Calibration, budget: float, folder: Path) -> list[Path]:
    """Writes `trade_off` and `by_round`, each as SVG and PNG; returns the files.

    Args:
        calibration: all candidates; all conversations are drawn.
        budget: the cost, in points, to which `by_round` takes each method as close as its sweep
            comes.
        folder: where to.
    """
    with styled():
        return save(
            {"trade_off": _trade_off(calibration), "by_round": _by_round(calibration, budget)},
            folder,
        )


def _trade_off(calibration: Calibration) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 4.4)
    none = calibration.none
    start = float(np.nanmean(none.stability))
    axis.axhline(start, color="#888888", linewidth=0.8, linestyle=":")
    axis.plot(0, start, marker="s", markersize=5, color="#222222", linestyle="", label="none")
    labels: list[Label] = []
    for number in range(len(calibration.names)):
        labels += _draw_sweep(axis, calibration, number, start)
    corners = sorted(
        (calibration.mean_drop(candidate), float(np.nanmean(candidate.stability)))
        for candidate, star in zip(calibration.candidates, front(calibration), strict=True)
        if star
    )
    axis.plot(
        *zip(*corners, strict=True),
        linestyle="",
        marker="o",
        markersize=10,
        markerfacecolor="none",
        markeredgecolor="#222222",
        markeredgewidth=0.9,
        label="Pareto front",
    )
    axis.set(
        title="what a method gives, and what it costs",
        xlabel=f"lost on {_short(calibration)}: {calibration.unit}",
        ylabel="stability, mean over rounds",
    )
    axis.set_ylim(max(0.0, axis.get_ylim()[0]), min(1.02, axis.get_ylim()[1]))
    axis.grid(True, axis="x")
    note = (
        f"{len(none.stability)} conversations per setting; whiskers: 95 % bootstrap intervals of"
        " the paired difference to none"
    )
    legend_below(figure, *axis.get_legend_handles_labels(), note)
    place_labels(figure, axis, labels)
    return figure


def _draw_sweep(axis: Axes, calibration: Calibration, number: int, start: float) -> list[Label]:
    """Draws a sweep from the stability without a fix; returns the labels of its candidates."""
    candidates = calibration.sweeps[number]
    drops = [calibration.drop(candidate) for candidate in candidates]
    gains = [calibration.gain(candidate) for candidate in candidates]
    x, y = means(drops), means([estimate(candidate.stability) for candidate in candidates])
    colour, line = _look(number)
    # the difference to none is what is measured, so the whiskers are those of the paired
    # differences, in both directions
    axis.errorbar(
        x,
        y,
        whiskers(gains),
        whiskers(drops),
        fmt="none",
        ecolor=colour,
        alpha=0.3,
        elinewidth=0.7,
        capsize=1.5,
    )
    axis.plot(
        [0, *x],
        [start, *y],
        line,
        color=colour,
        linewidth=1.3,
        marker="o",
        markersize=4,
        markevery=slice(1, None),
        label=_label(*calibration.names[number]),
    )
    return [
        Label(candidate.value, at, level, colour)
        for candidate, at, level in zip(candidates, x, y, strict=True)
    ]


def _by_round(calibration: Calibration, budget: float) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 3.8)
    shown = [(calibration.none, "#222222", "--", "none")]
    for number, (name, knob) in enumerate(calibration.names):
        closest = calibration.closest(calibration.sweeps[number], budget)
        lost = f"{calibration.mean_drop(closest):+.1f} lost"
        shown.append((closest, *_look(number), f"{_label(name, knob)}={closest.value} ({lost})"))
    for place, (candidate, colour, line, label) in enumerate(shown):
        points = estimate_columns(candidate.by_round)
        rounds = np.arange(1, len(points) + 1) + 0.06 * (place - (len(shown) - 1) / 2)
        measured = [point.mean is not None for point in points]
        at, points = rounds[measured], list(itertools.compress(points, measured))
        levels = means(points)
        axis.errorbar(
            at,
            levels,
            whiskers(points),
            fmt="none",
            ecolor=colour,
            alpha=0.35,
            elinewidth=0.8,
            capsize=1.5,
        )
        axis.plot(
            at, levels, line, color=colour, linewidth=1.5, marker="o", markersize=3, label=label
        )
    axis.set(
        title=f"stability by round, each method at its setting closest to {budget:g} points lost",
        xlabel="round",
        ylabel="stability",
    )
    axis.set_xticks(range(1, calibration.none.by_round.shape[1] + 1))
    axis.set_ylim(0, 1.02)
    note = (
        f"lost on {_short(calibration)}, {calibration.unit}; whiskers: 95 % bootstrap intervals"
        " over conversations"
    )
    legend_below(figure, *axis.get_legend_handles_labels(), note)
    return figure


def _look(number: int) -> tuple[str, str]:
    """The colour and the line of a sweep."""
    return COLOURS[(number + 1) % len(COLOURS)], _LINES[(number + 1) // len(COLOURS) % len(_LINES)]


def _label(name: str, knob: str) -> str:
    """A sweep in the legend; a list of many heads is cut."""
    return f"{name if len(name) <= _LONG else name[: _LONG - 3] + '...'}, {knob}".replace(
        "$", r"\$"
    )


def _short(calibration: Calibration) -> str:
    """The capability, without the folders of its file."""
    kind, _, where = calibration.about["capability"].partition(":")
    if kind == "mmlu":
        return "MMLU"
    return " ".join(filter(None, (kind, where.rstrip("/").rsplit("/", 1)[-1]))).replace("$", r"\$")
