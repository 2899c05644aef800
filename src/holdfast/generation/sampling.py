"""How the tokens of a reply are sampled, and why it stopped; does not import torch."""

from dataclasses import dataclass
from typing import TypedDict

from holdfast.validation.ranges import Range, whole_number

TEMPERATURES = Range(0, 2)
TOP_P = Range(0, 1, above_low=True, share=True)
PENALTIES = Range(-2, 2)
MAX_NEW_TOKENS_ALLOWED = 2**20  # longer than the context of almost any model
NO_CONTENT = ("refusal", "tool_calls", "empty")  # the stop reasons of replies without text


@dataclass(frozen=True)
class Sampling:
    """How tokens are sampled; the defaults are those of Li et al. (2024), section 3.

    Args:
        temperature: from 0 to 2, as in OpenAI's API; 0 picks the likeliest token (greedy).
        top_p: nucleus mass in (0, 1].
        max_new_tokens: from 1 to 1,048,576; a reply cut off here has the stop reason "length".

    Raises:
        ParameterOutOfRange: a value outside its range.
    """

    temperature: float = 1.0
    top_p: float = 0.9
    max_new_tokens: int = 400

    def __post_init__(self) -> None:
        temperature = TEMPERATURES.check("sampling", "temperature", self.temperature)
        top_p = TOP_P.check("sampling", "top_p", self.top_p)
        whole_number("sampling", "max_new_tokens", self.max_new_tokens, 1, MAX_NEW_TOKENS_ALLOWED)
        object.__setattr__(self, "temperature", temperature)
        object.__setattr__(self, "top_p", top_p)


@dataclass(frozen=True)
class Penalties:
    """Penalties on the logits of tokens that a reply already has, as in OpenAI's API.

    A token that was drawn c > 0 times in this reply loses `frequency * c + presence`, before the
    temperature applies. The prompt does not count.

    Args:
        frequency: from -2 to 2; 0 changes nothing, and below 0 makes repetition likelier.
        presence: the same range.

    Raises:
        ParameterOutOfRange: a value outside its range.
    """

    frequency: float = 0.0
    presence: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("frequency", self.frequency), ("presence", self.presence)):
            checked = PENALTIES.check("sampling", f"{name}_penalty", value)
            object.__setattr__(self, name, checked)

    def __bool__(self) -> bool:
        return bool(self.frequency or self.presence)


class SamplingValues(TypedDict, total=False):
    """Values of `Sampling` given by name."""

    temperature: float
    top_p: float
    max_new_tokens: int
