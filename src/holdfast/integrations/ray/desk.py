"""Where the calls of an actor and the thread of its work meet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.models.replicas import Listener


@dataclass
class News:
    """What an actor has to tell.

    Args:
        finished: of each unit that is over, everything that came of it.
        done, tokens: pieces of work that were done, and the tokens they took.
        error: what ended the work.
    """

    finished: dict[int, list[Any]] = field(default_factory=dict)
    done: int = 0
    tokens: int = 0
    error: Exception | None = None


class Desk:
    """Units that an actor was given, and what came of them.

    The work takes units by iterating. Between two of them there may be none for a while: with some
    under way the iteration then pauses, so that they go on, and without it waits.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Any]] = deque()
        self._outcomes: dict[int, list[Any]] = {}  # of the units under way
        self._news = News()
        self.closed = False

    def give(self, units: Iterable[tuple[int, Any]]) -> None:
        """More units for the work."""
        with self._changed:
            self._waiting.extend(units)
            self._changed.notify_all()

    def take(self, seconds: float) -> News:
        """What there is to tell: waits until a unit is over, but not longer than so many
        seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._news.finished or self._news.error, seconds)
            news, self._news = self._news, News()
            return news

    def close(self) -> None:
        """No more units will be given."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """The work has ended in an error."""
        with self._changed:
            self._news.error = error
            self._changed.notify_all()

    @property
    def listener(self) -> Listener:
        """Takes what the work tells."""
        return Listener(self._outcome, self._over, self._progress)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        with self._changed:
            while not self._waiting:
                if self._outcomes or self.closed:
                    raise StopIteration
                self._changed.wait()
            number, unit = self._waiting.popleft()
            self._outcomes[number] = []
            return number, unit

    def _outcome(self, number: int, outcome: Any) -> None:
        with self._changed:
            self._outcomes[number].append(outcome)

    def _over(self, number: int) -> None:
        with self._changed:
            self._news.finished[number] = self._outcomes.pop(number)
            self._changed.notify_all()

    def _progress(self, done: int, tokens: int) -> None:
        with self._changed:
            self._news.done += done
            self._news.tokens += tokens
