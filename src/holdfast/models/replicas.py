"""Engines with replicas: copies of a model in other processes, which answer side by side.

Such an engine answers requests like any other. What else has to be computed with the model is
computed where a replica is; with a model in this process, it is computed here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from holdfast.models.protocol import ChatModel, Engine

Result = TypeVar("Result")


@runtime_checkable
class ReplicatedModel(Protocol):
    """A model whose replicas are in other processes."""

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with one replica's model; it is sent there, so it must be picklable."""


@runtime_checkable
class ReplicatedEngine(Protocol):
    """An engine of such a model."""

    @property
    def replicas(self) -> int:
        """How many calls of `compute` run side by side."""

    async def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the session of the replica that has the least to do.

        Raises:
            RequestFailed: several replicas were lost while they worked on it.
        """


def ask_model(model: ChatModel, function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function with a model, or with the model of one of its replicas."""
    if isinstance(model, ReplicatedModel):
        result: Result = model.ask(function, *arguments)
        return result
    return function(model, *arguments)


def replicas_of(engine: Engine) -> int:
    """How many calls of `compute` are worth waiting for at once."""
    return engine.replicas if isinstance(engine, ReplicatedEngine) else 1


async def compute(
    engine: Engine, function: Callable[..., Awaitable[Result]], *arguments: Any
) -> Result:
    """Awaits a function of an open session: this one, or that of a replica.

    There, what it needs must be picklable.
    """
    if isinstance(engine, ReplicatedEngine):
        result: Result = await engine.compute(function, *arguments)
        return result
    return await function(engine, *arguments)
