"""`summary.json` of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.analysis.adherence import Adherence
from holdfast.analysis.rule_context import context_effects, count_causes
from holdfast.analysis.summary import write_results
from holdfast.records import Run
from holdfast.records.run_summary import CauseCounts, LoggedRule, LogsResult


def write_logs_summary(
    run: Run, rows: Sequence[Adherence], bar: float | None, error: float
) -> Path:
    """Writes `summary.json` into the run's folder; returns its path."""
    counts = count_causes(run)
    results = LogsResult(
        min_adherence=bar,
        error=error,
        rules=tuple(_logged_rule(row, counts.get(row.rule)) for row in rows),
        unmatched=run.manifest.unmatched,
        problems=run.manifest.problems,
        context=context_effects(run),
    )
    return write_results(
        run.folder, "logs", run.manifest.identity.to_json(), len(run.records), results
    )


def _logged_rule(row: Adherence, causes: Mapping[str, int] | None) -> LoggedRule:
    """The adherence to a rule as `summary.json` has it."""
    return LoggedRule(
        rule=row.rule,
        applied=row.applied,
        turns=row.turns,
        adherence=row.overall,
        bounds=row.bounds,
        change=row.change,
        by_turn=row.by_turn,
        by_tokens=row.by_tokens,
        first_broken=row.first_broken,
        broken_turns=len(row.broken),
        verdict=row.verdict or None,
        for_probes=row.for_probes,
        against=row.earlier,
        why=None if causes is None else CauseCounts(**causes),
    )
