"""The requests of the rows of a batch, by the numbers that the runner gives them.

The old runner keeps requests in the rows of its batch, and moves them about as others leave; the
new one gives each a slot for good. `Rows` belongs to one engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Known = TypeVar("Known")


@dataclass
class Rows(Generic[Known]):
    """The rows of one engine of which something is known; of any other number nothing is."""

    by_number: dict[int, Known] = field(default_factory=dict)

    def put(self, number: int, known: Known | None) -> None:
        """A request takes a number; what had it before is gone."""
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
        """Takes the old runner's changes between two passes.

        Args:
            removed: numbers whose requests left.
            added: numbers with what is known of the requests that took them.
            moved: from, to, and whether the two change places.
        """
        for number in removed:
            self.put(number, None)
        for number, known in added:
            self.put(number, known)
        for source, target, swapped in moved:
            there = self.by_number.get(target)
            self.put(target, self.by_number.get(source))
            self.put(source, there if swapped else None)

    def of(self, numbers: Sequence[int]) -> list[Known | None] | None:
        """The rows of a pass, in its order; None where nothing is known of any."""
        if not self.by_number:
            return None
        rows = [self.by_number.get(int(number)) for number in numbers]
        return rows if any(row is not None for row in rows) else None
