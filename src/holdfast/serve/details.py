"""Per-token details beside the text: log-probabilities, and the mass on the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.serve.speaking import Spoken

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DIGITS = 4  # of masses
_LOWEST = -9999.0  # in place of minus infinity, which JSON lacks; OpenAI's own number
_REPLACED = "\ufffd"  # what a tokenizer writes for bytes that are no character


class Details:
    """The details of the tokens of one choice, as they come.

    Args:
        tokenizer: of the model.
        top: likeliest tokens told per place; None: no log-probabilities.
        trace: False, True for the mean mass, "heads" for every head as well.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        top: int | None,
        trace: bool | str,
    ):
        self.top, self.trace = top, trace
        self._tokenizer = tokenizer
        self._characters = 0

    def masses(self, tokens: Sequence[Spoken]) -> list[dict[str, Any]]:
        """Text and mass of each token, and the mass if every layer attended evenly to the tokens
        that it sees.
        """
        told = []
        for spoken in tokens:
            token = spoken.token
            entry: dict[str, Any] = {
                "text": spoken.text,
                **shares(token.mass, token.uniform),
            }
            if self.trace == "heads" and token.heads is not None:
                entry["heads"] = [
                    [round(head, _DIGITS) for head in layer] for layer in token.heads.tolist()
                ]
            told.append(entry)
        return told

    def chat_logprobs(self, tokens: Sequence[Spoken]) -> dict[str, Any] | None:
        """As `/v1/chat/completions` tells them; None where none are wanted."""
        if self.top is None:
            return None
        content = [
            self._entry(spoken.token.token_id, spoken.token.logprob)
            | {"top_logprobs": [self._entry(*pair) for pair in spoken.token.top]}
            for spoken in tokens
        ]
        return {"content": content, "refusal": None}

    def completion_logprobs(self, tokens: Sequence[Spoken]) -> dict[str, Any] | None:
        """As `/v1/completions` tells them, None where none are wanted; of several tokens with the
        same text the likeliest is told.
        """
        if self.top is None:
            return None
        offsets = []
        for spoken in tokens:
            offsets.append(self._characters)
            self._characters += len(spoken.text)
        return {
            "tokens": [self._text(spoken.token.token_id) for spoken in tokens],
            "token_logprobs": [_finite(spoken.token.logprob) for spoken in tokens],
            "top_logprobs": [
                {self._text(name): _finite(logprob) for name, logprob in reversed(spoken.token.top)}
                for spoken in tokens
            ],
            "text_offset": offsets,
        }

    def _entry(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        text = self._text(token_id)
        return {
            "token": text,
            "logprob": _finite(logprob),
            "bytes": None if _REPLACED in text else list(text.encode()),
        }

    def _text(self, token_id: int) -> str:
        return str(self._tokenizer.decode([token_id]))


def shares(mass: float | None, uniform: float | None) -> dict[str, Any]:
    """The mass of a token, and that of uniform attention."""
    shares = {"mass": mass, "uniform": uniform}
    return {name: share and round(share, _DIGITS) for name, share in shares.items()}


def _finite(logprob: float | None) -> float:
    return _LOWEST if logprob is None else max(logprob, _LOWEST)
