"""Methods that contrast two streams: guidance, AdaCAD, prompt strength and anchoring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from holdfast.chat.messages import Message
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import TEXT, method, number, parameter
from holdfast.methods.protocols import EditsLogits

if TYPE_CHECKING:
    from torch import Tensor


def _plausibility_parameter() -> Any:
    return parameter(
        "never draws a token whose probability under the prompt is less than this times that of"
        " the likeliest token",
        number(0, 1),
        default=0.0,
    )


def contrast_logits(
    logits: Tensor, second_logits: Tensor, scale: float | Tensor, plausibility: float = 0.0
) -> Tensor:
    """Returns log p_second + scale * (log p - log p_second), float32 [row, vocabulary].

    Tokens that the first stream gives less than `plausibility` times its best token's probability
    are never drawn (Li et al. 2022, arXiv 2210.15097). A token that only the second stream finds
    impossible cannot be contrasted: it keeps the first stream's probability at a scale of at least
    1, and has none below.

    Args:
        logits, second_logits: of the two streams, [row, vocabulary].
        scale: 1 is the first stream alone, 0 the second one; for all rows, or [row, 1].
        plausibility: in [0, 1]; 0 sets no threshold.
    """
    first = logits.float().log_softmax(-1)
    second = second_logits.float().log_softmax(-1)
    is_number = isinstance(scale, (int, float))
    combined = first if is_number and scale == 1 else second + scale * (first - second)
    # if a token is impossible in either, the difference is infinite or NaN
    if_impossible_in_second = -math.inf if is_number and scale < 1 else first
    combined = combined.where(second > -math.inf, if_impossible_in_second)
    combined = combined.masked_fill(first == -math.inf, -math.inf)
    if plausibility:
        threshold = first.amax(-1, keepdim=True) + math.log(plausibility)
        combined = combined.masked_fill(first < threshold, -math.inf)
    return combined


class TwoStreams(EditsLogits, Protocol):
    """A method whose second stream is the chat without its system prompts."""

    kind: ClassVar[MethodKind] = MethodKind.LOGITS
    masks_span: ClassVar[bool] = False

    def second_chat(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the chat without system prompts, the template's default one included."""
        return tuple(message for message in messages if message["role"] != "system")


@method
class Guidance(TwoStreams):
    """Contrasts the model with and without the system prompt: log p = log p_without + scale * (log
    p_with - log p_without).

    Li et al. (2024), equation 5, with alpha = `scale`. The stream without the prompt is forwarded
    in the same batch. Published uses add a plausibility threshold (Li et al. 2022, arXiv
    2210.15097): tokens that the model with the prompt gives less than `plausibility` times its best
    token's probability are never drawn; 0 sets none.
    """

    name: ClassVar[str] = "guidance"
    source: ClassVar[str] = "Li et al. 2024, eq. 5"

    scale: float = parameter(
        "alpha; 1 changes nothing, 0 is the model without the prompt", number(0), "1.5"
    )
    plausibility: float = _plausibility_parameter()

    def combine_logits(self, logits: Tensor, second_logits: Tensor) -> Tensor:
        """Returns log-probabilities, float32 [row, vocabulary]."""
        return contrast_logits(logits, second_logits, self.scale, self.plausibility)


@method
class AdaCad(TwoStreams):
    """Contrasts the model with and without the system prompt, the more the two disagree.

    AdaCAD of Wang et al. (2024): log p_with + alpha * (log p_with - log p_without), as `guidance`
    with a scale of 1 + alpha, where alpha is the Jensen-Shannon divergence of the two distributions
    of this token, with logarithms to base 2, so from 0 to 1. The authors contrast with and without
    a retrieved context; here it is the system prompt. `strength` is ours.
    """

    name: ClassVar[str] = "adacad"
    source: ClassVar[str] = "AdaCAD, Wang et al. 2024, arXiv 2409.07394"

    strength: float = parameter(
        "a factor on alpha; 0 changes nothing, 1 is the paper's", number(0), "1", default=1.0
    )

    def combine_logits(self, logits: Tensor, second_logits: Tensor) -> Tensor:
        """Returns log-probabilities, float32 [row, vocabulary]."""
        import torch

        if self.strength == 0:
            return contrast_logits(logits, second_logits, 1.0)
        first = logits.float().log_softmax(-1)
        second = second_logits.float().log_softmax(-1)
        middle = torch.logaddexp(first, second) - math.log(2)
        divergence = _divergence(first, middle) + _divergence(second, middle)
        alpha = divergence.sum(-1, keepdim=True) / (2 * math.log(2))
        return contrast_logits(logits, second_logits, 1 + self.strength * alpha.clamp(min=0))


def _divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Returns each token's term of the Kullback-Leibler divergence of p from q; 0 where p is 0."""
    return (log_p - log_q).where(log_p > -math.inf, 0.0) * log_p.exp()


@method
class PromptStrength(TwoStreams):
    """Contrasts the model under its system prompt with itself under a default prompt.

    log p = log p_default + scale * (log p - log p_default): system prompt strength of Dong et al.
    (2026), which scales what the target prompt adds to a default prompt. Only the abstract was
    available: it is not known where the authors' alpha starts, and `scale` equals it if theirs is 1
    for the unsteered model. The plausibility threshold is not from the paper: `guidance`
    has the same one. A chat without a system prompt is not changed.
    """

    name: ClassVar[str] = "prompt-strength"
    source: ClassVar[str] = "Dong et al. 2026, arXiv 2601.06403"

    scale: float = parameter(
        "alpha; 1 changes nothing, 0 is the model under the default prompt", number(0), "1.5"
    )
    default: str = parameter(
        "the prompt to contrast with, in double quotes",
        TEXT,
        default="You are a helpful assistant.",
    )
    plausibility: float = _plausibility_parameter()

    def second_chat(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the chat with the default prompt in place of its system messages."""
        chat: list[Message] = []
        has_default = False
        for message in messages:
            if message["role"] != "system":
                chat.append(message)
            elif not has_default:
                chat.append({**message, "content": self.default})
                has_default = True
        return tuple(chat)

    def combine_logits(self, logits: Tensor, second_logits: Tensor) -> Tensor:
        """Returns log-probabilities, float32 [row, vocabulary]."""
        return contrast_logits(logits, second_logits, self.scale, self.plausibility)


@method
class Anchoring(TwoStreams):
    """Contrasts the model with itself where the span is masked: w * f(x) + (1 - w) * f(x, masked).

    SPA of Tian and Zhang (2025), with w = `strength`. The second stream reads the same tokens, with
    a mask token in place of each span token (the tokenizer's own, else its unknown, padding or
    end-of-text token), so that positions stay. The authors' package writes one mask token for a
    whole text and hides it from attention; here every token keeps its place, as in the paper. The
    plausibility threshold is not from the paper: `guidance` has the same one.
    """

    name: ClassVar[str] = "anchoring"
    source: ClassVar[str] = "SPA, Tian and Zhang 2025, arXiv 2408.09121"
    masks_span: ClassVar[bool] = True

    strength: float = parameter(
        "w; 1 changes nothing, 0 is the model without the span", number(0), "1.5"
    )
    plausibility: float = _plausibility_parameter()

    def second_chat(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the same chat; the engine masks its span."""
        return tuple(messages)

    def combine_logits(self, logits: Tensor, second_logits: Tensor) -> Tensor:
        """Returns log-probabilities, float32 [row, vocabulary]."""
        return contrast_logits(logits, second_logits, self.strength, self.plausibility)
