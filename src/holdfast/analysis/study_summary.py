"""Writes `summary.json` of calibrations, traces and geometries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.candidates import FOLDERS, Calibration, Candidate
from holdfast.analysis.choosing import front
from holdfast.analysis.decay import Trace
from holdfast.analysis.hidden_geometry import Geometry
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.analysis.summary import write_results, write_summary
from holdfast.analysis.verdicts import verdict_on
from holdfast.records import read_run
from holdfast.records.run_summary import CalibratedSetting

MODELS = ("model", "compared")  # the folders of a trace, one per model, in their order
DIALOGS = "dialogs"  # the folder of a geometry


def write_calibration_summaries(calibration: Calibration, folder: Path) -> None:
    """Writes `summary.json` of a calibration and of its two runs."""
    for name in FOLDERS:
        write_summary(folder / name)
    results = tuple(
        _setting(calibration, candidate, on_front=on_front)
        for candidate, on_front in zip(calibration.candidates, front(calibration), strict=True)
    )
    records = sum(len(read_run(folder / name).records) for name in FOLDERS)
    write_results(folder, "calibrate", calibration.about.to_json(), records, results)


def _setting(
    calibration: Calibration, candidate: Candidate, *, on_front: bool
) -> CalibratedSetting:
    """The gain and the cost of one setting as `summary.json` has them."""
    broken = candidate.broken
    nats = candidate.nats
    return CalibratedSetting(
        method=candidate.method,
        front=on_front,
        stability=estimate(candidate.stability, SCORES),
        gain=verdict_on(calibration.gain(candidate)),
        capability=estimate(candidate.capability, None),
        chance=calibration.chance,
        points_lost=verdict_on(calibration.drop(candidate)),
        broken=None if broken is None else estimate(broken, SCORES),
        broken_more=verdict_on(calibration.breaks(candidate)),
        reply_nats=None if nats is None else estimate(nats, None),
        tokens_forwarded=candidate.tokens,
    )


def write_trace_summaries(traces: Sequence[Trace], folder: Path) -> None:
    """Writes `summary.json` of each run, and of the study: its traces without curves and probes."""
    for name in MODELS[: len(traces)]:
        write_summary(folder / name)
    details: Any = {"curves": True, "behaviour": {"probes"}}
    results = [trace.model_dump(exclude=details) for trace in traces]
    identity = {"models": [trace.model for trace in traces]}
    write_results(folder, "trace", identity, sum(trace.dialogs for trace in traces), results)


def write_geometry_summaries(geometry: Geometry, folder: Path) -> None:
    """Writes `summary.json` of the dialogs, and of the study: its geometry without the norms of
    embeddings.
    """
    write_summary(folder / DIALOGS)
    identity = geometry.model_dump(include={"model", "model_fingerprint", "suite"})
    results = geometry.model_dump(include={"hidden_states"})
    records = len(read_run(folder / DIALOGS).records)
    write_results(folder, "geometry", identity, records, results)
