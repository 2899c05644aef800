"""`summary.json` of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS, Adherence
from holdfast.analysis.rule_context import (
    CALL_BINS,
    COMPACTION_BINS,
    context_effects,
    count_causes,
    total_causes,
)
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import write_results
from holdfast.records import Run
from holdfast.records.run_summary import (
    CauseCounts,
    ContextSummaries,
    EstimateFrom,
    FirstBroken,
    LoggedRule,
    LogsResult,
)


def write_logs_summary(
    run: Run, rows: Sequence[Adherence], bar: float | None, error: float
) -> Path:
    """Writes `summary.json` into the run's folder."""
    counts = count_causes(run)
    results = LogsResult(
        min_adherence=bar,
        error=error,
        rules=tuple(_logged_rule(row, counts.get(row.rule)) for row in rows),
        unmatched=run.manifest.unmatched,
        problems=run.manifest.problems,
        context=_context(run, counts),
    )
    return write_results(
        run.folder, "logs", run.manifest.identity.to_json(), len(run.records), results
    )


def _logged_rule(row: Adherence, causes: Mapping[str, int] | None) -> LoggedRule:
    survival = row.survival
    return LoggedRule(
        rule=row.rule,
        applied=row.applied,
        turns=row.turns,
        adherence=row.overall,
        bounds=row.bounds,
        change=row.change,
        by_turn=_binned(TURN_BINS, row.by_turn),
        by_tokens=_binned(TOKEN_BINS, row.by_tokens),
        first_broken=FirstBroken(
            dialogs=row.overall.n,
            broken=survival.broken,
            median_turn=survival.median,
            turns=survival.turns,
            unbroken=survival.share,
            low=survival.low,
            high=survival.high,
        ),
        broken_turns=len(row.broken),
        verdict=row.verdict or None,
        for_probes=row.for_probes,
        against=row.earlier,
        why=None if causes is None else CauseCounts(**causes),
    )


def _context(run: Run, counts: Mapping[str, Mapping[str, int]]) -> ContextSummaries:
    effects = context_effects(run)
    return ContextSummaries(
        why=CauseCounts(**total_causes(counts)),
        by_tokens_since=_binned(TOKEN_BINS, effects.by_tokens_since),
        by_calls=_binned(CALL_BINS, effects.by_calls),
        by_compactions=_binned(COMPACTION_BINS, effects.by_compactions),
        by_kind=effects.by_kind,
        by_polarity=effects.by_polarity,
        compactions=effects.compactions,
    )


def _binned(bins: Sequence[int], estimates: Sequence[Estimate]) -> tuple[EstimateFrom, ...]:
    return tuple(
        EstimateFrom(
            **{"from": start},
            n=item.n,
            mean=item.mean,
            low=item.low,
            high=item.high,
            sd=item.sd,
        )
        for start, item in zip(bins, estimates, strict=False)  # none in an earlier version
        if item.n
    )
