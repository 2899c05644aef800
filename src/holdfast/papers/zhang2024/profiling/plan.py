"""How heads are profiled, and the samples as a model reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.common import ranges
from holdfast.common.seeds import seed_of
from holdfast.errors import UsageError
from holdfast.methods import Kind, Pasta, ShiftsAttention, kind_of, parse
from holdfast.methods.heads import Head, HeadSet, with_heads
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.papers.zhang2024.profiling.layout import ScoredPrompt
from holdfast.papers.zhang2024.profiling.samples import Choice, Samples

BY = ("probability", "accuracy")


@dataclass(frozen=True)
class ProfilingPlan:
    """How heads are profiled.

    Args:
        method: what a head is steered by, or its spelling; its own heads play no part.
        by: choices are scored by the log-probability of the right continuation ("probability"), or
            by whether it is the likeliest ("accuracy").
        max_new_tokens: of a reply.
        system_as: where system prompts stand.

    Raises:
        UsageError: an unknown `by`, or another kind of method.
        ParameterOutOfRange: a number outside its range.
    """

    method: ShiftsAttention = Pasta(0.01)
    by: str = "probability"
    max_new_tokens: int = 128
    system_as: str = "role"

    def __post_init__(self) -> None:
        if self.by not in BY:
            raise UsageError(f"Heads are ranked by {' or '.join(BY)}, not {self.by!r}.")
        if isinstance(self.method, str):
            parsed = parse(self.method)
            object.__setattr__(self, "method", parsed[0] if len(parsed) == 1 else parsed)
        if kind_of(self.method) is not Kind.LOG_ODDS:
            raise UsageError(
                "Heads are profiled under an attention method such as pasta:alpha=0.01, not"
                f" {self.method!r}."
            )
        ranges.whole_number("profile", "max_new_tokens", self.max_new_tokens, 1)

    def steering(self, head: Head) -> tuple[ShiftsAttention, ...]:
        """The method on one head alone."""
        return (with_heads(self.method, HeadSet([head])),)


Methods: TypeAlias = Mapping[Head | None, tuple[ShiftsAttention, ...]]


@dataclass(frozen=True)
class Material:
    """Samples of one kind, and the requests and prompts that a model makes of them."""

    model: LocalModel
    plan: ProfilingPlan
    samples: Samples
    requests: Sequence[Request]
    prompts: Sequence[ScoredPrompt]

    @property
    def fingerprint(self) -> str:
        """Another one where the model reads anything else, or another reply is right."""
        answers = [sample.right if isinstance(sample, Choice) else None for sample in self.samples]
        content = [
            (prompt.token_ids, prompt.span, prompt.continuations, right)
            for prompt, right in zip(self.prompts, answers, strict=True)
        ]
        return f"{seed_of(content):x}"

    def methods(self, heads: Iterable[Head]) -> Methods:
        """The steering of rows: none first (None), then each head alone."""
        return {None: (), **{head: self.plan.steering(head) for head in heads}}

    def by_rows(self, numbers: Sequence[int]) -> list[list[int]]:
        """Samples whose heads are rows of about two batches."""
        shape = self.model.shape
        size = max(1, 2 * self.model.batch_size // (shape.layers * shape.heads))
        return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def read_material(model: LocalModel, samples: Samples, plan: ProfilingPlan) -> Material:
    """Has a model read samples; refuses one that has nothing to steer to."""
    requests = [
        Request(sample.messages, emphasis=sample.emphasis, system_as=plan.system_as)
        for sample in samples
    ]
    # a question has no continuation to compare; any stands for the reply that is to come
    replies = [sample.continuations if isinstance(sample, Choice) else ("a",) for sample in samples]
    prompts = []
    for number, (stream, tokens) in enumerate(model.session().spell(requests, replies), 1):
        if not any(stream.span):
            raise UsageError(
                f"Sample {number} has neither emphasis nor a system prompt, so there is nothing to"
                " steer to; emphasise a part."
            )
        prompts.append(ScoredPrompt(stream.token_ids, stream.span, tuple(tokens)))
    return Material(model, plan, samples, requests, prompts)
