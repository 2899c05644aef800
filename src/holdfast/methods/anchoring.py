"""Selective Prompt Anchoring, SPA (Tian and Zhang, ICML 2025, arXiv 2408.09121)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.chat.messages import Message
from holdfast.methods.guidance import PLAUSIBILITY, contrasted
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import method, number, parameter

if TYPE_CHECKING:
    from torch import Tensor


@method
class Anchoring:
    """Contrasts the model with itself where the span is masked: w * f(x) + (1 - w) * f(x, masked).

    SPA of Tian and Zhang (2025), with w = `strength`. The second stream reads the same tokens, with
    a mask token in place of each of the span (the tokenizer's own, else its unknown, padding or
    end-of-text token), so that positions stay. The authors' package writes one mask token for a
    whole text and hides it from attention; here every token keeps its place, as in the paper. The
    plausibility threshold is ours, as `guidance` has it.
    """

    name: ClassVar[str] = "anchoring"
    kind: ClassVar[Kind] = Kind.STREAM
    source: ClassVar[str] = "SPA, Tian and Zhang 2025, arXiv 2408.09121"
    masks_span: ClassVar[bool] = True

    strength: float = parameter(
        "w; 1 changes nothing, 0 is the model without the span", number(0), "1.5"
    )
    plausibility: float = parameter(*PLAUSIBILITY, default=0.0)

    def other(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The same chat, of which the engine masks the span."""
        return tuple(messages)

    def guide(self, logits: Tensor, other: Tensor) -> Tensor:
        """Log-probabilities, float32 [row, vocabulary], from logits with the span and without."""
        return contrasted(logits, other, self.strength, self.plausibility)
