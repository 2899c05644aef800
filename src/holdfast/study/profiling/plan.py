"""How heads are profiled, and which samples are scored before heads are dropped."""

from __future__ import annotations

import random
from dataclasses import dataclass

from holdfast import knobs
from holdfast.errors import UsageError
from holdfast.methods import Kind, Pasta, ShiftsAttention, kind_of, parse
from holdfast.methods.heads import Head, HeadSet, with_heads
from holdfast.seeds import seed_of

BY = ("probability", "accuracy")


@dataclass(frozen=True)
class Plan:
    """How heads are profiled.

    Args:
        method: what a head is steered by, or its spelling; its own heads play no part.
        by: choices are scored by the log-probability of the right continuation ("probability"), or
            by whether it is the likeliest ("accuracy").
        halving: drops the worse half of the heads after a quarter of the samples, and again after
            half of them: about half the work.
        max_new_tokens: of a reply.
        system_as: where system prompts stand.
        seed: of the order of the samples, which matters with `halving`.

    Raises:
        UsageError: an unknown `by`, or another kind of method.
        KnobOutOfRange: a number outside its range.
    """

    method: ShiftsAttention = Pasta(0.01)
    by: str = "probability"
    halving: bool = False
    max_new_tokens: int = 128
    system_as: str = "role"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.by not in BY:
            raise UsageError(f"Heads are ranked by {' or '.join(BY)}, not {self.by!r}.")
        if isinstance(self.method, str):
            spelled = parse(self.method)
            object.__setattr__(self, "method", spelled[0] if len(spelled) == 1 else spelled)
        if kind_of(self.method) is not Kind.LOG_ODDS:
            raise UsageError(
                "Heads are profiled under an attention method such as pasta:alpha=0.01, not"
                f" {self.method!r}."
            )
        knobs.whole_number("profile", "max_new_tokens", self.max_new_tokens, 1)
        knobs.whole_number("profile", "seed", self.seed, 0)

    def steering(self, head: Head) -> tuple[ShiftsAttention, ...]:
        """The method on one head alone."""
        return (with_heads(self.method, HeadSet([head])),)


def stages_of(count: int, plan: Plan) -> list[list[int]]:
    """Which of so many samples are scored before heads are dropped, before they are dropped again,
    and at last.

    Raises:
        UsageError: too few of them to drop heads.
    """
    if not plan.halving:
        return [list(range(count))]
    if count < 8:
        raise UsageError(f"Halving needs at least 8 samples, and there are {count}; leave it out.")
    order = random.Random(seed_of("profile", plan.seed)).sample(range(count), count)
    return [order[: count // 4], order[count // 4 : count // 2], order[count // 2 :]]
