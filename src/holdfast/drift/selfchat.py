"""Self-chat of two models under two system prompts, probed at every round (Li et al. 2024, section
3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped
under s_A; chats begin with a user message, so its first one recaps a1 and b1. Round i's probe forks
the agent's dialog in place of a_i and never enters it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.chat.messages import Message
from holdfast.drift.dialog import (
    Dialog,
    agent_view,
    place_of,
    probed,
    record_of,
    turn_of,
    user_view,
)
from holdfast.drift.pairing import Pairing, Probe
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import PromptError, RequestFailed
from holdfast.methods import Method
from holdfast.models.failures import Failures
from holdfast.models.protocol import Job, Session
from holdfast.models.requests import Reply, Request
from holdfast.seeds import seed_of

AGENT_VIEW, USER_VIEW = "agent", "user"  # of one dialog; each is a thread of the session


def converse(
    session: Session,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    on_record: Callable[[dict[str, Any], dict[int, TurnTrace]], None],
    on_round: Callable[[int, int], None] = lambda conversations, tokens: None,
    together: int | None = None,
) -> None:
    """Runs conversations side by side; each goes on as soon as it can, and one that is over makes
    room for the next.

    Args:
        session: a fresh session of the model that plays both sides, or of two that play one each
            (`TwoModels`).
        pairings: the conversations; taken one by one, where there is room.
        methods: applied to the agent alone, in its turns and its probes.
        settings: the protocol.
        on_record: takes the record of each conversation that is over, without its method's name,
            and the masses of its turns.
        on_round: told when conversations have ended a round: how many, and how many tokens they
            forwarded meanwhile.
        together: how many run side by side; None: all.
    """
    told = time.monotonic()

    def over(dialog: Dialog) -> None:
        nonlocal told
        now = time.monotonic()
        record = record_of(dialog, now - told)
        if (rows := getattr(session, "rows_at_most", None)) is not None:
            record["rows_at_most"] = rows
        on_record(record, dialog.traces)
        told = now
        for view in (AGENT_VIEW, USER_VIEW):
            session.forget((view, dialog.pairing.number))

    failures, waiting, running = Failures(over, "conversation"), iter(pairings), 0

    def begin(ended: int = 0) -> list[Job]:
        """The first requests of as many conversations as there is room for."""
        nonlocal running
        running -= ended
        begun: list[Job] = []
        while together is None or running < together:
            if (pairing := next(waiting, None)) is None:
                break
            script = _Script(Dialog(pairing), tuple(methods), settings, failures, on_round, begin)
            begun.append(script.begin())
            running += 1
        return begun

    session.run(begin())
    failures.settle(session)


def opening(dialog: Dialog, methods: Sequence[Method], settings: Settings) -> Job:
    """The first request of one conversation, where no session runs it and what follows.

    Args:
        dialog: that has not begun; its turns and probes are there as they are answered.
        methods, settings: as of `converse`.
    """
    failures = Failures(lambda dialog: None, "conversation")
    script = _Script(
        dialog, tuple(methods), settings, failures, lambda rounds, tokens: None, lambda count: []
    )
    return script.begin()


@dataclass
class _Script:
    """What follows what in one conversation: turns one after the other, and probes beside them.

    Args:
        dialog: the conversation.
        methods, settings, on_round: as of `converse`.
        failures: of the conversations side by side.
        next_ones: begins further conversations in place of so many that have ended.
        open_jobs: requests that are not answered yet.
        told: tokens that `on_round` was told of.
    """

    dialog: Dialog
    methods: tuple[Method, ...]
    settings: Settings
    failures: Failures
    on_round: Callable[[int, int], None]
    next_ones: Callable[[int], list[Job]]
    open_jobs: int = 0
    told: int = 0

    def begin(self) -> Job:
        """Round 1 starts with a_1, which is given."""
        self.dialog.turns.append(
            turn_of(1, "user", Reply(self.dialog.pairing.starter, None, "stop"))
        )
        return self._agent_turn(1)

    def _agent_turn(self, number: int) -> Job:
        """b_i; then the next round, and the probes that need no more than this."""

        def then(reply: Reply) -> list[Job]:
            following = []
            if self._say(number, "agent", reply) and number < self.settings.rounds:
                following.append(self._user_turn(number + 1))
            if self.settings.probe_at == "after-round":
                following += self._probes(number, number + 1)
            else:  # the probes of round 1 wait for b_1, which computes the system prompt for them
                following += (self._probes(1, 1) if number == 1 else []) + (
                    self._probes(number + 1, number + 1) if following else []
                )
            return following

        return self._job(
            agent_view(self.dialog), (number, "agent"), then, self._ends(number), keep=True
        )

    def _user_turn(self, number: int) -> Job:
        """a_i, and then b_i."""

        def then(reply: Reply) -> list[Job]:
            return [self._agent_turn(number)] if self._say(number, "user", reply) else []

        return self._job(
            user_view(self.dialog), (number, "user"), then, self._ends(number), keep=True
        )

    def _ends(self, number: int) -> Callable[[RequestFailed], None]:
        """What a turn that is not answered leads to: the end of the dialog."""

        def failed(error: RequestFailed) -> None:
            self.dialog.ended = {"round": number, "why": error.why, "reason": str(error)}

        return failed

    def _say(self, number: int, speaker: str, reply: Reply) -> bool:
        """Appends a turn; False where the dialog has come to the end of the model's context."""
        if reply.stop_reason == "context":
            if number == 1:
                agent = self.dialog.pairing.agent
                raise PromptError(
                    f"The system prompt of {agent.id!r} and one question already fill the model's"
                    " context; use a shorter prompt."
                )
            self.dialog.ended = {"round": number, "why": "context"}
            return False
        self.dialog.turns.append(turn_of(number, speaker, reply))
        if speaker == "agent":
            if reply.trace is not None and reply.trace.uniform is not None:
                self.dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
            self.on_round(1, self.dialog.forwarded - self.told)
            self.told = self.dialog.forwarded
        return True

    def _probes(self, number: int, before: int) -> list[Job]:
        """The probes of a round, each behind all turns of the rounds before `before`."""
        view = agent_view(self.dialog, before)
        return [self._probe(number, probe, view) for probe in self.dialog.pairing.asked]

    def _probe(self, number: int, probe: Probe, view: Sequence[Message]) -> Job:
        """One probe of a round, which leads to nothing else."""

        def then(reply: Reply) -> list[Job]:
            if reply.stop_reason != "context":
                self.dialog.probes.append(probed(number, probe, reply))
            return []

        def failed(error: RequestFailed) -> None:
            reason = {"why": error.why, "reason": str(error)}
            self.dialog.unanswered.append({**place_of(number, probe), **reason})

        asked: list[Message] = [*view, {"role": "user", "content": probe.question}]
        return self._job(asked, (number, *probe.names), then, failed, keep=False)

    def _job(
        self,
        messages: list[Message],
        draw: tuple[Any, ...],
        then: Callable[[Reply], list[Job]],
        on_failure: Callable[[RequestFailed], None],
        *,
        keep: bool,
    ) -> Job:
        """A request of this conversation; the conversation is over with the last of them."""
        view = USER_VIEW if draw[1] == "user" else AGENT_VIEW
        number, settings = self.dialog.pairing.number, self.settings
        self.open_jobs += 1

        def close(following: list[Job]) -> list[Job]:
            self.open_jobs -= 1
            if not self.open_jobs:
                self._over()
                return [*following, *self.next_ones(1)]
            return following

        def answered(reply: Reply) -> list[Job]:
            self.failures.answered(request)
            self.dialog.count(view, reply)
            return close(then(reply))

        def failed(error: RequestFailed) -> list[Job]:
            on_failure(error)
            self.failures.failed(number, error)
            return close([])

        request = Request(
            messages=tuple(messages),
            methods=self.methods if view == AGENT_VIEW else (),
            sampling=settings.sampling,
            seed=seed_of("reply", settings.seed, number, *draw),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(view, number),
            keep=keep,
            trace=settings.trace and view == AGENT_VIEW,
            system_as=settings.system_as,
        )
        name = f"Conversation {number}, round {draw[0]} ({draw[1]})"
        return Job(request, answered, failed, name)

    def _over(self) -> None:
        told = sum(turn["speaker"] == "agent" for turn in self.dialog.turns)
        if told < self.settings.rounds:  # progress counts the rounds that are not held, too
            self.on_round(self.settings.rounds - told, self.dialog.forwarded - self.told)
        self.failures.over(self.dialog.pairing.number, self.dialog)
