"""Takes a run up where it was: the one place that says what of a batch has to be done (again).

for batch in resume(run, "none", batches(range(200), 48)):
    if batch.again:
        for record in work(batch.again):
            batch.keep(record)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.records.run import Run


@dataclass(frozen=True)
class PendingBatch:
    """Conversations or samples that are worked on side by side, and what is left of them.

    `again` are those to work on: the whole batch as long as one of it is missing, so that its
    arithmetic is that of a run that was not interrupted; or the missing ones alone, where no result
    depends on what runs beside it.
    """

    run: Run  # where their records go
    name: str  # the first part of their keys: a method, a task and variant, or a stage
    numbers: tuple[int, ...]  # the second parts, all of the batch
    missing: frozenset[int]  # those that are not recorded
    again: tuple[int, ...]

    @property
    def kept(self) -> int:
        """How many need no more work."""
        return len(self.numbers) - len(self.again)

    def keep(self, record: Mapping[str, Any]) -> None:
        """Appends the record of one of the batch, unless the run has it; it needs no `method`."""
        if record["conversation"] in self.missing:
            self.run.append({"method": self.name, **record})


def resume(
    run: Run, name: str, batches: Iterable[Sequence[int]], *, alone: bool = False
) -> Iterator[PendingBatch]:
    """The batches of a run in their order, finished ones included.

    Args:
        batches: the numbers of each; the same ones in every command of a run.
        alone: whether results do not depend on what runs beside them, so that finished ones of a
            batch need not run again.
    """
    for numbers in batches:
        missing = [number for number in numbers if (name, number) not in run]
        again = missing if alone or not missing else numbers
        yield PendingBatch(run, name, tuple(numbers), frozenset(missing), tuple(again))


def batches(numbers: Sequence[int], size: int) -> list[Sequence[int]]:
    """The numbers in their order, `size` at a time; the last batch may be smaller."""
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
