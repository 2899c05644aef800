"""Threads that have the tasks of an endpoint answered, so many at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from holdfast.models.protocol import Job
from holdfast.models.requests import Reply


@dataclass(frozen=True, order=True)
class Task:
    """A job that waits, in the order in which jobs are taken.

    Args:
        begun: which of the first jobs it follows from.
        fork: whether no other request waits for its reply.
        number: the order of arrival.
    """

    begun: int
    fork: bool
    number: int
    job: Job = field(compare=False)
    body: dict[str, object] = field(compare=False)


class Workers:
    """Threads that answer tasks, each by itself; on leaving, no more is started.

    They are daemons: those of an executor would hold up the end of the program until the last
    answer is there.
    """

    def __init__(self, count: int, answer: Callable[[dict[str, object], int], Reply]):
        self.under_way = 0
        self._count, self._answer = count, answer
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Task, Reply | BaseException]] = SimpleQueue()
        self._stopped = threading.Event()

    def __enter__(self) -> Workers:
        for _ in range(self._count):
            threading.Thread(target=self._work, name="holdfast-endpoint", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:  # at the first failure and on Ctrl-C too
        self._stopped.set()
        for _ in range(self._count):
            self._tasks.put(None)

    def give(self, task: Task) -> None:
        self._tasks.put(task)
        self.under_way += 1

    def take(self) -> tuple[Task, Reply | BaseException]:
        """The next task that is over, with its reply or its error."""
        answered = self._answers.get()
        self.under_way -= 1
        return answered

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopped.is_set():
            try:
                limit = task.job.request.sampling.max_new_tokens
                self._answers.put((task, self._answer(task.body, limit)))
            except BaseException as error:
                self._answers.put((task, error))
