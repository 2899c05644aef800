"""Sends a dialog's requests to the model: for turns, for replies to probes, and for summaries.

A request that does not fit into the model's context is sent again with less of the dialog. A view
never shows again what it once left out (`Settings.context`).
"""

from __future__ import annotations

import asyncio
import warnings
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from holdfast.chat.messages import Message
from holdfast.drift.dialog import (
    AGENT_VIEW,
    ALL_ROUNDS,
    Dialog,
    DialogSide,
    DialogThread,
    ShownRounds,
    SummaryKey,
    agent_view,
    summary_messages,
    system_of,
    user_view,
    with_summary,
)
from holdfast.drift.progress import Progress
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.settings import Settings
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.checked_replies import generate_checked
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request
from holdfast.plurals import count_of
from holdfast.seeds import seed_of

_MIN_REPLIES = 4  # replies that must be known before a warning


@dataclass
class ReplyProgress:
    """Reports each reply of a dialog, with the tokens forwarded since the previous reply."""

    replies_left: int
    report: Progress
    tokens_reported: int = 0

    def answered(self, forwarded: int) -> None:
        """Reports one more reply.

        Args:
            forwarded: the tokens forwarded for the whole dialog so far.
        """
        self.replies_left -= 1
        tokens = forwarded - self.tokens_reported
        self.tokens_reported = forwarded
        self.report(1, tokens)

    def ended(self) -> None:
        """Reports the replies that are not needed any more, as the dialog is over."""
        if self.replies_left:
            self.report(self.replies_left, 0)
        self.replies_left = 0


@dataclass
class TruncationMonitor:
    """Warns once if most dialogs' first replies by the agent are cut, and says by which limit."""

    limit: int  # the most tokens of a reply, as requested
    replies: int = 0
    cut: int = 0
    latest_cut: int = 0  # tokens of the longest reply that was cut before the limit
    has_warned: bool = False

    def first_reply(self, stop_reason: str, cut_at: int | None) -> None:
        """Counts the agent's first reply in a dialog.

        Args:
            cut_at: the tokens at which it was cut before the limit; None if it was not.
        """
        self.replies += 1
        self.cut += stop_reason == "length"
        self.latest_cut = max(self.latest_cut, cut_at or 0)
        if self.has_warned or self.replies < _MIN_REPLIES or 2 * self.cut <= self.replies:
            return
        self.has_warned = True
        where = count_of(self.limit, "token")
        cure = "Ctrl-C ends this run, and a higher --max-new-tokens begins one with whole replies"
        if self.latest_cut:
            where = f"{self.latest_cut} of {where}, by the server or the end of the context"
            cure = "Ctrl-C ends this run; raise the server's limit, or ask for shorter replies"
        warnings.warn(
            f"{self.cut} of the first {self.replies} replies are cut at {where}: their ends are"
            f" not judged, and the dialogs continue from broken sentences; {cure}.",
            stacklevel=2,
        )


@dataclass(frozen=True)
class DialogRequest:
    """A request for the next message of one side, or for the reply to a probe.

    Args:
        view: the side whose chat it is.
        names: seed the draw of the reply within the conversation: the round, then the speaker or
            the kind of the probe, and so on.
        last_round: the last round of the chat, to which its last message belongs.
        max_new_tokens: the most tokens of the reply.
        question: the probe's question, in place of the user's message in the last round; None for
            a turn.
        keep: whether later requests may reuse what is computed for this one; if not, it is a fork
            of the dialog.
    """

    view: DialogSide
    names: tuple[Any, ...]
    last_round: int
    max_new_tokens: int
    question: str | None = None
    keep: bool = True

    @property
    def by_agent(self) -> bool:
        """Whether the agent replies, and not the user model."""
        return self.view == AGENT_VIEW

    def messages(self, dialog: Dialog, rounds: ShownRounds) -> list[Message]:
        """The chat that shows these rounds of the dialog."""
        if not self.by_agent:
            return with_summary(user_view(dialog, rounds), rounds)
        if self.question is None:
            return with_summary(agent_view(dialog, rounds=rounds), rounds)
        question: Message = {"role": "user", "content": self.question}
        return with_summary([*agent_view(dialog, self.last_round, rounds), question], rounds)


@dataclass(frozen=True)
class DialogReply:
    """The reply to a request, and the rounds that the request showed in the end."""

    request: DialogRequest
    reply: Reply
    rounds: ShownRounds

    @property
    def cut_at(self) -> int | None:
        """The number of tokens at which the reply was cut before it had all that were allowed.

        The server cut it, or the model's context ended. None for any other reply.
        """
        usage = self.reply.usage
        if self.reply.stop_reason != "length" or usage is None:
            return None
        return None if usage.written >= self.request.max_new_tokens else usage.written


class _Fit(NamedTuple):
    """How a request is made to fit into the model's context."""

    rounds: ShownRounds
    room: int  # tokens that must be left for the reply


