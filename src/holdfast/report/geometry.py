"""The figures of `holdfast geometry`: embedding norms (Li et al. 2024, Figure 7), and hidden states
round by round.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.report.figures import COLOURS, panels, save, styled
from holdfast.report.labels import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {
    "all": "all tokens so far",
    "system": "system prompt",
    "user": "user, equally many tokens",
    "agent": "agent, equally many tokens",
}


def write_geometry_figures(geometry: dict[str, Any], folder: Path) -> list[Path]:
    """Writes `norms` and `hidden_states`, each as SVG and PNG, from what `study.geometry.study`
    measured; returns the files.
    """
    with styled():
        return save(
            {
                "norms": _norms(geometry["model"], geometry["embedding_norms"]),
                "hidden_states": _hidden_states(geometry),
            },
            folder,
        )


def write_norms(model: str, norms: Sequence[float], folder: Path) -> list[Path]:
    """Writes `norms` alone, as SVG and PNG."""
    with styled():
        return save({"norms": _norms(model, norms)}, folder)


def _norms(model: str, norms: Sequence[float]) -> Figure:
    figure, (axis,) = panels(1, 1, 4.6, 3.0)
    axis.hist(norms, bins=60, density=True, color=COLOURS[1])
    axis.set(title=f"norms of the embeddings of {model}", xlabel="norm", ylabel="density")
    return figure


def _hidden_states(geometry: dict[str, Any]) -> Figure:
    figure, axes = panels(2, 2, 4.6, 3.2)
    rows = geometry["hidden_states"]
    for axis, quantity, title in zip(
        axes,
        ("dimension", "angle"),
        ("effective dimension", "opening angle in radians (95 % of the tokens)"),
        strict=True,
    ):
        for colour, (name, label) in zip(COLOURS, _LABELS.items(), strict=False):
            axis.plot(
                [row["round"] for row in rows],
                [row[quantity][name] for row in rows],
                marker="o",
                markersize=3,
                color=colour,
                label=label,
            )
        axis.set(title=title, xlabel="round", xticks=[row["round"] for row in rows])
        axis.set_ylim(bottom=0)
    legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure
