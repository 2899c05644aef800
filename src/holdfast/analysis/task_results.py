"""Reads a run of `holdfast tasks`: every metric of every task and variant.

The unit is the sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.errors import AnotherRun, RecordsError
from holdfast.records import Run, TaskSample
from holdfast.records.identity import TasksIdentity

ZERO_SHOT = "zero-shot"
MIN_FLUENCY = 3.0  # results with a lower mean are excluded, as in the paper


@dataclass(frozen=True, eq=False)
class TaskScores:
    """One task under one baseline or method; a sample's draws of demonstrations are averaged."""

    task: str
    variant: str
    numbers: np.ndarray  # [n], the samples' numbers
    scores: dict[str, np.ndarray]  # per metric, [n], NaN where a sample has none
    draws: tuple[dict[str, float], ...]  # per draw of demonstrations, the mean of each metric
    fluency: float | None  # the mean over replies; None if no reply has one
    replies: int  # how many replies were meant to be fluent
    num_too_short: int  # how many of these are too short to have a fluency
    num_low_fluency: int  # how many of these have a fluency below `MIN_FLUENCY`

    @property
    def excluded(self) -> bool:
        """Whether the replies are degenerate: their mean fluency is below `MIN_FLUENCY`, and at
        least half of them are long enough to have a fluency.

        The paper excludes results below 3.0. Its tables have rows with means of 3.00 and 3.03, so
        we take a result to be a row of a table.
        """
        is_low = self.fluency is not None and self.fluency < MIN_FLUENCY
        return is_low and 2 * self.num_too_short <= self.replies

    @property
    def main_metric(self) -> str:
        """The task's main metric, which is its first."""
        return next(iter(self.scores))

    def estimates(self) -> dict[str, Estimate]:
        """Returns the mean of each metric over the samples."""
        return {name: estimate(values, SCORES) for name, values in self.scores.items()}

    def minus(self, other: TaskScores) -> dict[str, Estimate]:
        """Returns this result minus `other` by metric, paired on the samples of both."""
        return {
            name: SampleMeans(self.numbers, values).minus(
                SampleMeans(other.numbers, other.scores[name])
            )
            for name, values in self.scores.items()
        }


class SampleMeans(NamedTuple):
    """A value of each sample."""

    numbers: np.ndarray  # [n], the samples' numbers, ascending
    values: np.ndarray  # [n]

    def minus(self, other: SampleMeans) -> Estimate:
        """Estimates the mean of these values minus others, paired on the samples of both."""
        shared = np.intersect1d(self.numbers, other.numbers)
        values = self.values[np.isin(self.numbers, shared)]
        other_values = other.values[np.isin(other.numbers, shared)]
        return paired_difference(values, other_values)


@dataclass(frozen=True)
class Average:
    """The average over tasks, and its gain over zero-shot.

    Attributes:
        score: None if a task is missing or excluded.
        over_zero_shot: None for zero-shot itself, or if either of the two has no score.
        finished: whether there is a result for every task.
    """

    variant: str
    score: Estimate | None
    over_zero_shot: Estimate | None
    finished: bool


def read_results(run: Run) -> list[TaskScores]:
    """Returns the results of a run, in the order of its tasks and variants.

    Raises:
        AnotherRun: another command made the run.
        RecordsError: it has no finished sample.
    """
    if run.manifest.command != "tasks":
        raise AnotherRun(
            f"{run.folder} does not hold a run of `holdfast tasks`; give a folder that does."
        )
    if not run.records:
        raise RecordsError(
            f"{run.folder} has no finished sample yet; repeat its command to continue."
        )
    groups: dict[tuple[str, str], list[TaskSample]] = {}
    for record in run.samples:
        groups.setdefault((record.task, record.variant), []).append(record)
    identity = run.identity_as(TasksIdentity)
    return [
        _result(task, variant, groups[task, variant])
        for task, variant in itertools.product(identity.settings.tasks, identity.variants)
        if (task, variant) in groups
    ]


