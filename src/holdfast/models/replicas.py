"""Replicas: copies of a model that do whole units of work side by side.

A unit is a conversation, or samples that are asked together. None reads another, so they are shared
out; the results go back to the process that shares them out, which alone writes records. `Local` is
the model itself; `integrations.ray` has actors on other machines. Batches of a run are handed out
whole, and recorded as their results arrive.
"""

from __future__ import annotations

import pickle
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from holdfast.errors import HoldfastError, ModelError, RequestFailed
from holdfast.models.failures import Unanswered
from holdfast.models.protocol import ChatModel
from holdfast.records import PendingBatch

Units = Iterator[tuple[int, Any]]  # each with its number


def _tell_nobody(*message: Any) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Takes the news of units, each called by its number."""

    outcome: Callable[[int, Any], None]  # something that came of a unit, such as a record
    over: Callable[[int], None] = _tell_nobody  # nothing more will come of a unit
    # how many pieces of work were just done, and the tokens that they took
    progress: Callable[[int, int], None] = _tell_nobody
    lost: Callable[[int, RequestFailed], None] = _tell_nobody  # a unit that no replica could do


class Work(Protocol):
    """A replica's task with units. It travels to the replica, so it can be pickled."""

    @property
    def together(self) -> int:
        """Units that all replicas do side by side; 1: each does one after the other."""

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        """Does the units of one of `replicas` replicas; where others share units out meanwhile,
        `units` may have another after it had none.
        """


@runtime_checkable
class Replicas(Protocol):
    """Where units of work are done."""

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with one replica's model; it travels there, so it can be pickled."""

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Has every unit done, begun in their order; when all are over, raises the first error."""


@dataclass(frozen=True)
class Local:
    """A model that does all units itself."""

    model: ChatModel

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.model, *arguments)

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        work.do(self.model, iter(units.items()), 1, listener)


def replicas_of(model: ChatModel) -> Replicas:
    """The replicas of a model that has some, else the model itself."""
    return model if isinstance(model, Replicas) else Local(model)


def portable(error: Exception) -> Exception:
    """An error as another process can read it; an unexpected one carries its traceback."""
    where = traceback.format_exc()
    try:
        same: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        same = ModelError(f"{type(error).__name__}: {error}")
    if not isinstance(error, HoldfastError):
        same.add_note(where)
    return same


@dataclass(frozen=True)
class BatchUnit:
    """A batch, and what a replica needs to know to work on it."""

    batch: PendingBatch  # of the run
    material: Any  # goes to the replica


def work_on(
    replicas: Replicas,
    work: Work,
    units: Sequence[BatchUnit],
    note: Callable[[Unanswered], None],
    progress: Callable[[int, int], None],
    settle: Callable[[dict[str, Any]], dict[str, Any]] = lambda record: record,
) -> None:
    """Has batches worked on, and keeps their records.

    The work's outcomes are records, which pass through `settle`, or `Unanswered`, which `note`
    takes; `progress` takes the size of a batch that is over and its tokens.
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
