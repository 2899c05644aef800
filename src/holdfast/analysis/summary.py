"""Writes `summary.json`, the results of a run for other programs (docs/records.md).

The file is derived only from the manifest and the records (for a check, also from `check.json`)
and has no date or duration, so deriving it again from the same records gives the same bytes.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.calibration_reading import FOLDERS
from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.choosing import calibrated_settings
from holdfast.analysis.collapse import count_turns, without_collapsed
from holdfast.analysis.context_summary_effect import context_summary_effect
from holdfast.analysis.decay import Trace
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.estimate_rows import EstimateRow, category_rows, row_of, rule_rows
from holdfast.analysis.hidden_geometry import Geometry
from holdfast.analysis.outcome import findings_of
from holdfast.analysis.profile import profile_of
from holdfast.analysis.prompt_rows import prompt_rows
from holdfast.analysis.row_differences import RowDifference, difference, rule_differences
from holdfast.analysis.rule_context import context_effects, count_causes
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.analysis.task_results import read_results
from holdfast.analysis.truncation import truncation_of, until_prompt_lost
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.analysis.verdicts import verdict_on
from holdfast.files import write_whole
from holdfast.records import Run, read_run
from holdfast.records.check_records import Check
from holdfast.records.drift_summary import (
    AgainstFirstMethod,
    Collapse,
    MethodDifferences,
    MethodSummary,
    RuleSummary,
    WithoutCollapsed,
)
from holdfast.records.identity import CalibrationIdentity
from holdfast.records.logs_summary import CauseCounts, LoggedRule, LogsResult
from holdfast.records.run_summary import NAME, CapabilityResult, ProfileSummary, Summary, TaskResult

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
    return write(run.folder, _make_summary(run, results))


def write(folder: Path, summary: Summary) -> Path:
    """Writes `summary.json`, whole or not at all; returns its path."""
    text = json.dumps(summary.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    return write_whole(folder / NAME, text + "\n")


def summarise(run: Run) -> Summary:
    """Makes the summary of a run of any command."""
    match run.manifest.command:
        case "tasks":
            return _make_summary(run, _task_results(run))
        case "profile":
            return _make_summary(run, _summarise_profile(run))
        case "calibrate":
            return _make_summary(run, _capability_results(run))
    return summary_of(results_of(run))


def summary_of(results: DriftResults) -> Summary:
    """Makes the summary of a drift run."""
    return _make_summary(results.run, tuple(_summarise_methods(results)), results.check)


def _make_summary(run: Run, results: Any, check: Check | None = None) -> Summary:
    return Summary(
        command=run.manifest.command,
        identity=run.manifest.identity.to_json(),
        records=len(run.records),
        results=results,
        check=check,
    )


def _summarise_methods(results: DriftResults) -> Iterator[MethodSummary]:
    """Summarises the results of each method."""
    all_series = results.series
    series_with_prompt = until_prompt_lost(all_series)
    rules = rule_rows(all_series)
    pair_of_rule = {pair.row: pair for pair in rule_differences(all_series, rules)}
    collapses = [count_turns(series.records) for series in all_series]
    uncollapsed = list(map(without_collapsed, all_series, collapses))
    for number, series in enumerate(all_series):
        rows = {kind: row_of(series, kind) for kind in MEASURED if series.measured(kind)}
        score_rows = {kind: rows[kind] for kind in KINDS if kind in rows}
        levels = accuracy_of(series) or {}
        is_first = number == 0
        findings = results.findings if is_first else findings_of(series_with_prompt[number])
        yield MethodSummary(
            method=series.method,
            outcome=str(findings.outcome),
            conversations=len(series.records),
            unscored=dict(sorted(unscored_by_reason(series.records).items())),
            by_round={kind: tuple(row.points) for kind, row in rows.items()},
            over_all_rounds={kind: row.mean for kind, row in score_rows.items()},
            change={kind: verdict_on(row.change) for kind, row in score_rows.items()},
            against=_differences_from_first(all_series, series),
            categories={kind: _points_by_category(series, kind) for kind in score_rows},
            prompts=tuple(prompt_rows(series)),
            rules=tuple(
                _summarise_rule(row, pair_of_rule.get(row)) for row in rules if row.series is series
            ),
            accuracy={f"{name}_level": tuple(points) for name, points in levels.items()} or None,
            baseline=results.baseline if is_first else None,
            collapse=_add_uncollapsed(collapses[number], uncollapsed, number),
            truncation=truncation_of(series),
            summarised=context_summary_effect(series),
        )


def _points_by_category(series: Series, kind: str) -> dict[str, tuple[Estimate, ...]]:
    return {row.group: tuple(row.points) for row in category_rows(series, kind)}


def _add_uncollapsed(collapse: Collapse, uncollapsed: Sequence[Series], number: int) -> Collapse:
    """Adds the results of the conversations that did not collapse, if others did.

    Args:
        uncollapsed: all series without their collapsed conversations.
        number: of the series to summarise.
    """
    series = uncollapsed[number]
    if not collapse.collapsed_from_round or not series.records:
        return collapse
    row = row_of(series, "stability")
    results = WithoutCollapsed(
        conversations=len(series.records),
        stability_by_round=tuple(row.points),
        change=verdict_on(row.change),
        against=_differences_from_first(uncollapsed, series),
    )
    return collapse.model_copy(update={"without_collapsed": results})


def _differences_from_first(
    all_series: Sequence[Series], series: Series
) -> AgainstFirstMethod | None:
    """Summarises the differences from the first method; None for that method itself."""
    pairs = {kind: pair for kind in KINDS if (pair := difference(all_series, series, kind))}
    if not pairs:
        return None
    first = pairs["stability"]
    return AgainstFirstMethod(
        method=first.against.series.method,
        pairs=first.n,
        **{kind: _summarise_difference(pair) for kind, pair in pairs.items()},
    )


def _summarise_difference(pair: RowDifference) -> MethodDifferences:
    return MethodDifferences(last_round=pair.last_round, over_all_rounds=pair.over_all_rounds)


def _summarise_rule(row: EstimateRow, pair: RowDifference | None) -> RuleSummary:
    return RuleSummary(
        rule=row.group,
        n=row.n,
        stability_by_round=tuple(row.points),
        first_broken_by_round=tuple(row.first_broken_by_round),
        kept_throughout=row.kept_throughout,
        kept_in_any_round=row.kept_in_any_round,
        never_followed=row.never_followed,
        change=verdict_on(row.change),
        lower_from_round=row.lower_from_round,
        lower_in_rounds=tuple(row.lower_in_rounds),
        against=None if pair is None else _summarise_difference(pair),
    )


def _task_results(run: Run) -> tuple[TaskResult, ...]:
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


def _summarise_profile(run: Run) -> ProfileSummary:
    profile = profile_of(run)
    return ProfileSummary(unsteered=profile.unsteered, ranking=profile.heads)


def _capability_results(run: Run) -> tuple[CapabilityResult, ...]:
    scores_by_method: dict[str, dict[int, float]] = {}
    for record in run.capability_conversations:
        mean = float(np.mean([probe.score for probe in record.probes]))
        scores_by_method.setdefault(record.method, {})[record.conversation] = mean
    about = run.identity_as(CalibrationIdentity)
    rows = []
    for method in about.methods:
        if scores := scores_by_method.get(method):
            ordered_scores = np.array([scores[conversation] for conversation in sorted(scores)])
            score = estimate(ordered_scores, None if about.is_text else SCORES)
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
