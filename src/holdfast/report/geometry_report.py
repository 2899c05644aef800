"""A model's geometry: the norms of its embeddings, and how far its hidden states spread.

Reported in words, as figures and as a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.hidden_geometry import ByGroup, Geometry
from holdfast.analysis.summary import DIALOGS
from holdfast.plurals import count_of
from holdfast.records import read_run
from holdfast.report import figures
from holdfast.report.page import Table, pictures, render_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUP_LABELS = {  # by the fields of `ByGroup`
    "all": "all tokens so far",
    "system": "system prompt",
    "user": "user, equally many tokens",
    "agent": "agent, equally many tokens",
}


def geometry_lines(geometry: Geometry, dialogs: int) -> list[str]:
    """The results, a line for the embeddings and one for the hidden states of some dialogs."""
    norms = geometry.embedding_norms
    first = geometry.hidden_states[0]
    last = geometry.hidden_states[-1]
    return [
        f"Embeddings of {geometry.model}: norm {np.mean(norms):.3f} on average, coefficient of"
        f" variation {np.std(norms) / np.mean(norms):.2f}.",
        f"Hidden states, all layers, averages of {dialogs} dialogs without intervals:"
        f" effective dimension of all tokens so far {first.dimension.all:.2f} in round 1 and"
        f" {last.dimension.all:.2f} in round {last.round}. With equally many tokens each:"
        f" system prompt {last.dimension.system:.2f}, user {last.dimension.user:.2f},"
        f" agent {last.dimension.agent:.2f}.",
    ]


def write_geometry_figures(geometry: Geometry, folder: Path) -> list[Path]:
    """Writes `norms` (Li et al. 2024, Figure 7) and `hidden_states` as SVG and PNG."""
    with figures.styled():
        norms = _draw_norms(geometry.model, geometry.embedding_norms)
        states = _draw_hidden_states(geometry)
        return figures.save({"norms": norms, "hidden_states": states}, folder)


def write_norms(model: str, norms: Sequence[float], folder: Path) -> list[Path]:
    """Writes only `norms`, which needs no dialogs, as SVG and PNG."""
    with figures.styled():
        return figures.save({"norms": _draw_norms(model, norms)}, folder)


def _draw_norms(model: str, norms: Sequence[float]) -> Figure:
    """Draws the distribution of the norms of the embeddings."""
    figure, (axis,) = figures.panels(1, 1, 4.6, 3.0)
    axis.hist(norms, bins=60, density=True, color=figures.COLOURS[1])
    axis.set(title=f"norms of the embeddings of {model}", xlabel="norm", ylabel="density")
    return figure


def _draw_hidden_states(geometry: Geometry) -> Figure:
    """Draws the spread of hidden states by round, a curve for each group of tokens."""
    figure, axes = figures.panels(2, 2, 4.6, 3.2)
    spreads = geometry.hidden_states
    rounds = [spread.round for spread in spreads]
    quantities = {
        "effective dimension": [spread.dimension for spread in spreads],
        "opening angle in radians (95% of the tokens)": [spread.angle for spread in spreads],
    }
    for axis, (title, by_round) in zip(axes, quantities.items(), strict=True):
        for colour, (group, label) in zip(figures.COLOURS, _GROUP_LABELS.items(), strict=False):
            values = [getattr(by_group, group) for by_group in by_round]
            axis.plot(rounds, values, marker="o", markersize=3, color=colour, label=label)
        axis.set(title=title, xlabel="round", xticks=rounds)
        axis.set_ylim(bottom=0)
    figures.legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure


def geometry_page(geometry: Geometry, lines: Sequence[str], folder: Path) -> str:
    """The HTML of the page; `lines` are the results in words, and `folder` has runs and figures."""
    run = read_run(folder / DIALOGS)
    states = "Effective dimension and opening angle, averaged over layers and dialogs"
    rounds = geometry.hidden_states[-1].round
    content = {
        "results": lines,
        "states": pictures(folder, {"hidden_states": states}),
        "norms": pictures(folder, {"norms": "Li et al. 2024, Figure 7"}),
        "averages": _averages_table(geometry),
    }
    return render_study(
        "geometry",
        f"How the hidden states of {geometry.model} spread over {rounds} rounds.",
        content,
        runs={DIALOGS: run},
        facts=(count_of(len(run.records), "dialog"), f"suite {geometry.suite}"),
    )


def _averages_table(geometry: Geometry) -> Table:
    """The averages in numbers, a row per round."""
    quantities = [
        f"{quantity}, {group}"
        for quantity in ("dimension", "angle")
        for group in ByGroup.model_fields
    ]
    rows = [("round", *quantities)]
    for spread in geometry.hidden_states:
        values = (*spread.dimension.values(), *spread.angle.values())
        rows.append((str(spread.round), *(f"{value:.2f}" for value in values)))
    return Table("Averages over layers and dialogs, without intervals", rows)
