"""Who does which unit: handed out in order, handed on where an actor is gone, each over once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

_IN_COMPANY = 2  # actors that a unit may be gone with before it is done alone


class Board:
    """Units and the actors that have them; knows nothing of Ray.

    A unit whose actor is gone is handed to another. One that was with two actors that went is then
    done alone, so that nothing else is blamed for what it does; where its actor goes once more, it
    is given up.

    Args:
        numbers: the units, in order.
        together: how many an actor does side by side.
    """

    def __init__(self, numbers: Iterable[int], together: int):
        self._together = together
        self._waiting = deque(numbers)
        self._suspects: deque[int] = deque()
        self._losses: Counter[int] = Counter()
        self._open: dict[int, set[int]] = {}

    @property
    def finished(self) -> bool:
        """Whether no unit is left."""
        return not (self._waiting or self._suspects or any(self._open.values()))

    def give(self, actor: int, actors: int) -> list[int]:
        """Units for an actor, as far as it has room.

        It has room for a few more than it does side by side, so that one that is over makes room
        for another at once; but never for more than its part of what is left.

        Args:
            actor: its number.
            actors: how many share what is left.
        """
        has = self._open.setdefault(actor, set())
        if self._suspects and not has and not self._waiting:
            given = [self._suspects.popleft()]
        elif any(self._losses[number] >= _IN_COMPANY for number in has):
            given = []
        else:
            left = len(self._waiting) + sum(map(len, self._open.values()))
            room = min(self._together + self._ahead, -(-left // actors)) - len(has)
            given = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        has.update(given)
        return given

    def over(self, actor: int, number: int) -> None:
        """A unit is over."""
        self._open[actor].remove(number)

    def gone(self, actor: int) -> list[int]:
        """An actor is gone; its units go to others. Returns those that are given up."""
        given_up = []
        for number in sorted(self._open.pop(actor, ()), reverse=True):
            self._losses[number] += 1
            if self._losses[number] > _IN_COMPANY:
                given_up.append(number)
            elif self._losses[number] == _IN_COMPANY:
                self._suspects.append(number)
            else:
                self._waiting.appendleft(number)
        return given_up

    def has(self, actor: int) -> bool:
        """Whether an actor has units."""
        return bool(self._open.get(actor))

    def stop(self, actor: int) -> None:
        """An actor's work ended in an error: what it had is not done, and nothing more is begun."""
        self._open.pop(actor, None)
        self._waiting.clear()
        self._suspects.clear()

    @property
    def _ahead(self) -> int:
        return max(1, self._together // 8)
