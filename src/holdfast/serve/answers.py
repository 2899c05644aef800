"""OpenAI's shapes of an answer, whole and in chunks, with Holdfast's fields beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.serve.asked import Asked
from holdfast.serve.details import Details, shares
from holdfast.serve.generation import Generation
from holdfast.serve.speaking import Piece


@dataclass(frozen=True)
class Head:
    """What an answer and all its chunks begin with.

    Args:
        id: of the answer.
        created: seconds since 1970.
        model: that is served.
        fingerprint: of its weights and template.
    """

    id: str
    created: int
    model: str
    fingerprint: str

    def told(self, kind: str) -> dict[str, Any]:
        """The fields, with the kind of object."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


class Shapes(Protocol):
    """What differs between chat completions and completions."""

    prefix: str  # of ids
    whole: str  # kind of object
    chunk: str

    def choice(self, index: int, piece: Piece, details: Details) -> dict[str, Any]:
        """A whole reply."""

    def delta(self, index: int, piece: Piece, details: Details, first: bool) -> dict[str, Any]:
        """A piece of one."""


class ChatShapes:
    """`/v1/chat/completions`."""

    prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def choice(self, index: int, piece: Piece, details: Details) -> dict[str, Any]:
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        return {"index": index, "message": message} | self._rest(piece, details)

    def delta(self, index: int, piece: Piece, details: Details, first: bool) -> dict[str, Any]:
        told: dict[str, Any] = {"role": "assistant"} if first else {}
        if piece.text or first:
            told["content"] = piece.text
        return {"index": index, "delta": told} | self._rest(piece, details)

    def _rest(self, piece: Piece, details: Details) -> dict[str, Any]:
        rest: dict[str, Any] = {
            "logprobs": details.chat_logprobs(piece.tokens),
            "finish_reason": piece.finish_reason,
        }
        return _with_masses(rest, piece, details)


class CompletionShapes:
    """`/v1/completions`."""

    prefix, whole, chunk = "cmpl-", "text_completion", "text_completion"

    def choice(self, index: int, piece: Piece, details: Details) -> dict[str, Any]:
        rest: dict[str, Any] = {
            "index": index,
            "text": piece.text,
            "logprobs": details.completion_logprobs(piece.tokens),
            "finish_reason": piece.finish_reason,
        }
        return _with_masses(rest, piece, details)

    def delta(self, index: int, piece: Piece, details: Details, first: bool) -> dict[str, Any]:
        return self.choice(index, piece, details)


def _with_masses(choice: dict[str, Any], piece: Piece, details: Details) -> dict[str, Any]:
    if details.trace:
        told: dict[str, Any] = {"tokens": details.masses(piece.tokens)}
        if piece.end_mass is not None:
            told["end"] = shares(piece.end_mass, piece.end_uniform)
        choice["holdfast"] = told
    return choice


def usage(prompts: Sequence[Generation], generated: int) -> dict[str, Any]:
    """Tokens of an answer.

    Args:
        prompts: a generation of each prompt.
        generated: tokens that were drawn and told.
    """
    read = sum(len(generation.prompt_ids) for generation in prompts)
    cached = sum(generation.cached_tokens for generation in prompts)
    return {
        "prompt_tokens": read,
        "completion_tokens": generated,
        "total_tokens": read + generated,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def applied(asked: Asked, generations: Sequence[Generation]) -> dict[str, Any]:
    """What Holdfast says of an answer as a whole."""
    told = asked.steered.told(asked.requests)
    told["span"] = [list(span) for span in generations[0].span_ranges]
    return told | ({"round": asked.round} if asked.round else {})
