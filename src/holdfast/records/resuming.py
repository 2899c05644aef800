"""Resumes a run where it stopped: the one place that decides what part of a batch to run (again).

for batch in resume(run, "none", batches(range(200), 48)):
    if batch.again:
        for record in work(batch.again):
            batch.keep(record)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.records.belonging import Record
from holdfast.records.folder import OpenRun


@dataclass(frozen=True)
class PendingBatch:
    """Conversations or samples that run side by side, and which of them are left to do.

    `again` are those to run: the whole batch as long as any of it is missing, so that its
    arithmetic is that of an uninterrupted run; or only the missing ones, if no result depends on
    what runs beside it.
    """

    run: OpenRun  # where their records go
    name: str  # the first part of their keys: a method, a task and variant, or a stage
    numbers: tuple[int, ...]  # the second parts, for the whole batch
    missing: frozenset[int]  # those that are not recorded
    again: tuple[int, ...]

    @property
    def kept(self) -> int:
        """How many need no more work."""
        return len(self.numbers) - len(self.again)

    def keep(self, record: Record) -> None:
        """Appends a record of the batch, unless the run has it."""
        if record.conversation in self.missing:
            self.run.append(record)


def resume(
    run: OpenRun, name: str, batches: Iterable[Sequence[int]], *, alone: bool = False
) -> Iterator[PendingBatch]:
    """The batches of a run in order, including finished ones.

    Args:
        batches: the numbers of each batch; the same in every command of a run.
        alone: whether results do not depend on what runs beside them, so that finished ones of a
            batch need not run again.
    """
    for numbers in batches:
        missing = [number for number in numbers if (name, number) not in run]
        again = missing if alone or not missing else numbers
        yield PendingBatch(run, name, tuple(numbers), frozenset(missing), tuple(again))


def unfinished(
    batches: Iterable[PendingBatch], report: Callable[[int, int], None]
) -> list[PendingBatch]:
    """The batches of which anything is left to do; `report` receives how many others are kept."""
    left = []
    for batch in batches:
        if batch.again:
            left.append(batch)
        else:
            report(len(batch.numbers), 0)
    return left


def batches(numbers: Sequence[int], size: int) -> list[Sequence[int]]:
    """The numbers in order, `size` at a time; the last batch may be smaller."""
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
