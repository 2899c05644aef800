"""Methods against the method without steering, in the same conversations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.estimates import EstimateRow, row_of
from holdfast.analysis.series import Series


@dataclass(frozen=True, eq=False)
class Difference:
    """A row minus that of another series, on the n conversations that both have."""

    row: EstimateRow
    against: EstimateRow
    n: int
    last: statistics.Estimate
    mean: statistics.Estimate


def baseline_of(series: Sequence[Series], item: Series) -> Series | None:
    """The first method of the same run; for a run's first method, that of the first run."""
    first_of_run = next(other for other in series if other.run == item.run)
    if first_of_run is not item:
        return first_of_run
    return series[0] if series[0] is not item else None


def difference(series: Sequence[Series], item: Series, measure: str) -> Difference | None:
    """A series minus its baseline; None for the baseline itself, or if no pairs are shared."""
    baseline = baseline_of(series, item)
    return compare(row_of(item, measure), row_of(baseline, measure)) if baseline else None


def rule_differences(series: Sequence[Series], rows: Sequence[EstimateRow]) -> list[Difference]:
    """Each rule's row minus that of its baseline, where conversations are shared."""
    by_rule = {(row.series, row.group): row for row in rows}
    pairs = []
    for row in rows:
        baseline = baseline_of(series, row.series)
        against = by_rule.get((baseline, row.group)) if baseline else None
        if against and (pair := compare(row, against)):
            pairs.append(pair)
    return pairs


def compare(row: EstimateRow, against: EstimateRow) -> Difference | None:
    """The paired difference; None where no conversations are shared, or agents' prompts differ."""
    shared, rows, rows_against = np.intersect1d(
        row.series.conversations, against.series.conversations, return_indices=True
    )
    prompts = [against.series.prompts[number] for number in rows_against]
    if not len(shared) or prompts != [row.series.prompts[number] for number in rows]:
        return None
    rounds = min(row.values.shape[1], against.values.shape[1])
    scores = row.values[rows, :rounds]
    scores_against = against.values[rows_against, :rounds]
    missing = np.isnan(scores) | np.isnan(scores_against)
    scores = np.where(missing, np.nan, scores)
    scores_against = np.where(missing, np.nan, scores_against)

    def difference_of(values: np.ndarray, values_against: np.ndarray) -> statistics.Estimate:
        return statistics.paired_difference(
            values,
            values_against,
            prompts=None if row.rule else prompts,
            error=min(row.series.error, against.series.error),
        )

    return Difference(
        row=row,
        against=against,
        n=len(shared),
        last=difference_of(scores[:, -1], scores_against[:, -1]),
        mean=difference_of(statistics.row_means(scores), statistics.row_means(scores_against)),
    )


def fixes(series: Sequence[Series]) -> list[Difference]:
    """Every other method of the first run against its first, if their stability can be compared."""
    same_run = [item for item in series[1:] if item.run == series[0].run]
    compared = [difference(series, item, "stability") for item in same_run]
    return [pair for pair in compared if pair and pair.mean.mean is not None]
