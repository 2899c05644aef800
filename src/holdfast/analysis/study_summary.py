"""`summary.json` of what is made of several runs: a calibration, traces, a model's geometry; and
the method file of a calibration.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.calibration import FOLDERS, Calibration
from holdfast.analysis.choice import Pick, front
from holdfast.analysis.statistics import Estimate, estimate
from holdfast.analysis.summary import NAME, json_text, judged, spread, summary_of, write_summary
from holdfast.common.files import write_whole
from holdfast.records import read_run

MODELS = ("model", "compared")  # the folders of a trace, one per model, in their order
DIALOGS = "dialogs"  # the folder of a geometry


def write_calibration_summaries(calibration: Calibration, folder: Path) -> None:
    """Writes `summary.json` of the calibration and of its two runs."""
    for name in FOLDERS:
        write_summary(folder / name)
    write_whole(folder / NAME, json_text(calibration_summary(calibration)))


def write_trace_summaries(traces: Sequence[dict[str, Any]], folder: Path) -> None:
    """Writes `summary.json` of the traces and of the run of every model."""
    for name, _ in zip(MODELS, traces, strict=False):
        write_summary(folder / name)
    write_whole(folder / NAME, json_text(trace_summary(traces)))


def write_geometry_summaries(geometry: dict[str, Any], folder: Path) -> None:
    """Writes `summary.json` of the study and of its dialogs."""
    write_summary(folder / DIALOGS)
    dialogs = len(read_run(folder / DIALOGS).records)
    write_whole(folder / NAME, json_text(geometry_summary(geometry, dialogs)))


def calibration_summary(calibration: Calibration) -> dict[str, Any]:
    """The results of a calibration, as JSON values."""
    results = [
        {
            "method": candidate.method,
            "front": star,
            "stability": spread(estimate(candidate.stability)),
            "gain": judged(calibration.gain(candidate)),
            "capability": spread(estimate(candidate.capability)),
            "chance": calibration.chance,
            "points_lost": judged(calibration.drop(candidate)),
            "broken": None if candidate.broken is None else spread(estimate(candidate.broken)),
            "broken_more": judged(calibration.breaks(candidate)),
            "reply_nats": None if candidate.nats is None else spread(estimate(candidate.nats)),
            "tokens_forwarded": candidate.tokens,
        }
        for candidate, star in zip(calibration.candidates, front(calibration), strict=True)
    ]
    identity = json.loads(json.dumps(calibration.about))
    records = 2 * sum(len(candidate.stability) for candidate in calibration.candidates)
    return summary_of("calibrate", identity, records, results)


def trace_summary(traces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The results of `analysis.decay.describe`, without the curves and the single probes."""
    results = [
        _without(trace, "curves") | {"behaviour": _without(trace["behaviour"], "probes")}
        for trace in traces
    ]
    identity = {"models": [trace["model"] for trace in traces]}
    records = sum(trace["dialogs"] for trace in traces)
    return summary_of("trace", identity, records, json.loads(json.dumps(results)))


def geometry_summary(geometry: dict[str, Any], dialogs: int) -> dict[str, Any]:
    """The measurements of `study.geometry.study`, without the norm of every embedding."""
    identity = {name: geometry[name] for name in ("model", "model_fingerprint", "suite")}
    return summary_of(
        "geometry", identity, dialogs, _without(geometry, *identity, "embedding_norms")
    )


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def write_method_file(calibration: Calibration, chosen: Pick, path: Path) -> None:
    """Writes the chosen one as a file that `drift --method` and `methods.parse` take."""
    about = calibration.about
    content = {
        "method": chosen.method,
        "model": about["model"],
        "model_fingerprint": about["model_fingerprint"],
        "budget": chosen.budget,
        "capability": about["capability"],
        "prompts": about["prompts"],
        "stability_none": chosen.stability_none,
        "stability": _interval(chosen.stability),
        "gain": _interval(chosen.gain),
        "points_lost": _interval(chosen.drop),
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _interval(value: Estimate) -> dict[str, float | int | None]:
    return {"mean": value.mean, "low": value.low, "high": value.high, "n": value.n}
