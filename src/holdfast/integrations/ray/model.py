"""A model of which actors hold replicas; this process holds none, and hands units out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from holdfast.errors import ModelError
from holdfast.integrations.ray.actor import Specification
from holdfast.integrations.ray.board import Board
from holdfast.integrations.ray.pool import ActorPool, Seat
from holdfast.integrations.ray.rounds import Round
from holdfast.methods import Ability, Method
from holdfast.models.protocol import ChatModel, Generation, Session
from holdfast.models.replicas import Listener, Work
from holdfast.models.requests import Reply, Request


class RayModel(Generation):
    """A chat model and its replicas; see `holdfast.integrations.ray.connect`.

    Args:
        specification: what each actor loads.
        seat: what each actor has.
        count: how many actors.
        address: of the cluster.
        ours: whether the connection to the cluster ends with this.

    Raises:
        ModelError: no actor has a place, or one cannot load the model.
    """

    independent: ClassVar[bool] = False
    replicas: ClassVar[int] = 0

    def __init__(
        self, specification: Specification, seat: Seat, count: int, address: str, ours: bool
    ):
        self._seat, self._address = seat, address
        self._pool = ActorPool(specification, seat, count, address, ours)

    def __enter__(self) -> RayModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors, and the connection where it was made for them; so does the last use of
        the model.
        """
        self._pool.close()

    @property
    def name(self) -> str:
        """As the specification has it."""
        return self._pool.description.name

    @property
    def fingerprint(self) -> str:
        """That of every actor's model."""
        return self._pool.description.fingerprint

    @property
    def runtime(self) -> dict[str, str | int]:
        """That of every actor: a run goes on with or without Ray where it is the same."""
        return self._pool.description.runtime

    @property
    def offers(self) -> frozenset[Ability]:
        """What methods can use of it."""
        return self._pool.description.offers

    @property
    def about(self) -> dict[str, Any]:
        """For the manifest: where the replicas are; no result depends on it."""
        seat = {"processors": self._seat.processors, "gpus": self._seat.gpus}
        return {"ray": {"address": self._address, "replicas": self._pool.count, "each": seat}}

    def __str__(self) -> str:
        return f"{self._pool.count} replicas on Ray at {self._address}, each with {self._seat}"

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that the model cannot apply.

        Raises:
            HoldfastError: an actor's own.
        """
        self.ask(_check, tuple(methods))

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function makes of the model of one of the actors, and further arguments."""
        return self._pool.ask(function, *arguments)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, by one of the actors."""
        replies: list[Reply] = self.ask(_answer, list(requests))
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

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Has every unit done once.

        A unit whose actor is gone is begun again by another, and another actor is asked for. Once
        it was gone with three actors, the last time alone, it is told as lost.

        Raises:
            HoldfastError: what ended the work of an actor, when the others have done what they had
                begun; or too many units in a row were lost; or the cluster gives no actor a place.
        """
        import ray

        task = Round(Board(units, -(-work.together // self._pool.count)), units, listener)
        self._pool.do(task, ray.put(work))
        if task.error is not None:
            raise task.error


def _check(model: ChatModel, methods: Sequence[Method]) -> None:
    model.check(methods)


def _answer(model: ChatModel, requests: Sequence[Request]) -> list[Reply]:
    return model.generate_batch(requests)
