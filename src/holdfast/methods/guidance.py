"""Classifier-free guidance (Li et al. 2024, section 6.1, after Sanchez et al. 2023), and the
contrast of two streams that it and others make one distribution of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, number, parameter

if TYPE_CHECKING:
    from torch import Tensor


PLAUSIBILITY = (
    "tokens that the prompted model finds less than this times as likely as its best are"
    " never drawn",
    number(0, 1),
)


def contrasted(
    logits: Tensor, other: Tensor, scale: float | Tensor, plausibility: float = 0.0
) -> Tensor:
    """log p = log p_other + scale * (log p - log p_other), float32 [row, vocabulary].

    Tokens that the first stream gives less than `plausibility` times its best token's probability
    are never drawn (Li et al. 2022, arXiv 2210.15097). A token that the second stream alone finds
    impossible cannot be contrasted: it keeps the first stream's probability at a scale of at least
    1, and has none below.

    Args:
        logits, other: of the two streams, [row, vocabulary].
        scale: 1 is the first stream alone, 0 the other one; of all rows, or [row, 1].
        plausibility: in [0, 1]; 0 sets no threshold.
    """
    first, second = logits.float().log_softmax(-1), other.float().log_softmax(-1)
    same = isinstance(scale, (int, float)) and scale == 1
    made = first if same else second + scale * (first - second)
    # where either is impossible, their difference is infinite or not a number
    lone = -math.inf if isinstance(scale, (int, float)) and scale < 1 else first
    made = made.where(second > -math.inf, lone).masked_fill(first == -math.inf, -math.inf)
    if plausibility:
        least = first.amax(-1, keepdim=True) + math.log(plausibility)
        made = made.masked_fill(first < least, -math.inf)
    return made


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A chat without its system prompts; a template may not put its own in their place."""
    return tuple(message for message in messages if message["role"] != "system")


@method
class Guidance:
    """Contrasts the model with and without the system prompt: log p = log p_without + scale * (log
    p_with - log p_without).

    Li et al. (2024), equation 5, with alpha = `scale`. The stream without the prompt is forwarded
    in the same batch. Published uses add a plausibility threshold (Li et al. 2022, arXiv
    2210.15097): tokens that the model with the prompt gives less than `plausibility` times its best
    token's probability are never drawn; 0 sets none.
    """

    name: ClassVar[str] = "guidance"
    kind: ClassVar[Kind] = Kind.STREAM
    source: ClassVar[str] = "Li et al. 2024, eq. 5"

    scale: float = parameter(
        "alpha; 1 changes nothing, 0 is the model without the prompt", number(0), "1.5"
    )
    plausibility: float = parameter(*PLAUSIBILITY, default=0.0)

    def other(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The chat without its system prompt."""
        return without_system(messages)

    def guide(self, logits: Tensor, other: Tensor) -> Tensor:
        """Log-probabilities, float32 [row, vocabulary], from logits with and without the prompt."""
        return contrasted(logits, other, self.scale, self.plausibility)
