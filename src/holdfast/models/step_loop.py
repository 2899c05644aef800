"""Lets tasks wait for replies that a model computes step by step."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import Reply, Token

# How often the event loop runs other tasks after a reply. The reply may wake several tasks one
# after the other, whose next requests are then in the same step.
_NUM_YIELDS = 10


HandleT = TypeVar("HandleT", bound=Hashable)  # of a submitted request


@dataclass(frozen=True)
class ReplyUpdate:
    """The effect of a step on one reply."""

    tokens: Sequence[Token] = ()  # drawn since the last update; () unless the reply is streamed
    outcome: Reply | Exception | None = None  # None while the reply has not ended


class Stepped(Protocol[HandleT]):
    """A model that computes the replies to submitted requests whenever it is stepped."""

    def submit(self, rendered: RenderedRequest, *, streamed: bool) -> HandleT:
        """Queues a request; raises an error if it is refused.

        `streamed` says whether updates are to have its tokens as they are drawn.
        """

    def step(self) -> Mapping[HandleT, ReplyUpdate]:
        """Makes a pass; returns updates of the replies that have ended or have new tokens."""

    def cancel(self, handle: HandleT, /) -> None:
        """Frees the memory of an unfinished reply."""


@dataclass(eq=False)
class _Waiter(Generic[HandleT]):
    """A task that waits for a reply.

    Args:
        rendered: the request.
        reply: becomes the reply.
        tokens: gets the tokens as they are drawn, and None at the end; None if the reply is not
            streamed.
        handle: of the request, once it is submitted; only used where steps are made.
    """

    rendered: RenderedRequest
    reply: asyncio.Future[Reply]
    tokens: asyncio.Queue[Token | None] | None
    handle: HandleT | None = None

    def receive(self, update: ReplyUpdate) -> None:
        """Hands new tokens, if the reply is streamed, and the outcome to the task."""
        if self.tokens is not None:
            for token in update.tokens:
                self.tokens.put_nowait(token)
        if update.outcome is not None:
            self.end(update.outcome)

    def end(self, outcome: Reply | Exception) -> None:
        """Hands the reply, or its error, to the task."""
        if not self.reply.done():  # it is done if the task was cancelled
            if isinstance(outcome, Exception):
                self.reply.set_exception(outcome)
            else:
                self.reply.set_result(outcome)
        if self.tokens is not None:
            self.tokens.put_nowait(None)


class StepLoop(Generic[HandleT]):
    """Makes steps of a model as long as any task waits for a reply.

    Without an executor, a step is made when all tasks wait, so that their requests join the batch
    together. With an executor, which has a single thread, steps are made in that thread while the
    event loop continues; new requests and cancellations take effect at the next step.
    """

    def __init__(self, stepped: Stepped[HandleT], executor: Executor | None = None):
        self._stepped = stepped
        self._executor = executor
        self._waiters: set[_Waiter[HandleT]] = set()
        self._stepping: asyncio.Task[None] | None = None
        # The event loop adds to these two, and the thread that computes takes from them.
        self._new: deque[_Waiter[HandleT]] = deque()
        self._abandoned: deque[_Waiter[HandleT]] = deque()  # no longer wait, but may be submitted
        # only used in the thread that computes
        self._submitted: dict[HandleT, _Waiter[HandleT]] = {}

    @property
    def idle(self) -> bool:
        """Whether no task waits for a reply."""
        return not self._waiters

    async def answer(self, rendered: RenderedRequest) -> Reply:
        """Answers a request."""
        waiter = self._add(rendered, None)
        try:
            return await waiter.reply
        finally:
            self._remove(waiter)

    async def stream(self, rendered: RenderedRequest) -> AsyncGenerator[Token | Reply]:
        """Answers a request; yields every token as it is drawn, and the reply last."""
        tokens = asyncio.Queue[Token | None]()
        waiter = self._add(rendered, tokens)
        try:
            while (token := await tokens.get()) is not None:
                yield token
            yield await waiter.reply
        finally:
            self._remove(waiter)

    async def finish(self) -> None:
        """Waits until stepping has ended, which it does when no task waits for a reply."""
        if self._stepping is not None:
            await asyncio.wait([self._stepping])

    def close(self, error: Exception) -> None:
        """Stops stepping; all tasks that wait get this error."""
        self._end_all(error)
        if self._stepping is not None:
            self._stepping.cancel()

    def _add(
        self, rendered: RenderedRequest, tokens: asyncio.Queue[Token | None] | None
    ) -> _Waiter[HandleT]:
        loop = asyncio.get_running_loop()
        waiter = _Waiter[HandleT](rendered, loop.create_future(), tokens)
        self._waiters.add(waiter)
        self._new.append(waiter)
        if self._stepping is None:
            self._stepping = loop.create_task(self._run_while_awaited())
        return waiter

    def _remove(self, waiter: _Waiter[HandleT]) -> None:
        """Cancels the reply of a task that no longer waits, unless the reply has ended."""
        waiter.reply.cancel()
        if waiter not in self._waiters:
            return
        self._waiters.remove(waiter)
        if self._executor is None:
            self._free(waiter)
        else:
            self._abandoned.append(waiter)

    def _end_all(self, error: Exception) -> None:
        for waiter in list(self._waiters):
            waiter.end(error)
            self._remove(waiter)

    async def _run_while_awaited(self) -> None:
        """Steps the model until no task waits for a reply."""
        loop = asyncio.get_running_loop()
        any_ended = True  # at the beginning, further requests may come as they do after a reply
        try:
            while self._waiters or self._abandoned:
                if self._executor is not None:
                    await loop.run_in_executor(self._executor, self._run_in_thread)
                    continue
                for _ in range(_NUM_YIELDS if any_ended else 1):
                    await asyncio.sleep(0)
                updates = self._submit_and_step()
                self._report(updates)
                any_ended = any(update.outcome is not None for update in updates.values())
        except Exception as error:  # a bug, since the error of a step only ends its requests
            self._end_all(error)
            raise
        finally:
            self._stepping = None
            for waiter in list(self._waiters):  # only if this task was cancelled
                self._remove(waiter)

    def _report(self, updates: Mapping[_Waiter[HandleT], ReplyUpdate]) -> None:
        """Hands updates to their tasks."""
        for waiter, update in updates.items():
            if update.outcome is not None:
                self._waiters.discard(waiter)
            waiter.receive(update)

    # Where steps are made

    def _run_in_thread(self) -> None:
        """Steps the model as long as there is work, without waiting for the event loop."""
        while self._new or self._abandoned or self._submitted:
            by_loop: dict[asyncio.AbstractEventLoop, dict[_Waiter[HandleT], ReplyUpdate]] = {}
            for waiter, update in self._submit_and_step().items():
                by_loop.setdefault(waiter.reply.get_loop(), {})[waiter] = update
            for loop, updates in by_loop.items():
                with suppress(RuntimeError):  # the loop is closed, so no task waits there
                    loop.call_soon_threadsafe(self._report, updates)

    def _submit_and_step(self) -> dict[_Waiter[HandleT], ReplyUpdate]:
        """Cancels abandoned requests, submits new ones, and steps the model once."""
        while self._abandoned:
            self._free(self._abandoned.popleft())
        refused = self._submit_new()
        return refused | self._step_model() if self._submitted else refused

    def _submit_new(self) -> dict[_Waiter[HandleT], ReplyUpdate]:
        """Submits new requests; returns the errors of those that are refused."""
        refused = dict[_Waiter[HandleT], ReplyUpdate]()
        for _ in range(len(self._new)):
            waiter = self._new.popleft()
            if waiter.reply.done():
                continue
            try:
                is_streamed = waiter.tokens is not None
                waiter.handle = self._stepped.submit(waiter.rendered, streamed=is_streamed)
            except Exception as error:
                refused[waiter] = ReplyUpdate(outcome=error)
            else:
                self._submitted[waiter.handle] = waiter
        return refused

    def _free(self, waiter: _Waiter[HandleT]) -> None:
        """Cancels the request of a task that no longer waits, unless its reply has ended."""
        handle = waiter.handle  # None if the request was refused, or not submitted yet
        if handle is not None and self._submitted.pop(handle, None) is not None:
            self._stepped.cancel(handle)

    def _step_model(self) -> dict[_Waiter[HandleT], ReplyUpdate]:
        """Steps the model once; returns updates for the tasks that still wait."""
        try:
            changed = self._stepped.step()
        except Exception as error:  # after a failed step, the model has dropped all requests
            ended = self._submitted
            self._submitted = {}
            return {waiter: ReplyUpdate(outcome=error) for waiter in ended.values()}
        submitted = self._submitted
        updates = {
            submitted[handle]: update for handle, update in changed.items() if handle in submitted
        }
        for handle, update in changed.items():
            if update.outcome is not None:
                submitted.pop(handle, None)
        return updates
