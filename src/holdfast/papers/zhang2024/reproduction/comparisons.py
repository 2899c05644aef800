"""Rows of the paper's tables compared: averages over tasks, differences, claims and cells."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.analysis.resampling import bounds_of, resample_means
from holdfast.analysis.statistics import DIFFERENCES, NOTHING, Estimate, estimate, paired_difference
from holdfast.analysis.task_results import MIN_FLUENCY, TaskScores
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.findings import Claim, claim_that, leave_unjudged
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.report.wording import with_interval

HALVES = "Best less worst, both picked on one half of the samples and compared on the other"


class RowClaim(NamedTuple):
    """A claim of the paper that a row is above another (`sign` +1), or below it (-1)."""

    text: str  # in our words
    row: str
    other_row: str
    sign: int = +1


def is_beyond_reach(*scores: np.ndarray) -> bool:
    """Whether a task is too hard for the model: enough samples, and every score is 0."""
    return all(len(values) >= MIN_SAMPLES and not np.nan_to_num(values).any() for values in scores)


def judge_within_reach(
    claims: Sequence[Claim], task: str, *scores: np.ndarray
) -> tuple[Claim, ...]:
    """The claims about a task; none of them is judged if the task is beyond the model's reach."""
    if not is_beyond_reach(*scores):
        return tuple(claims)
    why = f"Not judged: the model scores 0 on {task} in every row."
    return tuple(leave_unjudged(claim, why) for claim in claims)


def average(study: Study, row: str) -> np.ndarray | None:
    """The mean of a row over the tasks, [sample]; None if a task lacks the row or excludes it."""
    values = []
    for results in study.test_results.values():
        result = results.get(row)
        if result is None or result.excluded:
            return None
        values.append(values_of(result))
    return np.mean(values, axis=0)


def difference(study: Study, first: str, second: str) -> Estimate:
    """One row's average over the tasks less another's, paired by sample; empty without both."""
    first_scores = average(study, first)
    second_scores = average(study, second)
    if first_scores is None or second_scores is None:
        return NOTHING
    return paired_difference(first_scores, second_scores)


def claim_of(study: Study, claim: RowClaim) -> Claim:
    """The claim about two rows, judged by their averages over the tasks."""
    zeros = [
        name
        for name, results in study.test_results.items()
        if is_beyond_reach(*map(values_of, results.values()))
    ]
    zeros_text = f"the model scores 0 on {' and '.join(zeros)} in every row."
    has_only_zeros = len(zeros) == len(study.test_results)
    remarks = _exclusions(study, claim.row, claim.other_row)
    if zeros and not has_only_zeros:
        remarks.insert(0, f"In it {zeros_text}")
    claim_judged = claim_that(
        claim.text,
        difference(study, claim.row, claim.other_row),
        claim.sign,
        quantity=f"Average of the tasks, {claim.row} less {claim.other_row}:",
        remark=" ".join(remarks),
    )
    if has_only_zeros:
        return leave_unjudged(claim_judged, f"Not judged: {zeros_text}")
    return claim_judged


def _exclusions(study: Study, *rows: str) -> list[str]:
    """Sentences on rows that have no average because their replies to a task are degenerate."""
    return [
        f"{row} is excluded: its replies on {name} are degenerate (fluency {result.fluency:.2f},"
        f" under {MIN_FLUENCY:g})."
        for row in rows
        for name, results in study.test_results.items()
        if (result := results.get(row)) is not None and result.excluded
    ]


def rows_of(study: Study, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """A table in the paper's form: metrics in percent, their average, the gain over zero-shot."""
    headers = map(header_of, study.setup.tasks)
    rows = [("", *headers, "average", "less zero-shot [95% interval]")]
    for row in names:
        cells = [cell_of(study.test_results[name].get(row)) for name in study.setup.tasks]
        values = average(study, row)
        mean = "–" if values is None else f"{100 * values.mean():.1f}"
        gain = "" if row == "zero-shot" else points(difference(study, row, "zero-shot"))
        rows.append((row, *cells, mean, gain))
    return tuple(rows)


def header_of(name: str) -> str:
    """A task's name with its metrics, as a column header."""
    return f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}"


def cell_of(result: TaskScores | None) -> str:
    """A task's metrics in percent; a dash if the row was not measured."""
    if result is None:
        return "–"
    cell = " / ".join(f"{100 * float(np.nanmean(values)):.1f}" for values in result.scores.values())
    return f"{cell} (excluded: fluency {result.fluency:.2f})" if result.excluded else cell


def points(value: Estimate) -> str:
    """A difference of shares, in percentage points."""
    return with_interval(value, lambda share: f"{100 * share:+.1f}")


def share_of_best(values: np.ndarray, sizes: Sequence[int], count: int) -> Estimate:
    """The size of the best option as a share of `count`, with its interval.

    Args:
        values: scores, [sample, option]; every resample of the samples picks the best option anew.
        sizes: the size of each option.
    """
    shares = np.array(sizes) / count
    low, high = bounds_of(shares[resample_means(values).argmax(1)])
    return Estimate(len(values), float(shares[values.mean(0).argmax()]), None, low, high)


def best_less_worst(values: np.ndarray) -> Estimate:
    """The best option less the worst one, [sample, option].

    Both are picked on one half of the samples and compared on the other, as the best of many looks
    better than it is where it was picked.
    """
    half = len(values) // 2
    means = values[:half].mean(0)
    return estimate(values[half:, means.argmax()] - values[half:, means.argmin()], DIFFERENCES)
