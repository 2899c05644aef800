"""Samples as a model reads them: chats, tokens, and what each head alone is steered by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.errors import UsageError
from holdfast.methods import ShiftsAttention
from holdfast.methods.heads import Head
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.seeds import seed_of
from holdfast.study.profiling.plan import Plan
from holdfast.study.profiling.samples import Choice, Samples
from holdfast.study.side_by_side import Prompt

Methods: TypeAlias = Mapping[Head | None, tuple[ShiftsAttention, ...]]


@dataclass(frozen=True)
class Material:
    """Samples as a model reads them.

    Args:
        model: whose heads are steered.
        plan: how.
        samples: of one kind.
        requests, prompts: of each sample.
    """

    model: LocalModel
    plan: Plan
    samples: Samples
    requests: Sequence[Request]
    prompts: Sequence[Prompt]

    @property
    def fingerprint(self) -> str:
        """Another one where the model reads anything else, or another reply is right."""
        told = [
            (
                prompt.token_ids,
                prompt.span,
                prompt.continuations,
                sample.right if isinstance(sample, Choice) else None,
            )
            for prompt, sample in zip(self.prompts, self.samples, strict=True)
        ]
        return f"{seed_of(told):x}"

    def methods(self, heads: Iterable[Head]) -> Methods:
        """What rows are steered by: nothing first (None), then each head alone."""
        return {None: (), **{head: self.plan.steering(head) for head in heads}}

    def by_rows(self, numbers: Sequence[int]) -> list[list[int]]:
        """Samples whose heads are rows of about two batches."""
        shape = self.model.shape
        size = max(1, 2 * self.model.batch_size // (shape.layers * shape.heads))
        return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def read_material(model: LocalModel, samples: Samples, plan: Plan) -> Material:
    """Has a model read samples.

    Raises:
        UsageError: a sample has nothing to steer to.
    """
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
        prompts.append(Prompt(stream.token_ids, stream.span, tuple(tokens)))
    return Material(model, plan, samples, requests, prompts)
