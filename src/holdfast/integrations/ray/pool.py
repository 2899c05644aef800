"""The actors that hold replicas of a model: started, waited for, replaced where one is gone."""

from __future__ import annotations

import contextlib
import itertools
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ModelError
from holdfast.integrations.ray.actor import Actor, Description, Specification
from holdfast.integrations.ray.refusals import as_ours, check_alike, check_versions, reason_of
from holdfast.integrations.ray.rounds import Round

_PATIENCE = 120.0  # seconds in which a cluster gives an actor its place
_MOST_STARTS = 3  # actors in a row that are gone before they have loaded the model
_POLL = 1.0  # seconds


@dataclass(frozen=True)
class Seat:
    """What an actor has of its machine."""

    processors: int
    gpus: int

    def __str__(self) -> str:
        many = "" if self.processors == 1 else "s"
        gpu = "a GPU and " if self.gpus else ""
        return f"{gpu}{self.processors} processor{many}"


@dataclass(eq=False)
class Replica:
    """An actor as it is seen from here.

    Args:
        number: its own.
        handle: Ray's.
        waits_for: the result of its last call; None where there is none.
        since: when it was asked for.
        node: the machine's name, once the actor has its place.
        description: once it has loaded the model.
        at_work: whether it was told what this round of work is.
    """

    number: int
    handle: Any
    waits_for: Any
    since: float = field(default_factory=time.monotonic)
    node: str = ""
    description: Description | None = None
    at_work: bool = False


