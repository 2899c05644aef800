"""A chat model whose replicas are actors of a Ray cluster."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from holdfast.integrations.ray.actor import Description, Specification
from holdfast.integrations.ray.actors import Actors, Replica, Resources
from holdfast.integrations.ray.ray_session import RaySession
from holdfast.methods import Ability, Method
from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import Generates
from holdfast.models.requests import Reply, Request


class RayModel(Generates):
    """A chat model whose replicas are actors; see `holdfast.integrations.ray.connect`.

    An actor that is lost is replaced.

    Args:
        resources: of each actor.
        count: the number of actors.
        address: the cluster's address.
        closes_connection: whether closing the model closes the connection to the cluster as well.
    """

    independent: ClassVar[bool] = False

    def __init__(
        self,
        specification: Specification,
        resources: Resources,
        count: int,
        address: str,
        *,
        closes_connection: bool,
    ):
        self._actors = Actors(specification, resources, count, address)
        self._numbers = itertools.count()  # of sessions
        self.close: Callable[[], object] = weakref.finalize(
            self, _end_actors, self._actors.replicas, closes_connection
        )
        try:
            run_sync(self._wait_for_first_actor())
        except BaseException:
            self.close()
            raise
        self.name: str = self.description.name
        self.fingerprint: str = self.description.fingerprint
        self.runtime: dict[str, str | int] = self.description.runtime
        self.capabilities: frozenset[Ability] = self.description.capabilities

    def __enter__(self) -> RayModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def description(self) -> Description:
        """The description of the first actor that loaded the model; the others match it."""
        first = self._actors.first_loaded
        assert first is not None and first.description is not None
        return first.description

    @property
    def about(self) -> dict[str, Any]:
        """Facts for the manifest: about the model, and about the actors."""
        per_actor = {
            "processors": self._actors.resources.processors,
            "gpus": self._actors.resources.gpus,
        }
        replicas = self._actors.count
        ray = {"address": self._actors.address, "replicas": replicas, "each": per_actor}
        return {**self.description.about, "ray": ray}

    def __str__(self) -> str:
        actors = self._actors
        return f"{actors.count} replicas on Ray at {actors.address}, each with {actors.resources}"

    def session(self) -> RaySession:
        """Opens an engine, whose requests all actors answer."""
        return RaySession(self._actors, next(self._numbers))

    def check(self, methods: Sequence[Method]) -> None:
        """Raises an actor's own error for methods that the model cannot apply."""
        self.call_with_model(operator.methodcaller("check", tuple(methods)))

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats on one actor."""
        replies: list[Reply] = self.call_with_model(
            operator.methodcaller("generate_batch", list(requests))
        )
        return replies

    def call_with_model(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with an actor's model and further arguments; raises the same errors."""

        async def answer() -> Any:
            async with self.session() as engine:
                return await engine.call_with_session(_with_model, function, *arguments)

        return run_sync(answer())

    async def _wait_for_first_actor(self) -> None:
        """Waits until an actor has loaded the model, which the others then have to match."""
        async with self.session():
            while self._actors.first_loaded is None:
                await self._actors.wait_for_change()


def _with_model(session: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(session.model, *arguments)


def _end_actors(replicas: list[Replica], closes_connection: bool) -> None:
    """Ends the actors, and the connection to the cluster if it is the model's own."""
    import ray

    if ray.is_initialized():
        for replica in replicas:
            ray.kill(replica.handle)
        if closes_connection:
            ray.shutdown()
    replicas.clear()
