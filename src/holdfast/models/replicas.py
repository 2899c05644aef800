"""Replicas: copies of a model that do whole units of work side by side.

A unit is a conversation, or samples that are asked together. None reads another, so they are shared
out; the results go back to the process that shares them out, which alone writes records. `Local` is
the model itself; `integrations.ray` has actors on other machines. Batches of a run are handed out
whole, and recorded as their results arrive.
"""

import functools
import pickle
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from holdfast.errors import HoldfastError, ModelError, RequestFailed
from holdfast.models.failures import Failures, Name, Unanswered
from holdfast.models.protocol import ChatModel
from holdfast.records import PendingBatch

Units = Iterator[tuple[int, Any]]  # each with its number
Keep = Callable[[Any], None]  # takes a record


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
        """Does the units of one of `replicas`; `units` may have another after it had none."""


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
class BatchWork:
    """Work whose units are batches of a run, asked one after the other."""

    # asks a batch, of this material, and keeps its records; it can be pickled
    ask: Callable[[ChatModel, Any, Failures, Keep], None]
    unit: str  # "conversation", "sample" or "question", for messages
    together: ClassVar[int] = 1

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        unit = 0
        failures = Failures(lambda unanswered: listener.outcome(unit, unanswered), self.unit)
        for unit, material in units:
            self.ask(model, material, failures, functools.partial(listener.outcome, unit))
            listener.over(unit)
        failures.finish(model.session())


def ask_batches(
    model: ChatModel,
    work: BatchWork,
    batches: Iterable[PendingBatch],
    material: Callable[[PendingBatch], Any],
    progress: Callable[[int, int], None],
    *,
    record_of: Callable[[Name], Name] = lambda name: name,
    resolve: Callable[[dict[str, Any]], dict[str, Any]] = lambda record: record,
) -> None:
    """Has the unfinished batches of a run asked, and keeps their records.

    Args:
        material: what a replica needs to know of a batch.
        record_of: the method and conversation that an unanswered request is noted under.
        resolve: completes a record before it is kept.
    """
    pending: list[PendingBatch] = []
    for batch in batches:
        if batch.again:
            pending.append(batch)
        else:
            progress(len(batch.numbers), 0)
    tokens: Counter[int] = Counter()

    def take(number: int, outcome: dict[str, Any] | Unanswered) -> None:
        batch = pending[number]
        if isinstance(outcome, Unanswered):
            batch.run.note_failure(*record_of(outcome.name), outcome.why, outcome.reason)
            return
        tokens[number] += outcome.get("tokens", {}).get("forwarded", 0)
        batch.keep(resolve(outcome))

    def over(number: int) -> None:
        progress(len(pending[number].numbers), tokens.pop(number, 0))

    def lost(number: int, error: RequestFailed) -> None:
        batch = pending[number]
        for missing in sorted(batch.missing):
            batch.run.note_failure(batch.name, missing, error.why, str(error))
        over(number)

    if pending:
        materials = {number: material(batch) for number, batch in enumerate(pending)}
        replicas_of(model).work(work, materials, Listener(take, over, lost=lost))
