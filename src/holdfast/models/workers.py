"""The requests of endpoints: so many under way at each, by threads; where one is gone, at others.

A conversation stays with the endpoint that began it, which has its prefix in a cache. What is sent
is the whole chat, so that another endpoint goes on with it where the first one is gone.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from holdfast.errors import RequestFailed, Unreachable
from holdfast.models.protocol import Job
from holdfast.models.requests import Reply

if TYPE_CHECKING:
    from holdfast.models.endpoint import Server


@dataclass(frozen=True, order=True)
class _QueuedJob:
    """A job that waits: earlier conversations first, and in each what others wait for."""

    begun: int
    fork: bool
    number: int
    job: Job = field(compare=False)

    @property
    def conversation(self) -> Hashable | None:
        """The conversation that its request belongs to; None where it stands alone."""
        request = self.job.request
        return None if request.thread is None else request.conversation_seed


# Seconds. A thread that waits without end may never hear of Ctrl-C: where the signal reaches
# another thread, or comes just before the wait, nothing wakes the one that has to act on it.
_HEED_INTERRUPTS = 0.2

_Answered = tuple["Server", _QueuedJob, Reply | BaseException]


class Workers:
    """An `Engine` of daemon threads, each of which asks an endpoint one request at a time."""

    def __init__(self, servers: Sequence[Server]):
        self._servers = servers
        self._waiting: dict[Server | None, list[_QueuedJob]] = {  # heaps; None: for any
            server: [] for server in (None, *servers)
        }
        self._server_of: dict[Hashable, Server] = {}  # by conversation
        self._begun: dict[Hashable, int] = {}
        self._under_way: Counter[Server] = Counter()
        self._numbers = itertools.count()
        self._tasks: SimpleQueue[Callable[[], _Answered] | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answered] = SimpleQueue()
        self._stopped = threading.Event()
        self._count = sum(server.concurrency for server in servers)
        for _ in range(self._count):
            threading.Thread(target=self._work, name="holdfast-endpoint", daemon=True).start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Takes jobs in."""
        for job in jobs:
            number = next(self._numbers)
            queued = _QueuedJob(number, not job.request.keep, number, job)
            if (conversation := queued.conversation) is not None:
                begun = self._begun.setdefault(conversation, number)
                queued = _QueuedJob(begun, queued.fork, number, job)
            self._queue(queued)

    def step(self) -> list[tuple[Job, Reply | Exception]] | None:
        """Waits for an answer; None if nothing is under way; raises what no job takes."""
        self._start()
        if not self._under_way.total():
            return None
        server, queued, answer = self._take()
        if isinstance(answer, Unreachable):
            server.unavailable = answer
            self._move(server, queued)
            if all(server.unavailable for server in self._servers):
                raise answer
            return []
        if isinstance(answer, Reply):
            return [(queued.job, answer)]
        if isinstance(answer, RequestFailed) and queued.job.failed is not None:
            return [(queued.job, answer)]
        raise answer

    def stop(self) -> None:
        """Starts no further request."""
        self._stopped.set()
        for _ in range(self._count):
            self._tasks.put(None)

    def _queue(self, queued: _QueuedJob) -> None:
        heappush(self._waiting[self._server_of.get(queued.conversation)], queued)

    def _start(self) -> None:
        """Gives every endpoint what it has room for, one job at a time in turn."""
        started = True
        while started:
            started = False
            for server in self._servers:
                has_room = self._under_way[server] < server.concurrency
                if has_room and not server.unavailable and (queued := self._next_of(server)):
                    self._give(server, queued)
                    started = True

    def _next_of(self, server: Server) -> _QueuedJob | None:
        """The first job that an endpoint may take; its conversation stays there."""
        while heaps := [heap for heap in (self._waiting[server], self._waiting[None]) if heap]:
            queued = heappop(min(heaps, key=lambda heap: heap[0]))
            if queued.conversation is None:
                return queued
            if self._server_of.setdefault(queued.conversation, server) is server:
                return queued
            self._queue(queued)
        return None

    def _move(self, server: Server, queued: _QueuedJob) -> None:
        """The conversations of an endpoint that is gone go on wherever there is room."""
        kept = {name: where for name, where in self._server_of.items() if where is not server}
        self._server_of = kept
        left, self._waiting[server] = [queued, *self._waiting[server]], []
        for moved in left:
            self._queue(moved)

    def _give(self, server: Server, queued: _QueuedJob) -> None:
        """Has an endpoint asked; the request is written in this thread."""
        request = queued.job.request
        body = server.body_of(request)

        def ask() -> _Answered:
            try:
                return server, queued, server.answer(body, request.sampling.max_new_tokens)
            except BaseException as error:
                return server, queued, error

        self._under_way[server] += 1
        self._tasks.put(ask)

    def _take(self) -> _Answered:
        while True:
            try:
                answered = self._answers.get(timeout=_HEED_INTERRUPTS)
            except Empty:
                continue
            self._under_way[answered[0]] -= 1
            return answered

    def _work(self) -> None:
        while (ask := self._tasks.get()) is not None and not self._stopped.is_set():
            self._answers.put(ask())
