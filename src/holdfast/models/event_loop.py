"""Asynchronous code called from synchronous code, and task groups that raise plain errors."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_sync(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine to its end and returns its result.

    Inside a running event loop, such as a notebook's, it runs on a loop of its own in another
    thread while this one waits. An interrupt, or a signal whose handler raises, cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # it runs outside of this clause, or every error of it would have this one as context
    else:
        return _run_in_another_thread(coroutine)
    return _run_in_this_thread(coroutine)


def _run_in_this_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    raised = list[BaseException]()  # by the handler of SIGTERM

    async def cancellable() -> Result:
        with _cancelled_by_sigterm(raised):
            return await _without_reports_of_interrupts(coroutine)

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if raised:
            raise raised[0] from None
        raise


async def _without_reports_of_interrupts(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Awaits a coroutine in a loop that reports no interrupt of a task as never retrieved.

    A progress callback, say, may raise a `KeyboardInterrupt` in a task; the loop itself raises it.
    """

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), (KeyboardInterrupt, SystemExit)):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(report)
    return await coroutine


@contextmanager
def _cancelled_by_sigterm(raised: list[BaseException]) -> Iterator[None]:
    """Within this context, a handler of SIGTERM that raises cancels the current task instead, and
    its exception is added to `raised`; asyncio does the same for SIGINT. An exception in the middle
    of another task would leave that task's error behind.
    """
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            raised.append(error)
            loop.call_soon_threadsafe(task.cancel)  # wakes the loop, too

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        if not raised:  # else the handler may have chosen another for the next signal
            signal.signal(signal.SIGTERM, before)


def _run_in_another_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    started = Future[tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any]"]]()

    async def announced() -> Result:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await _without_reports_of_interrupts(coroutine)

    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, "holdfast-loop") as pool:
        running = pool.submit(context.run, asyncio.run, announced())
        try:
            return running.result()
        except KeyboardInterrupt:
            if not running.done():  # it was this thread that was interrupted, not the loop's
                loop, task = started.result()
                loop.call_soon_threadsafe(task.cancel)
            raise


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """An `asyncio.TaskGroup` that raises the first error of a task itself, not a group of them."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        cause = first.__cause__
    else:
        return
    raise first from cause
