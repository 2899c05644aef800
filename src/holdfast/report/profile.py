"""What `holdfast profile` found: the ranking as JSON, a heat map of layers and heads, and what
halving may have missed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.files import write_whole
from holdfast.methods.heads import Head, HeadSet
from holdfast.records import read_run
from holdfast.report.figures import panels, save, styled
from holdfast.report.statistics import Estimate, estimate_columns
from holdfast.report.verdicts import LEAST, tell, with_interval
from holdfast.study.profiling import UNSTEERED, Profile, read_profile

_SHOWN = 5
_BY_CHANCE = 0.025  # of the heads without any gain, those whose interval lies above 0
_DIGITS = 4  # a gain that is printed as 0.0000 is none: sums in another order may move a score

Gains = dict[Head, Estimate]  # by head, its score minus the unsteered one on the same samples


def write_profile(folder: Path) -> list[str]:
    """Writes `profile.json` and the heat map (SVG and PNG) into a folder of
    `study.profiling.profile`; returns lines for people.
    """
    found, gains = read_profile(folder), read_gains(folder)
    ranked = [
        {
            "layer": layer,
            "head": head,
            "score": found.scores[layer, head],
            "samples": found.samples[layer, head],
            "gain": asdict(gains[layer, head]),
        }
        for layer, head in found.ranking.heads
    ]
    record = {
        "made_for": asdict(found.shape),
        "method": found.method,
        "by": found.by,
        "unsteered": found.unsteered,
        "ranking": ranked,
    }
    write_whole(folder / "profile.json", json.dumps(record, indent=1) + "\n")
    with styled():
        files = save({"heads": _heat_map(found)}, folder)
    lines = [
        f"Unsteered {found.unsteered:.4f}. The best heads, with what they add and its 95 % interval"
        " over samples:"
    ]
    lines += [
        f"  layer {layer:2} head {head:2}  {found.scores[layer, head]:.4f} "
        f" {_told(gains[layer, head])}"
        for layer, head in found.ranking.heads[:_SHOWN]
    ]
    lines += [_told_heads(gains), *_given_up(found, gains)]
    return [
        *lines,
        f"Ranking: {(folder / 'profile.json').resolve()}",
        *(f"Figure: {path.resolve()}" for path in files if path.suffix == ".png"),
    ]


@dataclass(frozen=True)
class Chosen:
    """The heads to steer.

    Args:
        heads: those that gain something.
        dropped: how many of the best gain nothing, and were left out.
        told: how many of the heads have a gain that can be told from chance.
    """

    heads: HeadSet
    dropped: int
    told: int

    def line(self) -> str:
        """What is to be known of them."""
        left_out = f", {self.dropped} that gain nothing left out" if self.dropped else ""
        return (
            f"{self.told} of these {len(self.heads)} heads have a gain that can be told from"
            f" chance{left_out}."
        )


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: str) -> Chosen:
    """Leaves out the heads that gain nothing.

    Args:
        best: the best heads of the tasks together.
        tasks: what every head gains on each.
        combine: "intersection" (a head must gain on every task) or "union" (on any).

    Raises:
        HoldfastError: none of the heads gains anything.
    """
    some = all if combine == "intersection" else any
    kept = [head for head in best if some(_gained(gains[head]) for gains in tasks)]
    if not kept:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method."
        )
    told = sum(some(tell(gains[head]).sign > 0 for gains in tasks) for head in kept)
    return Chosen(HeadSet(kept, best.made_for), len(best) - len(kept), told)


def _gained(gain: Estimate) -> bool:
    return gain.mean is not None and round(gain.mean, _DIGITS) > 0


def _told_heads(gains: Gains) -> str:
    """How many heads have a gain, beside how many would have one by chance."""
    most = max(gain.n for gain in gains.values())
    if most < LEAST:
        return f"No gain can be told from chance: {most} samples, fewer than {LEAST}."
    told = sum(tell(gain).sign > 0 for gain in gains.values())
    return (
        f"{told} of {len(gains)} heads have a gain that can be told from chance; of as many that"
        f" gain nothing, about {len(gains) * _BY_CHANCE:.1f} would."
    )


def read_gains(folder: Path) -> Gains:
    """By head, what it gains in the run of a profile."""
    records = sorted(read_run(folder).records, key=lambda record: record["conversation"])
    names = sorted({name for record in records for name in record["scores"]} - {UNSTEERED})
    gained = np.array(
        [
            [record["scores"].get(name, np.nan) - record["scores"][UNSTEERED] for name in names]
            for record in records
        ]
    )
    return {
        tuple(map(int, name.split("."))): one
        for name, one in zip(names, estimate_columns(gained), strict=True)
    }


def _given_up(found: Profile, gains: Gains) -> list[str]:
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
        f"Halving scored {share:.0%} of all heads and samples. It gave up the order of"
        f" {len(dropped)} dropped heads, of which {len(near)} have intervals that reach the worst"
        f" head kept, so any of these may belong among the best {len(kept)}; the best few are safer"
        " than the rest."
    ]


def _told(gain: Estimate) -> str:
    return (
        f"{with_interval(gain, lambda value: f'{value:+.4f}')},"
        f" {tell(gain).word('higher', 'lower')}"
    )


def _heat_map(found: Profile) -> Any:
    layers, heads = found.shape.layers, found.shape.heads
    grid = np.full((layers, heads), np.nan)
    for (layer, head), score in found.scores.items():
        grid[layer, head] = score - found.unsteered
    widest = float(np.nanmax(np.abs(grid))) or 1.0
    figure, (axis,) = panels(1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2))
    image = axis.imshow(grid, cmap="RdBu_r", vmin=-widest, vmax=widest, aspect="auto")
    axis.set(
        title=(
            f"{found.method} on one head: change of the"
            f" {'right answer’s log-probability' if found.by == 'probability' else 'accuracy'}"
        ),
        xlabel="head",
        ylabel="layer",
        xticks=range(heads),
        yticks=range(layers),
    )
    axis.grid(visible=False)
    figure.colorbar(image, ax=axis)
    return figure
