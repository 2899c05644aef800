"""Lets tasks wait for the replies of an engine that is stepped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Token

# How often other tasks get to run after a reply, which may lead several of them, one after the
# other, to their next requests; those join the next step together.
_TURNS_OF_OTHERS = 10


RowT = TypeVar("RowT", bound=Hashable)  # what an engine makes of a chat that it generates


@dataclass(frozen=True)
class RowUpdate:
    """The effect of a step on one reply."""

    tokens: Sequence[Token] = ()  # drawn since the last report; only of a streamed reply
    outcome: Reply | Exception | None = None  # None: the reply goes on


class Stepped(Protocol[RowT]):
    """An engine that computes only when it is stepped."""

    def submit(self, chat: Rendered, streamed: bool, /) -> RowT:
        """Queues a chat; raises an error if it is refused.

        `streamed` says whether its tokens are wanted as they are drawn.
        """

    def step(self) -> Mapping[RowT, RowUpdate]:
        """Makes a pass; reports the replies that have ended, and streamed ones with new tokens."""

    def cancel(self, row: RowT, /) -> None:
        """Frees what an unfinished reply uses."""


@dataclass(eq=False)
class _Waiter(Generic[RowT]):
    """A task that waits for a reply."""

    chat: Rendered
    reply: asyncio.Future[Reply]
    tokens: asyncio.Queue[Token | None] | None  # as they are drawn, then None; None: not wanted
    row: RowT | None = None  # once it is submitted; used only where the engine computes

    def receive(self, update: RowUpdate) -> None:
        """Passes on new tokens, if the task wants them as they are drawn, and the outcome."""
        if self.tokens is not None:
            for token in update.tokens:
                self.tokens.put_nowait(token)
        if update.outcome is not None:
            self.end(update.outcome)

    def end(self, outcome: Reply | Exception) -> None:
        """Passes on the reply, or its error."""
        if not self.reply.done():  # it is done if the task was cancelled
            if isinstance(outcome, Exception):
                self.reply.set_exception(outcome)
            else:
                self.reply.set_result(outcome)
        if self.tokens is not None:
            self.tokens.put_nowait(None)


class StepLoop(Generic[RowT]):
    """Steps an engine as long as any task waits for it.

    Without an executor, a step is made once every task waits, so that what they ask joins the batch
    together. With an executor, which has a single thread, the engine computes in that thread while
    the event loop goes on; what tasks ask and cancel in the meantime takes effect at the next step.
    """

    def __init__(self, engine: Stepped[RowT], executor: Executor | None = None):
        self._engine = engine
        self._executor = executor
        self._waiters: set[_Waiter[RowT]] = set()
        self._stepping: asyncio.Task[None] | None = None
        # passed on to where the engine computes
        self._new: deque[_Waiter[RowT]] = deque()
        self._left: deque[_Waiter[RowT]] = deque()  # no longer wait, but may still have rows
        self._rows: dict[RowT, _Waiter[RowT]] = {}  # submitted; used only there

    @property
    def idle(self) -> bool:
        """Whether no task waits for a reply."""
        return not self._waiters

    async def generate(self, chat: Rendered) -> Reply:
        """The reply to a chat."""
        waiter = self._add(chat, None)
        try:
            return await waiter.reply
        finally:
            self._remove(waiter)

    async def stream(self, chat: Rendered) -> AsyncGenerator[Token | Reply]:
        """Yields every token of a reply as it is drawn, and the reply last."""
        tokens = asyncio.Queue[Token | None]()
        waiter = self._add(chat, tokens)
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

    def _add(self, chat: Rendered, tokens: asyncio.Queue[Token | None] | None) -> _Waiter[RowT]:
        loop = asyncio.get_running_loop()
        waiter = _Waiter[RowT](chat, loop.create_future(), tokens)
        self._waiters.add(waiter)
        self._new.append(waiter)
        if self._stepping is None:
            self._stepping = loop.create_task(self._step_while_awaited())
        return waiter

    def _remove(self, waiter: _Waiter[RowT]) -> None:
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
                any_ended = any(update.outcome is not None for update in updates.values())
        except Exception as error:  # a failed step has ended its requests; this one is a bug
            self._end_all(error)
            raise
        finally:
            self._stepping = None
            for waiter in list(self._waiters):  # only if this task was cancelled
                self._remove(waiter)

    def _report(self, updates: Mapping[_Waiter[RowT], RowUpdate]) -> None:
        """Passes updates on to their tasks."""
        for waiter, update in updates.items():
            if update.outcome is not None:
                self._waiters.discard(waiter)
            waiter.receive(update)

    # Where the engine computes

    def _step_in_thread(self) -> None:
        """Makes steps as long as there is anything to do, without waiting for the event loop."""
        while self._new or self._left or self._rows:
            by_loop: dict[asyncio.AbstractEventLoop, dict[_Waiter[RowT], RowUpdate]] = {}
            for waiter, update in self._advance().items():
                by_loop.setdefault(waiter.reply.get_loop(), {})[waiter] = update
            for loop, updates in by_loop.items():
                with suppress(RuntimeError):  # the loop was closed, so nobody waits there
                    loop.call_soon_threadsafe(self._report, updates)

    def _advance(self) -> dict[_Waiter[RowT], RowUpdate]:
        """Frees what nobody waits for, submits new chats, and makes a step."""
        while self._left:
            self._free(self._left.popleft())
        refused = dict[_Waiter[RowT], RowUpdate]()
        for _ in range(len(self._new)):
            waiter = self._new.popleft()
            if waiter.reply.done():
                continue
            try:
                waiter.row = self._engine.submit(waiter.chat, waiter.tokens is not None)
            except Exception as error:
                refused[waiter] = RowUpdate(outcome=error)
            else:
                self._rows[waiter.row] = waiter
        return refused | self._step() if self._rows else refused

    def _free(self, waiter: _Waiter[RowT]) -> None:
        row = waiter.row  # None if it was refused
        if row is not None and self._rows.pop(row, None) is not None:
            self._engine.cancel(row)

    def _step(self) -> dict[_Waiter[RowT], RowUpdate]:
        """Makes a step; its effect on the tasks that still wait."""
        try:
            changed = self._engine.step()
        except Exception as error:  # of the engine, which ends all that is under way
            ended = self._rows
            self._rows = {}
            return {waiter: RowUpdate(outcome=error) for waiter in ended.values()}
        updates = {self._rows[row]: update for row, update in changed.items() if row in self._rows}
        for row, update in changed.items():
            if update.outcome is not None:
                self._rows.pop(row, None)
        return updates
