"""Asynchronous code called from synchronous code, and task groups that raise plain errors."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_sync(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine to its end and returns its result.

    Inside a running event loop, such as a notebook's, it runs on a loop of its own in another
    thread while this one waits. An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    started = Future[tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any]"]]()

    async def announced() -> Result:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await coroutine

    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, "holdfast-loop") as pool:
        running = pool.submit(context.run, asyncio.run, announced())
        try:
            return running.result()
        except KeyboardInterrupt:
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
