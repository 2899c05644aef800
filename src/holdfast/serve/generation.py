"""Replies in progress: the engine thread's updates, and the text made from them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tokenizers.decoders import DecodeStream
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from holdfast.errors import ModelError
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply
from holdfast.serve.tool_calls import CallParser, ParsedCall


@dataclass(frozen=True, slots=True)
class Token:
    """A drawn token of a reply; masses are None unless the request is traced and has a span."""

    token_id: int
    mass: float | None = None  # on the span when it was drawn, mean over all heads
    uniform: float | None = None  # the same if every layer attended evenly to the tokens it sees
    heads: Tensor | None = None  # the mass in each head, float32 [layer, head]
    logprob: float | None = None  # at temperature 1 over the whole vocabulary; None unless asked
    top: tuple[tuple[int, float], ...] = ()  # the likeliest tokens and their log-probabilities
    text: str = ""  # once decoded; "" if a later token completes its character


@dataclass(frozen=True)
class Update:
    """New output of a request after a step, with its reply or error if it has ended."""

    tokens: tuple[Token, ...] = ()
    cached: int = 0  # prompt tokens that were not forwarded
    reply: Reply | None = None
    error: Exception | None = None


class LiveReply:
    """A reply being generated, for one task of one event loop; `give_up` frees its row."""

    def __init__(
        self,
        rendered: Rendered,
        loop: asyncio.AbstractEventLoop,
        give_up: Callable[[LiveReply], None],
    ):
        self.rendered, self.loop = rendered, loop
        self.prompt_ids, self.span_ranges = rendered.prompt_ids, rendered.span_ranges
        self._give_up = give_up
        self._tokens: deque[Token] = deque()
        self._latest = Update()
        self._cancelled = False
        self._news, self._ended = asyncio.Event(), asyncio.Event()

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were not forwarded; 0 until the first token is drawn."""
        return self._latest.cached

    @property
    def done(self) -> bool:
        """Whether the reply has ended or was cancelled."""
        latest = self._latest
        return self._cancelled or latest.reply is not None or latest.error is not None

    async def __aiter__(self) -> AsyncIterator[Token]:
        """Yields each token once, then raises the request's error, if any."""
        while True:
            while self._tokens:
                yield self._tokens.popleft()
            if self.done:
                break
            self._news.clear()
            await self._news.wait()
        if self._latest.error is not None:
            raise self._latest.error

    async def reply(self) -> Reply:
        """Waits for the whole reply; raises its error, or `ModelError` if it was cancelled."""
        await self._ended.wait()
        if self._latest.error is not None:
            raise self._latest.error
        if self._latest.reply is None:
            raise ModelError("The request was cancelled, so there is no reply to it.")
        return self._latest.reply

    def cancel(self) -> None:
        """Cancels an unfinished reply and drops unread tokens; its row is free within a step."""
        if not self.done:
            self._cancelled = True
            self._tokens.clear()
            self._wake_waiters()
            self._give_up(self)

    def receive(self, update: Update) -> None:
        """Receives the update of a step; called in its event loop."""
        if not self._cancelled:
            self._tokens += update.tokens
            self._latest = update
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        self._news.set()
        if self.done:
            self._ended.set()


Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply, sent at once; only the last piece sets the fields after `tokens`."""

    tokens: tuple[Token, ...] = ()  # the last one's text may be cut by a stop string
    finish_reason: Finish | None = None
    end_mass: float | None = None  # of the token that ended the reply, if one did and it is traced
    end_uniform: float | None = None  # the same if every layer attended evenly
    calls: tuple[ParsedCall, ...] = ()  # tool calls in the whole text

    @property
    def text(self) -> str:
        """The text of its tokens."""
        tokens = self.tokens
        return tokens[0].text if len(tokens) == 1 else "".join(token.text for token in tokens)


class Speech:
    """Releases tokens once their text is certain; `special`: special tokens count as text."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, stops: Sequence[str] = (), special: bool = False
    ):
        self.stopped = False  # whether a stop string has ended the reply
        self._tokenizer = tokenizer.backend_tokenizer
        self._decoder = DecodeStream(skip_special_tokens=not special)
        self._stops = tuple(stops)
        self._pending: list[Token] = []
        self._characters = 0  # of the reply so far, pending ones included

    def add(self, token: Token) -> tuple[Token, ...]:
        """Adds the next token; returns the tokens whose text is now certain."""
        text = self._decoder.step(self._tokenizer, token.token_id) or ""
        self._pending.append(replace(token, text=text))
        self._characters += len(text)
        return self._release() if text else ()

    def finish(self, reply: str) -> tuple[Token, ...]:
        """The remaining tokens of `reply`, the whole text; invalid bytes become U+FFFD."""
        if (missing := reply[self._characters :]) and self._pending:
            last = self._pending.pop()
            self._pending.append(replace(last, text=last.text + missing))
        return self._release(last=True)

    def _release(self, last: bool = False) -> tuple[Token, ...]:
        if not self._stops:
            released, self._pending = tuple(self._pending), []
            return released
        text = "".join(token.text for token in self._pending)
        places = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        if places:
            self.stopped = True
            return self._take(min(places), cut=True)
        open_end = 0 if last else max(_overlap(text, stop) for stop in self._stops)
        return self._take(len(text) - open_end)

    def _take(self, characters: int, cut: bool = False) -> tuple[Token, ...]:
        """Pops pending tokens whose text ends within `characters`; with `cut`, part of the next."""
        count = position = 0
        for token in self._pending:
            if position + len(token.text) > characters:
                break
            count, position = count + 1, position + len(token.text)
        while count < len(self._pending) and count and not self._pending[count - 1].text:
            count -= 1  # it begins a character that a remaining token completes
        taken, self._pending = self._pending[:count], self._pending[count:]
        if cut and position < characters:
            rest = self._pending[0]
            taken.append(replace(rest, text=rest.text[: characters - position]))
        return tuple(taken)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest suffix of `text` that is a proper prefix of `stop`."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


