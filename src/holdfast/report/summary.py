"""`summary.json`: what a run found, in one small file for other programs; docs/summary.md describes
it.

It is derived from the manifest and the records alone and holds no date or duration, so deriving it
again from the same records gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.files import write_whole
from holdfast.records import RunData, read_run
from holdfast.report.findings import (
    PromptRow,
    baseline_of,
    by_category,
    by_prompt,
    compare,
    overall_change,
    overall_mean,
)
from holdfast.report.rules import RuleRow, rule_rows
from holdfast.report.scores import KINDS, Series, read_series
from holdfast.report.statistics import Estimate, estimate, estimate_columns

SCHEMA = 1
NAME = "summary.json"
_DIGITS = 6  # sums may differ between machines behind it


def write_summary(folder: Path | str) -> Path:
    """Writes `summary.json` into a run folder, whole or not at all.

    Args:
        folder: of a run of `drift`, `tasks` or `profile`, or one that `calibrate`, `trace` or
            `geometry` made.

    Returns:
        The file.

    Raises:
        RecordsError: not a run folder, nothing finished in it, or the file cannot be written.
    """
    return write_whole(Path(folder) / NAME, spelled(summarise(read_run(folder))))


def spelled(summary: dict[str, Any]) -> str:
    """A summary as the text of its file."""
    return json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def summarise(run: RunData) -> dict[str, Any]:
    """What a run found, as JSON values.

    Raises:
        RecordsError: nothing is finished yet.
    """
    command = str(run.manifest.get("command", "drift"))
    results = _RESULTS.get(command, _drift)(run)
    return {
        "schema": SCHEMA,
        "command": command,
        "identity": run.manifest.get("identity", {}),
        "records": len(run.records),
        "results": results,
    }


def spread(item: Estimate) -> dict[str, float | int | None]:
    """An estimate as JSON: n, mean, the ends of its 95 % interval, and the standard deviation."""
    numbers = {"mean": item.mean, "low": item.low, "high": item.high, "sd": item.sd}
    return {"n": item.n, **{name: _rounded(value) for name, value in numbers.items()}}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS) + 0.0


def _spreads(items: Iterable[Estimate]) -> list[dict[str, float | int | None]]:
    return [spread(item) for item in items]


def _drift(run: RunData) -> list[dict[str, Any]]:
    series = read_series(run)
    return [_method(series, item) for item in series]


def _method(series: list[Series], item: Series) -> dict[str, Any]:
    kinds = [kind for kind in (*KINDS, "mass") if item.measured(kind)]
    scored = [kind for kind in KINDS if kind in kinds]
    categories = {kind: by_category(item, kind) for kind in scored}
    return {
        "method": item.method,
        "conversations": len(item.records),
        "by_round": {kind: _spreads(estimate_columns(item.values(kind))) for kind in kinds},
        "over_all_rounds": {kind: spread(overall_mean(item, kind)) for kind in scored},
        "change": {kind: spread(overall_change(item, kind)) for kind in scored},
        "against": _against(series, item),
        "categories": {
            kind: {name: _spreads(points) for name, points in by_name.items()}
            for kind, by_name in categories.items()
        },
        "prompts": [_prompt(row) for row in by_prompt(item)],
        "rules": [_rule(row) for row in rule_rows([item])],
    }


def _against(series: list[Series], item: Series) -> dict[str, Any] | None:
    """The paired differences from the baseline; None for the baseline itself, or where no pairs are
    shared.
    """
    baseline = baseline_of(series, item)
    found = compare(item, baseline) if baseline else None
    if baseline is None or found is None:
        return None
    return {
        "method": baseline.method,
        "pairs": found.n,
        "stability": {
            "last_round": spread(found.stability_last),
            "over_all_rounds": spread(found.stability_mean),
        },
        "adoption": {
            "last_round": spread(found.adoption_last),
            "over_all_rounds": spread(found.adoption_mean),
        },
    }


def _prompt(row: PromptRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "category": row.category,
        "n": row.n,
        "stability_by_round": [_rounded(value) for value in row.by_round],
        "stability": _rounded(row.mean),
        "adopted_last_round": _rounded(row.adopted),
        "n_adopted": row.n_adopted,
    }


def _rule(row: RuleRow) -> dict[str, Any]:
    return {
        "rule": row.name,
        "n": row.n,
        "stability_by_round": _spreads(row.points),
        "first_broken_by_round": list(row.broken),
        "kept_throughout": row.kept,
    }


def _tasks(run: RunData) -> list[dict[str, Any]]:
    from holdfast.report.tasks import read_results

    return [
        {
            "task": result.task,
            "variant": result.variant,
            "samples": len(result.numbers),
            "scores": {name: spread(item) for name, item in result.estimates().items()},
            "fluency": _rounded(result.fluency),
            "consistency": _rounded(result.consistency),
            "excluded": result.excluded,
        }
        for result in read_results(run)
    ]


def _profile(run: RunData) -> dict[str, Any]:
    from holdfast.report.profile import read_gains
    from holdfast.study.profiling import read_profile

    read, gained = read_profile(run.folder), read_gains(run.folder)
    return {
        "unsteered": _rounded(read.unsteered),
        "ranking": [
            {
                "layer": layer,
                "head": head,
                "score": _rounded(read.scores[layer, head]),
                "gain": spread(gained[layer, head]),
            }
            for layer, head in read.ranking.heads
        ],
    }


def _capability(run: RunData) -> list[dict[str, Any]]:
    """Of the folder `capability` of a calibration: the mean score of its questions, by
    conversation.
    """
    by_method: dict[str, dict[int, float]] = {}
    for record in run.records:
        mean = float(np.mean([probe["score"] for probe in record["probes"]]))
        by_method.setdefault(record["method"], {})[record["conversation"]] = mean
    order = [method for method in run.manifest["identity"]["methods"] if method in by_method]
    return [
        {
            "method": method,
            "score": spread(
                estimate(np.array([score for _, score in sorted(by_method[method].items())]))
            ),
        }
        for method in order
    ]


_RESULTS: dict[str, Callable[[RunData], Any]] = {
    "drift": _drift,
    "tasks": _tasks,
    "profile": _profile,
    "calibrate": _capability,
}
