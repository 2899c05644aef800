"""The samples on which heads are profiled: from Python, a file or PASTA's tasks."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, ValidationError

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import read_json_lines
from holdfast.models.requests import Request
from holdfast.papers.zhang2024 import Data, Sample, Settings, Task, draw_samples, spans_of
from holdfast.papers.zhang2024.task_samples import user_message
from holdfast.validation.pydantic_errors import StrictModel, format_path, problem_of


@dataclass(frozen=True)
class ContinuationSample:
    """A chat with replies whose log-probabilities are compared; none is generated.

    Attributes:
        emphasis: the emphasised parts: texts, (text, occurrence from 1) or (message from 0, first,
            last character); () for the system prompt.
        continuations: the replies to compare, at least one.
        right: the index of the right reply.
    """

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]
    continuations: tuple[str, ...]
    right: int = 0


@dataclass(frozen=True)
class ReplySample:
    """A chat to which a reply is decoded greedily, and scored.

    Attributes:
        emphasis: the emphasised parts: texts, (text, occurrence from 1) or (message from 0, first,
            last character); () for the system prompt.
        score: scores the text of the reply; a larger number is better.
    """

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]
    score: Callable[[str], float]


ProfilingSample: TypeAlias = ContinuationSample | ReplySample
Samples: TypeAlias = Sequence[ProfilingSample]  # of one kind, as `check_samples` requires


_Occurrence = Annotated[
    tuple[str, int],
    Field(strict=False, description="a text, and which occurrence of it, from 1"),
]
_Characters = Annotated[
    tuple[int, int, int],
    Field(strict=False, description="message from 0, first and last character"),
]


class SampleLine(StrictModel):
    """A line of a file of samples; further fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    messages: list[dict[str, Any]]
    continuations: list[str]
    right: int  # the index of the right continuation
    # without it, the parts between asterisks are emphasised
    emphasis: list[str | _Occurrence | _Characters] = Field(default_factory=list)


def read_samples(path: Path | str) -> list[ContinuationSample]:
    """Reads samples from a JSONL file whose lines are `SampleLine`s.

    Raises:
        UsageError: a line is not a sample; the message names the line and the field.
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


def _read_sample(row: object, where: str) -> ContinuationSample:
    try:
        line = SampleLine.model_validate(row)
    except ValidationError as error:
        problem = problem_of(error, SampleLine, row, lambda path: format_path(path) or "the line")
        raise UsageError(f"{where}: {problem.sentence}", option=problem.field) from None
    marks = "emphasis" not in line.model_fields_set
    try:
        request = Request(line.messages, emphasis=line.emphasis, marks=marks)
    except HoldfastError as error:
        raise UsageError(f"{where}: {error}") from None
    return ContinuationSample(
        request.messages, request.emphasis, tuple(line.continuations), line.right
    )


def check_samples(samples: Samples, *, compared: bool) -> None:
    """Refuses samples that cannot be scored, naming the first of them by its number.

    Args:
        compared: whether continuations are compared with one another, so that a sample needs at
            least two.
    """
    if not samples:
        raise UsageError("There are no samples to profile heads on ([]); give at least one.")
    kind = ContinuationSample if isinstance(samples[0], ContinuationSample) else ReplySample
    for number, sample in enumerate(samples, 1):
        if not isinstance(sample, kind):
            raise UsageError(
                f"Sample {number} is a {type(sample).__name__}; give samples of one kind,"
                " ContinuationSample or ReplySample."
            )
    for number, sample in enumerate(samples, 1):
        if isinstance(sample, ContinuationSample):
            _check_continuations(sample, number, compared)
        try:
            Request(sample.messages, emphasis=sample.emphasis)
        except HoldfastError as error:
            raise UsageError(f"Sample {number}: {error}") from None


def _check_continuations(sample: ContinuationSample, number: int, compared: bool) -> None:
    """Refuses a sample whose continuations cannot be compared."""
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


def task_samples(data: Data, task: Task, settings: Settings) -> list[ProfilingSample]:
    """The zero-shot prompts of a task, with continuations if it compares some."""
    return [_sample_of(task, sample) for sample in draw_samples(data, task, settings)]


def _sample_of(task: Task, sample: Sample) -> ProfilingSample:
    prompt = sample.prompts[0]
    messages = (user_message(prompt),)
    emphasis = tuple((0, *span) for span in spans_of(prompt, sample.emphasis))
    if task.chooses:
        right = sample.options.index(sample.target)
        return ContinuationSample(messages, emphasis, sample.options, right)
    return ReplySample(messages, emphasis, functools.partial(_mean_score, task, sample))


def _mean_score(task: Task, sample: Sample, reply: str) -> float:
    scores = task.score(sample, reply).values()
    return sum(scores) / len(scores)
