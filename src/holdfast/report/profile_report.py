"""The report on a profile, the effect of steering each attention head alone: sentences, a heat map
and a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.analysis.profile import (
    SHARE_BY_CHANCE,
    GainingHeads,
    Profile,
    count_certain_gains,
    read_profile,
    write_ranking,
)
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.records import read_run
from holdfast.report import figures
from holdfast.report.page import Picture, Table, pictures, render_study
from holdfast.report.wording import with_interval

_MAX_HEADS_SHOWN = 5


@dataclass(frozen=True)
class ProfiledTask:
    """The section of the page on one task."""

    name: str
    lines: Sequence[str]
    pictures: list[Picture]
    table: Table


def write_profile(profile: Profile, folder: Path) -> list[Path]:
    """Writes `profile.json` and the heat map (SVG, PNG) of a profile; returns the files."""
    return [write_ranking(profile, folder), *_write_heat_map(profile, folder)]


def _write_heat_map(profile: Profile, folder: Path) -> list[Path]:
    """Writes `heads`, the change from steering each single head, as SVG and PNG."""
    layers = profile.shape.layers
    heads = profile.shape.heads
    grid = np.full((layers, heads), np.nan)
    for row in profile.heads:
        grid[row.layer, row.head] = row.score - profile.unsteered
    largest = float(np.nanmax(np.abs(grid))) or 1.0
    quantity = "right answer’s log-probability" if profile.by == "probability" else "accuracy"
    with figures.styled():
        figure, (axis,) = figures.panels(
            1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2)
        )
        image = axis.imshow(grid, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        axis.set(title=f"{profile.method} on one head: change of the {quantity}")
        axis.set(xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
        axis.grid(visible=False)
        figure.colorbar(image, ax=axis)
        return figures.save({"heads": figure}, folder)


def profile_lines(profile: Profile) -> list[str]:
    """The best heads, and how many heads have a gain."""
    lines = [
        f"Unsteered {profile.unsteered:.4f}. Best heads, with the gain from steering each alone and"
        " its 95% interval over samples:"
    ]
    for row in profile.heads[:_MAX_HEADS_SHOWN]:
        gain = with_interval(row.gain, lambda value: f"{value:+.4f}")
        lines.append(
            f"  layer {row.layer:2} head {row.head:2}  {row.score:.4f}  {gain}, {row.gain.verdict}"
        )
    num_certain = count_certain_gains(profile)
    if num_certain is None:
        samples = max(row.gain.n for row in profile.heads)
        lines.append(
            f"No gain is distinguishable from chance: {samples} samples, fewer than {MIN_SAMPLES}."
        )
    else:
        lines.append(
            f"{num_certain} of {len(profile.heads)} heads have a gain distinguishable from chance;"
            f" about {len(profile.heads) * SHARE_BY_CHANCE:.1f} would by chance alone."
        )
    return lines


def chosen_line(choice: GainingHeads) -> str:
    """How many of the chosen heads have a certain gain, and how many heads were left out."""
    sentence = (
        f"{choice.certain} of these {len(choice.heads)} heads have a gain distinguishable from"
        " chance"
    )
    if choice.left_out == 1:
        return f"{sentence}; 1 head that gains nothing was left out."
    if choice.left_out:
        return f"{sentence}; {choice.left_out} heads that gain nothing were left out."
    return f"{sentence}."


def profile_page(folder: Path, lines: Mapping[str, Sequence[str]]) -> str:
    """The HTML of the page of profiles.

    Args:
        folder: has a folder for each task, of its name.
        lines: by task, the results in words.
    """
    runs = {name: read_run(folder / name) for name in lines}
    tasks = []
    for name in runs:
        title = f"{name}: what steering each head alone changes"
        tasks.append(
            ProfiledTask(
                name=name,
                lines=lines[name],
                pictures=pictures(folder / name, {"heads": title}),
                table=Table(
                    f"{name}: every head, best first", _head_rows(read_profile(folder / name))
                ),
            )
        )
    samples = (
        f"{len({record.conversation for record in run.records})} samples of {name}"
        for name, run in runs.items()
    )
    model = next(iter(runs.values())).manifest.identity.model
    return render_study(
        "profile",
        f"The heads of {model}, ranked by what steering each alone changes on {', '.join(runs)}.",
        {"tasks": tasks},
        runs=runs,
        facts=(", ".join(samples),),
    )


def _head_rows(profile: Profile) -> list[tuple[str, ...]]:
    """Every head with its gain, the best first; the header comes before them."""
    rows: list[tuple[str, ...]] = [("head", "score", "gain", "95% interval", "samples")]
    for row in profile.heads:
        gain = row.gain
        interval = "" if gain.low is None else f"[{gain.low:+.4f}, {gain.high:+.4f}]"
        name = f"{row.layer}.{row.head}"
        rows.append((name, f"{row.score:.4f}", f"{gain.mean:+.4f}", interval, str(gain.n)))
    return rows
