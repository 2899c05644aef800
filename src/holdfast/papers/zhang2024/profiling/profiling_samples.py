"""Samples to profile heads on: from Python, a file or PASTA's tasks."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.errors import HoldfastError, UsageError, type_in_words
from holdfast.files import read_json_lines
from holdfast.models.requests import Request
from holdfast.papers.zhang2024 import Data, Sample, Settings, Task, draw_samples, spans_of
from holdfast.papers.zhang2024.task_samples import user_message


@dataclass(frozen=True)
class Choice:
    """A sample that is scored without generating."""

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]  # as `holdfast.Request` takes it; () for the system prompt
    continuations: tuple[str, ...]  # replies to compare, at least one
    right: int = 0  # the index of the right one


@dataclass(frozen=True)
class Question:
    """A sample whose reply is decoded greedily and scored."""

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]  # as `holdfast.Request` takes it; () for the system prompt
    score: Callable[[str], float]  # of the reply's text; a larger number is better


Samples: TypeAlias = Sequence[Choice] | Sequence[Question]


def pick(samples: Samples, numbers: Sequence[int]) -> Samples:
    """Some of the samples, by their numbers from 0."""
    return cast("Samples", [samples[number] for number in numbers])


def read_samples(path: Path | str) -> list[Choice]:
    """Reads choices from a JSONL file; errors name the line and field that is wrong or missing.

    Each line is an object with messages, continuations, right, and emphasis: texts,
    [text, occurrence] or [message, first, last]. Without emphasis, asterisks mark it.
    """
    samples = [
        _read_sample(row, f"Line {number} of {path}") for number, row in read_json_lines(path)
    ]
    if not samples:
        raise UsageError(
            f"{path} holds no samples; write one JSON object per line, with messages, emphasis,"
            " continuations and right."
        )
    return samples


def _read_sample(row: object, where: str) -> Choice:
    if not isinstance(row, dict):
        raise UsageError(
            f"{where} is {str(row)[:60]!r}; write an object with messages, emphasis, continuations"
            " and right."
        )
    kinds = {"messages": list, "continuations": list, "right": int, "emphasis": list}
    for name, kind in kinds.items():
        value = row.get(name, [] if name == "emphasis" else None)
        if not isinstance(value, kind) or isinstance(value, bool):
            what = f"has {name} = {str(value)[:60]!r}" if name in row else f"has no {name!r}"
            raise UsageError(
                f"{where} {what}; give {'a list' if kind is list else 'a whole number'} there."
            )
    try:
        emphasis = row.get("emphasis", ())
        parts = tuple(tuple(part) if isinstance(part, list) else part for part in emphasis)
        request = Request(row["messages"], emphasis=parts, marks="emphasis" not in row)
    except HoldfastError as error:
        raise UsageError(f"{where}: {error}") from None
    return Choice(request.messages, request.emphasis, tuple(row["continuations"]), row["right"])


def check_samples(samples: Samples, *, compared: bool) -> None:
    """Refuses malformed samples by number; with `compared`, also those with one continuation."""
    if not samples:
        raise UsageError("There are no samples to profile heads on ([]); give at least one.")
    kind = type(samples[0])
    for number, sample in enumerate(samples, 1):
        if type(sample) is not kind or kind not in (Choice, Question):
            raise UsageError(
                f"Sample {number} is {type_in_words(sample)} and the first"
                f" {type_in_words(samples[0])};"
                " give samples of one kind, Choice or Question."
            )
        if isinstance(sample, Choice):
            _check_choice(sample, number, compared)
        try:
            Request(sample.messages, emphasis=sample.emphasis)
        except HoldfastError as error:
            raise UsageError(f"Sample {number}: {error}") from None


def _check_choice(sample: Choice, number: int, compared: bool) -> None:
    replies = sample.continuations
    if not replies or not all(isinstance(text, str) and text for text in replies):
        raise UsageError(
            f"Sample {number} has continuations {replies!r}; give at least one, each a text."
        )
    if not 0 <= sample.right < len(replies):
        raise UsageError(
            f"Sample {number} has right = {sample.right} of {len(replies)} continuations, counted"
            " from 0."
        )
    if compared and len(replies) < 2:
        raise UsageError(
            f"Sample {number} has one continuation, which is always the likeliest; give others too,"
            " or rank by probability."
        )


def task_samples(data: Data, task: Task, settings: Settings) -> list[Choice] | list[Question]:
    """A task's zero-shot prompts: choices if continuations are compared, else questions."""
    samples = draw_samples(data, task, settings)
    if task.chooses:
        return [
            Choice(*_chat_of(sample), sample.options, sample.options.index(sample.target))
            for sample in samples
        ]
    return [
        Question(*_chat_of(sample), functools.partial(_mean_score, task, sample))
        for sample in samples
    ]


def _chat_of(sample: Sample) -> tuple[tuple[Message, ...], tuple[Part, ...]]:
    prompt = sample.prompts[0]
    return (user_message(prompt),), tuple((0, *span) for span in spans_of(prompt, sample.emphasis))


def _mean_score(task: Task, sample: Sample, reply: str) -> float:
    scores: Sequence[float] = list(task.score(sample, reply).values())
    return sum(scores) / len(scores)
