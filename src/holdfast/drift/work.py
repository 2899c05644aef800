"""Conversations as work for replicas of a model or for two models, and counts of their replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from holdfast.drift.cases import Suite
from holdfast.drift.dialog import USER_VIEW, Dialog, record_of, turn_of
from holdfast.drift.dialogs import Dialogs, UserTurns
from holdfast.drift.pairing import Pairing, draw
from holdfast.drift.selfchat import converse, probed_rounds
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.protocol import ChatModel, Job, Session, answer_all
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
        converse(
            model.session(),
            (pairing for _, pairing in units),
            self.methods,
            self.settings,
            listener,
            None if model.independent else -(-self.together // replicas),
        )


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

    def session(self) -> TwoSessions:
        return TwoSessions(self.agent.session(), self.user.session())


@dataclass(frozen=True)
class TwoSessions:
    """A session that sends each request to one of two models, depending on its view.

    The two take turns: one answers all that can be asked of it, with what follows there, and then
    the other does. Two models on one device compute in turn anyway, and this way each does so for
    all conversations together.
    """

    agent: Session  # answers turns and probes of the agent
    user: Session  # answers turns of the user model

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        agents, users = _Side(self.agent), _Side(self.user)

        def pass_on(jobs: Iterable[Job], here: _Side) -> list[Job]:
            """The jobs that stay on this side; the others are queued on theirs."""
            stay = []
            for job in jobs:
                side = users if _is_users(job.request) else agents
                if side is here:
                    stay.append(_linked(job, lambda following: pass_on(following, here)))
                else:
                    side.waiting.append(job)
            return stay

        for job in jobs:
            (users if _is_users(job.request) else agents).waiting.append(job)
        while agents.waiting or users.waiting:
            for side in (agents, users):
                now, side.waiting = side.waiting, []
                if now:
                    side.session.run(pass_on(now, side))

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread that is over."""
        self.agent.forget(thread)
        self.user.forget(thread)

    @property
    def rows_at_most(self) -> int | None:
        """The most requests at once, since a session ran out of memory; None: neither did."""
        both = (getattr(session, "rows_at_most", None) for session in (self.agent, self.user))
        return min((rows for rows in both if rows is not None), default=None)


@dataclass
class _Side:
    session: Session
    waiting: list[Job] = field(default_factory=list)


def _is_users(request: Request) -> bool:
    return isinstance(request.thread, tuple) and request.thread[0] == USER_VIEW


def _linked(job: Job, link: Callable[[Iterable[Job]], list[Job]]) -> Job:
    then, failed = job.then, job.failed
    linked = replace(job, then=lambda reply: link(then(reply)))
    return linked if failed is None else replace(linked, failed=lambda e: link(failed(e)))


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
    records = read_run(folder).records if (folder / MANIFEST).is_file() else []
    recorded = {(record["method"], record["conversation"]) for record in records}
    return {
        method: [number for number in range(conversations) if (method, number) not in recorded]
        for method in methods
    }
