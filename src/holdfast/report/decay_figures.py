"""The figures of `holdfast trace`: attention decay (Li et al. 2024, Figures 4 and 8), heads, and
mass beside behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.report.figures import COLOURS, panels, save, styled
from holdfast.report.labels import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 6


def write_decay_figures(
    trace: dict[str, Any], folder: Path, compared: Sequence[dict[str, Any]] = ()
) -> list[Path]:
    """Writes `decay`, `heads`, `mass_and_behaviour` and, with `compared`, `models`, each as SVG and
    PNG, from what `analysis.decay.describe` says.
    """
    layer, head = trace["shown_head"]
    curves = trace["curves"]
    with styled():
        figures = {
            "decay": _decay(
                [
                    (f"head {layer}.{head}", curves["head"], None),
                    ("average over heads", curves["average"], curves["uniform"]),
                ]
            ),
            "heads": _heads(trace),
            "mass_and_behaviour": _behaviour(trace),
        }
        if compared:
            figures["models"] = _decay(
                [
                    (model["model"], model["curves"]["average"], model["curves"]["uniform"])
                    for model in (trace, *compared)
                ]
            )
        return save(figures, folder)


def _decay(shown: Sequence[tuple[str, list[list[float]], list[list[float]] | None]]) -> Figure:
    """One line per round, the later the darker; dashed: even attention."""
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    figure, axes = panels(len(shown), len(shown), 4.8, 3.2)
    shades = colormaps["viridis_r"]
    for axis, (title, rounds, uniform) in zip(axes, shown, strict=True):
        for number, curve in enumerate(rounds, 1):
            colour = shades(0.1 + 0.85 * (number - 1) / max(1, len(rounds) - 1))
            axis.plot(
                range(1, len(curve) + 1),
                curve,
                color=colour,
                linewidth=1.5,
                label=f"round {number}",
            )
            if uniform:
                axis.plot(
                    range(1, len(uniform[number - 1]) + 1),
                    uniform[number - 1],
                    "--",
                    color=colour,
                    linewidth=0.8,
                    alpha=0.7,
                )
        axis.set(title=title, xlabel="generated token", ylabel="mass on the system prompt")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].plot([], [], "--", color="#777777", linewidth=0.8, label="even attention")
    legend_below(figure, *axes[-1].get_legend_handles_labels(), columns=5)
    return figure


def _heads(trace: dict[str, Any]) -> Figure:
    figure, axes = panels(2, 2, 4.0, 2.8)
    for axis, name, title in zip(
        axes,
        ("first_round", "drop"),
        ("mass in round 1", f"drop from round 1 to {trace['rounds']}"),
        strict=True,
    ):
        values = np.array(trace["heads"][name])
        image = axis.imshow(
            values,
            aspect="auto",
            cmap="Greens",
            vmin=min(0.0, float(values.min())),
            vmax=float(values.max()) or 1.0,
        )
        axis.set(title=title, xlabel="head", ylabel="layer")
        axis.grid(False)
        for ticks, size in ((axis.set_xticks, values.shape[1]), (axis.set_yticks, values.shape[0])):
            ticks(range(0, size, max(1, size // 8)))
        figure.colorbar(image, ax=axis)
    return figure


def _behaviour(trace: dict[str, Any]) -> Figure:
    """The mean score of the probes in equally full bins of mass, by early and late rounds."""
    figure, (axis,) = panels(1, 1, 5.2, 3.2)
    probes, half = np.array(trace["behaviour"]["probes"]), trace["rounds"] // 2
    groups = (
        ("all rounds", probes),
        (_rounds(1, half), probes[probes[:, 0] <= half]),
        (_rounds(half + 1, trace["rounds"]), probes[probes[:, 0] > half]),
    )
    for colour, (label, rows) in zip(COLOURS, groups, strict=False):
        parts = np.array_split(rows[rows[:, 1].argsort()], min(_BINS, max(1, len(rows) // 5)))
        axis.plot(
            [part[:, 1].mean() for part in parts],
            [part[:, 2].mean() for part in parts],
            marker="o",
            markersize=3.5,
            color=colour,
            label=label,
        )
    within = trace["behaviour"]["within_rounds"]
    note = (
        "r not measurable"
        if within["r"] is None
        else f"r = {within['r']:+.2f} [{within['low']:+.2f}, {within['high']:+.2f}] within rounds"
    )
    axis.set(
        title=note,
        xlabel="mean mass on the system prompt, equally full bins",
        ylabel="mean stability",
        ylim=(0, 1.02),
    )
    legend_below(figure, *axis.get_legend_handles_labels(), columns=3)
    return figure


def _rounds(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first} to {last}"