def compare_with_zero_shot(
    results: Sequence[TaskScores],
) -> list[tuple[TaskScores, dict[str, Estimate]]]:
    """Compares one task's results with zero-shot: returns each of the others with its differences
    by metric. Excluded results are left out; [] if zero-shot is missing or excluded.
    """
    zero = next((result for result in results if result.variant == ZERO_SHOT), None)
    if zero is None or zero.excluded:
        return []
    others = [result for result in results if result is not zero and not result.excluded]
    return [(result, result.minus(zero)) for result in others]


def average_variants(results: Sequence[TaskScores]) -> list[Average]:
    """Averages the results of every variant over the tasks; [] for a single task."""
    tasks = {result.task for result in results}
    if len(tasks) < 2:
        return []
    by_variant: dict[str, list[TaskScores]] = {}
    for result in results:
        by_variant.setdefault(result.variant, []).append(result)

    def can_be_averaged(group: Sequence[TaskScores]) -> bool:
        return len(group) == len(tasks) and not any(result.excluded for result in group)

    zero_shot = by_variant.get(ZERO_SHOT, [])
    zero = average(zero_shot) if can_be_averaged(zero_shot) else None
    rows: list[Average] = []
    for variant, group in by_variant.items():
        score: Estimate | None = None
        over_zero_shot: Estimate | None = None
        if can_be_averaged(group):
            means = average(group)
            score = estimate(means.values, SCORES)
            if zero is not None and variant != ZERO_SHOT:
                over_zero_shot = means.minus(zero)
        rows.append(Average(variant, score, over_zero_shot, finished=len(group) == len(tasks)))
    return rows


def average(results: Sequence[TaskScores]) -> SampleMeans:
    """Averages one variant's tasks, per sample (the last column of the paper's Table 1).

    A task counts as the mean of its metrics; only samples answered in every task are included.
    """
    shared = set.intersection(*(set(result.numbers.tolist()) for result in results))
    numbers = np.array(sorted(shared), dtype=int)
    rows = []
    for result in results:
        keep = np.isin(result.numbers, numbers)
        metrics = [values for values in result.scores.values() if not np.isnan(values).all()]
        rows.append(np.nanmean(np.array([values[keep] for values in metrics]), axis=0))
    return SampleMeans(numbers, np.mean(rows, axis=0))


def _result(task: str, variant: str, records: Sequence[TaskSample]) -> TaskScores:
    """Gathers the records of a task under one prompt or method."""
    numbers = sorted({record.conversation for record in records})
    names = list(dict.fromkeys(name for record in records for name in record.scores))
    fluent = [record for record in records if record.has_fluency]
    fluencies = [record.fluency for record in fluent if record.fluency is not None]
    return TaskScores(
        task=task,
        variant=variant,
        numbers=np.array(numbers),
        scores={name: _values_by_sample(records, name, numbers) for name in names},
        draws=tuple(_draw_means(records, names)),
        fluency=float(np.mean(fluencies)) if fluencies else None,
        replies=len(fluent),
        num_too_short=len(fluent) - len(fluencies),
        num_low_fluency=sum(value < MIN_FLUENCY for value in fluencies),
    )


def _values_by_sample(
    records: Sequence[TaskSample], metric: str, numbers: Sequence[int]
) -> np.ndarray:
    """Returns a metric by sample, in the order of `numbers`; NaN where a sample has none."""
    scores: dict[int, list[float]] = {}
    for record in records:
        if metric in record.scores:
            scores.setdefault(record.conversation, []).append(record.scores[metric])
    return np.array([np.mean(scores[number]) if number in scores else np.nan for number in numbers])


def _draw_means(records: Sequence[TaskSample], metrics: Sequence[str]) -> list[dict[str, float]]:
    """Returns the mean of each metric for each draw of demonstrations; draw 0 has none."""
    means = []
    for draw in sorted({record.draw for record in records} - {0}):
        scores = [record.scores for record in records if record.draw == draw]
        means.append(
            {
                metric: float(np.mean([score[metric] for score in scores if metric in score]))
                for metric in metrics
            }
        )
    return means
