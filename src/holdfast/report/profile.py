"""The lines, the figure and the page of a profile of heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from holdfast.analysis.summary import json_text, spread, summarise
from holdfast.analysis.verdicts import MIN_SAMPLES, tell
from holdfast.records import read_run
from holdfast.report.downloads import Download, json_file, table_files
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.study_figures import write_heat_map
from holdfast.report.wording import with_interval

_SHOWN = 5


def write_profile(folder: Path) -> list[str]:
    """Writes `profile.json` and the heat map (SVG and PNG) into a folder of
    `study.profiling.profile`; returns lines for people.
    """
    profile = read_profile(folder)
    ranking = write_ranking(folder)
    files = write_heat_map(profile, folder)
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
    counted = count_told(gains)
    if counted is None:
        most = max(gain.n for gain in gains.values())
        return f"No gain can be told from chance: {most} samples, fewer than {MIN_SAMPLES}."
    count, by_chance = counted
    return (
        f"{count} of {len(gains)} heads have a gain that can be told from chance; of as many that"
        f" gain nothing, about {by_chance:.1f} would."
    )


def _given_up(profile: Profile, gains: Gains) -> list[str]:
    """A sentence on how much dropping heads early may have cost."""
    lost = dropped_by_halving(profile, gains)
    if lost is None:
        return []
    return [
        f"Halving scored {lost.share:.0%} of all heads and samples. It gave up the order of"
        f" {lost.dropped} dropped heads, of which {lost.near} have intervals that reach the worst"
        f" head kept, so any of these may belong among the best {lost.kept}; the best few are safer"
        " than the rest."
    ]


def profile_page(folder: Path, lines: Mapping[str, Sequence[str]]) -> str:
    """The HTML of the page of the profiles in `folder`, one folder per task.

    Args:
        folder: of the command.
        lines: by task, the text under its title.
    """
    runs = {name: read_run(folder / name) for name in lines}
    files: list[Download] = []
    tasks = []
    for name, run in runs.items():
        profile, gains = read_profile(folder / name), read_gains(folder / name)
        head = ("head", "score", "gain", "95 % interval", "samples")
        rows: list[tuple[str, ...]] = [head]
        numbers: list[tuple[Any, ...]] = [
            ("layer", "head", "score", "n", "gain", "low", "high", "sd")
        ]
        for layer, number in profile.ranking.heads:
            score, gain = profile.scores[layer, number], gains[layer, number]
            interval = "" if gain.low is None else f"[{gain.low:+.4f}, {gain.high:+.4f}]"
            rows.append(
                (f"{layer}.{number}", f"{score:.4f}", f"{gain.mean:+.4f}", interval, str(gain.n))
            )
            numbers.append((layer, number, round(score, 6), *spread(gain).values()))
        files += table_files(f"heads-{name}", f"every head on {name}, best first", numbers)
        summary = json_text(summarise(run))
        files.append(json_file(f"summary-{name}.json", "what was found, as in its folder", summary))
        tasks.append(
            {
                "name": name,
                "lines": lines[name],
                "pictures": pictures(
                    folder / name, heads=f"{name}: what steering each head alone changes"
                ),
                "table": Table(f"{name}: every head, best first", rows),
            }
        )
    samples = (
        f"{len({record['conversation'] for record in run.records})} samples of {name}"
        for name, run in runs.items()
    )
    model = next(iter(runs.values())).manifest["identity"]["model"]
    return render_study(
        "profile",
        f"The heads of {model}, ranked by what steering each alone changes on {', '.join(runs)}.",
        runs,
        (", ".join(samples),),
        tasks=tasks,
        downloads=files,
    )
