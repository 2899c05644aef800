"""Lets tasks wait for the replies of an engine that is stepped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Request, Token

# How often other tasks get to run after a reply, which may lead several of them, one after the
# other, to their next requests; those join the next step together.
_TURNS_OF_OTHERS = 10


class Ongoing(Protocol):
    """A reply that is being generated."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

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

    def take(self, replies: Sequence[ReplyT], /) -> Sequence[Sequence[Token]]:
        """The tokens of each reply since the last call."""

    def cancel(self, ongoing: ReplyT, /) -> None:
        """Frees what an unfinished reply uses."""


@dataclass(eq=False)
class _Waiter(Generic[ReplyT]):
    """A task that waits for a reply."""

    request: Request | Rendered
    reply: asyncio.Future[Reply]
    tokens: asyncio.Queue[Token | None] | None  # as they are drawn, then None; None: not wanted
    ongoing: ReplyT | None = None  # once it is queued; used only where the engine computes

    def end(self, outcome: Reply | Exception) -> None:
        if not self.reply.done():  # it is done if the task was cancelled
            if isinstance(outcome, Exception):
                self.reply.set_exception(outcome)
            else:
                self.reply.set_result(outcome)
        if self.tokens is not None:
            self.tokens.put_nowait(None)


@dataclass(frozen=True)
class _Update(Generic[ReplyT]):
    """The tokens and the outcome that a pass brought to a task."""

    waiter: _Waiter[ReplyT]
    tokens: Sequence[Token] = ()
    outcome: Reply | Exception | None = None  # None: the reply goes on


