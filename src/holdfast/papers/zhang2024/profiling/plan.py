"""How heads are profiled, and the samples as a model reads them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import UsageError
from holdfast.generation.sampling import MAX_NEW_TOKENS_ALLOWED
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
from holdfast.papers.zhang2024.profiling.profiling_samples import ContinuationSample, Samples
from holdfast.papers.zhang2024.profiling.scored_prompts import ScoredPrompt
from holdfast.seeds import seed_of
from holdfast.validation import ranges

BY = ("probability", "accuracy")


@dataclass(frozen=True)
class ProfilingPlan:
    """How heads are profiled.

    Attributes:
        method: the steering method, or its spec string; heads that it sets are ignored.
        by: how choices are scored: by the log-probability of the right continuation
            ("probability"), or by whether it is the likeliest ("accuracy").
        max_new_tokens: of a reply.
        system_as: where a system prompt goes: "role", or "first-user" for before the first user
            message.
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
        if compile_methods(methods).spares_replies:
            raise UsageError(
                "Heads are profiled on the system prompt or the emphasis of samples, and attenuate"
                " acts on earlier replies; give another attention method, such as pasta:alpha=0.01."
            )
        object.__setattr__(self, "method", attention[0])
        ranges.whole_number(
            "profile", "max_new_tokens", self.max_new_tokens, 1, MAX_NEW_TOKENS_ALLOWED
        )

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
        """Differs if the model reads anything different, or if a different reply is right."""
        targets = [
            sample.right if isinstance(sample, ContinuationSample) else None
            for sample in self.samples
        ]
        content = [
            (prompt.token_ids, prompt.span, prompt.continuations, right)
            for prompt, right in zip(self.prompts, targets, strict=True)
        ]
        return f"{seed_of(content):x}"

    def methods(self, heads: Iterable[Head]) -> dict[Head | None, CompiledMethods]:
        """The methods by the head that they steer; first the unsteered row, whose head is None."""
        return {None: UNSTEERED, **{head: self.plan.steering(head) for head in heads}}

    def only(self, numbers: Sequence[int]) -> "Material":
        """The material of some of the samples, by their numbers."""
        return replace(
            self,
            samples=[self.samples[number] for number in numbers],
            requests=[self.requests[number] for number in numbers],
            prompts=[self.prompts[number] for number in numbers],
        )

    def by_rows(self) -> list[list[int]]:
        """The numbers of samples in groups whose heads fill about two batches of rows."""
        shape = self.model.shape
        size = max(1, 2 * self.model.batch_size // (shape.layers * shape.heads))
        numbers = list(range(len(self.samples)))
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]


async def read_material(model: LocalModel, samples: Samples, plan: ProfilingPlan) -> Material:
    """Renders and tokenizes samples for a model; refuses a sample without anything to steer to."""
    requests = [
        Request(sample.messages, emphasis=sample.emphasis, system_as=plan.system_as)
        for sample in samples
    ]
    # a reply that is still to be written is represented by any text
    replies = [
        sample.continuations if isinstance(sample, ContinuationSample) else ("a",)
        for sample in samples
    ]
    prompts: list[ScoredPrompt] = []
    for number, scores in enumerate(await model.session().score_inputs(requests, replies), 1):
        stream = scores.stream
        if not any(stream.span):
            raise UsageError(
                f"Sample {number} has neither emphasis nor a system prompt, so there is nothing to"
                " steer to; emphasise a part."
            )
        prompts.append(ScoredPrompt(stream.token_ids, stream.span, tuple(scores.replies)))
    return Material(model, plan, samples, requests, prompts)
