"""Runs asynchronous code from synchronous code, and task groups that raise plain errors."""

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

    Inside a running event loop, such as a notebook's, it runs on a new loop in another thread while
    this one waits. An interrupt, or a signal whose handler raises, cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # running it in this clause would make this error the context of all its errors
    else:
        return _run_in_another_thread(coroutine)
    return _run_in_this_thread(coroutine)


def _run_in_this_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    interrupts = list[BaseException]()

    async def main() -> Result:
        with _cancel_on_sigterm(interrupts):
            return await _cancel_on_interrupts(coroutine, interrupts)

    return _run_on_new_loop(main(), interrupts)


def _run_on_new_loop(main: Coroutine[Any, Any, Result], interrupts: list[BaseException]) -> Result:
    """Runs a coroutine on a new event loop.

    If `interrupts` is not empty in the end, raises the first of them, whatever else the tasks have
    raised or returned.
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


async def _cancel_on_interrupts(
    coroutine: Coroutine[Any, Any, Result], interrupts: list[BaseException]
) -> Result:
    """Awaits a coroutine in this task.

    If any task of the loop raises a `KeyboardInterrupt` or a `SystemExit`, cancels this task and
    adds the interrupt to `interrupts`.

    A progress callback, say, may raise one. asyncio would let it leave the loop at once, and again
    from every task group around it, so that the outer tasks would never end.
    """
    loop = asyncio.get_running_loop()
    outermost = asyncio.current_task()
    assert outermost is not None

    async def catch_interrupts(inner: Awaitable[Any]) -> Any:
        try:
            return await inner
        except (KeyboardInterrupt, SystemExit) as interrupt:
            interrupts.append(interrupt)
            outermost.cancel()
            raise asyncio.CancelledError from None

    def create_task(
        loop: asyncio.AbstractEventLoop, inner: Any, **options: Any
    ) -> asyncio.Task[Any]:
        outer = asyncio.Task(catch_interrupts(inner), loop=loop, **options)
        outer.add_done_callback(lambda _: inner.close())  # it may be cancelled before it starts
        return outer

    loop.set_task_factory(create_task)
    result: Result = await catch_interrupts(coroutine)
    return result


@contextmanager
def _cancel_on_sigterm(interrupts: list[BaseException]) -> Iterator[None]:
    """Within this context, if the handler of SIGTERM raises an exception, adds it to `interrupts`
    and cancels the current task, as asyncio does for SIGINT.

    Otherwise the exception would be raised inside whatever task is running, and end only that one.
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
            loop.call_soon_threadsafe(task.cancel)  # also wakes the loop

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        if not has_raised:  # otherwise the handler may have replaced itself for the next signal
            signal.signal(signal.SIGTERM, handler)


def _run_in_another_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine in a thread of its own, as this thread has a running event loop."""
    started = Future[tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any]"]]()
    interrupts = list[BaseException]()

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await _cancel_on_interrupts(coroutine, interrupts)

    context = contextvars.copy_context()
    release_threads()
    with ThreadPoolExecutor(1, "holdfast-loop") as pool:
        running = pool.submit(context.run, _run_on_new_loop, main(), interrupts)
        try:
            return running.result()
        except KeyboardInterrupt:
            if not running.done():  # this thread was interrupted, not the loop's
                loop, task = started.result()
                loop.call_soon_threadsafe(task.cancel)
            raise


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """An `asyncio.TaskGroup` that raises the first error of its tasks, not a group of errors."""
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
