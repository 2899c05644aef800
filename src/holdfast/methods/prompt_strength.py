"""System prompt strength (Dong, Hu, Hui and Collier 2026, arXiv 2601.06403)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.guidance import PLAUSIBILITY, contrasted
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import Number, Text, check_parameters, parameter

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_PROMPT = "You are a helpful assistant."


@dataclass(frozen=True)
class PromptStrength:
    """Contrasts the model under its system prompt with itself under a default prompt.

    log p = log p_default + scale * (log p - log p_default): system prompt strength of Dong et al.
    (2026), which scales what the target prompt adds to a default prompt. Only the abstract could be
    read here: from where the authors count their alpha is not known, and `scale` is alpha if theirs
    is 1 at the unsteered model. The plausibility threshold is ours, as `guidance` has it. A chat
    without a system prompt is left as it is.

    Args:
        scale: at least 0; 1 changes nothing, 0 is the model under the default prompt.
        default: the prompt that stands in place of the first system message; others are left out.
        plausibility: in [0, 1]; 0 sets no threshold.

    Raises:
        ParameterOutOfRange: a number outside its range.
        UsageError: `default` is no text.
    """

    name: ClassVar[str] = "prompt-strength"
    kind: ClassVar[Kind] = Kind.STREAM
    source: ClassVar[str] = "Dong et al. 2026, arXiv 2601.06403"

    scale: float = field(
        metadata=parameter(
            "alpha; 1 changes nothing, 0 is the model under the default prompt", Number(0), "1.5"
        )
    )
    default: str = field(
        default=DEFAULT_PROMPT,
        metadata=parameter("the prompt to contrast with, in double quotes", Text()),
    )
    plausibility: float = field(default=0.0, metadata=PLAUSIBILITY)

    def __post_init__(self) -> None:
        check_parameters(self)

    def other(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The chat under the default prompt."""
        systems = [index for index, message in enumerate(messages) if message["role"] == "system"]
        return tuple(
            {**message, "content": self.default} if index in systems else message
            for index, message in enumerate(messages)
            if index not in systems[1:]
        )

    def guide(self, logits: Tensor, other: Tensor) -> Tensor:
        """Log-probabilities, float32 [row, vocabulary], of the logits under the two prompts."""
        return contrasted(logits, other, self.scale, self.plausibility)
