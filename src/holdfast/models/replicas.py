"""Calls functions with a model that may have replicas: copies of it in other processes.

The engine of such a model answers requests like any other. Other computations are functions, which
are sent to a replica, and called in this process if there are none:

    refusals = call_with_model(model, find_refusals, chats)                # of a model
    scores = await call_with_session(engine, score_heads, samples)         # of an open session
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from holdfast.models.protocol import ChatModel, Engine

Result = TypeVar("Result")


@runtime_checkable
class ReplicatedModel(Protocol):
    """A model whose replicas are in other processes."""

    def call_with_model(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the model of one replica.

        The function and its arguments are sent there, so they must be picklable.
        """


@runtime_checkable
class ReplicatedEngine(Protocol):
    """An engine of a model with replicas."""

    @property
    def replicas(self) -> int:
        """The number of calls that run side by side."""

    async def call_with_session(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the session of the least busy replica.

        Raises:
            RequestFailed: several replicas were lost while they computed it.
        """


def call_with_model(model: ChatModel, function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function with a model or, if it has replicas, with the model of one of them."""
    if isinstance(model, ReplicatedModel):
        result: Result = model.call_with_model(function, *arguments)
        return result
    return function(model, *arguments)


def replicas_of(engine: Engine) -> int:
    """The number of calls of `call_with_session` that are worth making at once."""
    return engine.replicas if isinstance(engine, ReplicatedEngine) else 1


async def call_with_session(
    engine: Engine, function: Callable[..., Awaitable[Result]], *arguments: Any
) -> Result:
    """Awaits a function of an open session: that of a replica, if there are any, or this one.

    The function and its arguments must be picklable for a replica.
    """
    if isinstance(engine, ReplicatedEngine):
        result: Result = await engine.call_with_session(function, *arguments)
        return result
    return await function(engine, *arguments)
