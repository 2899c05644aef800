"""The lines, figures and page of `holdfast trace`: how mass decays, and whether scores follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.decay import Decay, MassChange, Trace
from holdfast.analysis.mass_and_score import Matrix
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import MODELS
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of, rounds_from_to
from holdfast.records import read_run
from holdfast.report import figures
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOGETHER = "they rise together"
_OPPOSITE = "one falls as the other rises"
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


def trace_lines(trace: Trace) -> list[str]:
    """Says how the mass on the system prompt decays, and whether it correlates with the score."""
    sentences = [_all_heads_line(trace), _shown_head_line(trace), correlations_line(trace)]
    if trace.whole_dialogs < MIN_SAMPLES:
        dialogs = count_of(trace.whole_dialogs, "whole dialog")
        sentences.append(
            f"With {dialogs}, this is an example and not a measurement, which takes {MIN_SAMPLES}."
        )
    return sentences


def _all_heads_line(trace: Trace) -> str:
    mass = trace.average.mass
    first, last = (with_interval(value, "{:.3f}".format) for value in (mass[0], mass[-1]))
    return (
        f"{trace.model}, all heads: mass {first} in round 1, {last} in round {trace.rounds}."
        f" {_log_changes(trace.average)}"
    )


def _shown_head_line(trace: Trace) -> str:
    layer, head = trace.shown_head
    first = trace.head.mass[0].mean
    last = trace.head.mass[-1].mean
    return (
        f"{trace.model}, head {layer}.{head}, chosen because its mass falls most in one half of the"
        f" dialogs; in the other half: mass {first:.3f} in round 1, {last:.3f} in round"
        f" {trace.rounds}. {_log_changes(trace.head)}"
    )


def _log_changes(decay: Decay) -> str:
    """Compares the changes of the log of the mass with those under uniform attention."""
    between_turns = _beside_uniform_attention(decay.between_turns)
    within = _beside_uniform_attention(decay.within_turns)
    return f"Log of the mass between turns {between_turns}; within turns {within}."


def _beside_uniform_attention(change: MassChange) -> str:
    """'-0.31 [-0.40, -0.22], falls (uniform attention -0.12 [-0.15, -0.09])'."""
    change_text = _interval_and_verdict(change.real, "rises", "falls")
    return f"{change_text} (uniform attention {_interval_text(change.uniform)})"


def correlations_line(trace: Trace) -> str:
    """Says how the mass correlates with the score, or once that this cannot be measured."""
    correlations = _correlations_of(trace)
    if all(value.interval is None for value in correlations):
        return "The correlation of mass and score of the probes is not measurable."
    over_all, within_rounds, within_dialogs, between_dialogs = (
        _interval_and_verdict(value, _TOGETHER, _OPPOSITE) for value in correlations
    )
    return (
        f"Mass and score of the probes: over all r = {over_all}; within rounds r = {within_rounds};"
        f" within dialogs r = {within_dialogs}; between dialogs r = {between_dialogs}."
    )


def _correlations_of(trace: Trace) -> list[Estimate]:
    """The correlations over all probes, within rounds, within dialogs and between dialogs."""
    behaviour = trace.behaviour
    kinds = (
        behaviour.all,
        behaviour.within_rounds,
        behaviour.within_dialogs,
        behaviour.between_dialogs,
    )
    return [correlation.estimate for correlation in kinds]


def _interval_text(value: Estimate) -> str:
    """'+0.123 [+0.100, +0.145]'; 'not measurable' without an interval."""
    if value.interval is None:
        return "not measurable"
    return with_interval(value, "{:+.3f}".format)


def _interval_and_verdict(value: Estimate, above: str, below: str) -> str:
    """'+0.123 [+0.100, +0.145], rises', or '..., cannot tell'."""
    return f"{_interval_text(value)}, {verdict_on(value).word(above, below)}"


def trace_page(traces: Sequence[Trace], folder: Path) -> str:
    """The HTML of the page of one or two traced models."""
    first = traces[0]
    runs = {name: read_run(folder / name) for name, _ in zip(MODELS, traces, strict=False)}
    figures_folder = folder / "figures"
    content = {
        "decay": pictures(
            figures_folder,
            {
                "decay": "Mass at each generated token, a line for each round",
                "models": "The models side by side",
            },
        ),
        "changes": Table(
            "Change of the logarithm of the mass over a dialog, with 95% intervals",
            _changes_table(traces),
        ),
        "heads": pictures(
            figures_folder, {"heads": "Mass in round 1, and its drop, in every head"}
        ),
        "behaviour": pictures(
            figures_folder, {"mass_and_behaviour": "Stability of the probes by their mean mass"}
        ),
        "correlations": Table(
            "Correlation of a probe’s mass with its score, with 95% intervals",
            _correlations_table(traces),
        ),
        "words": [line for trace in traces for line in trace_lines(trace)],
    }
    return render_study(
        "trace",
        f"Of the attention of {first.model}, its system prompt gets"
        f" {_share_text(first.average.mass[0])} in round 1 and"
        f" {_share_text(first.average.mass[-1])} in round {first.rounds}.",
        content,
        runs=runs,
        facts=(f"{first.dialogs} dialogs of {first.rounds} rounds",),
    )


def _share_text(mass: Estimate) -> str:
    """'3.3% [3.0, 3.6]'."""
    share, _, interval = with_interval(mass, lambda value: f"{100 * value:.1f}").partition(" ")
    return f"{share}% {interval}".rstrip()


def _changes_table(traces: Sequence[Trace]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("model and heads", "change", "measured", "uniform attention", "difference")
    ]
    for trace in traces:
        layer, head = trace.shown_head
        rows += _change_rows(f"{trace.model}, all heads", trace.average)
        rows += _change_rows(f"{trace.model}, head {layer}.{head}", trace.head)
    return rows


def _change_rows(heads: str, decay: Decay) -> list[tuple[str, ...]]:
    changes = {
        "between turns": decay.between_turns,
        "within turns": decay.within_turns,
        "slope per token": decay.slope,
    }
    return [
        (
            heads,
            name,
            _interval_text(change.real),
            _interval_text(change.uniform),
            _interval_text(change.difference),
        )
        for name, change in changes.items()
    ]


def _correlations_table(traces: Sequence[Trace]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("model", "over all probes", "within rounds", "within dialogs", "between dialogs")
    ]
    for trace in traces:
        rows.append((trace.model, *map(_interval_text, _correlations_of(trace))))
    return rows


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
