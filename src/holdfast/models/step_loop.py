"""Lets tasks wait for the replies of an engine that is stepped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Request

# How often other tasks get to run after a reply, which may lead several of them, one after the
# other, to their next requests; those join the next step together.
_TURNS_OF_OTHERS = 10


class Ongoing(Protocol):
    """A reply that is being generated."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    def take(self) -> list[int]:
        """The tokens drawn since the last call."""

    def result(self) -> Reply:
        """The reply; raises its error."""


ReplyT = TypeVar("ReplyT", bound=Ongoing)


class Stepped(Protocol[ReplyT]):
    """An engine that computes only when it is stepped."""

    def begin(
        self, requests: Sequence[Request | Rendered], streamed: Sequence[bool]
    ) -> Sequence[ReplyT | Exception]:
        """Queues requests; one that is refused is answered with its error.

        `streamed` says whose tokens are wanted as they are drawn.
        """

    def step(self) -> Sequence[ReplyT]:
        """Makes a pass; returns the replies that have new tokens or have ended."""

    def cancel(self, ongoing: ReplyT, /) -> None:
        """Frees what an unfinished reply uses."""


@dataclass(eq=False)
class _Waiter(Generic[ReplyT]):
    """A task that waits for a reply."""

    request: Request | Rendered
    reply: asyncio.Future[Reply]
    tokens: asyncio.Queue[int | None] | None  # as they are drawn, then None; None: not wanted
    ongoing: ReplyT | None = None  # once it is queued

    def end(self, outcome: Reply | Exception) -> None:
        if not self.reply.done():  # it is done if the task was cancelled
            if isinstance(outcome, Exception):
                self.reply.set_exception(outcome)
            else:
                self.reply.set_result(outcome)
        if self.tokens is not None:
            self.tokens.put_nowait(None)


class StepLoop(Generic[ReplyT]):
    """Steps an engine as long as any task waits for it; in between, the tasks go on.

    A step is made once every task waits, so that what they ask joins the batch together.
    """

    def __init__(self, engine: Stepped[ReplyT]):
        self._engine = engine
        self._new: list[_Waiter[ReplyT]] = []  # not queued yet
        self._waiting: dict[ReplyT, _Waiter[ReplyT]] = {}
        self._stepping: asyncio.Task[None] | None = None

    async def generate(self, request: Request | Rendered) -> Reply:
        """The reply to a request."""
        waiter = self._add(request, None)
        try:
            return await waiter.reply
        finally:
            self._remove(waiter)

    async def stream(self, request: Request | Rendered) -> AsyncGenerator[int | Reply]:
        """Yields every token id of a reply as it is drawn, and the reply last."""
        tokens = asyncio.Queue[int | None]()
        waiter = self._add(request, tokens)
        try:
            while (token := await tokens.get()) is not None:
                yield token
            yield await waiter.reply
        finally:
            self._remove(waiter)

    async def finish(self) -> None:
        """Waits until no step is under way any more."""
        if self._stepping is not None:
            await asyncio.wait([self._stepping])

    def _add(
        self, request: Request | Rendered, tokens: asyncio.Queue[int | None] | None
    ) -> _Waiter[ReplyT]:
        loop = asyncio.get_running_loop()
        waiter = _Waiter[ReplyT](request, loop.create_future(), tokens)
        self._new.append(waiter)
        if self._stepping is None:
            self._stepping = loop.create_task(self._step_while_awaited())
        return waiter

    def _remove(self, waiter: _Waiter[ReplyT]) -> None:
        """Cancels the reply of a task that no longer waits; one that has ended stays as it is."""
        if waiter in self._new:
            self._new.remove(waiter)
        if waiter.ongoing is not None and self._waiting.pop(waiter.ongoing, None) is not None:
            self._engine.cancel(waiter.ongoing)
        waiter.reply.cancel()

    async def _step_while_awaited(self) -> None:
        ended = True  # whether a reply ended, which may lead to further requests
        try:
            while ended or self._waiting:
                for _ in range(_TURNS_OF_OTHERS if ended else 1):
                    await asyncio.sleep(0)
                ended = self._begin_new()
                if self._waiting:
                    ended |= self._step()
        finally:
            self._stepping = None
            for ongoing, waiter in self._waiting.items():  # only if this task was interrupted
                self._engine.cancel(ongoing)
                waiter.reply.cancel()
            self._waiting.clear()

    def _begin_new(self) -> bool:
        """Queues new requests; returns whether any was refused."""
        new, self._new = self._new, []
        refused = False
        requests = [waiter.request for waiter in new]
        streamed = [waiter.tokens is not None for waiter in new]
        begun: Sequence[ReplyT | Exception]
        try:
            begun = self._engine.begin(requests, streamed)
        except Exception as error:
            begun = [error] * len(new)
        for waiter, ongoing in zip(new, begun, strict=True):
            if isinstance(ongoing, Exception):
                waiter.end(ongoing)
                refused = True
            else:
                waiter.ongoing = ongoing
                self._waiting[ongoing] = waiter
        return refused

    def _step(self) -> bool:
        """Makes a step, and tells the tasks; returns whether any reply ended."""
        error: Exception | None = None
        try:
            changed = self._engine.step()
        except Exception as failure:  # of the engine, which ends all that is under way
            changed, error = list(self._waiting), failure
        any_ended = False
        for ongoing in changed:
            waiter = self._waiting.get(ongoing)
            if waiter is None:
                continue
            if waiter.tokens is not None:
                for token in ongoing.take():
                    waiter.tokens.put_nowait(token)
            if error is not None or ongoing.done:
                del self._waiting[ongoing]
                waiter.end(error or _outcome(ongoing))
                any_ended = True
        return any_ended


def _outcome(ongoing: Ongoing) -> Reply | Exception:
    try:
        return ongoing.result()
    except Exception as error:
        return error
