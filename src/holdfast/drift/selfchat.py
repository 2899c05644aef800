"""Self-chat of two models under two prompts, probed at every round (Li et al. 2024, section 3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped
under s_A; chats begin with a user message, so its first one recaps a1 and b1. Round i's probe forks
the agent's dialog in place of a_i and never enters it.

A recorded dialog is replayed: it stays as it was recorded, and the model answers only the probes,
each in a copy of the dialog up to that round.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.chat.messages import Message, uses_tools
from holdfast.drift.asking import Asking, PendingReply, probe_question
from holdfast.drift.dialog import (
    AGENT_VIEW,
    USER_VIEW,
    Dialog,
    agent_view,
    record_of,
    turn_of,
    user_view,
)
from holdfast.drift.dialogs import RECORDED, SCRIPTED, RecordedDialog
from holdfast.drift.pairing import Pairing, Probe
from holdfast.drift.settings import Settings, Shown, with_summary
from holdfast.drift.traces import TurnTrace
from holdfast.errors import PromptError, RequestFailed, UsageError
from holdfast.methods import Method
from holdfast.models.failures import Failures
from holdfast.models.protocol import Job, Session
from holdfast.models.replicas import Listener
from holdfast.models.requests import Reply


def converse(
    session: Session,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    listener: Listener,
    together: int | None = None,
) -> None:
    """Runs conversations concurrently; each continues as soon as it can, and one that is over makes
    room for the next.

    Args:
        session: a fresh session of the model that plays both sides, or of two that play one each
            (`TwoModels`).
        pairings: the conversations; taken one by one, as there is room.
        listener: receives the record of each finished conversation by number, without its method's
            name, with the masses of its turns; and the progress in rounds.
    """

    def over(dialog: Dialog) -> None:
        record = record_of(dialog, seconds=0)  # the recorder sets them
        if (rows := getattr(session, "rows_at_most", None)) is not None:
            record["rows_at_most"] = rows
        number = dialog.pairing.number
        listener.outcome(number, (record, dialog.traces))
        listener.over(number)
        for view in (AGENT_VIEW, USER_VIEW):
            session.forget((view, number))

    failures, waiting, running = Failures(over, "conversation"), iter(pairings), 0

    def begin(ended: int = 0) -> list[Job]:
        """The first requests of as many conversations as there is room for."""
        nonlocal running
        running -= ended
        begun: list[Job] = []
        while together is None or running < together:
            if (pairing := next(waiting, None)) is None:
                break
            asking = Asking(
                Dialog(pairing), tuple(methods), settings, failures, listener.progress, begin
            )
            begun += _first(asking)
            running += 1
        return begun

    session.run(begin())
    failures.finish(session)


def opening(dialog: Dialog, methods: Sequence[Method], settings: Settings) -> Job:
    """The first request of one conversation, for callers that run its jobs without a session."""
    for rule in (rule for probe in dialog.pairing.every_probe for rule in probe.rules):
        if rule.measure.judged:
            raise UsageError(
                f"The judge of {dialog.pairing.agent.id!r}, {rule.measure.arguments['judge']!r},"
                " is asked only by `holdfast drift`; take a suite without judges here."
            )
    failures = Failures(lambda dialog: None, "conversation")
    [job] = _first(
        Asking(dialog, tuple(methods), settings, failures, lambda *progress: None, lambda ended: [])
    )
    return job


def _first(asking: Asking) -> list[Job]:
    """The first request of a conversation: of a recorded dialog, or of a self-chat."""
    recorded = asking.dialog.pairing.dialog
    return SelfChat(asking).begin() if recorded is None else Replay(asking, recorded).begin()


@dataclass(frozen=True)
class SelfChat:
    """The order of requests in a self-chat: turns one by one, with probes alongside."""

    asking: Asking

    @property
    def dialog(self) -> Dialog:
        return self.asking.dialog

    @property
    def settings(self) -> Settings:
        return self.asking.settings

    def begin(self) -> list[Job]:
        """Round 1 starts with a_1, which is given."""
        if self.dialog.pairing.script is not None:
            return self._user_turn(1)
        starter = Reply(self.dialog.pairing.starter, None, "stop")
        self.dialog.turns.append(turn_of(1, "user", starter))
        return self._agent_turn(1)

    def _agent_turn(self, number: int) -> list[Job]:
        """Asks for b_i; then for the next round, and for the probes that need no more than b_i."""

        def then(reply: Reply, shown: Shown) -> list[Job]:
            following: list[Job] = []
            if self._say(number, "agent", reply, shown) and number < self.settings.rounds:
                following += self._user_turn(number + 1)
            if self.settings.probe_at == "after-round":
                following += self._probes(number, number + 1)
            else:  # the probes of round 1 wait for b_1, which computes the system prompt for them
                following += (self._probes(1, 1) if number == 1 else []) + (
                    self._probes(number + 1, number + 1) if following else []
                )
            return following

        return self._turn(AGENT_VIEW, number, number, then)

    def _user_turn(self, number: int) -> list[Job]:
        """Asks for a_i and then b_i; a script already has a_i."""
        if (script := self.dialog.pairing.script) is not None:
            scripted = Reply(script.messages[number - 1], None, SCRIPTED)
            self.dialog.turns.append(turn_of(number, "user", scripted))
            return self._agent_turn(number)

        def then(reply: Reply, shown: Shown) -> list[Job]:
            return self._agent_turn(number) if self._say(number, "user", reply, shown) else []

        return self._turn(USER_VIEW, number, number - 1, then)

    def _turn(
        self, speaker: str, number: int, rounds: int, then: Callable[[Reply, Shown], list[Job]]
    ) -> list[Job]:
        """Asks for a turn that sees the dialog up to round `rounds`; a failure ends the dialog."""

        def messages(shown: Shown) -> list[Message]:
            whole = user_view if speaker == USER_VIEW else agent_view
            return with_summary(whole(self.dialog, shown=shown), shown)

        def answered(reply: Reply, shown: Shown) -> list[Job]:
            self.dialog.shown[speaker] = shown
            return then(reply, shown)

        def failed(error: RequestFailed) -> list[Job]:
            self.dialog.ended = {"round": number, "why": error.why, "reason": str(error)}
            return []

        return self.asking.ask(
            PendingReply(speaker, rounds, messages, (number, speaker), answered, failed, keep=True)
        )

    def _say(self, number: int, speaker: str, reply: Reply, shown: Shown) -> bool:
        """Appends a turn; returns False if the dialog has filled the model's context."""
        if reply.stop_reason == "context":
            if number == 1:
                raise _prompt_too_long(self.dialog)
            self.dialog.ended = {"round": number, "why": "context"}
            return False
        self.dialog.turns.append(turn_of(number, speaker, reply, shown))
        if speaker == "agent":
            if reply.trace is not None and reply.trace.uniform is not None:
                self.dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
            if number < self.settings.rounds:  # the last ends when every probe is answered
                self.asking.report_rounds(1)
        return True

    def _probes(self, number: int, before: int) -> list[Job]:
        """The probes of a round, each after all turns of the rounds before `before`."""
        return [
            job
            for probe in self.dialog.pairing.every_probe
            for job in self.asking.ask(probe_question(self.dialog, number, probe, before))
        ]


