"""Engines with replicas: copies of a model in other processes, which answer side by side.

Such an engine answers requests like any other. Other computations with the model are sent to a
replica; with a model in this process, they are made here.
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
        """Calls a function with the model of one replica.

        The function and its arguments are sent there, so they must be picklable.
        """


@runtime_checkable
class ReplicatedEngine(Protocol):
    """An engine of a model with replicas."""

    @property
    def replicas(self) -> int:
        """The number of calls of `compute` that run side by side."""

    async def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the session of the least busy replica.

        Raises:
            RequestFailed: several replicas were lost while they computed it.
        """


def ask_model(model: ChatModel, function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function with a model or, if it has replicas, with the model of one of them."""
    if isinstance(model, ReplicatedModel):
        result: Result = model.ask(function, *arguments)
        return result
    return function(model, *arguments)


def replicas_of(engine: Engine) -> int:
    """The number of calls of `compute` that are worth making at once."""
    return engine.replicas if isinstance(engine, ReplicatedEngine) else 1


async def compute(
    engine: Engine, function: Callable[..., Awaitable[Result]], *arguments: Any
) -> Result:
    """Awaits a function of an open session: that of a replica, if there are any, or this one.

    The function and its arguments must be picklable for a replica.
    """
    if isinstance(engine, ReplicatedEngine):
        result: Result = await engine.compute(function, *arguments)
        return result
    return await function(engine, *arguments)
