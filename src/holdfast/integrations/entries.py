"""What experiment trackers show of a run: an entry for each method, or each way to ask a task."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.analysis.series import MEASURED, Series, read_series
from holdfast.analysis.statistics import Estimate, estimate_columns, row_means
from holdfast.analysis.statistics import estimate as estimate_of
from holdfast.analysis.summary import summarise
from holdfast.records import MANIFEST, RECORDS, RunData

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Entry:
    """One row of a tracker's table.

    Attributes:
        id: the same whenever the same records are exported again; longer runs have another.
        name: as the tracker lists it.
        group: the run that it is of.
        settings: the run's identity, flat: {"settings.rounds": 8}.
        curves: by name, a value for each round from 1; NaN where nothing was measured.
        totals: by name, one number of all records.
        files: of the run's folder, to be kept beside the numbers.
    """

    id: str
    name: str
    group: str
    settings: Mapping[str, Scalar]
    curves: Mapping[str, list[float]]
    totals: Mapping[str, float]
    files: tuple[Path, ...]


def entries_of(run: RunData) -> list[Entry]:
    """The entries of a run.

    Raises:
        RecordsError: nothing is finished yet.
    """
    group = run.folder.resolve().name
    settings = dict(_flat(run.manifest["identity"]))
    files = tuple(run.folder / name for name in (MANIFEST, RECORDS, "summary.json", "report.html"))
    return [
        Entry(
            id=_id_of(run, name),
            name=f"{group} · {name}",
            group=group,
            settings={**settings, "command": str(run.manifest.get("command")), "method": name},
            curves=curves,
            totals={total: value for total, value in totals.items() if math.isfinite(value)},
            files=tuple(path for path in files if path.is_file()),
        )
        for name, curves, totals in _numbers(run)
    ]


_Numbers = tuple[str, dict[str, list[float]], dict[str, float]]


def _numbers(run: RunData) -> Iterator[_Numbers]:
    """Of each entry its name, curves and totals."""
    command = run.manifest.get("command")
    if command == "drift":
        yield from map(_of_series, read_series(run))
        return
    results = summarise(run)["results"]
    if command == "profile":
        best = results["ranking"][0]
        totals = {"unsteered": results["unsteered"], "best_head_gain": best["gain"]["mean"]}
        yield "heads", {}, {name: _number(value) for name, value in totals.items()}
    elif command == "tasks":
        for row in results:
            scores = {name: _number(score["mean"]) for name, score in row["scores"].items()}
            totals = {name: _number(row[name]) for name in ("fluency", "consistency")}
            yield f"{row['task']} {row['variant']}", {}, {**scores, **totals}
    elif command == "calibrate":
        for row in results:
            yield row["method"], {}, {"capability": _number(row["score"]["mean"])}
    else:  # the baseline of a drift run: what its measures score without a system prompt
        every = [probe["score"] for record in run.records for probe in record["probes"]]
        yield str(command), {}, {"score": sum(every) / len(every) if every else math.nan}


def _of_series(series: Series) -> _Numbers:
    curves: dict[str, list[float]] = {}
    totals: dict[str, float] = {"conversations": float(len(series.records))}
    for kind in MEASURED:
        if series.measured(kind):
            values = series.values(kind)
            points = estimate_columns(values)
            for part in ("mean", "low", "high"):
                name = kind if part == "mean" else f"{kind}_{part}"
                curves[name] = [_part(point, part) for point in points]
            means = row_means(values)
            overall = estimate_of(means[[not math.isnan(mean) for mean in means]])
            totals[f"{kind}_over_all_rounds"] = _number(overall.mean)
    return series.method, curves, totals


def _part(point: Estimate, name: str) -> float:
    return _number(getattr(point, name))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _id_of(run: RunData, name: str) -> str:
    told = [run.manifest.get("created"), run.manifest["identity"], name, len(run.records)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    """The leaves of nested objects under dotted names; a list is one leaf, as JSON."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, str | int | float | bool):
        yield prefix, value
    elif value is not None:
        yield prefix, json.dumps(value, ensure_ascii=False)
