"""Answers -> means, differences, claims and cells of tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast import tasks
from holdfast.analysis.statistics import (
    NOTHING,
    Estimate,
    bounds_of,
    estimate,
    paired_difference,
    resampled_means,
)
from holdfast.analysis.tasks import Result
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.report.wording import with_interval
from holdfast.reproduce.findings import Claim, claim_that, judged, spelled
from holdfast.reproduce.zhang2024.study import Study, values_of
from holdfast.tasks.metrics import LEAST_FLUENCY


def beyond_reach(task: str, *scores: np.ndarray) -> str:
    """Why a task cannot be judged on this model: every score of every row is 0; "" where it can.

    Args:
        task: its name.
        scores: [sample, ...] of every row; fewer samples than a verdict needs show nothing.
    """
    if any(len(values) < MIN_SAMPLES or np.nan_to_num(values).any() for values in scores):
        return ""
    return f"Not judged: the model scores 0 on {task} in every row."


def reach_of_average(study: Study) -> tuple[str, str]:
    """What Table 1 says of the tasks that the model scores 0 on: why nothing can be judged if those
    are all, and a remark on the evidence if they are some.
    """
    zeros = [
        name
        for name, results in study.tested.items()
        if beyond_reach(name, *map(values_of, results.values()))
    ]
    if not zeros:
        return "", ""
    said = f"the model scores 0 on {' and '.join(zeros)} in every row."
    whole = len(zeros) == len(study.tested)
    return (f"Not judged: {said}", "") if whole else ("", f" In it {said}")


def average(study: Study, row: str) -> np.ndarray | None:
    """[sample number]: the mean over the tasks; None where a task lacks the row, or it is excluded
    for its fluency.
    """
    values = []
    for results in study.tested.values():
        result = results.get(row)
        if result is None or result.excluded:
            return None
        values.append(values_of(result))
    means: np.ndarray = np.mean(values, axis=0)
    return means


def difference(study: Study, first: str, second: str) -> Estimate:
    """The average over the tasks of one row less another's, paired by sample number; empty where
    one of them has none.
    """
    ours, theirs = average(study, first), average(study, second)
    return NOTHING if ours is None or theirs is None else paired_difference(ours, theirs)


def claim_of(study: Study, text: str, first: str, second: str, sign: int = +1) -> Claim:
    """The claim that the first row is above the second (`sign` +1) or below it (-1)."""
    value = difference(study, first, second)
    why, remark = reach_of_average(study)
    evidence = f"Average of the tasks, {first} less {second}: {spelled(value)}."
    evidence += remark + _exclusions(study, first, second)
    return judged([claim_that(text, value, sign, evidence)], why)[0]


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
    """A table in the paper's form: each task's metrics in percent, the average, and what it has
    more than zero-shot.
    """
    head = [
        "",
        *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in study.setup.tasks),
        "average",
        "less zero-shot [95 % interval]",
    ]
    rows = [tuple(head)]
    for row in names:
        cells = [cell_of(study.tested[name].get(row)) for name in study.setup.tasks]
        values, more = average(study, row), difference(study, row, "zero-shot")
        rows.append(
            (
                row,
                *cells,
                "–" if values is None else f"{100 * values.mean():.1f}",
                "" if row == "zero-shot" else points(more),
            )
        )
    return tuple(rows)


def cell_of(result: Result | None) -> str:
    """A task's metrics in percent."""
    if result is None:
        return "–"
    told = " / ".join(f"{100 * float(np.nanmean(values)):.1f}" for values in result.scores.values())
    return f"{told} (excluded: fluency {result.fluency:.2f})" if result.excluded else told


def points(value: Estimate) -> str:
    """A difference of shares, in percentage points."""
    return with_interval(value, lambda share: f"{100 * share:+.1f}")


def share_of_best(values: np.ndarray, sizes: Sequence[int], count: int) -> Estimate:
    """The size of the option that does best, as a share of `count`, with the interval of that
    choice.

    Args:
        values: [sample, option]; the choice is made again in every resample.
        sizes: of the options.
        count: of all heads.
    """
    shares = np.array(sizes) / count
    low, high = bounds_of(shares[resampled_means(values).argmax(1)])
    return Estimate(len(values), float(shares[values.mean(0).argmax()]), None, low, high)


HALVES = "Best less worst, both picked on one half of the samples and compared on the other"


def best_less_worst(values: np.ndarray) -> Estimate:
    """Of [sample, option], without the bias of picking extremes where they are measured."""
    half = len(values) // 2
    means = values[:half].mean(0)
    return estimate(values[half:, means.argmax()] - values[half:, means.argmin()])
