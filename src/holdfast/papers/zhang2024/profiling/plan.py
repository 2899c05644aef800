"""How heads are profiled, on samples from Python, a file or PASTA's tasks."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.errors import HoldfastError, UsageError, type_in_words
from holdfast.files import read_json_lines
from holdfast.generation.sampling import MOST_NEW_TOKENS
from holdfast.methods import (
    UNSTEERED,
    CompiledMethods,
    Pasta,
    ShiftsAttention,
    compile_methods,
    read_methods,
)
from holdfast.methods.heads import Head, HeadSet, with_heads
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.papers.zhang2024 import Data, Sample, Settings, Task, draw_samples, spans_of
from holdfast.papers.zhang2024.profiling.head_passes import ScoredPrompt
from holdfast.papers.zhang2024.task_settings import user_message
from holdfast.seeds import seed_of
from holdfast.validation import ranges


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


BY = ("probability", "accuracy")


@dataclass(frozen=True)
class ProfilingPlan:
    """How heads are profiled.

    Args:
        method: the steering method, or its spec string; heads set in it are ignored.
        by: choices are scored by the log-probability of the right continuation ("probability"), or
            by whether it is the likeliest ("accuracy").
        max_new_tokens: of a reply.
    """

    method: ShiftsAttention = Pasta(0.01)
    by: str = "probability"
    max_new_tokens: int = 128
    system_as: str = "role"

    def __post_init__(self) -> None:
        if self.by not in BY:
            raise UsageError(f"Heads are ranked by {' or '.join(BY)}, not {self.by!r}.")
        methods = read_methods(self.method)
        attention = compile_methods(methods).attention
        if len(methods) != 1 or not attention:
            raise UsageError(
                "Heads are profiled under an attention method such as pasta:alpha=0.01, not"
                f" {self.method!r}."
            )
        object.__setattr__(self, "method", attention[0])
        ranges.whole_number("profile", "max_new_tokens", self.max_new_tokens, 1, MOST_NEW_TOKENS)

    def steering(self, head: Head) -> CompiledMethods:
        """The method on this head only."""
        return compile_methods([with_heads(self.method, HeadSet([head]))])


@dataclass(frozen=True)
class Material:
    """Samples of one kind, and the requests and prompts that a model makes from them."""

    model: LocalModel
    plan: ProfilingPlan
    samples: Samples
    requests: Sequence[Request]
    prompts: Sequence[ScoredPrompt]

    @property
    def fingerprint(self) -> str:
        """Differs if the model reads anything else, or if another reply is right."""
        targets = [sample.right if isinstance(sample, Choice) else None for sample in self.samples]
        content = [
            (prompt.token_ids, prompt.span, prompt.continuations, right)
            for prompt, right in zip(self.prompts, targets, strict=True)
        ]
        return f"{seed_of(content):x}"

    def methods(self, heads: Iterable[Head]) -> dict[Head | None, CompiledMethods]:
        """The steering of rows: none first (None), then each head on its own."""
        return {None: UNSTEERED, **{head: self.plan.steering(head) for head in heads}}

    def only(self, numbers: Sequence[int]) -> "Material":
        """The same for some of the samples, by their numbers."""
        return replace(
            self,
            samples=pick(self.samples, numbers),
            requests=[self.requests[number] for number in numbers],
            prompts=[self.prompts[number] for number in numbers],
        )

    def by_rows(self) -> list[list[int]]:
        """Groups of samples, by their numbers, whose heads fill about two batches of rows."""
        shape, count = self.model.shape, len(self.samples)
        size = max(1, 2 * self.model.batch_size // (shape.layers * shape.heads))
        return [list(range(count))[start : start + size] for start in range(0, count, size)]


async def read_material(model: LocalModel, samples: Samples, plan: ProfilingPlan) -> Material:
    """Renders and tokenizes samples for a model; refuses one that has nothing to steer to."""
    requests = [
        Request(sample.messages, emphasis=sample.emphasis, system_as=plan.system_as)
        for sample in samples
    ]
    # a question has no continuation to compare; any text stands for the reply to come
    replies = [sample.continuations if isinstance(sample, Choice) else ("a",) for sample in samples]
    prompts = []
    for number, scored in enumerate(await model.session().score_inputs(requests, replies), 1):
        stream = scored.stream
        if not any(stream.span):
            raise UsageError(
                f"Sample {number} has neither emphasis nor a system prompt, so there is nothing to"
                " steer to; emphasise a part."
            )
        prompts.append(ScoredPrompt(stream.token_ids, stream.span, tuple(scored.replies)))
    return Material(model, plan, samples, requests, prompts)
