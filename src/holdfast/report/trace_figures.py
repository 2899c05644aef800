"""The figures of `holdfast trace`: how mass decays, in which heads, and whether scores follow.

decay.png               Li et al. 2024, Figures 4 and 8: a line for each round
heads.png               a heat map of layers and heads
mass_and_behaviour.png  the mean scores of probes by their mass
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.decay import Trace
from holdfast.analysis.mass_and_score import Matrix
from holdfast.plurals import rounds_from_to
from holdfast.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_BINS = 6  # of the probes, by their mass
_MIN_PROBES_PER_BIN = 5


@dataclass(frozen=True)
class _DecayPanel:
    """The curves of one panel: the mass at each generated token, [round][step].

    Attributes:
        uniform: the mass under uniform attention; () for none.
    """

    title: str
    curves: Matrix
    uniform: Matrix = ()


def write_trace_figures(trace: Trace, folder: Path, others: Sequence[Trace] = ()) -> list[Path]:
    """Writes `decay` (Li et al. 2024, Figures 4 and 8), `heads` and `mass_and_behaviour`.

    Args:
        others: traces of other models. With any, `models` shows them beside the first.
    """
    layer, head = trace.shown_head
    with figures.styled():
        figures_by_name = {
            "decay": _draw_decay(
                [
                    _DecayPanel(f"head {layer}.{head}", trace.curves.head),
                    _DecayPanel("average over heads", trace.curves.average, trace.curves.uniform),
                ]
            ),
            "heads": _draw_heat_maps(
                {
                    "mass in round 1": trace.heads.first_round,
                    f"drop from round 1 to {trace.rounds}": trace.heads.drop,
                }
            ),
            "mass_and_behaviour": _draw_mass_and_behaviour(trace),
        }
        if others:
            figures_by_name["models"] = _draw_decay(
                [
                    _DecayPanel(model.model, model.curves.average, model.curves.uniform)
                    for model in (trace, *others)
                ]
            )
        return figures.save(figures_by_name, folder)


def _draw_decay(panels: Sequence[_DecayPanel]) -> Figure:
    """Draws a line for each round, the later the darker; dashed lines show uniform attention."""
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    figure, axes = figures.panels(len(panels), len(panels), 4.8, 3.2)
    for axis, panel in zip(axes, panels, strict=True):
        shades = colormaps["viridis_r"](np.linspace(0.3, 1, len(panel.curves)))
        for number, (curve, colour) in enumerate(zip(panel.curves, shades, strict=True)):
            steps = range(1, len(curve) + 1)
            label = f"round {number + 1}"
            axis.plot(steps, curve, color=colour, linewidth=1.5, label=label)
            if panel.uniform:
                uniform = panel.uniform[number]
                steps = range(1, len(uniform) + 1)
                axis.plot(steps, uniform, "--", color=colour, linewidth=0.8, alpha=0.7)
        axis.set(title=panel.title, xlabel="generated token", ylabel="mass on the system prompt")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].plot([], [], "--", color="#777777", linewidth=0.8, label="uniform attention")
    figures.legend_below(figure, *axes[-1].get_legend_handles_labels(), columns=5)
    return figure


def _draw_heat_maps(values_by_title: Mapping[str, Matrix]) -> Figure:
    """Draws a heat map of layers and heads for each title."""
    figure, axes = figures.panels(len(values_by_title), len(values_by_title), 4.0, 2.8)
    for axis, (title, rows) in zip(axes, values_by_title.items(), strict=True):
        values = np.array(rows)
        low = min(0.0, float(values.min()))
        high = float(values.max()) or 1.0
        image = axis.imshow(values, aspect="auto", cmap="Greens", vmin=low, vmax=high)
        axis.set(title=title, xlabel="head", ylabel="layer")
        axis.grid(False)
        layers, heads = values.shape
        axis.set_xticks(range(0, heads, max(1, heads // 8)))
        axis.set_yticks(range(0, layers, max(1, layers // 8)))
        figure.colorbar(image, ax=axis)
    return figure


def _draw_mass_and_behaviour(trace: Trace) -> Figure:
    """Draws the mean scores of probes in equally full bins of mass, for all and half the rounds."""
    figure, (axis,) = figures.panels(1, 1, 5.2, 3.2)
    probes = np.array(trace.behaviour.probes)  # [probe, (round, mass, score)]
    half = trace.rounds // 2
    groups = (
        ("all rounds", probes),
        (rounds_from_to(1, half), probes[probes[:, 0] <= half]),
        (rounds_from_to(half + 1, trace.rounds), probes[probes[:, 0] > half]),
    )
    for colour, (label, rows) in zip(figures.COLOURS, groups, strict=False):
        rows_by_mass = rows[rows[:, 1].argsort()]
        count = min(_MAX_BINS, max(1, len(rows) // _MIN_PROBES_PER_BIN))
        bins = np.array_split(rows_by_mass, count)
        x, y = np.array([probes_of_bin[:, 1:3].mean(0) for probes_of_bin in bins]).T
        axis.plot(x, y, marker="o", markersize=3.5, color=colour, label=label)
    within = trace.behaviour.within_rounds
    title = "r not measurable"
    if within.r is not None:
        title = f"r = {within.r:+.2f} [{within.low:+.2f}, {within.high:+.2f}] within rounds"
    axis.set(title=title, ylabel="mean stability", ylim=(0, 1.02))
    axis.set_xlabel("mean mass on the system prompt, equally full bins")
    figures.legend_below(figure, *axis.get_legend_handles_labels(), columns=3)
    return figure
