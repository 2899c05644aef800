"""Compares the rows of a method with those of another, in the same conversations: usually with the
method without steering, its baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import verdict_on
from holdfast.records.mean_estimate import Judged


@dataclass(frozen=True, eq=False)
class RowDifference:
    """A row minus the same row of another series, on what was judged in both.

    Attributes:
        n: how many conversations have a score in both.
        last_round: the difference in the last round that both have.
        over_all_rounds: the difference of the means over all rounds.
        compared: the means whose difference `last_round` is, of the row and of the other; NaN if
            nothing was judged in both.
    """

    row: EstimateRow
    against: EstimateRow
    n: int
    last_round: Judged
    over_all_rounds: Judged
    compared: tuple[float, float]


def difference(all_series: Sequence[Series], series: Series, measure: str) -> RowDifference | None:
    """Compares a series with its baseline; None if it has none, or if they share no pairs."""
    baseline = baseline_of(all_series, series)
    return compare_rows(row_of(series, measure), row_of(baseline, measure)) if baseline else None


def rule_differences(
    all_series: Sequence[Series], rows: Sequence[EstimateRow]
) -> list[RowDifference]:
    """Compares each rule's row with that of its baseline, where they share conversations."""
    row_of_rule = {(row.series, row.group): row for row in rows}
    pairs = []
    for row in rows:
        baseline = baseline_of(all_series, row.series)
        against = row_of_rule.get((baseline, row.group)) if baseline else None
        if against and (pair := compare_rows(row, against)):
            pairs.append(pair)
    return pairs


def fixes(all_series: Sequence[Series]) -> list[RowDifference]:
    """Compares the stability of every other method of the first run with that of its first method,
    where they can be compared.
    """
    same_run = [series for series in all_series[1:] if series.run == all_series[0].run]
    differences = [difference(all_series, series, "stability") for series in same_run]
    return [pair for pair in differences if pair and pair.over_all_rounds.mean is not None]


def baseline_of(all_series: Sequence[Series], series: Series) -> Series | None:
    """Returns the series that a series is compared with: the first method of its run, or for that
    method, the first method of the first run. None for the first series of all.
    """
    first_of_run = next(candidate for candidate in all_series if candidate.run == series.run)
    if first_of_run is not series:
        return first_of_run
    return all_series[0] if all_series[0] is not series else None


def compare_rows(row: EstimateRow, against: EstimateRow) -> RowDifference | None:
    """Compares two rows in pairs.

    None if they share no conversation, or the agents' prompts in these differ.
    """
    shared_conversations, rows, rows_against = np.intersect1d(
        row.series.conversations, against.series.conversations, return_indices=True
    )
    prompts = [against.series.prompts[number] for number in rows_against]
    if not len(shared_conversations) or prompts != [row.series.prompts[number] for number in rows]:
        return None
    rounds = min(row.values.shape[1], against.values.shape[1])
    scores, scores_against = statistics.shared_means(
        {probe: matrix[rows, :rounds] for probe, matrix in row.scores.items()},
        {probe: matrix[rows_against, :rounds] for probe, matrix in against.scores.items()},
    )

    def difference_of(values: np.ndarray, values_against: np.ndarray) -> Judged:
        estimate = statistics.paired_difference(
            values,
            values_against,
            prompts=None if row.rule else prompts,
            error=min(row.series.error, against.series.error),
        )
        return verdict_on(estimate)

    return RowDifference(
        row=row,
        against=against,
        n=int((~np.isnan(scores)).any(axis=1).sum()),
        last_round=difference_of(scores[:, -1], scores_against[:, -1]),
        over_all_rounds=difference_of(
            statistics.row_means(scores), statistics.row_means(scores_against)
        ),
        compared=statistics.compared_means(scores[:, -1], scores_against[:, -1]),
    )
