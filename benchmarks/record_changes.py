"""Compares the records with those of a commit, number by number.

    python benchmarks/record_changes.py v0.3.0

A number has changed if its interval and the old one do not overlap: the 95% interval of an
estimate, or the range of a ratio over repetitions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from record_list import RECORDS

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Number:
    """A number of a record, with its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def numbers(value: object, path: str = "") -> Iterator[tuple[str, Number]]:
    """The numbers of a record that have an interval or repetitions, each with its path in it, such
    as "/rows/boost:factor=4/drop".
    """
    if isinstance(value, dict):
        if {"mean", "low", "high"} <= value.keys():
            if None not in (value["mean"], value["low"], value["high"]):
                yield path, Number(value["mean"], value["low"], value["high"])
            return
        for key, inner in value.items():
            if key != "measured_on":
                yield from numbers(inner, f"{path}/{key}")
    elif isinstance(value, list) and path.endswith("/repetitions"):
        yield from _ranges(value, path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{_label(inner, index)}")


def _label(inner: object, index: int) -> str:
    """The label of a list element: its method, work or number, or else its index."""
    if isinstance(inner, dict):
        for key in ("method", "work", "number"):
            if key in inner:
                return str(inner[key])
    return str(index)


def _ranges(repetitions: list[dict] | list[float], path: str) -> Iterator[tuple[str, Number]]:
    """Median and range of every ratio over the repetitions."""
    if not all(isinstance(row, dict) for row in repetitions):  # plain ratios
        yield path, _median_and_range(repetitions)
        return
    rows = [dict(_leaves(row)) for row in repetitions]
    for key in rows[0]:
        if "ratio" in key:
            yield f"{path}{key}", _median_and_range([row[key] for row in rows if key in row])


def _median_and_range(values: Sequence[float]) -> Number:
    ordered = sorted(values)
    return Number(ordered[len(ordered) // 2], ordered[0], ordered[-1])


def _leaves(value: dict, path: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested dictionaries, each with its path: ("/peer/ratio", 2.0)."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{path}/{key}")
        elif isinstance(inner, (int, float)):
            yield f"{path}/{key}", inner


def verdicts(record: dict | list) -> Iterator[tuple[str, str]]:
    """Verdicts on a paper's claims, by claim; in version 0.1.0, records are lists of figures."""
    for figure in record.get("figures", ()) if isinstance(record, dict) else record:
        for claim in figure["claims"]:
            name = f"{figure.get('kind', 'Figure')} {figure['number']}"
            yield f"{name}: {claim['text']}", claim["verdict"]


def changes(old: dict | list, new: dict | list) -> list[str]:
    """One line per number that left its interval, and per verdict that differs."""
    before = dict(numbers(old))
    after = dict(numbers(new))
    lines = [
        f"| {path} | {before[path]} | {number} |"
        for path, number in after.items()
        if path in before and (number.low > before[path].high or number.high < before[path].low)
    ]
    old_verdicts = dict(verdicts(old))
    lines += [
        f"| {claim} | {old_verdicts[claim]} | {verdict} |"
        for claim, verdict in verdicts(new)
        if old_verdicts.get(claim, verdict) != verdict
    ]
    return lines


def record_at(commit: str, name: str) -> dict | list:
    """The record in a commit; {} if it has none."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:benchmarks/results/{name}.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return json.loads(shown.stdout) if shown.returncode == 0 else {}


def print_changes(commit: str) -> None:
    """Prints what changed in each record since a commit."""
    for record in RECORDS:
        file = ROOT / "benchmarks" / "results" / f"{record.name}.json"
        if not file.exists():
            continue
        lines = changes(record_at(commit, record.name), json.loads(file.read_text()))
        if lines:
            print("\n".join(["", record.name, *lines]))


if __name__ == "__main__":
    print_changes(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
