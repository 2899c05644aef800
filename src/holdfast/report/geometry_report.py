"""The figures of a model's geometry: norms of its embeddings, spread of its hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.analysis.hidden_geometry import Geometry
from holdfast.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUPS = (  # in the order of `ByGroup`
    "all tokens so far",
    "system prompt",
    "user, equally many tokens",
    "agent, equally many tokens",
)


def write_geometry_figures(geometry: Geometry, folder: Path) -> list[Path]:
    """Writes `norms` (Li et al. 2024, Figure 7) and `hidden_states` as SVG and PNG."""
    with figures.styled():
        norms = _norms(geometry.model, geometry.embedding_norms)
        return figures.save({"norms": norms, "hidden_states": _hidden_states(geometry)}, folder)


def write_norms(model: str, norms: Sequence[float], folder: Path) -> list[Path]:
    """Writes only `norms`, as SVG and PNG."""
    with figures.styled():
        return figures.save({"norms": _norms(model, norms)}, folder)


def _norms(model: str, norms: Sequence[float]) -> Figure:
    figure, (axis,) = figures.panels(1, 1, 4.6, 3.0)
    axis.hist(norms, bins=60, density=True, color=figures.COLOURS[1])
    axis.set(title=f"norms of the embeddings of {model}", xlabel="norm", ylabel="density")
    return figure


def _hidden_states(geometry: Geometry) -> Figure:
    figure, axes = figures.panels(2, 2, 4.6, 3.2)
    spreads = geometry.hidden_states
    rounds = [spread.round for spread in spreads]
    quantities = {
        "effective dimension": [spread.dimension.values() for spread in spreads],
        "opening angle in radians (95% of the tokens)": [
            spread.angle.values() for spread in spreads
        ],
    }
    for axis, (title, by_round) in zip(axes, quantities.items(), strict=True):
        by_group = zip(*by_round, strict=True)
        for colour, label, values in zip(figures.COLOURS, _GROUPS, by_group, strict=False):
            axis.plot(rounds, values, marker="o", markersize=3, color=colour, label=label)
        axis.set(title=title, xlabel="round", xticks=rounds)
        axis.set_ylim(bottom=0)
    figures.legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure
