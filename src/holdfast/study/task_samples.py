"""PASTA's tasks as samples of head profiling (Zhang et al. 2024, Algorithm 1: each head is scored
on each task's training samples).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from holdfast.study.profiling import Choice, Question
from holdfast.tasks import Data, Sample, Settings, Task, draw_samples, spans_of


def task_samples(data: Data, task: Task, settings: Settings) -> list[Choice] | list[Question]:
    """The zero-shot prompts of a task: continuations to compare where it has them, else questions
    scored by the mean of its metrics.

    Raises:
        UsageError: as `draw_samples`.
    """
    samples = draw_samples(data, task, settings)
    if task.chooses:
        return [_choice(sample) for sample in samples]
    return [_question(task, sample) for sample in samples]


def _asked(sample: Sample) -> tuple[tuple[dict[str, str], ...], tuple[tuple[int, int, int], ...]]:
    """The first prompt as a chat, and its emphasis."""
    return ({"role": "user", "content": sample.prompts[0]},), tuple(
        (0, *span) for span in spans_of(sample.prompts[0], sample.emphasis)
    )


def _choice(sample: Sample) -> Choice:
    return Choice(*_asked(sample), sample.options, sample.options.index(sample.target))


def _question(task: Task, sample: Sample) -> Question:
    return Question(*_asked(sample), functools.partial(_mean_score, task, sample))


def _mean_score(task: Task, sample: Sample, reply: str) -> float:
    scores: Sequence[float] = list(task.score(sample, reply).values())
    return sum(scores) / len(scores)
