"""Why rules were broken in logged dialogs, and how their adherence depends on the context.

The unit is the dialog, which counts with the mean of its scores. All rules count together, except
rules that are made for the answers to probes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.adherence import TOKEN_BINS, estimates_from
from holdfast.analysis.rule_scores import label_of
from holdfast.analysis.statistics import Estimate
from holdfast.records import CAUSES, Run
from holdfast.records.cause_records import RECALL_CAUSES
from holdfast.records.log_scores import ALL_CAUSES, NONE
from holdfast.records.logs_summary import (
    CauseCounts,
    CompactionEffect,
    ContextSummaries,
    KeptInSummaries,
)
from holdfast.records.mean_estimate import EstimateFrom

CALL_BINS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1_000)
COMPACTION_BINS = (0, 1, 2, 3, 5, 9)


@dataclass(frozen=True)
class _Columns:
    """The columns of `LogScores`, without rules that are made for the answers to probes."""

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


class _MeansAround(NamedTuple):
    """The mean scores of a dialog before and after its compactions."""

    before: float
    after: float


def count_causes(run: Run) -> dict[str, dict[str, int]]:
    """Counts the breaches of each broken rule by their cause; rules are named as `LoggedRule.rule`.

    The causes are all of `CAUSES`, and if a model was asked for its rules, also those of
    `RECALL_CAUSES` that occur.
    """
    columns = _read_columns(run)
    is_broken = columns.cause != NONE
    labels = [label_of(rule) for rule in run.log_scores.rules]
    rules, first_positions = np.unique(columns.rule[is_broken], return_index=True)
    totals = np.bincount(columns.cause[is_broken], minlength=len(ALL_CAUSES))
    recall_causes = [cause for cause in RECALL_CAUSES if totals[ALL_CAUSES.index(cause)]]
    counts: dict[str, dict[str, int]] = {}
    for rule in rules[np.argsort(first_positions)]:
        causes = columns.cause[is_broken & (columns.rule == rule)]
        numbers = np.bincount(causes, minlength=len(ALL_CAUSES))
        counts_by_cause = counts.setdefault(
            labels[rule], dict.fromkeys((*CAUSES, *recall_causes), 0)
        )
        for cause in counts_by_cause:
            counts_by_cause[cause] += int(numbers[ALL_CAUSES.index(cause)])
    return counts


def total_causes(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Adds up the counts of all rules; every cause of `CAUSES` has a count."""
    totals = Counter[str]({cause: 0 for cause in CAUSES})
    for counts_by_cause in counts.values():
        totals.update(counts_by_cause)
    return dict(totals)


def context_effects(run: Run) -> ContextSummaries:
    """Summarises why rules were broken, and how their adherence depends on the context."""
    columns = _read_columns(run)
    return ContextSummaries(
        why=CauseCounts(**total_causes(count_causes(run))),
        by_tokens_since=_estimate_bins(run, columns, columns.tokens_since, TOKEN_BINS),
        by_calls=_estimate_bins(run, columns, columns.calls, CALL_BINS),
        by_compactions=_estimate_bins(run, columns, columns.compactions, COMPACTION_BINS),
        by_kind=_estimate_groups(run, columns, columns.kind),
        by_polarity=_estimate_groups(run, columns, columns.polarity),
        compactions=_compaction_effect(run, columns),
    )


def _read_columns(run: Run) -> _Columns:
    scores = run.log_scores
    for_probes = set(run.manifest.probe_rules)
    keep_rule = np.array([label_of(rule) not in for_probes for rule in scores.rules], dtype=bool)
    rule = np.asarray(scores.rule)
    keep = keep_rule[rule] if len(rule) else np.zeros(0, dtype=bool)
    names = [field.name for field in fields(_Columns)]
    return _Columns(**{name: np.asarray(getattr(scores, name))[keep] for name in names})


def _estimate_bins(
    run: Run, columns: _Columns, values: np.ndarray, bins: Sequence[int]
) -> tuple[EstimateFrom, ...]:
    """Estimates the mean score over dialogs in each bin of a value; () if no score has one."""
    has_value = values != NONE
    if not has_value.any():
        return ()
    column = np.searchsorted(bins, values[has_value], side="right") - 1
    cells = _mean_by_dialog(run, columns, has_value, column, len(bins))
    return estimates_from(bins, cells)


def _estimate_groups(run: Run, columns: _Columns, values: np.ndarray) -> dict[str, Estimate]:
    """Estimates the mean score over dialogs of the rules of each kind or polarity, by name.

    {} if no rule has one.
    """
    has_value = values != NONE
    numbers = run.log_scores.names
    names = sorted(name for name, number in numbers.items() if (values == number).any())
    if not names:
        return {}
    column_of = np.zeros(len(numbers), dtype=int)
    for column, name in enumerate(names):
        column_of[numbers[name]] = column
    cells = _mean_by_dialog(run, columns, has_value, column_of[values[has_value]], len(names))
    estimates = statistics.estimate_columns(cells, statistics.SCORES)
    return dict(zip(names, estimates, strict=True))


def _mean_by_dialog(
    run: Run, columns: _Columns, has_value: np.ndarray, column: np.ndarray, count: int
) -> np.ndarray:
    """Averages the scores that have a value, [dialog, column]; NaN where there are none.

    Args:
        has_value: [score] bool.
        column: the column of each score that has a value.
        count: the number of columns.
    """
    rows = columns.dialog[has_value]
    scores = columns.score[has_value]
    return statistics.matrix_of_arrays(rows, column, scores, (len(run.dialogs), count))


def _compaction_effect(run: Run, columns: _Columns) -> CompactionEffect | None:
    """Compares adherence before and after compactions; None if no dialog has any.

    A dialog counts with the mean over those of its compactions that have scores of a rule on both
    sides, and only such rules count.
    """
    scores = run.log_scores
    if not scores.compacted:
        return None
    means = [_means_around_compactions(columns, row) for row in scores.compacted]
    before, after = np.array([pair for pair in means if pair]).reshape(-1, 2).T
    return CompactionEffect(
        dialogs=len(scores.compacted),
        compactions=sum(scores.compacted.values()),
        before=statistics.estimate(before, statistics.SCORES),
        after=statistics.estimate(after, statistics.SCORES),
        change=statistics.estimate(after - before, statistics.DIFFERENCES),
        kept=tuple(
            KeptInSummaries(rule=label_of(rule), **kept._asdict())
            for rule, kept in scores.kept.items()
        ),
    )


def _means_around_compactions(columns: _Columns, dialog: int) -> _MeansAround | None:
    """The mean scores of a dialog before and after its compactions.

    None if no compaction has scores of a rule on both sides.
    """
    start, end = np.searchsorted(columns.dialog, (dialog, dialog + 1))  # scores are in this order
    counts = columns.compactions[start:end]
    values = columns.score[start:end]
    rules = columns.rule[start:end]
    # the mean score of each rule, by how many compactions came before; NONE is no number
    means = {
        int(n): {
            rule: values[(counts == n) & (rules == rule)].mean(keepdims=True)
            for rule in np.unique(rules[counts == n])
        }
        for n in np.unique(counts)
        if n != NONE
    }
    pairs = [
        statistics.shared_means(means[n], means[n + 1])
        for n in means
        if means[n].keys() & means.get(n + 1, {}).keys()
    ]
    if not pairs:
        return None
    return _MeansAround(
        before=float(np.mean([before for before, _ in pairs])),
        after=float(np.mean([after for _, after in pairs])),
    )