class ActorPool:
    """Actors of a cluster, as many as are wanted; one that is gone is asked for again.

    Args:
        specification: what each of them loads.
        seat: what each has.
        count: how many.
        address: of the cluster, for messages.
        ours: whether the connection to the cluster ends with them.

    Raises:
        ModelError: the cluster gives none a place, or one cannot load the model.
    """

    def __init__(
        self, specification: Specification, seat: Seat, count: int, address: str, ours: bool
    ):
        self.count = count
        self._specification, self._seat, self._address = specification, seat, address
        self._numbers = itertools.count()
        self._replicas: list[Replica] = []
        self._first: Replica | None = None  # that loaded the model; the others are to be like it
        self._failed_starts = 0
        self._is_told = False
        self.close = weakref.finalize(self, _end, self._replicas, ours)
        try:
            self._fill_up()
            while self._first is None:
                self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def description(self) -> Description:
        """What the first actor told of the model, and every other has to tell."""
        assert self._first is not None and self._first.description is not None
        return self._first.description

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function makes of an actor's model; another is asked where that one is gone.

        Raises:
            Exception: what the function raises.
            ModelError: no actor can be had.
        """
        import ray

        while True:
            for replica in self._loaded():
                try:
                    answer, error = ray.get(replica.handle.compute.remote(function, arguments))
                except ray.exceptions.RayActorError as gone:
                    self._gone(replica, gone, None)
                except ray.exceptions.RayTaskError as unread:
                    raise as_ours(unread, replica.node) from None
                else:
                    if error is not None:
                        raise error
                    return answer
            self._fill_up()
            self._wait()

    def do(self, task: Round, work: Any) -> None:
        """Has a round of work done.

        Args:
            task: the round.
            work: what is done, as Ray has stored it.

        Raises:
            ModelError: no actor can be had, or too many units in a row were lost.
        """
        for replica in self._replicas:
            replica.at_work = False
        try:
            while not task.board.finished:
                self._fill_up()
                for replica in self._loaded():
                    if replica.waits_for is None:
                        replica.waits_for = self._call(replica, task, work)
                self._wait(task)
        except BaseException:
            self._end_those_at_work(task)
            raise

    def _call(self, replica: Replica, task: Round, work: Any) -> Any:
        """Tells an actor what the work is, or gives it units; None where there are none for it."""
        if not replica.at_work:
            replica.at_work = True
            return replica.handle.begin.remote(work, self.count)
        numbers = task.board.give(replica.number, self.count)
        if not numbers and not task.board.has(replica.number):
            return None
        return replica.handle.exchange.remote([(number, task.units[number]) for number in numbers])

    def _loaded(self) -> list[Replica]:
        return [replica for replica in self._replicas if replica.description]

    def _fill_up(self) -> None:
        """Asks for as many actors as are lacking."""
        import ray

        remote = ray.remote(Actor).options(
            num_cpus=self._seat.processors, num_gpus=self._seat.gpus, scheduling_strategy="SPREAD"
        )
        while len(self._replicas) < self.count:
            handle = remote.remote(self._seat.processors)
            self._replicas.append(Replica(next(self._numbers), handle, handle.about.remote()))

    def _wait(self, task: Round | None = None) -> None:
        """Takes what actors have answered, for a second at most."""
        import ray

        asked = {each.waits_for: each for each in self._replicas if each.waits_for is not None}
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
        if not answered:
            answered, _ = ray.wait(list(asked), timeout=_POLL)
        for result in answered:
            replica = asked[result]
            replica.waits_for = None
            try:
                self._take(replica, ray.get(result), task)
            except ray.exceptions.RayActorError as error:
                self._gone(replica, error, task)
            except ray.exceptions.RayTaskError as error:
                raise as_ours(error, replica.node) from None
        self._check_places()

    def _take(self, replica: Replica, answer: Any, task: Round | None) -> None:
        """An actor's answer, by what it was asked."""
        if not replica.node:
            replica.node, there = answer
            check_versions(there, replica.node)
            replica.waits_for = replica.handle.load.remote(self._specification)
        elif replica.description is None:
            self._first = self._first or replica
            replica.description, self._failed_starts = answer, 0
            check_alike(self.description, self._first.node, answer, replica.node)
        elif task is not None and answer is not None:
            task.take(replica.number, answer)

    def _gone(self, replica: Replica, error: Exception, task: Round | None) -> None:
        """An actor is gone, and what it had goes to others.

        Raises:
            ModelError: actors are gone as soon as they begin, or too many units in a row were lost.
        """
        import ray

        ray.kill(replica.handle)  # which may only have been out of reach
        self._replicas.remove(replica)
        why = reason_of(error)
        if replica.description is None:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_STARTS:
                raise ModelError(
                    f"{_MOST_STARTS} actors in a row were gone before they had loaded"
                    f" {self._specification.name!r} ({why}); where memory ran out, use a smaller"
                    " --dtype or fewer --replicas on a machine."
                )
        elif task is not None:
            task.gone(replica.number, why)

    def _check_places(self) -> None:
        """Tells of actors that get no place.

        Raises:
            ModelError: none has one.
        """
        late = [
            replica
            for replica in self._replicas
            if not replica.node and time.monotonic() - replica.since > _PATIENCE
        ]
        if not late or (self._is_told and len(late) < len(self._replicas)):
            return
        told = (
            f"The Ray cluster at {self._address!r} has given {len(late)} of {self.count} actors no"
            f" place in {_PATIENCE:.0f} s, with {self._seat} each"
        )
        if len(late) == len(self._replicas):
            raise ModelError(f"{told}; free some (`ray status` shows what is used), or add nodes.")
        self._is_told = True
        warnings.warn(f"{told}; the others go on without them.", stacklevel=2)

    def _end_those_at_work(self, task: Round) -> None:
        """Actors that still do units nobody waits for; the next work has others."""
        import ray

        for replica in [each for each in self._replicas if task.board.has(each.number)]:
            with contextlib.suppress(Exception):
                ray.kill(replica.handle)
            self._replicas.remove(replica)


def _end(replicas: list[Replica], ours: bool) -> None:
    import ray

    if ray.is_initialized():
        for replica in replicas:
            ray.kill(replica.handle)
        if ours:
            ray.shutdown()
    replicas.clear()