class StepLoop(Generic[ReplyT]):
    """Steps an engine as long as any task waits for it.

    Without an executor, a step is made once every task waits, so that what they ask joins the batch
    together. With an executor, which has a single thread, the engine computes in that thread while
    the event loop goes on; what tasks ask and cancel in the meantime takes effect at the next step.
    """

    def __init__(self, engine: Stepped[ReplyT], executor: Executor | None = None):
        self._engine, self._executor = engine, executor
        self._waiters: set[_Waiter[ReplyT]] = set()
        self._stepping: asyncio.Task[None] | None = None
        # passed on to where the engine computes
        self._new: deque[_Waiter[ReplyT]] = deque()
        self._left: deque[_Waiter[ReplyT]] = deque()  # no longer wait, but may still have rows
        self._ongoing: dict[ReplyT, _Waiter[ReplyT]] = {}  # used only there

    async def generate(self, request: Request | Rendered) -> Reply:
        """The reply to a request."""
        waiter = self._add(request, None)
        try:
            return await waiter.reply
        finally:
            self._remove(waiter)

    async def stream(self, request: Request | Rendered) -> AsyncGenerator[Token | Reply]:
        """Yields every token of a reply as it is drawn, and the reply last."""
        tokens = asyncio.Queue[Token | None]()
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

    def close(self, error: Exception) -> None:
        """Stops stepping; all tasks that wait get an error."""
        self._end_all(error)
        if self._stepping is not None:
            self._stepping.cancel()

    def _add(
        self, request: Request | Rendered, tokens: asyncio.Queue[Token | None] | None
    ) -> _Waiter[ReplyT]:
        loop = asyncio.get_running_loop()
        waiter = _Waiter[ReplyT](request, loop.create_future(), tokens)
        self._waiters.add(waiter)
        self._new.append(waiter)
        if self._stepping is None:
            self._stepping = loop.create_task(self._step_while_awaited())
        return waiter

    def _remove(self, waiter: _Waiter[ReplyT]) -> None:
        """Cancels the reply of a task that no longer waits; one that has ended stays as it is."""
        waiter.reply.cancel()
        if waiter not in self._waiters:
            return
        self._waiters.remove(waiter)
        if self._executor is None:
            self._free(waiter)
        else:
            self._left.append(waiter)

    def _end_all(self, error: Exception) -> None:
        for waiter in list(self._waiters):
            waiter.end(error)
            self._remove(waiter)

    async def _step_while_awaited(self) -> None:
        loop, any_ended = asyncio.get_running_loop(), True  # which may lead to further requests
        try:
            while self._waiters or self._left:
                if self._executor is not None:
                    await loop.run_in_executor(self._executor, self._step_in_thread)
                    continue
                for _ in range(_TURNS_OF_OTHERS if any_ended else 1):
                    await asyncio.sleep(0)
                updates = self._advance()
                self._report(updates)
                any_ended = any(update.outcome is not None for update in updates)
        except Exception as error:  # a failed step has ended its requests; this one is a bug
            self._end_all(error)
            raise
        finally:
            self._stepping = None
            for waiter in list(self._waiters):  # only if this task was cancelled
                self._remove(waiter)

    def _report(self, updates: Sequence[_Update[ReplyT]]) -> None:
        """Passes updates on to their tasks."""
        for update in updates:
            waiter = update.waiter
            if waiter.tokens is not None:
                for token in update.tokens:
                    waiter.tokens.put_nowait(token)
            if update.outcome is not None:
                self._waiters.discard(waiter)
                waiter.end(update.outcome)

    # Where the engine computes

    def _step_in_thread(self) -> None:
        """Makes steps as long as there is anything to do, without waiting for the event loop."""
        while self._new or self._left or self._ongoing:
            by_loop: dict[asyncio.AbstractEventLoop, list[_Update[ReplyT]]] = {}
            for update in self._advance():
                by_loop.setdefault(update.waiter.reply.get_loop(), []).append(update)
            for loop, updates in by_loop.items():
                with suppress(RuntimeError):  # the loop was closed, so nobody waits there
                    loop.call_soon_threadsafe(self._report, updates)

    def _advance(self) -> list[_Update[ReplyT]]:
        """Frees what nobody waits for, queues new requests, and makes a step."""
        while self._left:
            self._free(self._left.popleft())
        new = [self._new.popleft() for _ in range(len(self._new))]
        updates = self._begin([waiter for waiter in new if not waiter.reply.done()])
        return updates + self._step() if self._ongoing else updates

    def _free(self, waiter: _Waiter[ReplyT]) -> None:
        ongoing = waiter.ongoing  # None if it was refused
        if ongoing is not None and self._ongoing.pop(ongoing, None) is not None:
            self._engine.cancel(ongoing)

    def _begin(self, new: Sequence[_Waiter[ReplyT]]) -> list[_Update[ReplyT]]:
        """Queues requests; returns the refusals."""
        if not new:
            return []
        requests = [waiter.request for waiter in new]
        streamed = [waiter.tokens is not None for waiter in new]
        begun: Sequence[ReplyT | Exception]
        try:
            begun = self._engine.begin(requests, streamed)
        except Exception as error:
            begun = [error] * len(new)
        refused = list[_Update[ReplyT]]()
        for waiter, ongoing in zip(new, begun, strict=True):
            if isinstance(ongoing, Exception):
                refused.append(_Update(waiter, outcome=ongoing))
            else:
                waiter.ongoing = ongoing
                self._ongoing[ongoing] = waiter
        return refused

    def _step(self) -> list[_Update[ReplyT]]:
        try:
            changed = [reply for reply in self._engine.step() if reply in self._ongoing]
            streamed = [reply for reply in changed if self._ongoing[reply].tokens is not None]
            tokens = dict(zip(streamed, self._engine.take(streamed), strict=True))
        except Exception as error:  # of the engine, which ends all that is under way
            ended, self._ongoing = self._ongoing, {}
            return [_Update(waiter, outcome=error) for waiter in ended.values()]
        updates = list[_Update[ReplyT]]()
        for ongoing in changed:
            waiter = self._ongoing[ongoing]
            outcome = _outcome(ongoing) if ongoing.done else None
            if outcome is not None:
                del self._ongoing[ongoing]
            updates.append(_Update(waiter, tokens.get(ongoing, ()), outcome))
        return updates


def _outcome(ongoing: Ongoing) -> Reply | Exception:
    try:
        return ongoing.result()
    except Exception as error:
        return error
