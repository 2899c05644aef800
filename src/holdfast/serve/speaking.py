"""The text of a reply while it is drawn: what can be told already, and where a stop string ends it.

A token's text is told once it is complete (a character may take several tokens), and once it
cannot be the beginning of a stop string. Whole tokens are told, so that what stands beside a text
(its mass, its log-probabilities) is always of the tokens whose texts joined are that text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tokenizers.decoders import DecodeStream

from holdfast.serve.generation import LiveReply, Token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A token with its text, which is "" where a later token completes its character."""

    token: Token
    text: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply, sent at once.

    Args:
        tokens: whose texts joined are `text`; the last text may be cut by a stop string.
        text: what is new of the reply.
        finish_reason: "stop" or "length" in the last piece, else None.
        end_mass: of the token that ended the reply, which has no text; None in other pieces, and
            where no token did or no trace is wanted.
        end_uniform: the same if every layer attended evenly.
    """

    tokens: tuple[Spoken, ...]
    text: str
    finish_reason: Finish | None = None
    end_mass: float | None = None
    end_uniform: float | None = None


class Speech:
    """Takes tokens as they are drawn, and says which can be told.

    Args:
        tokenizer: of the model that draws.
        stops: texts that end the reply, and are no part of it.

    Attributes:
        stopped: whether one of them has.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, stops: Sequence[str] = ()):
        self.stopped = False
        self._tokenizer = tokenizer.backend_tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._stops = tuple(stops)
        self._pending: list[Spoken] = []
        self._characters = 0  # of the reply so far, pending ones included

    def add(self, token: Token) -> tuple[Spoken, ...]:
        """Takes the next token."""
        text = self._decoder.step(self._tokenizer, token.token_id) or ""
        self._pending.append(Spoken(token, text))
        self._characters += len(text)
        return self._release() if text else ()

    def finish(self, reply: str) -> tuple[Spoken, ...]:
        """The rest of `reply`, the text of all tokens; bytes that never became a character
        are in it as replacement characters.
        """
        if missing := reply[self._characters :]:
            last = self._pending.pop() if self._pending else None
            if last is not None:
                self._pending.append(Spoken(last.token, last.text + missing))
        return self._release(last=True)

    def _release(self, last: bool = False) -> tuple[Spoken, ...]:
        if not self._stops:
            released, self._pending = tuple(self._pending), []
            return released
        text = "".join(spoken.text for spoken in self._pending)
        places = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        if places:
            self.stopped = True
            return self._take(min(places), cut=True)
        return self._take(len(text) if last else _certain(text, self._stops))

    def _take(self, characters: int, cut: bool = False) -> tuple[Spoken, ...]:
        """The pending tokens whose text ends within `characters`, and with `cut` what does of the
        next one's.
        """
        count = position = 0
        for spoken in self._pending:
            if position + len(spoken.text) > characters:
                break
            count, position = count + 1, position + len(spoken.text)
        while count < len(self._pending) and count and not self._pending[count - 1].text:
            count -= 1  # it begins a character of the token that stays
        taken, self._pending = self._pending[:count], self._pending[count:]
        if cut and position < characters:
            rest = self._pending[0]
            taken.append(Spoken(rest.token, rest.text[: characters - position]))
        return tuple(taken)


def _certain(text: str, stops: Sequence[str]) -> int:
    """How many characters of a text are part of no stop string, whatever follows."""
    return min(len(text) - _overlap(text, stop) for stop in stops)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that a stop string begins with."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0


async def speak(
    generation: LiveReply, tokenizer: PreTrainedTokenizerFast, stops: Sequence[str]
) -> AsyncIterator[Piece]:
    """A reply piece by piece, the last one with the reason of its end.

    Raises:
        Exception: the request's own error.
    """
    speech = Speech(tokenizer, stops)
    async for token in generation:
        spoken = speech.add(token)
        if speech.stopped:
            generation.cancel()
            yield _piece(spoken, "stop")
            return
        if spoken:
            yield _piece(spoken)
    reply = await generation.reply()
    spoken = speech.finish(reply.text)
    cut_off = reply.stop_reason == "length" and not speech.stopped
    whole, count = _piece(spoken, "length" if cut_off else "stop"), len(reply.token_ids or ())
    masses, trace = reply.token_masses, reply.trace
    if trace is not None and trace.uniform is not None and len(masses) > count:
        uniform = float(trace.uniform[:, count].mean())
        whole = replace(whole, end_mass=masses[count], end_uniform=uniform)
    yield whole


def _piece(tokens: tuple[Spoken, ...], finish_reason: Finish | None = None) -> Piece:
    text = tokens[0].text if len(tokens) == 1 else "".join(spoken.text for spoken in tokens)
    return Piece(tokens, text, finish_reason)
