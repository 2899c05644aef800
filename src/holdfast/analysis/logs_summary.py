"""`summary.json` of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS, Adherence
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import estimated, write_results
from holdfast.records import Run
from holdfast.records.run_summary import (
    AgainstEarlierLogs,
    EstimateFrom,
    FirstBroken,
    LoggedRule,
    LogsResult,
)


def write_logs_summary(
    run: Run, rows: Sequence[Adherence], bar: float | None, error: float
) -> Path:
    """Writes `summary.json` into the run's folder."""
    results = LogsResult(
        min_adherence=bar,
        error=error,
        rules=tuple(map(_logged_rule, rows)),
        unmatched=run.manifest.unmatched,
        problems=run.manifest.problems,
    )
    return write_results(
        run.folder, "logs", run.manifest.identity.to_json(), len(run.records), results
    )


def _logged_rule(row: Adherence) -> LoggedRule:
    earlier, survival = row.earlier, row.survival
    return LoggedRule(
        rule=row.rule,
        applied=row.applied,
        turns=row.turns,
        adherence=estimated(row.overall),
        bounds=_rounded(row.bounds),
        change=estimated(row.change),
        by_turn=_binned(TURN_BINS, row.by_turn),
        by_tokens=_binned(TOKEN_BINS, row.by_tokens),
        first_broken=FirstBroken(
            dialogs=row.overall.n,
            broken=survival.broken,
            median_turn=survival.median,
            turns=survival.turns,
            unbroken=_rounded(survival.share),
            low=_rounded(survival.low),
            high=_rounded(survival.high),
        ),
        broken_turns=len(row.broken),
        verdict=row.verdict or None,
        for_probes=row.for_probes,
        against=None
        if earlier is None
        else AgainstEarlierLogs(
            before=estimated(earlier.before),
            difference=estimated(earlier.difference),
            certain=earlier.certain,
        ),
    )


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(value, 6) for value in values)


def _binned(bins: Sequence[int], estimates: Sequence[Estimate]) -> tuple[EstimateFrom, ...]:
    return tuple(
        EstimateFrom(**{"from": start}, **dict(estimated(item)))
        for start, item in zip(bins, estimates, strict=True)
        if item.n
    )
