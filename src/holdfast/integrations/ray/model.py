"""A model of which actors hold replicas; this process holds none, and hands units out."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.errors import ModelError, RequestFailed
from holdfast.integrations.ray.actor import Actor, Description, Specification, versions
from holdfast.integrations.ray.board import Board
from holdfast.integrations.ray.desk import News
from holdfast.methods import Ability, Method
from holdfast.models.failures import MOST_IN_A_ROW
from holdfast.models.protocol import Session
from holdfast.models.replicas import Listener, Work
from holdfast.models.requests import Reply, Request
from holdfast.sampling import Sampling

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
class _Replica:
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


class RayModel:
    """A chat model and its replicas; see `holdfast.integrations.ray.connect`.

    Args:
        specification: what each actor loads.
        seat: what each actor has.
        count: how many actors.
        address: of the cluster.
        ours: whether the connection to the cluster ends with this.

    Raises:
        ModelError: no actor has room, or one cannot load the model.
    """

    independent: ClassVar[bool] = False
    replicas: ClassVar[int] = 0

    def __init__(
        self, specification: Specification, seat: Seat, count: int, address: str, ours: bool
    ):
        self._specification, self._seat, self._count = specification, seat, count
        self._address = address
        self._numbers = itertools.count()
        self._replicas: list[_Replica] = []
        self._finalizer = weakref.finalize(self, _end, self._replicas, ours)
        self._description: Description | None = None
        self._first_node = ""
        self._failed_starts = 0
        self._is_told = False
        try:
            self._fill_up()
            while self._description is None:
                self._wait()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RayModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors, and the connection where it was made for them; so does the last use of
        the model.
        """
        self._finalizer()

    @property
    def name(self) -> str:
        """As the specification has it."""
        return self._described.name

    @property
    def fingerprint(self) -> str:
        """That of every actor's model."""
        return self._described.fingerprint

    @property
    def runtime(self) -> dict[str, str | int]:
        """That of every actor: a run goes on with or without Ray where it is the same."""
        return self._described.runtime

    @property
    def offers(self) -> frozenset[Ability]:
        """What methods can use of it."""
        return self._described.offers

    @property
    def about(self) -> dict[str, Any]:
        """For the manifest: where the replicas are; no result depends on it."""
        seat = {"processors": self._seat.processors, "gpus": self._seat.gpus}
        return {"ray": {"address": self._address, "replicas": self._count, "each": seat}}

    def __str__(self) -> str:
        return f"{self._count} replicas on Ray at {self._address}, each with {self._seat}"

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that the model cannot apply.

        Raises:
            HoldfastError: an actor's own.
        """
        if (refusal := self._ask("check", tuple(methods))) is not None:
            raise refusal

    def generate(
        self,
        messages: Sequence[Message],
        methods: Sequence[Method] = (),
        sampling: Sampling = Sampling(),
        seed: int = 0,
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
    ) -> Reply:
        """Answers one chat, by one of the actors."""
        request = Request(messages, methods, sampling, seed, emphasis=emphasis, marks=marks)
        return self.generate_batch([request])[0]

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, by one of the actors."""
        replies: list[Reply] = self._ask("generate_batch", list(requests))
        return replies

    def session(self) -> Session:
        """There is none: what actors share is theirs, and whole units of work go to them.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            f"{self.name} has replicas on Ray, which do whole conversations and batches of samples;"
            " load it with holdfast.load() for anything else."
        )

    def _ask(self, method: str, argument: Any) -> Any:
        """What an actor answers; another is asked where that one is gone."""
        import ray

        while True:
            for replica in [each for each in self._replicas if each.description]:
                try:
                    return ray.get(getattr(replica.handle, method).remote(argument))
                except ray.exceptions.RayActorError as error:
                    self._gone(replica, error, None)
                except ray.exceptions.RayTaskError as error:
                    raise _as_ours(error, replica) from None
            self._fill_up()
            self._wait()

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Has every unit done once.

        A unit whose actor is gone is begun again by another, and another actor is asked for. Once
        it was gone with three actors, the last time alone, it is told as lost.

        Raises:
            HoldfastError: what ended the work of an actor, when the others have done what they had
                begun; or too many units in a row were lost; or the cluster gives no actor room.
        """
        import ray

        board = Board(units, -(-work.together // self._count))
        task = _Round(board, units, listener)
        packed = ray.put(work)
        for replica in self._replicas:
            replica.at_work = False
        try:
            while not board.finished:
                self._fill_up()
                self._hand_out(task, packed)
                self._wait(task)
        except BaseException:
            self._end_those_at_work(board)
            raise
        if task.error is not None:
            raise task.error

    @property
    def _described(self) -> Description:
        assert self._description is not None
        return self._description

    def _fill_up(self) -> None:
        """Asks for as many actors as are lacking."""
        import ray

        remote = ray.remote(Actor).options(
            num_cpus=self._seat.processors, num_gpus=self._seat.gpus, scheduling_strategy="SPREAD"
        )
        while len(self._replicas) < self._count:
            handle = remote.remote(self._seat.processors)
            self._replicas.append(_Replica(next(self._numbers), handle, handle.about.remote()))

    def _hand_out(self, task: _Round, packed: Any) -> None:
        """Gives units to the actors that wait for some."""
        for replica in self._replicas:
            if replica.description is None or replica.waits_for is not None:
                continue
            numbers = task.board.give(replica.number, self._count)
            if not numbers and not task.board.has(replica.number):
                continue
            if not replica.at_work:
                replica.handle.begin.remote(packed, self._count)
                replica.at_work = True
            given = [(number, task.units[number]) for number in numbers]
            replica.waits_for = replica.handle.exchange.remote(given)

    def _wait(self, task: _Round | None = None) -> None:
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
                raise _as_ours(error, replica) from None
        self._check_places()

    def _take(self, replica: _Replica, answer: Any, task: _Round | None) -> None:
        """An actor's answer, by what it was asked."""
        if not replica.node:
            replica.node, there = answer
            _check_versions(there, replica.node)
            replica.waits_for = replica.handle.load.remote(self._specification)
        elif replica.description is None:
            self._compare(answer, replica.node)
            replica.description, self._failed_starts = answer, 0
        elif task is not None:
            task.take(replica.number, answer)

    def _gone(self, replica: _Replica, error: Exception, task: _Round | None) -> None:
        """An actor is gone, and what it had goes to others.

        Raises:
            ModelError: actors are gone as soon as they begin, or too many units in a row were lost.
        """
        import ray

        ray.kill(replica.handle)  # which may only have been out of reach
        self._replicas.remove(replica)
        why = _reason(error)
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

    def _compare(self, description: Description, node: str) -> None:
        """Refuses an actor whose model would give other replies.

        Raises:
            ModelError: names both machines.
        """
        if self._description is None:
            self._description, self._first_node = description, node
            return
        for name in ("fingerprint", "runtime"):
            here, there = getattr(self._description, name), getattr(description, name)
            if here != there:
                raise ModelError(
                    f"The {name} of {description.name!r} is {here} on {self._first_node} and"
                    f" {there} on {node}; give every node the same files and the same kind of"
                    " device."
                )

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
            f"The Ray cluster at {self._address!r} has given {len(late)} of {self._count} actors no"
            f" place in {_PATIENCE:.0f} s, with {self._seat} each"
        )
        if len(late) == len(self._replicas):
            raise ModelError(f"{told}; free some (`ray status` shows what is used), or add nodes.")
        self._is_told = True
        warnings.warn(f"{told}; the others go on without them.", stacklevel=2)

    def _end_those_at_work(self, board: Board) -> None:
        """Actors that still do units nobody waits for; the next work has others."""
        import ray

        for replica in [each for each in self._replicas if board.has(each.number)]:
            with contextlib.suppress(Exception):
                ray.kill(replica.handle)
            self._replicas.remove(replica)


def _end(replicas: list[_Replica], ours: bool) -> None:
    import ray

    if ray.is_initialized():
        for replica in replicas:
            ray.kill(replica.handle)
        if ours:
            ray.shutdown()
    replicas.clear()


@dataclass
class _Round:
    """One call of `work`.

    Args:
        board: who has what.
        units: by number.
        listener: told of them.
        error: the first that ended an actor's work.
        lost: units given up since one was last over.
    """

    board: Board
    units: Mapping[int, Any]
    listener: Listener
    error: Exception | None = None
    lost: int = 0

    def take(self, actor: int, news: News) -> None:
        """What an actor tells."""
        for number, outcomes in news.finished.items():
            self.board.over(actor, number)
            self.lost = 0
            for outcome in outcomes:
                self.listener.outcome(number, outcome)
            self.listener.over(number)
        if news.done:
            self.listener.progress(news.done, news.tokens)
        if news.error is not None:
            self.error = self.error or news.error
            self.board.stop(actor)

    def gone(self, actor: int, why: str) -> None:
        """An actor is gone.

        Raises:
            ModelError: too many units in a row were lost.
        """
        for number in self.board.gone(actor):
            self.lost += 1
            reason = f"Three actors were gone while they worked on it ({why})."
            if self.lost >= MOST_IN_A_ROW:
                raise ModelError(
                    f"Stopped, as {self.lost} units of work in a row were each gone with three"
                    f" actors ({why}); look into the logs of the Ray cluster, and repeat the"
                    " command to go on."
                )
            self.listener.lost(number, RequestFailed(reason))


def _check_versions(there: dict[str, str], node: str) -> None:
    """Refuses a machine with other software than this one's.

    Raises:
        ModelError: names the first difference.
    """
    for name, version in versions().items():
        if there.get(name) != version:
            raise ModelError(
                f"{name} is {version} here and {there.get(name)} on {node}; install the same"
                " versions on every machine."
            )


def _as_ours(error: Any, replica: _Replica) -> Exception:
    """What an actor raised, and not what Ray makes of it."""
    import ray

    if isinstance(error, ray.exceptions.RaySystemError):  # what was sent could not be read
        last = str(error).strip().splitlines()[-1]
        return ModelError(
            f"What is done cannot be read on {replica.node} ({last}); put modules of your own, as"
            " measures have, where every machine's Python finds them."
        )
    cause: Exception = error.cause
    return cause


def _reason(error: Exception) -> str:
    """Why an actor is gone, in a few words of Ray's."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    if missing := re.findall(r"ModuleNotFoundError: (No module named '[^']+')", text):
        return f"{missing[-1]} there; install the same on every machine"
    why = re.search(r"is dead because (.+?)(?:\. |\.?$)", text, re.MULTILINE)
    return (why[1] if why else " ".join(text.split()))[:200].rstrip(".")
