"""The text of a reply, decoded as its tokens are drawn and released once it is certain."""

from __future__ import annotations

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
    """A piece of a reply, sent at once; only the last one has the fields after `cached`."""

    tokens: tuple[Token, ...] = ()  # decoded; the last one's text may be cut by a stop string
    cached: int = 0  # tokens of the chat that did not go through the model, as in `Reply`
    finish_reason: Finish | None = None
    end_mass: float | None = None  # of the token that ended the reply, if one did and it is traced
    end_uniform: float | None = None  # the same under uniform attention
    calls: tuple[ParsedCall, ...] = ()  # tool calls in the whole text
    unparsed: bool = False  # whether the text begins a tool call, and none could be parsed

    @property
    def text(self) -> str:
        """The text of its tokens."""
        tokens = self.tokens
        return tokens[0].text if len(tokens) == 1 else "".join(token.text for token in tokens)


class TextDecoder:
    """Decodes a reply, and releases tokens once their text is certain.

    Args:
        tokenizer: of the model.
        stops: texts that end the reply, and are not part of it.
        special: whether special tokens count as text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, stops: Sequence[str] = (), special: bool = False
    ):
        self.stopped = False  # whether a stop string has ended the reply
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = DecodeStream(skip_special_tokens=not special)
        self._stops = tuple(stops)
        self._pending: list[Token] = []
        self._characters = 0  # of the reply so far, pending ones included

    def add(self, token: Token) -> tuple[Token, ...]:
        """Adds the next token; returns the tokens whose text is now certain."""
        text = self._decoder.step(self._tokenizer.backend_tokenizer, token.token_id) or ""
        self._pending.append(replace(token, text=text))
        self._characters += len(text)
        return self._release() if text else ()

    def finish(self, reply: Reply) -> tuple[Token, ...]:
        """The remaining tokens of the whole reply; invalid bytes become U+FFFD."""
        text = reply.text
        if self._special:
            text = str(self._tokenizer.decode(list(reply.token_ids or ())))
        if (missing := text[self._characters :]) and self._pending:
            last = self._pending.pop()
            self._pending.append(replace(last, text=last.text + missing))
        return self._release(last=True)

    def _release(self, last: bool = False) -> tuple[Token, ...]:
        if not self._stops:
            released = tuple(self._pending)
            self._pending = []
            return released
        text = "".join(token.text for token in self._pending)
        positions = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        if positions:
            self.stopped = True
            return self._take(min(positions), cut=True)
        open_end = 0 if last else max(_overlap(text, stop) for stop in self._stops)
        return self._take(len(text) - open_end)

    def _take(self, characters: int, cut: bool = False) -> tuple[Token, ...]:
        """Pops pending tokens whose text ends within `characters`; with `cut`, part of the next."""
        count = position = 0
        for token in self._pending:
            if position + len(token.text) > characters:
                break
            count = count + 1
            position = position + len(token.text)
        while count < len(self._pending) and count and not self._pending[count - 1].text:
            count -= 1  # it begins a character that a remaining token completes
        taken = self._pending[:count]
        self._pending = self._pending[count:]
        if cut and position < characters:
            rest = self._pending[0]
            taken.append(replace(rest, text=rest.text[: characters - position]))
        return tuple(taken)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest suffix of `text` that is a proper prefix of `stop`."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


async def decode_reply(
    events: AsyncGenerator[Token | Reply], decoder: TextDecoder
) -> AsyncGenerator[Delta]:
    """Yields a reply piece by piece, from the stream of its tokens, which is closed in the end.

    The last piece says why the reply ended.
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


async def joined(deltas: AsyncGenerator[Delta]) -> Delta:
    """The pieces of a reply as one."""
    tokens = list[Token]()
    last = Delta()
    async with aclosing(deltas):
        async for last in deltas:
            tokens += last.tokens
    return replace(last, tokens=tuple(tokens))


def _last_delta(reply: Reply, decoder: TextDecoder) -> Delta:
    tokens = decoder.finish(reply)
    cut_off = reply.stop_reason == "length" and not decoder.stopped
    delta = Delta(tokens, reply.cached, "length" if cut_off else "stop")
    masses = reply.token_masses
    trace = reply.trace
    count = len(reply.token_ids or ())
    if trace is None or trace.uniform is None or len(masses) <= count:
        return delta
    uniform = float(trace.uniform[:, count].mean())
    return replace(delta, end_mass=masses[count], end_uniform=uniform)
