"""The page of `holdfast profile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.profile import read_gains, read_profile
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import spelled, spread, summarise
from holdfast.records import read_run
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import Download, json_file, table_files

_TERMS = (
    ("Head", "One attention head: its layer and its number there, from 0."),
    (
        "Score",
        (
            "Of a sample: the probability or accuracy of the right answer, with this head alone"
            " steered."
        ),
    ),
    ("Gain", "Score minus the score without steering on the same samples, with its 95 % interval."),
)


def profile_document(folder: Path, told: Mapping[str, Sequence[str]]) -> Document:
    """The page of the profiles in `folder`, one folder per task; told is what was said of each
    task.
    """
    runs = {name: read_run(folder / name) for name in told}
    first = next(iter(runs.values()))
    parts = tuple(
        Part(
            f"task-{number}",
            name,
            tuple(told[name]),
            _TERMS if number == 1 else (),
            pictures(folder / name, (("heads", f"{name}: what steering each head alone changes"),)),
            (Table(f"{name}: every head, best first", _rows(folder / name)),),
        )
        for number, name in enumerate(runs, start=1)
    )
    names = ", ".join(runs)
    headline = (
        f"The heads of {first.manifest['identity']['model']}, ranked by what steering each alone"
        f" changes on {names}."
    )
    files = [file for name, run in runs.items() for file in _files(name, folder, run)]
    samples = ", ".join(
        f"{len({record['conversation'] for record in run.records})} samples of {name}"
        for name, run in runs.items()
    )
    return Document(
        "profile",
        headline,
        (),
        head_facts(first, samples),
        parts,
        tuple(files),
        tuple(runs.items()),
    )


def _files(name: str, folder: Path, run: Any) -> list[Download]:
    rows: list[tuple[Any, ...]] = [("layer", "head", "score", "n", "gain", "low", "high", "sd")]
    for layer, head, score, gain in _ranking(folder / name):
        rows.append((layer, head, round(score, 6), *spread(gain).values()))
    return [
        *table_files(f"heads-{name}", f"every head on {name}, best first", rows),
        json_file(
            f"summary-{name}.json", "what was found, as in its folder", spelled(summarise(run))
        ),
    ]


def _ranking(folder: Path) -> list[tuple[int, int, float, Estimate]]:
    profile, gains = read_profile(folder), read_gains(folder)
    return [(*head, profile.scores[head], gains[head]) for head in profile.ranking.heads]


def _rows(folder: Path) -> tuple[tuple[str, ...], ...]:
    rows = [("head", "score", "gain", "95 % interval", "samples")]
    for layer, head, score, gain in _ranking(folder):
        interval = "" if gain.low is None else f"[{gain.low:+.4f}, {gain.high:+.4f}]"
        rows.append((f"{layer}.{head}", f"{score:.4f}", f"{gain.mean:+.4f}", interval, str(gain.n)))
    return tuple(rows)
