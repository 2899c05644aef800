"""Rows of the paper's tables compared: averages over tasks, differences, claims and cells."""

from collections.abc import Sequence

import numpy as np

from holdfast.analysis.resampling import bounds_of, resampled_means
from holdfast.analysis.statistics import DIFFERENCES, NOTHING, Estimate, estimate, paired_difference
from holdfast.analysis.task_results import LEAST_FLUENCY, Result
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.findings import Claim, claim_that, judged
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.report.wording import with_interval


def beyond_reach(task: str, *scores: np.ndarray) -> str:
    """Why a task cannot be judged: enough samples, but every score is 0; "" if it can."""
    if any(len(values) < MIN_SAMPLES or np.nan_to_num(values).any() for values in scores):
        return ""
    return f"Not judged: the model scores 0 on {task} in every row."


def average(study: Study, row: str) -> np.ndarray | None:
    """[sample number]: the mean over the tasks; None if one lacks the row or excludes it."""
    values = []
    for results in study.tested.values():
        result = results.get(row)
        if result is None or result.excluded:
            return None
        values.append(values_of(result))
    return np.mean(values, axis=0)


def difference(study: Study, first: str, second: str) -> Estimate:
    """One row's average over the tasks less another's, paired by sample; empty without both."""
    ours, theirs = average(study, first), average(study, second)
    return NOTHING if ours is None or theirs is None else paired_difference(ours, theirs)


def claim_of(study: Study, text: str, first: str, second: str, sign: int = +1) -> Claim:
    """The claim that the first row is above the second (`sign` +1), or below it (-1)."""
    zeros = [
        name
        for name, results in study.tested.items()
        if beyond_reach(name, *map(values_of, results.values()))
    ]
    why = f"the model scores 0 on {' and '.join(zeros)} in every row."
    is_whole = len(zeros) == len(study.tested)
    remark = f" In it {why}" if zeros and not is_whole else ""
    remark += _exclusions(study, first, second)
    measured = f"Average of the tasks, {first} less {second}:"
    claim = claim_that(text, difference(study, first, second), sign, measured, remark)
    return judged([claim], f"Not judged: {why}" if is_whole else "")[0]


def _exclusions(study: Study, *rows: str) -> str:
    """Which of the rows have no average because their replies to a task are degenerate."""
    return "".join(
        f" {row} is excluded: its replies on {name} are degenerate (fluency {result.fluency:.2f},"
        f" under {LEAST_FLUENCY:g})."
        for row in rows
        for name, results in study.tested.items()
        if (result := results.get(row)) is not None and result.excluded
    )


def rows_of(study: Study, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """A table in the paper's form: metrics in percent, their average, the gain over zero-shot."""
    heads = map(head_of, study.setup.tasks)
    rows = [("", *heads, "average", "less zero-shot [95% interval]")]
    for row in names:
        cells = [cell_of(study.tested[name].get(row)) for name in study.setup.tasks]
        values, more = average(study, row), difference(study, row, "zero-shot")
        mean = "–" if values is None else f"{100 * values.mean():.1f}"
        rows.append((row, *cells, mean, "" if row == "zero-shot" else points(more)))
    return tuple(rows)


def head_of(name: str) -> str:
    """A task's name with its metrics, as a column header."""
    return f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}"


def cell_of(result: Result | None) -> str:
    """A task's metrics in percent."""
    if result is None:
        return "–"
    cell = " / ".join(f"{100 * float(np.nanmean(values)):.1f}" for values in result.scores.values())
    return f"{cell} (excluded: fluency {result.fluency:.2f})" if result.excluded else cell


def points(value: Estimate) -> str:
    """A difference of shares, in percentage points."""
    return with_interval(value, lambda share: f"{100 * share:+.1f}")


def share_of_best(values: np.ndarray, sizes: Sequence[int], count: int) -> Estimate:
    """The size of the best option of [sample, option] over `count`; resamples choose anew."""
    shares = np.array(sizes) / count
    low, high = bounds_of(shares[resampled_means(values).argmax(1)])
    return Estimate(len(values), float(shares[values.mean(0).argmax()]), None, low, high)


HALVES = "Best less worst, both picked on one half of the samples and compared on the other"


def best_less_worst(values: np.ndarray) -> Estimate:
    """Best less worst of [sample, option], picked and measured on different halves."""
    half = len(values) // 2
    means = values[:half].mean(0)
    return estimate(values[half:, means.argmax()] - values[half:, means.argmin()], DIFFERENCES)
