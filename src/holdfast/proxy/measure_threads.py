"""Threads in which the proxy runs the measures of a suite, which are slow or may never return."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent import futures
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from holdfast.plurals import count_of
from holdfast.proxy.relay import ChatRelay, RelayedRequest
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.upstream_answer import UpstreamAnswer

_MAX_WAITING_BYTES = 64 * 2**20  # replies that would wait beyond this are not scored
_MAX_SECONDS = 60.0  # to score a reply; while one takes longer, others are not scored
_MAX_SECONDS_AT_END = 10.0  # to score the replies that still wait when the proxy ends
_LOG = logging.getLogger("holdfast.proxy")

Result = TypeVar("Result")


class MeasureThreads:
    """A few threads that run functions in turn.

    They end with the process. Threads of `concurrent.futures` and `asyncio.to_thread` would keep it
    alive until their functions return, and a measure may never do so.
    """

    def __init__(self, max_threads: int):
        self._max_threads = max_threads
        self._num_threads = 0
        self._tasks = SimpleQueue[Callable[[], None]]()
        self._unfinished = set[futures.Future[Any]]()

    def submit(self, function: Callable[..., Result], *arguments: Any) -> asyncio.Future[Result]:
        """Has a function run in a thread; cancelling the future stops it only before it begins."""
        future = futures.Future[Result]()
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        self._tasks.put(partial(_run, future, function, *arguments))
        if self._num_threads < self._max_threads:
            self._num_threads += 1
            Thread(target=self._work, name="holdfast-measures", daemon=True).start()
        return asyncio.wrap_future(future)

    def wait(self, seconds: float) -> int:
        """Waits until all functions have returned; returns how many have not after some seconds."""
        return len(futures.wait(tuple(self._unfinished), seconds).not_done)

    def _work(self) -> None:
        while True:
            self._tasks.get()()


def _run(future: futures.Future[Result], function: Callable[..., Result], *arguments: Any) -> None:
    """Sets a future to the result of a function, or to its error."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function(*arguments)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


class ScoringQueue:
    """Scores replies one after another, in a thread of its own.

    Attributes:
        waiting: how many replies wait to be scored.
    """

    def __init__(self, relay: ChatRelay):
        self._relay = relay
        self._thread = MeasureThreads(1)
        self.waiting = 0
        self._waiting_bytes = 0  # the length of these replies and of their requests
        self._last_begun = 0.0  # the time at which the reply that is being scored was begun

    def add(self, relayed: RelayedRequest | None, answer: UpstreamAnswer) -> None:
        """Has a reply scored if it is that to a chat, unless too many are waiting."""
        if relayed is None or relayed.chat is None:
            return
        size = len(answer.body) + len(relayed.content)
        is_full = self._waiting_bytes and self._waiting_bytes + size > _MAX_WAITING_BYTES
        is_stuck = self.waiting and time.monotonic() - self._last_begun > _MAX_SECONDS
        if is_full or is_stuck:
            return self._relay.tally.note_reply(WhyUnscored.BUSY)
        if not self.waiting:
            self._last_begun = time.monotonic()
        self.waiting += 1
        self._waiting_bytes += size
        scored = self._thread.submit(self._score, relayed, answer)
        scored.add_done_callback(partial(self._note_scored, size))

    def finish(self) -> None:
        """Waits until all replies are scored; not for long, as a measure may never return."""
        if unscored := self._thread.wait(_MAX_SECONDS_AT_END):
            replies = count_of(unscored, "reply")
            _LOG.error("Not scored: %s, as that takes more than %g s", replies, _MAX_SECONDS_AT_END)

    def _score(self, relayed: RelayedRequest, answer: UpstreamAnswer) -> None:
        self._last_begun = time.monotonic()
        self._relay.end(relayed, answer)

    def _note_scored(self, size: int, scored: asyncio.Future[None]) -> None:
        """Takes note that a reply has been scored."""
        self.waiting -= 1
        self._waiting_bytes -= size
