"""Why rules were broken in logged dialogs, and how well they are kept by what was in the context.

The unit is the dialog, which counts with the mean of its scores; all rules count together, except
those that are made for the answers to probes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.adherence import TOKEN_BINS, estimates_from, label_of
from holdfast.analysis.statistics import Estimate
from holdfast.records import CAUSES, Run
from holdfast.records.cause_records import RECALL_CAUSES
from holdfast.records.log_scores import ALL_CAUSES, NONE
from holdfast.records.mean_estimate import EstimateFrom
from holdfast.records.run_summary import (
    CauseCounts,
    CompactionEffect,
    ContextSummaries,
    KeptInSummaries,
)

CALL_BINS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1_000)
COMPACTION_BINS = (0, 1, 2, 3, 5, 9)


def count_causes(run: Run) -> dict[str, dict[str, int]]:
    """How many breaches of each rule that was broken, named as `Adherence.rule`, have each cause,
    in the order of `CAUSES`, then of `RECALL_CAUSES` if a model was asked.
    """
    columns = _columns(run)
    broken = columns.cause != NONE
    labels = [label_of(rule) for rule in run.log_scores.rules]
    rules, first = np.unique(columns.rule[broken], return_index=True)
    totals = np.bincount(columns.cause[broken], minlength=len(ALL_CAUSES))
    recall_causes = [cause for cause in RECALL_CAUSES if totals[ALL_CAUSES.index(cause)]]
    counts: dict[str, dict[str, int]] = {}
    for rule in rules[np.argsort(first)]:
        of_rule = columns.cause[broken & (columns.rule == rule)]
        numbers = np.bincount(of_rule, minlength=len(ALL_CAUSES))
        by_cause = counts.setdefault(labels[rule], dict.fromkeys((*CAUSES, *recall_causes), 0))
        for cause in by_cause:
            by_cause[cause] += int(numbers[ALL_CAUSES.index(cause)])
    return counts


def total_causes(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """How many breaches of all rules have each cause."""
    totals = Counter[str]({cause: 0 for cause in CAUSES})
    for by_cause in counts.values():
        totals.update(by_cause)
    return dict(totals)


def context_effects(run: Run) -> ContextSummaries:
    """Why rules were broken, and how well they are kept by what was in the context."""
    columns = _columns(run)
    return ContextSummaries(
        why=CauseCounts(**total_causes(count_causes(run))),
        by_tokens_since=_binned(run, columns, columns.tokens_since, TOKEN_BINS),
        by_calls=_binned(run, columns, columns.calls, CALL_BINS),
        by_compactions=_binned(run, columns, columns.compactions, COMPACTION_BINS),
        by_kind=_grouped(run, columns, columns.kind),
        by_polarity=_grouped(run, columns, columns.polarity),
        compactions=_compaction_effect(run, columns),
    )


@dataclass(frozen=True)
class _Columns:
    """The scores of the rules that turns show, as in `LogScores`."""

    rule: np.ndarray
    dialog: np.ndarray
    turn: np.ndarray
    score: np.ndarray
    tokens_since: np.ndarray
    calls: np.ndarray
    compactions: np.ndarray
    kind: np.ndarray
    polarity: np.ndarray
    cause: np.ndarray


def _columns(run: Run) -> _Columns:
    scores = run.log_scores
    for_probes = set(run.manifest.probe_rules)
    shown = np.array([label_of(rule) not in for_probes for rule in scores.rules], dtype=bool)
    rule = np.asarray(scores.rule)
    is_shown = shown[rule] if len(rule) else np.zeros(0, dtype=bool)
    names = [field.name for field in fields(_Columns)]
    return _Columns(**{name: np.asarray(getattr(scores, name))[is_shown] for name in names})


def _binned(
    run: Run, columns: _Columns, values: np.ndarray, bins: Sequence[int]
) -> tuple[EstimateFrom, ...]:
    """The mean score over dialogs in each bin of a value."""
    has_value = values != NONE
    if not has_value.any():
        return ()
    column = np.searchsorted(bins, values[has_value], side="right") - 1
    cells = _cells(run, columns, has_value, column, len(bins))
    return estimates_from(bins, cells)


def _grouped(run: Run, columns: _Columns, values: np.ndarray) -> dict[str, Estimate]:
    """The mean score over dialogs of the rules of each name."""
    has_value = values != NONE
    numbers = run.log_scores.names
    names = sorted(name for name, number in numbers.items() if (values == number).any())
    if not names:
        return {}
    column_of = np.zeros(len(numbers), dtype=int)
    for column, name in enumerate(names):
        column_of[numbers[name]] = column
    cells = _cells(run, columns, has_value, column_of[values[has_value]], len(names))
    estimates = statistics.estimate_columns(cells, statistics.SCORES)
    return dict(zip(names, estimates, strict=True))


def _cells(
    run: Run, columns: _Columns, has_value: np.ndarray, column: np.ndarray, count: int
) -> np.ndarray:
    """The mean of the scores that have a value, [dialog, column]; NaN where there are none."""
    rows = columns.dialog[has_value]
    scores = columns.score[has_value]
    return statistics.means_by_cell(rows, column, scores, (len(run.dialogs), count))


def _compaction_effect(run: Run, columns: _Columns) -> CompactionEffect | None:
    """Adherence before and after compactions, first over the compactions of a dialog that have
    turns on both sides, then over dialogs.
    """
    scores = run.log_scores
    if not scores.compacted:
        return None
    before = []
    after = []
    for row in scores.compacted:
        ends = np.searchsorted(columns.dialog, (row, row + 1))  # its scores follow each other
        counts = columns.compactions[slice(*ends)]
        values = columns.score[slice(*ends)]
        counts, values = counts[counts != NONE], values[counts != NONE]
        means = {int(n): values[counts == n].mean() for n in np.unique(counts)}
        pairs = [(n - 1, n) for n in means if n - 1 in means]
        if pairs:
            before.append(np.mean([means[left] for left, _ in pairs]))
            after.append(np.mean([means[right] for _, right in pairs]))
    left = np.array(before, dtype=float)
    right = np.array(after, dtype=float)
    return CompactionEffect(
        dialogs=len(scores.compacted),
        compactions=sum(scores.compacted.values()),
        before=statistics.estimate(left, statistics.SCORES),
        after=statistics.estimate(right, statistics.SCORES),
        change=statistics.estimate(right - left, statistics.DIFFERENCES),
        kept=tuple(
            KeptInSummaries(rule=label_of(rule), **kept._asdict())
            for rule, kept in scores.kept.items()
        ),
    )
