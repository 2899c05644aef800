"""Replicas: copies of a model that do whole units of work side by side.

A unit is a conversation, or samples that are requested together. Units are independent, so they are
distributed; the results return to the distributing process, the only one that writes records.
`Local` is the model itself; `integrations.ray` has actors on other machines. Batches of a run are
handed out whole, and recorded as their results arrive.
"""

import functools
import pickle
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from holdfast.common.event_loop import run_sync
from holdfast.errors import HoldfastError, ModelError, RequestFailed
from holdfast.models.failures import Name, OutageWatch, Unanswered
from holdfast.models.protocol import ChatModel
from holdfast.records import Conversation, PendingBatch, Record

Units = Iterator[tuple[int, Any]]  # each with its number
Keep = Callable[[Any], None]  # receives a record


def _tell_nobody(*message: Any) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Receives the events of units, each identified by its number."""

    outcome: Callable[[int, Any], None]  # a result of a unit, such as a record
    over: Callable[[int], None] = _tell_nobody  # a unit has ended
    # how many pieces of work were just done, and how many tokens they took
    progress: Callable[[int, int], None] = _tell_nobody
    lost: Callable[[int, RequestFailed], None] = _tell_nobody  # a unit that no replica could do


class Work(Protocol):
    """The work that replicas do on units; it is sent to them, so it must be picklable."""

    @property
    def together(self) -> int:
        """Units that all replicas do side by side; 1: each replica does one after the other."""

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        """Does the units of one of `replicas`; `units` may yield more after it was exhausted."""


@runtime_checkable
class Replicas(Protocol):
    """Where units of work are done."""

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with one replica's model; it is sent there, so it must be picklable."""

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Runs every unit, starting them in order; once all are over, raises the first error."""


@dataclass(frozen=True)
class Local:
    """A model that does all units itself."""

    model: ChatModel

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.model, *arguments)

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        work.do(self.model, iter(units.items()), 1, listener)


def replicas_of(model: ChatModel) -> Replicas:
    """The replicas of a model that has any, else the model itself."""
    return model if isinstance(model, Replicas) else Local(model)


def portable(error: Exception) -> Exception:
    """An error that another process can read; an unexpected one carries its traceback."""
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
    """Work whose units are batches of a run, run one after the other."""

    # runs a batch, given this material, and keeps its records; must be picklable
    ask: Callable[[ChatModel, Any, OutageWatch, Keep], Awaitable[None]]
    unit: str  # "conversation", "sample" or "question", for messages
    together: ClassVar[int] = 1

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        run_sync(self._do(model, units, listener))

    async def _do(self, model: ChatModel, units: Units, listener: Listener) -> None:
        unit = 0
        watch = OutageWatch(lambda unanswered: listener.outcome(unit, unanswered), self.unit)
        for unit, material in units:
            await self.ask(model, material, watch, functools.partial(listener.outcome, unit))
            listener.over(unit)
        async with model.session() as engine:
            await watch.finish(engine)


def ask_batches(
    model: ChatModel,
    work: BatchWork,
    batches: Iterable[PendingBatch],
    material: Callable[[PendingBatch], Any],
    progress: Callable[[int, int], None],
    *,
    record_of: Callable[[Name], Name] = lambda name: name,
    resolve: Callable[[Any], Any] = lambda record: record,
) -> None:
    """Does the unfinished batches of a run, and keeps their records.

    Args:
        material: what a replica needs to know about a batch.
        record_of: the method and conversation to note an unanswered request under.
        resolve: completes a record before it is kept.
    """
    pending: list[PendingBatch] = []
    for batch in batches:
        if batch.again:
            pending.append(batch)
        else:
            progress(len(batch.numbers), 0)
    tokens: Counter[int] = Counter()

    def take(number: int, outcome: Record | dict[str, Any] | Unanswered) -> None:
        batch = pending[number]
        if isinstance(outcome, Unanswered):
            batch.run.note_failure(*record_of(outcome.name), outcome.why, outcome.reason)
            return
        if isinstance(outcome, Mapping):
            tokens[number] += outcome.get("tokens", {}).get("forwarded", 0)
        elif isinstance(outcome, Conversation):
            tokens[number] += outcome.tokens.forwarded
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