def probed_rounds(dialog: RecordedDialog, settings: Settings) -> int:
    """How many rounds of a dialog are probed; "in-place" also probes after the last round."""
    return min(settings.rounds, len(dialog.rounds) + (settings.probe_at == "in-place"))


@dataclass(frozen=True)
class Replay:
    """The order of requests when a recorded dialog is replayed.

    The first probe of the last round is asked first: what is computed for it covers the whole
    dialog, and all others reuse it.
    """

    asking: Asking
    dialog: RecordedDialog

    def begin(self) -> list[Job]:
        """The first probe of the last round."""
        settings = self.asking.settings
        for number, recorded in enumerate(self.dialog.rounds[: settings.rounds], start=1):
            question = Reply(recorded.user, None, RECORDED)
            self.asking.dialog.turns.append(turn_of(number, "user", question))
            turn = turn_of(number, "agent", Reply(recorded.answer, None, RECORDED))
            if uses_tools(recorded.messages):
                turn["messages"] = list(recorded.messages)
            self.asking.dialog.turns.append(turn)
        return self._first(probed_rounds(self.dialog, settings))

    def _first(self, number: int) -> list[Job]:
        """Asks a round's first probe, then all others; without room, that of the round before."""
        first, *more = self.asking.dialog.pairing.every_probe

        def then(room: bool) -> list[Job]:
            if room:
                questions = [self._probe(number, probe) for probe in more]
                for earlier in range(1, number):
                    questions += [self._probe(earlier, probe) for probe in (first, *more)]
                return [job for question in questions for job in self.asking.ask(question)]
            if number == 1:
                raise _prompt_too_long(self.asking.dialog)
            self.asking.dialog.ended = {"round": number, "why": "context"}
            return self._first(number - 1)

        return self.asking.ask(replace(self._probe(number, first, then), keep=True))

    def _probe(
        self, number: int, probe: Probe, then: Callable[[bool], list[Job]] = lambda room: []
    ) -> PendingReply:
        before = number + (self.asking.settings.probe_at == "after-round")
        return probe_question(self.asking.dialog, number, probe, before, then)


def _prompt_too_long(dialog: Dialog) -> PromptError:
    return PromptError(
        f"The system prompt of {dialog.pairing.agent.id!r} and one question already fill the"
        " model's context; use a shorter prompt."
    )
