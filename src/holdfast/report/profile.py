"""What `holdfast profile` found: the ranking as JSON, a heat map of layers and heads, and what halving may have missed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.files import write_whole
from holdfast.records import read_run
from holdfast.report.figures import panels, save, styled
from holdfast.report.statistics import Estimate, estimate_columns
from holdfast.study.profiling import UNSTEERED, Profile, read_profile

_SHOWN = 5


def write_profile(folder: Path) -> list[str]:
    """Writes `profile.json` and the heat map (SVG and PNG) into a folder of `study.profiling.profile`; returns lines for people."""
    found, gains = read_profile(folder), _gains(folder)
    ranked = [
        {"layer": layer, "head": head, "score": found.scores[layer, head], "samples": found.samples[layer, head], "gain": asdict(gains[layer, head])}
        for layer, head in found.ranking.heads
    ]
    record = {"made_for": asdict(found.shape), "method": found.method, "by": found.by, "unsteered": found.unsteered, "ranking": ranked}
    write_whole(folder / "profile.json", json.dumps(record, indent=1) + "\n")
    with styled():
        files = save({"heads": _heat_map(found)}, folder)
    lines = [f"Unsteered {found.unsteered:.4f}. The best heads, with what they add and its 95 % interval over samples:"]
    lines += [f"  layer {layer:2} head {head:2}  {found.scores[layer, head]:.4f}  {_told(gains[layer, head])}" for layer, head in found.ranking.heads[:_SHOWN]]
    lines += _given_up(found, gains)
    return [*lines, f"Ranking: {(folder / 'profile.json').resolve()}", *(f"Figure: {path.resolve()}" for path in files if path.suffix == ".png")]


def _gains(folder: Path) -> dict[tuple[int, int], Estimate]:
    """By head, its score minus the unsteered one on the same samples."""
    records = sorted(read_run(folder).records, key=lambda record: record["conversation"])
    names = sorted({name for record in records for name in record["scores"]} - {UNSTEERED})
    gained = np.array([[record["scores"].get(name, np.nan) - record["scores"][UNSTEERED] for name in names] for record in records])
    return {tuple(map(int, name.split("."))): one for name, one in zip(names, estimate_columns(gained), strict=True)}


def _given_up(found: Profile, gains: dict[tuple[int, int], Estimate]) -> list[str]:
    """What dropping heads early may have cost."""
    most = max(found.samples.values())
    dropped = [head for head in found.ranking.heads if found.samples[head] < most]
    if not dropped:
        return []
    kept = [head for head in found.ranking.heads if found.samples[head] == most]
    least = min(gains[head].mean for head in kept)
    near = [head for head in dropped if gains[head].high is None or gains[head].high >= least]
    share = sum(found.samples.values()) / (most * len(found.samples))
    return [
        f"Halving scored {share:.0%} of all heads and samples. It gave up the order of {len(dropped)} dropped heads, of which {len(near)} have intervals that "
        f"reach the worst head kept, so any of these may belong among the best {len(kept)}; the best few are safer than the rest."
    ]


def _told(gain: Estimate) -> str:
    return f"{gain.mean:+.4f}" + (f" [{gain.low:+.4f}, {gain.high:+.4f}]" if gain.low is not None else "")


def _heat_map(found: Profile) -> Any:
    layers, heads = found.shape.layers, found.shape.heads
    grid = np.full((layers, heads), np.nan)
    for (layer, head), score in found.scores.items():
        grid[layer, head] = score - found.unsteered
    widest = float(np.nanmax(np.abs(grid))) or 1.0
    figure, (axis,) = panels(1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2))
    image = axis.imshow(grid, cmap="RdBu_r", vmin=-widest, vmax=widest, aspect="auto")
    axis.set(title=f"{found.method} on one head: change of the {'right answer’s log-probability' if found.by == 'probability' else 'accuracy'}",
             xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
    axis.grid(visible=False)
    figure.colorbar(image, ax=axis)
    return figure
