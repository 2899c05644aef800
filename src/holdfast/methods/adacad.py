"""AdaCAD: guidance as strong as its two streams disagree (Wang et al. 2024, arXiv 2409.07394)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.guidance import contrasted, without_system
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, number, parameter

if TYPE_CHECKING:
    from torch import Tensor


@method
class AdaCad:
    """Contrasts the model with and without the system prompt, the more the two disagree.

    AdaCAD of Wang et al. (2024): log p_with + alpha * (log p_with - log p_without), as `guidance`
    with a scale of 1 + alpha, where alpha is the Jensen-Shannon divergence of the two distributions
    of this token, with logarithms to base 2, so from 0 to 1. The authors contrast with and without
    a retrieved context; here it is the system prompt. `strength` is ours.
    """

    name: ClassVar[str] = "adacad"
    kind: ClassVar[Kind] = Kind.STREAM
    source: ClassVar[str] = "AdaCAD, Wang et al. 2024, arXiv 2409.07394"

    strength: float = parameter(
        "a factor on alpha; 0 changes nothing, 1 is the paper's", number(0), "1", default=1.0
    )

    def other(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The chat without its system prompt."""
        return without_system(messages)

    def guide(self, logits: Tensor, other: Tensor) -> Tensor:
        """Log-probabilities, float32 [row, vocabulary]; those of the first stream at strength 0."""
        import torch

        if self.strength == 0:
            return contrasted(logits, other, 1.0)
        first, second = logits.float().log_softmax(-1), other.float().log_softmax(-1)
        middle = torch.logaddexp(first, second) - math.log(2)
        # a token that is impossible adds nothing, though its logarithm is no number
        gaps = [(log - middle).where(log > -math.inf, 0.0) * log.exp() for log in (first, second)]
        alpha = (gaps[0] + gaps[1]).sum(-1, keepdim=True) / (2 * math.log(2))
        return contrasted(logits, other, 1 + self.strength * alpha.clamp(min=0))
