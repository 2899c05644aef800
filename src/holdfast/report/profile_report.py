"""The map of a profile: what steering each single head changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holdfast.analysis.profile import Profile
from holdfast.report import figures


def write_head_map(profile: Profile, folder: Path) -> list[Path]:
    """Writes `heads`, the change from steering each single head, as SVG and PNG."""
    layers, heads = profile.shape.layers, profile.shape.heads
    grid = np.full((layers, heads), np.nan)
    for (layer, head), score in profile.scores.items():
        grid[layer, head] = score - profile.unsteered
    widest = float(np.nanmax(np.abs(grid))) or 1.0
    by = "right answer’s log-probability" if profile.by == "probability" else "accuracy"
    with figures.styled():
        figure, (axis,) = figures.panels(
            1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2)
        )
        image = axis.imshow(grid, cmap="RdBu_r", vmin=-widest, vmax=widest, aspect="auto")
        axis.set(title=f"{profile.method} on one head: change of the {by}")
        axis.set(xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
        axis.grid(visible=False)
        figure.colorbar(image, ax=axis)
        return figures.save({"heads": figure}, folder)
