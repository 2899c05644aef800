"""Conversations as work for replicas of a model or for two models, and counts of their replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from holdfast.common.event_loop import run_sync
from holdfast.drift.cases import Suite
from holdfast.drift.dialog import USER_VIEW, Dialog, record_of, turn_of
from holdfast.drift.dialogs import Dialogs, UserTurns
from holdfast.drift.pairing import Pairing, draw
from holdfast.drift.selfchat import converse, probed_rounds
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.replicas import Listener, Units
from holdfast.models.requests import Reply, Request
from holdfast.records import MANIFEST, read_run

Keep = Callable[[dict[str, Any], dict[int, TurnTrace]], None]


@dataclass(frozen=True)
class Conversations:
    """Work whose units are conversations: `Pairing`s, by their numbers."""

    methods: tuple[Method, ...]
    settings: Settings

    @property
    def together(self) -> int:
        return self.settings.batch

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        together = None if model.independent else -(-self.together // replicas)
        pairings = (pairing for _, pairing in units)

        async def hold() -> None:
            async with model.session() as engine:
                await converse(engine, pairings, self.methods, self.settings, listener, together)

        run_sync(hold())


@dataclass
class Recorder:
    """Records conversations; `keep` receives records and masses.
    A record's seconds are counted from the previous record: its share of the total time.
    """

    pairings: dict[int, Pairing]
    keep: Keep
    last: float = field(default_factory=time.monotonic)

    def take(self, number: int, outcome: tuple[dict[str, Any], dict[int, TurnTrace]]) -> None:
        record, traces = outcome
        now = time.monotonic()
        self.keep({**record, "seconds": round(now - self.last, 3)}, traces)
        self.last = now

    def lose(self, number: int, error: RequestFailed) -> None:
        """Records a conversation that no replica could run as one that ended in round 1."""
        dialog = Dialog(self.pairings[number])
        dialog.turns.append(turn_of(1, "user", Reply(dialog.pairing.starter, None, "stop")))
        dialog.ended = {"round": 1, "why": error.why, "reason": str(error)}
        self.take(number, (record_of(dialog, 0), {}))


@dataclass(frozen=True)
class TwoModels:
    """Replaces one model that plays both sides, for `converse`."""

    agent: ChatModel
    user: ChatModel
    independent: ClassVar[bool] = False  # each waits for the other, so one batch at a time

    def session(self) -> TwoEngines:
        turns = asyncio.Lock()
        return TwoEngines(
            TakesTurns(self.agent.session(), turns), TakesTurns(self.user.session(), turns)
        )


@dataclass
class TakesTurns:
    """One of two engines that take turns: it answers all that is asked of it, and then the other.

    Two models on one device compute in turn anyway, and this way each does so for all conversations
    together.
    """

    engine: Engine
    turns: asyncio.Lock  # held while any request of this engine is open
    _open: int = 0
    _turn: asyncio.Task[bool] | None = None

    async def generate(self, request: Request) -> Reply:
        self._open += 1
        try:
            if self._turn is None:
                self._turn = asyncio.create_task(self.turns.acquire())
            await asyncio.shield(self._turn)
            return await self.engine.generate(request)
        finally:
            self._open -= 1
            if not self._open:
                self._end_turn()

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.cancel():
            self.turns.release()


@dataclass(frozen=True)
class TwoEngines:
    """An engine that sends each request to one of two models, depending on its view."""

    agent: TakesTurns  # answers turns and probes of the agent
    user: TakesTurns  # answers turns of the user model

    async def generate(self, request: Request) -> Reply:
        is_users = isinstance(request.thread, tuple) and request.thread[0] == USER_VIEW
        return await (self.user if is_users else self.agent).generate(request)

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread that is over."""
        self.agent.engine.forget(thread)
        self.user.engine.forget(thread)

    @property
    def rows_at_most(self) -> int | None:
        """The most requests at once, since an engine ran out of memory; None: neither did."""
        engines = (self.agent.engine, self.user.engine)
        both = (getattr(engine, "rows_at_most", None) for engine in engines)
        return min((rows for rows in both if rows is not None), default=None)

    async def __aenter__(self) -> Self:
        await self.agent.engine.__aenter__()
        await self.user.engine.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.user.engine.__aexit__(*error)
        await self.agent.engine.__aexit__(*error)


def count_replies(
    suite: Suite, settings: Settings, given: Dialogs | UserTurns | None, numbers: Iterable[int]
) -> int:
    """How many turns and probes these conversations have; fewer if one ends early."""
    replies = 0
    for number in numbers:
        pairing = draw(suite, settings, given, number)
        if pairing.dialog:
            replies += len(pairing.every_probe) * probed_rounds(pairing.dialog, settings)
        else:  # a_1 is given, or all user turns are
            of_user = 0 if pairing.script else settings.rounds - 1
            replies += (len(pairing.every_probe) + 1) * settings.rounds + of_user
    return replies


def missing_numbers(
    out: Path | str, methods: Sequence[str], conversations: int
) -> dict[str, list[int]]:
    """The conversations still missing from a run's folder, by method; the folder need not exist."""
    folder = Path(out)
    records = read_run(folder).records if (folder / MANIFEST).is_file() else ()
    recorded = {(record.method, record.conversation) for record in records}
    return {
        method: [number for number in range(conversations) if (method, number) not in recorded]
        for method in methods
    }
