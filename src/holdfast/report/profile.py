"""What a profile of heads shows: a heat map of layers and heads, and lines for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.profile import (
    Gains,
    Profile,
    count_told,
    dropped_by_halving,
    read_gains,
    read_profile,
    write_ranking,
)
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import LEAST, tell
from holdfast.report.figures import panels, save, styled
from holdfast.report.wording import with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 5


def write_profile(folder: Path) -> list[str]:
    """Writes `profile.json` and the heat map (SVG and PNG) into a folder of
    `study.profiling.profile`; returns lines for people.
    """
    profile = read_profile(folder)
    ranking = write_ranking(folder)
    with styled():
        files = save({"heads": _heat_map(profile)}, folder)
    return [
        *profile_lines(profile, read_gains(folder)),
        f"Ranking: {ranking.resolve()}",
        *(f"Figure: {path.resolve()}" for path in files if path.suffix == ".png"),
    ]


def profile_lines(profile: Profile, gains: Gains) -> list[str]:
    """The best heads, how many have a gain, and what halving may have missed."""
    best = [
        f"  layer {head[0]:2} head {head[1]:2}  {profile.scores[head]:.4f}  {_gain(gains[head])}"
        for head in profile.ranking.heads[:_SHOWN]
    ]
    return [
        f"Unsteered {profile.unsteered:.4f}. The best heads, with what they add and its 95 %"
        " interval over samples:",
        *best,
        _told_heads(gains),
        *_given_up(profile, gains),
    ]


def _gain(gain: Estimate) -> str:
    text = with_interval(gain, lambda value: f"{value:+.4f}")
    return f"{text}, {tell(gain).word('higher', 'lower')}"


def _told_heads(gains: Gains) -> str:
    """How many heads have a gain, beside how many would have one by chance."""
    told = count_told(gains)
    if told is None:
        most = max(gain.n for gain in gains.values())
        return f"No gain can be told from chance: {most} samples, fewer than {LEAST}."
    count, by_chance = told
    return (
        f"{count} of {len(gains)} heads have a gain that can be told from chance; of as many that"
        f" gain nothing, about {by_chance:.1f} would."
    )


def _given_up(profile: Profile, gains: Gains) -> list[str]:
    """What dropping heads early may have cost."""
    lost = dropped_by_halving(profile, gains)
    if lost is None:
        return []
    return [
        f"Halving scored {lost.share:.0%} of all heads and samples. It gave up the order of"
        f" {lost.dropped} dropped heads, of which {lost.near} have intervals that reach the worst"
        f" head kept, so any of these may belong among the best {lost.kept}; the best few are safer"
        " than the rest."
    ]


def _heat_map(profile: Profile) -> Figure:
    layers, heads = profile.shape.layers, profile.shape.heads
    grid = np.full((layers, heads), np.nan)
    for (layer, head), score in profile.scores.items():
        grid[layer, head] = score - profile.unsteered
    widest = float(np.nanmax(np.abs(grid))) or 1.0
    by = "right answer’s log-probability" if profile.by == "probability" else "accuracy"
    figure, (axis,) = panels(1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2))
    image = axis.imshow(grid, cmap="RdBu_r", vmin=-widest, vmax=widest, aspect="auto")
    axis.set(
        title=f"{profile.method} on one head: change of the {by}",
        xlabel="head",
        ylabel="layer",
        xticks=range(heads),
        yticks=range(layers),
    )
    axis.grid(visible=False)
    figure.colorbar(image, ax=axis)
    return figure