@dataclass
class DialogClient:
    """Sends the requests of one dialog to the model.

    Attributes:
        engine: the engine of the model, or of both models.
        dialog: the dialog.
        methods: steer the agent, but not the user model.
        settings: the protocol.
        breaker: learns of every request that fails or is answered.
        progress: learns of every reply.
        truncation: warns if many replies are cut.
    """

    engine: Engine
    dialog: Dialog
    methods: tuple[Method, ...]
    settings: Settings
    breaker: CircuitBreaker
    progress: ReplyProgress
    truncation: TruncationMonitor
    _summarising: defaultdict[SummaryKey, asyncio.Lock] = field(
        init=False, repr=False, default_factory=lambda: defaultdict(asyncio.Lock)
    )

    @cached_property
    def rules(self) -> CaseRules:
        """The rules of the agent's prompt."""
        return CaseRules(self.dialog.pairing.agent)

    @cached_property
    def agent_methods(self) -> tuple[Method, ...]:
        """The methods; those that need the rules of the agent's prompt have been given them."""
        return with_rules(self.rules, self.methods)

    async def send(self, request: DialogRequest) -> DialogReply:
        """Asks the model for the reply to a request.

        A chat that is too long is sent again with fewer rounds, or with a summary of them, as far
        as the settings allow. If it is still too long, the reply's stop reason is "context".

        Raises:
            RequestFailed: the request was not answered.
        """
        room = 1 if self.settings.context == "stop" else request.max_new_tokens
        fit = _Fit(self._first_rounds(request), room)
        while True:
            fit = await self._fit_window(request, fit)
            to_model = self._request(request, fit)
            failure: RequestFailed | None = None
            try:
                reply = await generate_checked(self.engine, to_model)
                is_too_long = reply.stop_reason == "context"
            except RequestFailed as error:
                failure = error
                is_too_long = error.why == "context"
                fit = fit._replace(room=1)  # the server knows how much room it needs
            if is_too_long:
                shorter = await self._shorten(request, fit)
                if shorter is not None:
                    fit = shorter
                    continue
            if failure is not None:
                self.breaker.failed(self.dialog.pairing.number, failure)
                try:
                    raise failure
                finally:
                    del failure  # its traceback refers to this frame, which would form a cycle
            self.breaker.answered(to_model)
            self._note(request.view, reply)
            if not is_too_long:
                self.progress.answered(self.dialog.forwarded)
            return DialogReply(request, reply, fit.rounds)

    def _first_rounds(self, request: DialogRequest) -> ShownRounds:
        """The rounds to try first: those that the last turn showed, or that the window allows."""
        settings = self.settings
        rounds = self.dialog.rounds_shown.get(request.view, ALL_ROUNDS)
        if settings.window is None or settings.summarises:
            return rounds
        return replace(rounds, first=max(rounds.first, request.last_round - settings.window + 1))

    def _request(self, request: DialogRequest, fit: _Fit) -> Request:
        """Makes the request to the model."""
        settings = self.settings
        number = self.dialog.pairing.number
        round_number, speaker, *_ = request.names
        return Request(
            messages=tuple(request.messages(self.dialog, fit.rounds)),
            methods=self.agent_methods if request.by_agent else (),
            sampling=replace(settings.sampling, max_new_tokens=request.max_new_tokens),
            seed=seed_of("reply", settings.seed, number, *request.names),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=DialogThread(request.view, number),
            keep=request.keep,
            trace=settings.trace and request.by_agent,
            system_as=settings.system_as,
            room=fit.room,
            tools=self.dialog.tools if request.by_agent else (),
            name=f"Conversation {number}, round {round_number} ({speaker})",
        )

    def _note(self, view: DialogSide, reply: Reply) -> None:
        """Counts the tokens of a reply, and remembers a cut one for methods that check rules."""
        self.dialog.count_tokens(view, reply)
        if reply.stop_reason == "length":
            self.rules.cut_replies.add(reply.text)

    async def _fit_window(self, request: DialogRequest, fit: _Fit) -> _Fit:
        """Summarises until no more rounds are shown than the window allows."""
        window = self.settings.window
        while window is not None and request.last_round - fit.rounds.first >= window:
            fit = fit._replace(rounds=await self._summarise(request, fit.rounds))
        return fit

    async def _shorten(self, request: DialogRequest, fit: _Fit) -> _Fit | None:
        """Shows fewer rounds, or leaves less room for the reply; None if neither is possible."""
        rounds = fit.rounds
        if self.settings.context == "stop":
            return None
        if rounds.first >= request.last_round:
            return fit._replace(room=1) if fit.room > 1 else None
        if self.settings.summarises:
            return fit._replace(rounds=await self._summarise(request, rounds))
        return fit._replace(rounds=replace(rounds, first=rounds.first + 1))

    async def _summarise(self, request: DialogRequest, rounds: ShownRounds) -> ShownRounds:
        """Replaces the older half of the rounds by a summary, written once for all requests."""
        before = (rounds.first + request.last_round + 1) // 2
        key = SummaryKey(request.view, rounds.first, before, rounds.summary)
        compacts = self.settings.context == "compact" and request.by_agent
        async with self._summarising[key]:
            if key not in self.dialog.summaries:
                summary = await self._ask_for_summary(key, rounds, compacts=compacts)
                self.dialog.summaries[key] = summary
        summary = self.dialog.summaries[key]
        return ShownRounds(before, summary, compacts and bool(summary))

    async def _ask_for_summary(
        self, key: SummaryKey, rounds: ShownRounds, *, compacts: bool
    ) -> str:
        """Asks for a summary of the rounds before `key.before`; "" if the context has no room."""
        settings = self.settings
        dialog = self.dialog
        number = dialog.pairing.number
        system = system_of(dialog.pairing) if compacts else ""
        prompt = str(settings.summary_prompt)
        request = Request(
            summary_messages(prompt, dialog.turns, rounds, key.before, system),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *key.seed_names),
            thread=DialogThread(key.view, number),
            system_as=settings.system_as,
            name=f"Conversation {number}, summary of the rounds before {key.before} ({key.view})",
        )
        try:
            reply = await self.engine.generate(request)
        except RequestFailed as error:
            if error.why == "context":
                return ""
            self.breaker.failed(number, error)
            raise
        self.breaker.answered(request)
        dialog.count_tokens(f"{key.view} summary", reply)
        return reply.without_reasoning().text
