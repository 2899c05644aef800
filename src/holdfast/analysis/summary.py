"""Writes `summary.json`, the results of a run for other programs (docs/records.md).

The file is derived only from the manifest and the records (for a check, also from `check.json`)
and has no date or duration, so deriving it again from the same records gives the same bytes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.candidates import FOLDERS, Calibration
from holdfast.analysis.choosing import calibrated_settings
from holdfast.analysis.decay import Trace
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.hidden_geometry import Geometry
from holdfast.analysis.method_summaries import method_summaries
from holdfast.analysis.profile import profile_of
from holdfast.analysis.rule_context import context_effects, count_causes
from holdfast.analysis.statistics import estimate
from holdfast.analysis.task_results import read_results
from holdfast.analysis.verdicts import verdict_on
from holdfast.files import write_whole
from holdfast.records import Run, read_run
from holdfast.records.check_records import Check
from holdfast.records.identity import CalibrationIdentity
from holdfast.records.run_summary import (
    NAME,
    CapabilityResult,
    CauseCounts,
    LoggedRule,
    LogsResult,
    ProfileResult,
    RankedHead,
    Summary,
    TaskResult,
)

MODELS = ("model", "compared")  # the folders of a trace, one per model, in their order
DIALOGS = "dialogs"  # the folder of a geometry


def write_summary(folder: Path | str) -> Path:
    """Writes `summary.json` of the run in a folder, whole or not at all; returns its path."""
    return write(Path(folder), summarise(read_run(folder)))


def write_results(
    folder: Path, command: str, identity: dict[str, Any], records: int, results: Any
) -> Path:
    """Writes `summary.json` for a command whose results are not those of a single run."""
    summary = Summary(command=command, identity=identity, records=records, results=results)
    return write(folder, summary)


def write_logs_summary(
    run: Run, rows: Sequence[LoggedRule], bar: float | None, error: float
) -> Path:
    """Writes `summary.json` of `holdfast logs` into the run's folder; returns its path."""
    causes = {rule: CauseCounts(**counts) for rule, counts in count_causes(run).items()}
    results = LogsResult(
        min_adherence=bar,
        error=error,
        rules=tuple(row.model_copy(update={"why": causes.get(row.rule)}) for row in rows),
        unmatched=run.manifest.unmatched,
        problems=run.manifest.problems,
        context=context_effects(run),
    )
    return write(run.folder, _summary(run, results))


def write(folder: Path, summary: Summary) -> Path:
    """Writes `summary.json`, whole or not at all; returns its path."""
    text = json.dumps(summary.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    return write_whole(folder / NAME, text + "\n")


def summarise(run: Run) -> Summary:
    """Makes the summary of a run of any command."""
    match run.manifest.command:
        case "tasks":
            return _summary(run, _tasks(run))
        case "profile":
            return _summary(run, _profile(run))
        case "calibrate":
            return _summary(run, _capability(run))
    return summary_of(results_of(run))


def summary_of(results: DriftResults) -> Summary:
    """Makes the summary of a drift run."""
    return _summary(results.run, tuple(method_summaries(results)), results.check)


def _summary(run: Run, results: Any, check: Check | None = None) -> Summary:
    return Summary(
        command=run.manifest.command,
        identity=run.manifest.identity.to_json(),
        records=len(run.records),
        results=results,
        check=check,
    )


def _tasks(run: Run) -> tuple[TaskResult, ...]:
    return tuple(
        TaskResult(
            task=result.task,
            variant=result.variant,
            samples=len(result.numbers),
            scores=result.estimates(),
            fluency=result.fluency,
            excluded=result.excluded,
        )
        for result in read_results(run)
    )


def _profile(run: Run) -> ProfileResult:
    profile = profile_of(run)
    ranking = [
        RankedHead(
            layer=layer,
            head=head,
            score=profile.scores[layer, head],
            gain=verdict_on(profile.gains[layer, head]),
        )
        for layer, head in profile.ranking.heads
    ]
    return ProfileResult(unsteered=profile.unsteered, ranking=tuple(ranking))


def _capability(run: Run) -> tuple[CapabilityResult, ...]:
    by_method: dict[str, dict[int, float]] = {}
    for record in run.capability_conversations:
        mean = float(np.mean([probe.score for probe in record.probes]))
        by_method.setdefault(record.method, {})[record.conversation] = mean
    rows = []
    for method in run.identity_as(CalibrationIdentity).methods:
        if scores := by_method.get(method):
            in_order = np.array([scores[conversation] for conversation in sorted(scores)])
            score = estimate(in_order, None)
            rows.append(CapabilityResult(method=method, score=score))
    return tuple(rows)


def write_calibration_summaries(calibration: Calibration, folder: Path) -> None:
    """Writes `summary.json` of a calibration and of its two runs."""
    for name in FOLDERS:
        write_summary(folder / name)
    results = tuple(calibrated_settings(calibration))
    records = sum(len(read_run(folder / name).records) for name in FOLDERS)
    write_results(folder, "calibrate", calibration.about.to_json(), records, results)


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
