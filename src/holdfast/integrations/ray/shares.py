"""Which actor does which units of work; knows nothing of Ray."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence

_TOGETHER = 2  # actors that a unit may be lost with among others, before it is tried alone


class Shares:
    """Units of work, handed out in shares.

    A share is half of an even split of the units that are left, so that the last shares are small
    and all actors end at about the same time. What an actor was lost with is handed out again. A
    unit that was under way on two actors that were lost is then done alone, so that nothing else is
    blamed for what it does; if that actor is lost too, it is given up.

    Args:
        numbers: the units, in the order in which they are begun.
        together: how many units an actor does side by side; no share is less than half of it.
        actors: how many share the work.
    """

    def __init__(self, numbers: Iterable[int], together: int, actors: int):
        self._together, self._actors = together, actors
        self._left = deque(numbers)
        self._suspects: deque[int] = deque()
        self._losses: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._left or self._suspects)

    def next(self) -> list[int]:
        """The next share; [] where none is left."""
        if not self._left and self._suspects:
            return [self._suspects.popleft()]
        even = math.ceil(len(self._left) / self._actors)
        least = math.ceil(self._together / 2)
        size = max(even / 2, min(even, self._together), least)
        return [self._left.popleft() for _ in range(min(math.ceil(size), len(self._left)))]

    def lose(self, unfinished: Sequence[int]) -> list[int]:
        """Takes back what an actor was lost with; returns the units that are given up.

        Args:
            unfinished: of its share, in order; the first of them were under way.
        """
        under_way = unfinished[: self._together]
        self._losses.update(under_way)
        self._left.extendleft(n for n in reversed(unfinished) if self._losses[n] < _TOGETHER)
        self._suspects.extend(n for n in under_way if self._losses[n] == _TOGETHER)
        return [n for n in under_way if self._losses[n] > _TOGETHER]
