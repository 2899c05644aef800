"""Makes the requests of one conversation, fits them into the context, and counts open ones."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.chat.messages import Message
from holdfast.common.seeds import seed_of
from holdfast.drift.dialog import AGENT_VIEW, Dialog, agent_view, places_of, probed, system_of
from holdfast.drift.pairing import Probe
from holdfast.drift.settings import Settings, Shown, to_summarise, with_summary
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.failures import Failures
from holdfast.models.protocol import Job
from holdfast.models.requests import Reply, Request


@dataclass(frozen=True)
class PendingReply:
    """A turn or a probe that has been requested."""

    view: str  # AGENT_VIEW or USER_VIEW
    rounds: int  # the last round that it shows, including its own message
    messages: Callable[[Shown], list[Message]]  # the chat for a given part of the dialog
    draw: tuple[Any, ...]  # identifies the reply's draw in the conversation; its round comes first
    then: Callable[[Reply, Shown], list[Job]]  # returns the jobs that follow
    failed: Callable[[RequestFailed], list[Job]]
    keep: bool  # whether later requests reuse what is computed for it; else it forks the dialog


@dataclass
class Asking:
    """Makes the requests of one conversation.
    The part of a dialog that a view leaves out for lack of room only grows (`Settings.context`).
    """

    dialog: Dialog
    methods: tuple[Method, ...]  # applied only to the agent
    settings: Settings
    failures: Failures  # of all conversations; notified when the last question is answered
    # receives how many rounds have ended and how many tokens they took
    on_round: Callable[[int, int], None]
    # begins further conversations in place of this many that have ended
    next_ones: Callable[[int], list[Job]]
    open: int = 0  # questions not answered yet
    rounds: int = 0  # reported to `on_round` so far
    tokens: int = 0
    # questions, each with its room, that wait for the summary with this key
    waiting: dict[tuple[str, int, int], list[tuple[PendingReply, int]]] = field(
        default_factory=dict
    )

    def ask(self, question: PendingReply) -> list[Job]:
        self.open += 1
        shown = self.dialog.shown.get(question.view, Shown())
        stop = self.settings.context == "stop"
        room = 1 if stop else self.settings.sampling.max_new_tokens
        if self.settings.window is not None and not self.settings.summarises:
            first = max(shown.first, question.rounds - self.settings.window + 1)
            shown = replace(shown, first=first)
        return self._within_window(question, shown, room)

    def _within_window(self, question: PendingReply, shown: Shown, room: int) -> list[Job]:
        """The request, once no more rounds are shown than the window allows."""
        window = self.settings.window
        if window is not None and question.rounds - shown.first >= window:
            return self._summary(question, shown, room)
        return [self._request(question, shown, room)]

    def _request(self, question: PendingReply, shown: Shown, room: int) -> Job:
        def answered(drawn: Reply) -> list[Job]:
            reply = drawn.without_reasoning()
            again = self._again(question, shown, room) if reply.stop_reason == "context" else None
            if again is not None:
                return again
            self.failures.answered(request)
            self.dialog.count(question.view, reply)
            return self._close(question.then(reply, shown))

        def failed(error: RequestFailed) -> list[Job]:
            # the server knows how much room it needs
            again = self._again(question, shown, room=1) if error.why == "context" else None
            return self._fail(question, error) if again is None else again

        settings, view, number = self.settings, question.view, self.dialog.pairing.number
        request = Request(
            messages=tuple(question.messages(shown)),
            methods=self.methods if view == AGENT_VIEW else (),
            sampling=settings.sampling,
            seed=seed_of("reply", settings.seed, number, *question.draw),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(view, number),
            keep=question.keep,
            trace=settings.trace and view == AGENT_VIEW,
            system_as=settings.system_as,
            room=room,
            tools=self.dialog.tools if view == AGENT_VIEW else (),
        )
        return Job(request, answered, failed, self._name(question))

    def _again(self, question: PendingReply, shown: Shown, room: int) -> list[Job] | None:
        """The request with fewer rounds, or for as long a reply as there is room for; None if
        neither is possible, and [] if it waits for a summary.
        """
        if self.settings.context == "stop":
            return None
        if shown.first < question.rounds:
            if self.settings.summarises:
                return self._summary(question, shown, room)
            return [self._request(question, replace(shown, first=shown.first + 1), room)]
        return [self._request(question, shown, room=1)] if room > 1 else None

    def _summary(self, question: PendingReply, shown: Shown, room: int) -> list[Job]:
        """Summarises the older half of the rounds, once for all questions, then asks them."""
        before = (shown.first + question.rounds + 1) // 2
        key = (question.view, shown.first, before)
        compacts = self.settings.context == "compact" and question.view == AGENT_VIEW

        def go_on(text: str) -> list[Job]:
            summary = self.dialog.summaries.setdefault(key, text)
            shorter = Shown(before, summary, compacts and bool(summary))
            pairs = self.waiting.pop(key)
            return [job for pair in pairs for job in self._within_window(pair[0], shorter, pair[1])]

        def answered(reply: Reply) -> list[Job]:
            self.failures.answered(request)
            self.dialog.count(f"{question.view} summary", reply)
            # empty if even half of them leave no room
            return go_on(reply.without_reasoning().text)

        def failed(error: RequestFailed) -> list[Job]:
            if error.why == "context":
                return go_on("")
            return [job for pair in self.waiting.pop(key) for job in self._fail(pair[0], error)]

        self.waiting.setdefault(key, []).append((question, room))
        if key in self.dialog.summaries:
            return go_on("")
        if len(self.waiting[key]) > 1:
            return []
        settings, number = self.settings, self.dialog.pairing.number
        prompt = str(settings.summary_prompt)
        system = system_of(self.dialog.pairing) if compacts else ""
        request = Request(
            to_summarise(prompt, self.dialog.turns, shown, before, system),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *key),
            thread=(question.view, number),
            system_as=settings.system_as,
        )
        return [Job(request, answered, failed, f"{self._name(question)}, summary")]

    def _name(self, question: PendingReply) -> str:
        number, speaker, *_ = question.draw
        return f"Conversation {self.dialog.pairing.number}, round {number} ({speaker})"

    def _fail(self, question: PendingReply, error: RequestFailed) -> list[Job]:
        following = question.failed(error)
        self.failures.failed(self.dialog.pairing.number, error)
        return self._close(following)

    def report_rounds(self, count: int) -> None:
        """Reports that `count` rounds have ended."""
        self.on_round(count, self.dialog.forwarded - self.tokens)
        self.rounds, self.tokens = self.rounds + count, self.dialog.forwarded

    def _close(self, following: list[Job]) -> list[Job]:
        self.open -= 1
        if self.open:
            return following
        if self.rounds < self.settings.rounds:  # progress also counts rounds that never happen
            self.report_rounds(self.settings.rounds - self.rounds)
        self.failures.over(self.dialog.pairing.number, self.dialog)
        return [*following, *self.next_ones(1)]


def probe_question(
    dialog: Dialog,
    number: int,
    probe: Probe,
    before: int,
    then: Callable[[bool], list[Job]] = lambda room: [],
) -> PendingReply:
    """A probe of the dialog before round `before`; `then` receives whether there was room."""

    def messages(shown: Shown) -> list[Message]:
        message: Message = {"role": "user", "content": probe.question}
        return with_summary([*agent_view(dialog, before, shown), message], shown)

    def answered(reply: Reply, shown: Shown) -> list[Job]:
        if reply.stop_reason == "context":
            return then(False)
        for entry in probed(number, probe, reply, shown):
            (dialog.probes if "score" in entry else dialog.unscored).append(entry)
        return then(True)

    def failed(error: RequestFailed) -> list[Job]:
        reason = {"why": error.why, "reason": str(error)}
        dialog.unanswered += [{**name, **reason} for _, name in places_of(number, probe)]
        return then(error.why != "context")

    draw = (number, *probe.names)
    return PendingReply(AGENT_VIEW, before, messages, draw, answered, failed, keep=False)
