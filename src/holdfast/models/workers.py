"""The requests of endpoints: so many under way at each, by threads; where one is gone, at others.

A conversation stays with the endpoint that began it, which has its prefix in a cache. What is sent
is the whole chat, so that another endpoint goes on with it where the first one is gone.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import Protocol

from holdfast.errors import RequestFailed, Unreachable
from holdfast.models.protocol import Job
from holdfast.models.requests import Reply, Request


class Server(Protocol):
    """One endpoint, as it is asked here."""

    @property
    def concurrency(self) -> int:
        """Requests under way at once."""

    def body_of(self, request: Request) -> dict[str, object]:
        """A request as it goes over the wire."""

    def answer(self, body: dict[str, object], max_new_tokens: int) -> Reply:
        """The reply to it; called by many threads."""


@dataclass(frozen=True, order=True)
class QueuedJob:
    """A job that waits, in the order in which jobs are taken.

    Args:
        begun: which of the first jobs it follows from.
        fork: whether no other request waits for its reply.
        number: the order of arrival.
        job: what is asked.
    """

    begun: int
    fork: bool
    number: int
    job: Job = field(compare=False)

    @property
    def conversation(self) -> Hashable | None:
        """The conversation that its request belongs to; None where it stands alone."""
        request = self.job.request
        return None if request.thread is None else request.conversation_seed


@dataclass(eq=False)
class Line:
    """One endpoint, and what waits for it alone.

    Args:
        server: asked.
        gone: why it is not asked any longer.
        under_way: requests.
        waiting: the tasks of conversations that it has begun.
    """

    server: Server
    unavailable: Unreachable | None = None
    under_way: int = 0
    waiting: list[QueuedJob] = field(default_factory=list)


# Seconds. A thread that waits without end may never hear of Ctrl-C: where the signal reaches
# another thread, or comes just before the wait, nothing wakes the one that has to act on it.
_HEED_INTERRUPTS = 0.2

_Answered = tuple[Line, QueuedJob, Reply | BaseException]


def answer_jobs(jobs: Iterable[Job], lines: Sequence[Line]) -> None:
    """Answers jobs and all that follow from them; `then` is called in this thread.

    What follows from a job goes before the jobs given after it: of many conversations, those
    that were begun are completed before others begin.

    Args:
        jobs: independent of each other.
        lines: of the endpoints; those that turn out to be gone are marked so.

    Raises:
        Unreachable: all endpoints are gone.
        ModelError: the first request to fail for good, after which no further one is started; but
            one that fails by itself goes to the job's `failed`, where it has one.
    """
    numbers, waiting = itertools.count(), _Waiting()
    with _Workers(sum(line.server.concurrency for line in lines)) as workers:
        for begun, job in enumerate(jobs):
            waiting.add(_task(job, begun, numbers))
        while True:
            _fill(lines, waiting, workers)
            if not any(line.under_way for line in lines):
                return
            line, task, answer = workers.take()
            if isinstance(answer, Unreachable):
                line.unavailable = answer
                waiting.leave(line, task)
                if all(line.unavailable for line in lines):
                    raise answer
                continue
            for job in _follow(task.job, answer):
                waiting.add(_task(job, task.begun, numbers))


def _fill(lines: Sequence[Line], waiting: _Waiting, workers: _Workers) -> None:
    """Gives every endpoint what it has room for, one task at a time in turn."""
    gives = True
    while gives:
        gives = False
        for line in lines:
            if line.under_way < line.server.concurrency and (task := waiting.next_of(line)):
                workers.give(line, task)
                gives = True


def _task(job: Job, begun: int, numbers: Iterator[int]) -> QueuedJob:
    return QueuedJob(begun, not job.request.keep, next(numbers), job)


def _follow(job: Job, answer: Reply | BaseException) -> Iterable[Job]:
    """The jobs that an answer leads to; an error that the job does not take is raised."""
    if isinstance(answer, RequestFailed) and job.failed is not None:
        return job.failed(answer)
    if isinstance(answer, BaseException):
        raise answer
    return job.then(answer)


class _Waiting:
    """Tasks that wait: for the endpoint that has begun their conversation, or for any."""

    def __init__(self) -> None:
        self._for_any: list[QueuedJob] = []
        self._lines: dict[Hashable, Line] = {}  # by conversation

    def add(self, task: QueuedJob) -> None:
        """One more."""
        line = self._lines.get(task.conversation)
        heappush(self._for_any if line is None else line.waiting, task)

    def next_of(self, line: Line) -> QueuedJob | None:
        """The first task that an endpoint may take; its conversation stays there."""
        while not line.unavailable:
            heaps = [heap for heap in (line.waiting, self._for_any) if heap]
            if not heaps:
                return None
            task = heappop(min(heaps, key=lambda heap: heap[0]))
            if task.conversation is None:
                return task
            if (where := self._lines.setdefault(task.conversation, line)) is line:
                return task
            heappush(where.waiting, task)
        return None

    def leave(self, line: Line, task: QueuedJob) -> None:
        """An endpoint is gone: its conversations go on wherever there is room, and so does the task
        that it did not answer.
        """
        self._lines = {name: where for name, where in self._lines.items() if where is not line}
        for left in (task, *line.waiting):
            self.add(left)
        line.waiting.clear()


class _Workers:
    """Threads that have tasks answered, each by itself; on leaving, no more is started.

    They are daemons: those of an executor would hold up the end of the program until the last
    answer is there.
    """

    def __init__(self, count: int):
        self._count = count
        self._tasks: SimpleQueue[Callable[[], _Answered] | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answered] = SimpleQueue()
        self._stopped = threading.Event()

    def __enter__(self) -> _Workers:
        for _ in range(self._count):
            threading.Thread(target=self._work, name="holdfast-endpoint", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:  # at the first failure and on Ctrl-C too
        self._stopped.set()
        for _ in range(self._count):
            self._tasks.put(None)

    def give(self, line: Line, task: QueuedJob) -> None:
        """Has an endpoint asked; the request is written in this thread."""
        request = task.job.request
        body = line.server.body_of(request)

        def ask() -> _Answered:
            try:
                return line, task, line.server.answer(body, request.sampling.max_new_tokens)
            except BaseException as error:
                return line, task, error

        line.under_way += 1
        self._tasks.put(ask)

    def take(self) -> _Answered:
        """The next task that is over, with its reply or its error."""
        while True:
            try:
                answered = self._answers.get(timeout=_HEED_INTERRUPTS)
            except Empty:
                continue
            answered[0].under_way -= 1
            return answered

    def _work(self) -> None:
        while (ask := self._tasks.get()) is not None and not self._stopped.is_set():
            self._answers.put(ask())
