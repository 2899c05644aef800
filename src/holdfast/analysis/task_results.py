"""A run of `holdfast tasks`: every metric of every task and variant; the unit is the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.errors import AnotherRun, RecordsError
from holdfast.records import Run, TaskSample
from holdfast.records.identity import TasksIdentity

ZERO_SHOT = "zero-shot"
MIN_FLUENCY = 3.0  # results below this are excluded, as in the paper


@dataclass(frozen=True, eq=False)
class Result:
    """One task under one baseline or method; a sample's draws of demonstrations are averaged."""

    task: str
    variant: str
    numbers: np.ndarray  # [n], the samples' numbers
    scores: dict[str, np.ndarray]  # per metric, [n], NaN where a sample has none
    draws: tuple[dict[str, float], ...]  # per draw of demonstrations, the mean of each metric
    fluency: float | None  # mean over the replies that have one
    replies: int  # the number of replies judged
    short: int  # of these, too short to have a fluency
    low: int  # of these, with a fluency under 3.0

    @property
    def excluded(self) -> bool:
        """Whether the replies are degenerate: their mean fluency is under 3.0, and at least half of
        them are long enough to have one.

        The paper excludes results below 3.0; since its tables show means of 3.00 and 3.03, a result
        is taken to mean a row of a table.
        """
        is_low = self.fluency is not None and self.fluency < MIN_FLUENCY
        return is_low and 2 * self.short <= self.replies

    @property
    def main_metric(self) -> str:
        """The task's main metric, which is its first."""
        return next(iter(self.scores))

    def estimates(self) -> dict[str, Estimate]:
        """The mean of each metric over the samples."""
        return {name: estimate(values, SCORES) for name, values in self.scores.items()}

    def less(self, other: Result) -> dict[str, Estimate]:
        """Per metric, this result minus `other`, paired on the samples of both."""
        return {
            name: SampleMeans(self.numbers, values).less(
                SampleMeans(other.numbers, other.scores[name])
            )
            for name, values in self.scores.items()
        }


class SampleMeans(NamedTuple):
    """A value of each sample."""

    numbers: np.ndarray  # [n], the samples' numbers, ascending
    values: np.ndarray  # [n]

    def less(self, other: SampleMeans) -> Estimate:
        """The mean of these values minus others, paired on the samples of both."""
        shared = np.intersect1d(self.numbers, other.numbers)
        values = self.values[np.isin(self.numbers, shared)]
        other_values = other.values[np.isin(other.numbers, shared)]
        return paired_difference(values, other_values)


@dataclass(frozen=True)
class Average:
    """The average over tasks, and its gain over zero-shot; None if any part is missing."""

    variant: str
    score: Estimate | None
    less_zero_shot: Estimate | None
    finished: bool


def read_results(run: Run) -> list[Result]:
    """The results of a run, in the order of its tasks and variants."""
    if run.manifest.command != "tasks":
        raise AnotherRun(f"{run.folder} holds no run of `holdfast tasks`; give one that does.")
    if not run.records:
        raise RecordsError(
            f"{run.folder} has no finished sample yet; repeat its command to continue."
        )
    groups: dict[tuple[str, str], list[TaskSample]] = {}
    for record in run.samples:
        groups.setdefault((record.task, record.variant), []).append(record)
    identity = run.identity_as(TasksIdentity)
    order = {name: index for index, name in enumerate(identity.settings.tasks)}
    variants = {name: index for index, name in enumerate(identity.variants)}
    wanted = [key for key in groups if key[0] in order and key[1] in variants]
    wanted.sort(key=lambda key: (order[key[0]], variants[key[1]]))
    return [_result(task, variant, groups[task, variant]) for task, variant in wanted]


def compared(results: Sequence[Result]) -> list[tuple[Result, dict[str, Estimate]]]:
    """One task's results to be compared with zero-shot, with their differences from it."""
    zero = next((result for result in results if result.variant == ZERO_SHOT), None)
    if zero is None or zero.excluded:
        return []
    others = [result for result in results if result is not zero and not result.excluded]
    return [(result, result.less(zero)) for result in others]


def averages(results: Sequence[Result]) -> list[Average]:
    """Every variant's average over the tasks; empty for a single task."""
    tasks = {result.task for result in results}
    if len(tasks) < 2:
        return []
    by_variant: dict[str, list[Result]] = {}
    for result in results:
        by_variant.setdefault(result.variant, []).append(result)
    rows: list[Average] = []

    def whole(group: Sequence[Result]) -> bool:
        return len(group) == len(tasks) and not any(result.excluded for result in group)

    zero_shot = by_variant.get(ZERO_SHOT, [])
    zero = average(zero_shot) if whole(zero_shot) else None
    for variant, group in by_variant.items():
        if not whole(group):
            rows.append(Average(variant, None, None, len(group) == len(tasks)))
            continue
        means = average(group)
        difference = means.less(zero) if zero is not None and variant != ZERO_SHOT else None
        rows.append(Average(variant, estimate(means.values, SCORES), difference, True))
    return rows


def average(results: Sequence[Result]) -> SampleMeans:
    """The average over one variant's tasks (the last column of the paper's Table 1), per sample.

    A task counts as the mean of its metrics; only samples answered in every task are included.
    """
    answered = set.intersection(*(set(result.numbers.tolist()) for result in results))
    numbers = np.array(sorted(answered), dtype=int)
    rows = []
    for result in results:
        keep = np.isin(result.numbers, numbers)
        metrics = [values for values in result.scores.values() if not np.isnan(values).all()]
        rows.append(np.nanmean(np.array([values[keep] for values in metrics]), axis=0))
    return SampleMeans(numbers, np.mean(rows, axis=0))


def _result(task: str, variant: str, records: Sequence[TaskSample]) -> Result:
    numbers = sorted({record.conversation for record in records})
    names = list(dict.fromkeys(name for record in records for name in record.scores))
    judged = [record for record in records if record.has_fluency]
    fluencies = [record.fluency for record in judged if record.fluency is not None]
    return Result(
        task=task,
        variant=variant,
        numbers=np.array(numbers),
        scores={name: _by_sample(records, name, numbers) for name in names},
        draws=tuple(_draw_means(records, names)),
        fluency=float(np.mean(fluencies)) if fluencies else None,
        replies=len(judged),
        short=len(judged) - len(fluencies),
        low=sum(value < MIN_FLUENCY for value in fluencies),
    )


def _by_sample(records: Sequence[TaskSample], metric: str, numbers: Sequence[int]) -> np.ndarray:
    """A metric by sample, [sample], in the order of `numbers`; NaN where a sample has none."""
    scores: dict[int, list[float]] = {}
    for record in records:
        if metric in record.scores:
            scores.setdefault(record.conversation, []).append(record.scores[metric])
    return np.array([np.mean(scores[number]) if number in scores else np.nan for number in numbers])


def _draw_means(records: Sequence[TaskSample], metrics: Sequence[str]) -> list[dict[str, float]]:
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
