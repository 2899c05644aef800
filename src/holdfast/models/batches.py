"""Batches of a run as units of work: handed out whole, recorded as what comes of them arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import RequestFailed
from holdfast.models.failures import Unanswered
from holdfast.models.replicas import Listener, Replicas, Work
from holdfast.records import PendingBatch


@dataclass(frozen=True)
class BatchUnit:
    """A batch, and what a replica needs to know to work on it.

    Args:
        batch: of the run.
        material: goes to the replica.
    """

    batch: PendingBatch
    material: Any


def work_on(
    replicas: Replicas,
    work: Work,
    units: Sequence[BatchUnit],
    note: Callable[[Unanswered], None],
    progress: Callable[[int, int], None],
    settle: Callable[[dict[str, Any]], dict[str, Any]] = lambda record: record,
) -> None:
    """Has batches worked on, and keeps their records.

    Args:
        replicas: do it.
        work: tells a record, or an `Unanswered`, as an outcome of its unit.
        units: those that are not finished.
        note: takes what was not answered, and stays missing; its number is that of a record, where
            a batch was lost as a whole.
        progress: told how many of the run's samples or conversations a batch had that is over, and
            the tokens that its records tell.
        settle: makes of a record what is kept of it.

    Raises:
        HoldfastError: as `Replicas.work`.
    """
    tokens: Counter[int] = Counter()

    def take(number: int, outcome: dict[str, Any] | Unanswered) -> None:
        if isinstance(outcome, Unanswered):
            note(outcome)
            return
        tokens[number] += outcome.get("tokens", {}).get("forwarded", 0)
        units[number].batch.keep(settle(outcome))

    def over(number: int) -> None:
        progress(len(units[number].batch.numbers), tokens.pop(number, 0))

    def lost(number: int, error: RequestFailed) -> None:
        batch = units[number].batch
        for missing in sorted(batch.missing):
            note(Unanswered((batch.name, missing), error.why, str(error)))
        over(number)

    if units:
        materials = {number: unit.material for number, unit in enumerate(units)}
        replicas.work(work, materials, Listener(take, over, lost=lost))
