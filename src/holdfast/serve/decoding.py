"""Decodes the text of a reply as its tokens are drawn, and releases it once it is certain."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tokenizers.decoders import DecodeStream

from holdfast.models.requests import Reply, Token
from holdfast.serve.tool_calls import ParsedCall

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply; only the last piece has the fields after `cached`.

    Args:
        tokens: its decoded tokens; a stop string may cut the text of the last one.
        cached: the tokens of the chat that did not go through the model, as their
            keys and values were kept from an earlier request.
        finish_reason: why the reply ended.
        end_mass: the mass at the token that ended the reply; None if no token did, or if the reply
            is not traced.
        end_uniform: the same mass under uniform attention.
        calls: the tool calls in the whole text.
        unparsed: whether the text begins a tool call, but none could be parsed.
    """

    tokens: tuple[Token, ...] = ()
    cached: int = 0
    finish_reason: Finish | None = None
    end_mass: float | None = None
    end_uniform: float | None = None
    calls: tuple[ParsedCall, ...] = ()
    unparsed: bool = False

    @property
    def text(self) -> str:
        """The text of its tokens."""
        tokens = self.tokens
        return tokens[0].text if len(tokens) == 1 else "".join(token.text for token in tokens)


class TextDecoder:
    """Decodes a reply, and releases tokens once their text is certain.

    Args:
        tokenizer: the model's tokenizer.
        stops: texts that end the reply, and are not part of it.
        special: whether special tokens are part of the text.

    Attributes:
        stopped: whether a stop string has ended the reply.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        stops: Sequence[str] = (),
        *,
        special: bool = False,
    ):
        self.stopped = False
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = DecodeStream(skip_special_tokens=not special)
        self._stops = tuple(stops)
        self._pending: list[Token] = []
        self._num_characters = 0  # of the reply so far, including the pending tokens

    def add(self, token: Token) -> tuple[Token, ...]:
        """Adds the next token; returns the tokens whose text is now certain."""
        text = self._decoder.step(self._tokenizer.backend_tokenizer, token.token_id) or ""
        self._pending.append(replace(token, text=text))
        self._num_characters += len(text)
        return self._release() if text else ()

    def finish(self, reply: Reply) -> tuple[Token, ...]:
        """Returns the remaining tokens of the reply, now whole; invalid bytes become U+FFFD."""
        text = reply.text
        if self._special:
            text = str(self._tokenizer.decode(list(reply.token_ids or ())))
        if (missing := text[self._num_characters :]) and self._pending:
            last = self._pending.pop()
            self._pending.append(replace(last, text=last.text + missing))
        return self._release(is_whole=True)

    def _release(self, *, is_whole: bool = False) -> tuple[Token, ...]:
        """Pops the pending tokens that cannot be part of a stop string any more, up to the first
        stop string; if the reply is whole, that is all of them.
        """
        if not self._stops:
            released = tuple(self._pending)
            self._pending = []
            return released
        text = "".join(token.text for token in self._pending)
        positions = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        if positions:
            self.stopped = True
            return self._pop_text(min(positions))
        certain = len(text)
        if not is_whole:
            certain -= max(_overlap(text, stop) for stop in self._stops)
        return self._pop_tokens_within(certain)

    def _pop_tokens_within(self, length: int) -> tuple[Token, ...]:
        """Pops the pending tokens that end within the first `length` characters of their text."""
        ends = itertools.accumulate(len(token.text) for token in self._pending)
        count = sum(end <= length for end in ends)
        # a token without text begins a character that the next token completes, so it waits for it
        while 0 < count < len(self._pending) and not self._pending[count - 1].text:
            count -= 1
        popped = tuple(self._pending[:count])
        self._pending = self._pending[count:]
        return popped

    def _pop_text(self, length: int) -> tuple[Token, ...]:
        """Pops the first `length` characters of the pending text; the last token may be cut."""
        popped: list[Token] = []
        while length > 0:
            token = self._pending.pop(0)
            popped.append(replace(token, text=token.text[:length]))
            length -= len(token.text)
        return tuple(popped)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest suffix of `text` that is a proper prefix of `stop`."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


async def decode_reply(
    events: AsyncGenerator[Token | Reply], decoder: TextDecoder
) -> AsyncGenerator[Delta]:
    """Decodes the stream of a reply's tokens into pieces; closes the stream at the end.

    The last piece has the reason why the reply ended.
    """
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Reply):
                yield _last_delta(event, decoder)
                return
            tokens = decoder.add(event)
            if decoder.stopped:
                yield Delta(tokens, event.cached, "stop")
                return
            if tokens:
                yield Delta(tokens, event.cached)


async def join_deltas(deltas: AsyncGenerator[Delta]) -> Delta:
    """Joins the pieces of a reply into one."""
    tokens = list[Token]()
    last = Delta()
    async with aclosing(deltas):
        async for last in deltas:
            tokens += last.tokens
    return replace(last, tokens=tuple(tokens))


def _last_delta(reply: Reply, decoder: TextDecoder) -> Delta:
    """The last piece of a reply, once it is whole."""
    tokens = decoder.finish(reply)
    is_cut = reply.stop_reason == "length" and not decoder.stopped
    delta = Delta(tokens, reply.cached, "length" if is_cut else "stop")
    masses = reply.token_masses
    trace = reply.trace
    end = len(reply.token_ids or ())  # the token that ended the reply comes after the reply's own
    if trace is None or trace.uniform is None or len(masses) <= end:
        return delta
    uniform = float(trace.uniform[:, end].mean())
    return replace(delta, end_mass=masses[end], end_uniform=uniform)
