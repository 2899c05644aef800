"""System prompt strength (Dong, Hu, Hui and Collier 2026, arXiv 2601.06403)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.guidance import PLAUSIBILITY, contrasted
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import TEXT, method, number, parameter

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_PROMPT = "You are a helpful assistant."


@method
class PromptStrength:
    """Contrasts the model under its system prompt with itself under a default prompt.

    log p = log p_default + scale * (log p - log p_default): system prompt strength of Dong et al.
    (2026), which scales what the target prompt adds to a default prompt. Only the abstract could be
    read here: from where the authors count their alpha is not known, and `scale` is alpha if theirs
    is 1 at the unsteered model. The plausibility threshold is ours, as `guidance` has it. A chat
    without a system prompt is left as it is.
    """

    name: ClassVar[str] = "prompt-strength"
    kind: ClassVar[Kind] = Kind.STREAM
    source: ClassVar[str] = "Dong et al. 2026, arXiv 2601.06403"

    scale: float = parameter(
        "alpha; 1 changes nothing, 0 is the model under the default prompt", number(0), "1.5"
    )
    default: str = parameter(
        "the prompt to contrast with, in double quotes", TEXT, default=DEFAULT_PROMPT
    )
    plausibility: float = parameter(*PLAUSIBILITY, default=0.0)

    def other(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The chat with the default prompt as its first system message, and no other."""
        systems = [index for index, message in enumerate(messages) if message["role"] == "system"]
        return tuple(
            {**message, "content": self.default} if index in systems else message
            for index, message in enumerate(messages)
            if index not in systems[1:]
        )

    def guide(self, logits: Tensor, other: Tensor) -> Tensor:
        """Log-probabilities, float32 [row, vocabulary], from the logits under the two prompts."""
        return contrasted(logits, other, self.scale, self.plausibility)
