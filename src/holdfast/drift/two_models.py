"""Opens the engine of conversations: that of one model that plays both sides, or of two models."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self

from holdfast.drift.dialog import is_from_user_model
from holdfast.models.protocol import ChatModel, Engine, reduced_max_sequences
from holdfast.models.requests import Reply, Request


@dataclass
class AlternatingEngine:
    """One of two engines that take turns: each answers all of its requests before the other runs.

    Two models on one device have to alternate anyway, and this way each answers the requests of all
    conversations in one batch.
    """

    engine: Engine
    turns: asyncio.Lock  # shared by both engines; held while this one has open requests
    _num_open: int = 0  # open requests
    _turn: asyncio.Task[bool] | None = None  # waits for the lock, or has acquired it

    async def generate(self, request: Request) -> Reply:
        self._num_open += 1
        try:
            if self._turn is None:
                self._turn = asyncio.create_task(self.turns.acquire())
            await asyncio.shield(self._turn)
            return await self.engine.generate(request)
        finally:
            self._num_open -= 1
            if not self._num_open:
                self._end_turn()

    def _end_turn(self) -> None:
        """Lets the other engine run; if the turn has not begun, gives up waiting for it."""
        turn = self._turn
        self._turn = None
        if turn is not None and not turn.cancel():
            self.turns.release()


@dataclass(frozen=True)
class TwoEngines:
    """An engine that sends each request to one of two models, depending on the request's view."""

    agent: AlternatingEngine  # answers turns and probes of the agent
    user: AlternatingEngine  # answers turns of the user model

    async def generate(self, request: Request) -> Reply:
        return await (self.user if is_from_user_model(request) else self.agent).generate(request)

    def forget(self, thread: Hashable) -> None:
        """Frees what both engines keep for a thread, which is over."""
        self.agent.engine.forget(thread)
        self.user.engine.forget(thread)

    @property
    def reduced_max_sequences(self) -> int | None:
        """The most requests at once since an engine ran out of memory; None if neither has."""
        both = (reduced_max_sequences(self.agent.engine), reduced_max_sequences(self.user.engine))
        return min((limit for limit in both if limit is not None), default=None)

    async def __aenter__(self) -> Self:
        await self.agent.engine.__aenter__()
        await self.user.engine.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.user.engine.__aexit__(*error)
        await self.agent.engine.__aexit__(*error)


def session_of(agent: ChatModel, user: ChatModel | None) -> Engine:
    """Opens the engine of conversations.

    Args:
        agent: the agent's model.
        user: the user model; None lets the agent's model play both sides.
    """
    if user is None:
        return agent.session()
    turns = asyncio.Lock()
    return TwoEngines(
        AlternatingEngine(agent.session(), turns), AlternatingEngine(user.session(), turns)
    )