async def speak(
    generation: LiveReply,
    tokenizer: PreTrainedTokenizerFast,
    stops: Sequence[str],
    parser: CallParser | None = None,
) -> AsyncIterator[Piece]:
    """Yields a reply piece by piece, or raises its error; the last piece says why the reply ended
    and, with a parser, has its tool calls.
    """
    text = ""
    async for piece in _spoken(generation, tokenizer, stops, parser is not None):
        text += piece.text
        if parser is not None and piece.finish_reason == "stop":
            rendered = generation.rendered
            calls = parser.parse(text, rendered.prompts[0].text, rendered.request.tools)
            if calls:
                piece = replace(piece, finish_reason="tool_calls", calls=tuple(calls))
        yield piece


async def _spoken(
    generation: LiveReply, tokenizer: PreTrainedTokenizerFast, stops: Sequence[str], special: bool
) -> AsyncIterator[Piece]:
    speech = Speech(tokenizer, stops, special)
    async for token in generation:
        tokens = speech.add(token)
        if speech.stopped:
            generation.cancel()
            yield Piece(tokens, "stop")
            return
        if tokens:
            yield Piece(tokens)
    reply = await generation.reply()
    tokens = speech.finish(
        str(tokenizer.decode(list(reply.token_ids or ()))) if special else reply.text
    )
    cut_off = reply.stop_reason == "length" and not speech.stopped
    last, count = Piece(tokens, "length" if cut_off else "stop"), len(reply.token_ids or ())
    masses, trace = reply.token_masses, reply.trace
    if trace is not None and trace.uniform is not None and len(masses) > count:
        uniform = float(trace.uniform[:, count].mean())
        last = replace(last, end_mass=masses[count], end_uniform=uniform)
    yield last
