"""The figures of `holdfast calibrate`: stability against cost (Li et al. 2024, Figure 5), and
stability by round at equal cost (Figure 6).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holdfast.report.calibration import Calibration, Setting, front
from holdfast.report.figures import COLOURS, panels, save, styled
from holdfast.report.labels import Label, legend_below, place_labels
from holdfast.report.statistics import Estimate, estimate, estimate_columns

_LINES = ("-", "--", ":", "-.")
_LONG = 28  # letters of a sweep's name in the legend


def write_calibration_figures(calibration: Calibration, budget: float, folder: Path) -> list[Path]:
    """Writes `trade_off` and `by_round`, each as SVG and PNG; returns the files.

    Args:
        calibration: all settings; all conversations are drawn.
        budget: the cost, in points, to which `by_round` takes each method as close as its sweep
            comes.
        folder: where to.
    """
    with styled():
        return save(
            {"trade_off": _trade_off(calibration), "by_round": _by_round(calibration, budget)},
            folder,
        )


def _trade_off(calibration: Calibration):
    figure, (axis,) = panels(1, 1, 6.4, 4.4)
    none = calibration.settings[0]
    start = estimate(none.stability)
    axis.axhline(start.mean, color="#888888", linewidth=0.8, linestyle=":")
    axis.plot(0, start.mean, marker="s", markersize=5, color="#222222", linestyle="", label="none")
    labels: list[Label] = []
    for number, (name, knob) in enumerate(calibration.names):
        settings = [one for one in calibration.settings if one.sweep == number]
        drops, levels = (
            [calibration.drop(one) for one in settings],
            [estimate(one.stability) for one in settings],
        )
        colour, line = _look(number)
        # the difference to none is what is measured, so the whiskers are those of the paired
        # differences, in both directions
        gains = [calibration.gain(one) for one in settings]
        x, y = [one.mean for one in drops], [one.mean for one in levels]
        axis.errorbar(
            x,
            y,
            _whiskers(gains),
            _whiskers(drops),
            fmt="none",
            ecolor=colour,
            alpha=0.3,
            elinewidth=0.7,
            capsize=1.5,
        )
        axis.plot(
            [0, *x],
            [start.mean, *y],
            line,
            color=colour,
            linewidth=1.3,
            marker="o",
            markersize=4,
            markevery=slice(1, None),
            label=_label(name, knob),
        )
        labels += [
            Label(setting.value, at, level, colour)
            for setting, at, level in zip(settings, x, y, strict=True)
        ]
    marked = [
        one for one, star in zip(calibration.settings, front(calibration), strict=True) if star
    ]
    corners = sorted(
        (
            0.0 if one is none else float(calibration.drop(one).mean),
            float(estimate(one.stability).mean),
        )
        for one in marked
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


def _by_round(calibration: Calibration, budget: float):
    figure, (axis,) = panels(1, 1, 6.4, 3.8)
    shown: list[tuple[Setting, str, str, str]] = [
        (calibration.settings[0], "#222222", "--", "none")
    ]
    for number, (name, knob) in enumerate(calibration.names):
        settings = [one for one in calibration.settings if one.sweep == number]
        closest = min(settings, key=lambda one: abs(float(calibration.drop(one).mean) - budget))
        shown.append(
            (
                closest,
                *_look(number),
                (
                    f"{_label(name, knob)}={closest.value} ({calibration.drop(closest).mean:+.1f}"
                    " lost)"
                ),
            )
        )
    for place, (setting, colour, line, label) in enumerate(shown):
        points = estimate_columns(setting.by_round)
        rounds = np.arange(1, len(points) + 1) + 0.06 * (place - (len(shown) - 1) / 2)
        kept = [(at, one) for at, one in zip(rounds, points, strict=True) if one.mean is not None]
        at, kept_points = [at for at, _ in kept], [one for _, one in kept]
        means = [one.mean for one in kept_points]
        axis.errorbar(
            at,
            means,
            _whiskers(kept_points),
            fmt="none",
            ecolor=colour,
            alpha=0.35,
            elinewidth=0.8,
            capsize=1.5,
        )
        axis.plot(
            at, means, line, color=colour, linewidth=1.5, marker="o", markersize=3, label=label
        )
    axis.set(
        title=f"stability by round, each method at its setting closest to {budget:g} points lost",
        xlabel="round",
        ylabel="stability",
    )
    axis.set_xticks(range(1, calibration.settings[0].by_round.shape[1] + 1))
    axis.set_ylim(0, 1.02)
    note = (
        f"lost on {_short(calibration)}, {calibration.unit}; whiskers: 95 % bootstrap intervals"
        " over conversations"
    )
    legend_below(figure, *axis.get_legend_handles_labels(), note)
    return figure


def _whiskers(points: list[Estimate]) -> np.ndarray:
    """Below and above each mean, [2, point]; 0 where there is no interval."""
    sides = [
        (
            (0.0, 0.0)
            if one.low is None
            else (max(0.0, one.mean - one.low), max(0.0, one.high - one.mean))
        )
        for one in points
    ]  # type: ignore[operator]
    return np.array(sides).T.reshape(2, len(points))


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
