"""Asynchronous code called from synchronous code, and task groups that raise plain errors."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any, TypeVar

from holdfast.generation.cpu_threads import release_threads

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
    interrupts = list[BaseException]()

    async def main() -> Result:
        with _cancelled_by_sigterm(interrupts):
            return await _cancelled_by_interrupts(coroutine, interrupts)

    return _raise_first_of(interrupts, main())


def _raise_first_of(interrupts: list[BaseException], main: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine on a loop of its own; raises the first of its interrupts, if there is one,
    whatever else the tasks raise or return as they end.
    """
    try:
        result = asyncio.run(main)
    except BaseException:
        if interrupts:
            raise interrupts[0] from None
        raise
    if interrupts:
        raise interrupts[0]
    return result


async def _cancelled_by_interrupts(
    coroutine: Coroutine[Any, Any, Result], interrupts: list[BaseException]
) -> Result:
    """Awaits a coroutine in this task, which a `KeyboardInterrupt` or `SystemExit` of any task of
    the loop cancels; the interrupt is added to `interrupts`.

    A progress callback, say, may raise one. asyncio lets it leave the loop at once, and once more
    from every task group around it, so that the tasks outside would never end.
    """
    loop = asyncio.get_running_loop()
    outermost = asyncio.current_task()
    assert outermost is not None

    async def caught(inner: Awaitable[Any]) -> Any:
        try:
            return await inner
        except (KeyboardInterrupt, SystemExit) as interrupt:
            interrupts.append(interrupt)
            outermost.cancel()
            raise asyncio.CancelledError from None

    def task(loop: asyncio.AbstractEventLoop, inner: Any, **options: Any) -> asyncio.Task[Any]:
        outer = asyncio.Task(caught(inner), loop=loop, **options)
        outer.add_done_callback(lambda _: inner.close())  # it may be cancelled before it starts
        return outer

    loop.set_task_factory(task)
    result: Result = await caught(coroutine)
    return result


@contextmanager
def _cancelled_by_sigterm(interrupts: list[BaseException]) -> Iterator[None]:
    """Within this context, a handler of SIGTERM that raises cancels the current task instead, and
    its exception is added to `interrupts`; asyncio does the same for SIGINT. An exception in the
    middle of another task would leave that task's error behind.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    has_raised = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal has_raised
        try:
            handler(number, frame)
        except BaseException as error:
            has_raised = True
            interrupts.append(error)
            loop.call_soon_threadsafe(task.cancel)  # wakes the loop, too

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        if not has_raised:  # else the handler may have chosen another for the next signal
            signal.signal(signal.SIGTERM, handler)


def _run_in_another_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    started = Future[tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any]"]]()
    interrupts = list[BaseException]()

    async def announced() -> Result:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await _cancelled_by_interrupts(coroutine, interrupts)

    context = contextvars.copy_context()
    release_threads()
    with ThreadPoolExecutor(1, "holdfast-loop") as pool:
        running = pool.submit(context.run, _raise_first_of, interrupts, announced())
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
