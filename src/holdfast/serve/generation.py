"""The asyncio side of a request that the engine's thread answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from torch import Tensor

from holdfast.errors import ModelError
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, as it was drawn.

    Args:
        token_id: of the vocabulary.
        mass: mean over all heads of the mass on the span that it was drawn under; None unless the
            request is traced and has a span.
        uniform: the same if every layer attended evenly to the tokens that it sees.
        heads: the mass of each, float32 [layer, head].
        logprob: of the model under its methods, at temperature 1 and over the whole vocabulary;
            None unless wanted.
        top: the likeliest tokens and their log-probabilities, as many as were asked for.
    """

    token_id: int
    mass: float | None = None
    uniform: float | None = None
    heads: Tensor | None = None
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Update:
    """New output of a request after a step.

    Args:
        tokens: that were drawn.
        cached: tokens of its prompt that were not forwarded.
        reply: where it ended with one.
        error: where it ended with that.
    """

    tokens: tuple[Token, ...] = ()
    cached: int = 0
    reply: Reply | None = None
    error: Exception | None = None


class LiveReply:
    """A reply while it is generated; of one event loop, to be read by one task at a time.

    Args:
        rendered: the request, and its tokens.
        loop: in which it is read.
        give_up: frees its row.

    Attributes:
        prompt_ids: the tokens of the chat.
        span_ranges: those to hold on to: first and last (exclusive) of each run of them.
        cached_tokens: of the prompt, how many were not forwarded; 0 until the first token is drawn.
    """

    def __init__(
        self,
        rendered: Rendered,
        loop: asyncio.AbstractEventLoop,
        give_up: Callable[[LiveReply], None],
    ):
        self.rendered, self.loop = rendered, loop
        self.prompt_ids, self.span_ranges = rendered.prompt_ids, rendered.span_ranges
        self.cached_tokens = 0
        self._give_up = give_up
        self._tokens: deque[Token] = deque()
        self._reply: Reply | None = None
        self._error: Exception | None = None
        self._cancelled = False
        self._news, self._ended = asyncio.Event(), asyncio.Event()

    @property
    def done(self) -> bool:
        """Whether nothing more will come of it."""
        return self._cancelled or self._reply is not None or self._error is not None

    async def __aiter__(self) -> AsyncIterator[Token]:
        """The tokens, each once; raises the request's error behind those that were drawn."""
        while True:
            while self._tokens:
                yield self._tokens.popleft()
            if self.done:
                break
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            raise self._error

    async def reply(self) -> Reply:
        """The whole reply, once it has ended.

        Raises:
            ModelError: the request was cancelled.
            Exception: its own error, where it has one.
        """
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        if self._reply is None:
            raise ModelError("The request was cancelled, so there is no reply to it.")
        return self._reply

    def cancel(self) -> None:
        """Gives the reply up, with the tokens that nobody has taken yet; its row is free within a
        step. One that has ended stays as it is.
        """
        if not self.done:
            self._cancelled = True
            self._tokens.clear()
            self._tell_waiters()
            self._give_up(self)

    def receive(self, part: Update) -> None:
        """Takes what a step gave; called in its event loop."""
        if self._cancelled:
            return
        self._tokens += part.tokens
        self.cached_tokens = part.cached
        self._reply, self._error = part.reply, part.error
        self._tell_waiters()

    def _tell_waiters(self) -> None:
        self._news.set()
        if self.done:
            self._ended.set()
