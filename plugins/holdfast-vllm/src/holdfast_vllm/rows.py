"""Values for the rows of a batch, by the numbers that the runner gives to requests.

The old runner numbers requests by their rows in the batch, and moves them when others leave; the
new runner gives each a permanent slot. A `Rows` belongs to one engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class RowMove(NamedTuple):
    """A request that the old runner moves from one number to another."""

    source: int
    target: int
    is_swap: bool  # whether the target's request takes the source's number


@dataclass
class Rows(Generic[Value]):
    """Values for some rows of one engine: their steering, or how they draw."""

    by_number: dict[int, Value] = field(default_factory=dict)

    def put(self, number: int, value: Value | None) -> None:
        """Sets the value of a number, in place of an earlier request's; None removes it."""
        if value is None:
            self.by_number.pop(number, None)
        else:
            self.by_number[number] = value

    def update(
        self,
        removed: Iterable[int],
        added: Iterable[tuple[int, Value | None]],
        moved: Iterable[RowMove],
    ) -> None:
        """Applies the old runner's changes between two passes.

        Args:
            removed: numbers whose requests left.
            added: numbers of new requests, with their values.
            moved: the moves, in order.
        """
        for number in removed:
            self.put(number, None)
        for number, value in added:
            self.put(number, value)
        for source, target, is_swap in moved:
            replaced = self.by_number.get(target)
            self.put(target, self.by_number.get(source))
            self.put(source, replaced if is_swap else None)

    def of(self, numbers: Sequence[int]) -> list[Value | None] | None:
        """Returns the values of a pass's rows, in order; None if no row has any."""
        if not self.by_number:
            return None
        rows = [self.by_number.get(int(number)) for number in numbers]
        return rows if any(row is not None for row in rows) else None
