"""The requests of a batch's rows, by the numbers that the runner gives them.

The old runner keeps requests in the rows of its batch, and moves them when others leave; the new
one gives each a permanent slot. A `Rows` belongs to one engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Known = TypeVar("Known")


@dataclass
class Rows(Generic[Known]):
    """The known rows of one engine; nothing is known of a number that is missing."""

    by_number: dict[int, Known] = field(default_factory=dict)

    def put(self, number: int, known: Known | None) -> None:
        """Assigns a number to a request; replaces the one that had it before."""
        if known is None:
            self.by_number.pop(number, None)
        else:
            self.by_number[number] = known

    def update(
        self,
        removed: Iterable[int],
        added: Iterable[tuple[int, Known | None]],
        moved: Iterable[tuple[int, int, bool]],
    ) -> None:
        """Applies the old runner's changes between two passes.

        Args:
            removed: numbers whose requests left.
            added: numbers, with what is known of the requests that took them.
            moved: from, to, and whether the two are swapped.
        """
        for number in removed:
            self.put(number, None)
        for number, known in added:
            self.put(number, known)
        for source, target, swapped in moved:
            replaced = self.by_number.get(target)
            self.put(target, self.by_number.get(source))
            self.put(source, replaced if swapped else None)

    def of(self, numbers: Sequence[int]) -> list[Known | None] | None:
        """The rows of a pass, in its order; None if nothing is known of any."""
        if not self.by_number:
            return None
        rows = [self.by_number.get(int(number)) for number in numbers]
        return rows if any(row is not None for row in rows) else None
