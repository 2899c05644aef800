"""Resumes a run where it stopped, by deciding which part of each batch has to run.

for batch in resume(run, "none", batches(range(200), 48)):
    if batch.to_run:
        for record in work(batch.to_run):
            batch.append(record)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.records.belonging import Record
from holdfast.records.folder import OpenRun


@dataclass(frozen=True)
class PendingBatch:
    """Conversations or samples that run side by side, and which of them are left to do.

    Attributes:
        run: the run to which their records are appended.
        name: the first part of their keys: a method, a task and variant, or a stage.
        numbers: the second part of each key, for the whole batch.
        missing: the numbers that are not recorded.
        to_run: the numbers to run; () if none is missing. If results depend on what runs beside
            them, this is the whole batch, so that they are those of an uninterrupted run;
            otherwise, it is only the missing numbers.
    """

    run: OpenRun
    name: str
    numbers: tuple[int, ...]
    missing: frozenset[int]
    to_run: tuple[int, ...]

    @property
    def num_finished(self) -> int:
        """How many conversations or samples need no more work."""
        return len(self.numbers) - len(self.to_run)

    def append(self, record: Record) -> None:
        """Appends a record of the batch to the run, unless the run has it already."""
        if record.conversation in self.missing:
            self.run.append(record)


def resume(
    run: OpenRun, name: str, batches: Iterable[Sequence[int]], *, independent: bool = False
) -> Iterator[PendingBatch]:
    """Yields the batches of a run in order, including finished ones.

    Args:
        batches: the numbers of each batch; the same in every command of a run.
        independent: whether results do not depend on what runs beside them, so that the finished
            part of a batch need not run again.
    """
    for numbers in batches:
        missing_numbers = [number for number in numbers if (name, number) not in run]
        to_run = missing_numbers if independent or not missing_numbers else numbers
        yield PendingBatch(run, name, tuple(numbers), frozenset(missing_numbers), tuple(to_run))


def unfinished(
    batches: Iterable[PendingBatch], report: Callable[[int, int], None]
) -> list[PendingBatch]:
    """Returns the batches that are not finished.

    Args:
        report: a progress callback, called with the size of each finished batch and 0 tokens.
    """
    pending = []
    for batch in batches:
        if batch.to_run:
            pending.append(batch)
        else:
            report(len(batch.numbers), 0)
    return pending


def batches(numbers: Sequence[int], size: int) -> list[Sequence[int]]:
    """Splits numbers into batches of `size`, in order; the last batch may be smaller."""
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
