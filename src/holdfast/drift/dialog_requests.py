"""Sends a dialog's requests to the model: for turns, and for replies to probes.

A request that does not fit into the model's context is sent again with less of the dialog. A view
never shows again what it once left out (`Settings.context`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from holdfast.chat.messages import Message
from holdfast.drift.dialog import (
    AGENT_VIEW,
    ALL_ROUNDS,
    USER_VIEW,
    Dialog,
    DialogSide,
    DialogThread,
    ShownRounds,
    agent_view,
    user_view,
)
from holdfast.drift.dialog_summaries import Summariser, with_summary
from holdfast.drift.progress import ReplyProgress
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.settings import Settings
from holdfast.drift.truncation_monitor import TruncationMonitor
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.checked_replies import generate_checked
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request
from holdfast.seeds import seed_of


@dataclass(frozen=True)
class DialogRequest:
    """A request for the next message of one side, or for the reply to a probe.

    Args:
        view: the side whose chat it is.
        round: the round of the turn or of the probe.
        seed_names: with the round, they seed the draw of the reply. The first is the speaker of the
            turn, or the kind of the probe.
        last_round: the last round of the chat, to which its last message belongs.
        max_new_tokens: the most tokens of the reply.
        question: the probe's question, in place of the user's message in the last round; None for
            a turn.
        keep: whether later requests may reuse what is computed for this one; if not, it is a fork
            of the dialog.
    """

    view: DialogSide
    round: int
    seed_names: tuple[Any, ...]
    last_round: int
    max_new_tokens: int
    question: str | None = None
    keep: bool = True

    @property
    def is_to_agent(self) -> bool:
        """Whether the agent replies, and not the user model."""
        return self.view == AGENT_VIEW

    def messages(self, dialog: Dialog, shown: ShownRounds) -> list[Message]:
        """The chat that shows these rounds of the dialog."""
        if self.view == USER_VIEW:
            chat = user_view(dialog, shown)
        elif self.question is None:
            chat = agent_view(dialog, shown)
        else:
            chat = agent_view(dialog.fork_before(self.last_round), shown)
            chat.append({"role": "user", "content": self.question})
        return with_summary(chat, shown)


@dataclass(frozen=True)
class DialogReply:
    """The reply to a request, and the rounds that the request showed in the end."""

    request: DialogRequest
    reply: Reply
    shown: ShownRounds

    @property
    def cut_at(self) -> int | None:
        """The number of tokens at which the reply was cut before it had all that were allowed.

        The server cut it, or the model's context ended. None for any other reply.
        """
        usage = self.reply.usage
        if self.reply.stop_reason != "length" or usage is None:
            return None
        return None if usage.written >= self.request.max_new_tokens else usage.written


class _Attempt(NamedTuple):
    """How a request is made to fit into the model's context."""

    shown: ShownRounds
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

    @cached_property
    def rules(self) -> CaseRules:
        """The rules of the agent's prompt."""
        return CaseRules(self.dialog.pairing.agent)

    @cached_property
    def agent_methods(self) -> tuple[Method, ...]:
        """The methods; those that need the rules of the agent's prompt have been given them."""
        return with_rules(self.rules, self.methods)

    @cached_property
    def summariser(self) -> Summariser:
        """Writes the summaries of rounds that are left out."""
        return Summariser(self.engine, self.dialog, self.settings, self.breaker)

    async def send(self, request: DialogRequest) -> DialogReply:
        """Asks the model for the reply to a request.

        A chat that is too long is sent again with fewer rounds, or with a summary of them, as far
        as the settings allow. If it is still too long, the reply's stop reason is "context".

        Raises:
            RequestFailed: the request was not answered.
        """
        attempt = await self._first_attempt(request)
        while True:
            model_request = self._request_to_model(request, attempt)
            try:
                reply = await generate_checked(self.engine, model_request)
            except RequestFailed as error:
                if error.why == "context":
                    # the server knows how much room it needs
                    shorter = await self._shorten(request, attempt._replace(room=1))
                    if shorter is not None:
                        attempt = shorter
                        continue
                self.breaker.failed(self.dialog.pairing.number, error)
                raise
            is_too_long = reply.stop_reason == "context"
            shorter = await self._shorten(request, attempt) if is_too_long else None
            if shorter is None:
                break
            attempt = shorter
        self.breaker.answered(model_request)
        self.dialog.count_tokens(request.view, reply)
        if reply.stop_reason == "length":  # for methods that check rules
            self.rules.cut_replies.add(reply.text)
        if not is_too_long:
            self.progress.answered(self.dialog.forwarded)
        return DialogReply(request, reply, attempt.shown)

    async def _first_attempt(self, request: DialogRequest) -> _Attempt:
        """Shows the rounds that the latest turn showed, as far as the window allows."""
        settings = self.settings
        shown = self.dialog.latest_shown.get(request.view, ALL_ROUNDS)
        if settings.window is not None:
            first = request.last_round - settings.window + 1
            while settings.summarises and shown.first < first:
                shown = await self._summarise(request, shown)
            shown = replace(shown, first=max(shown.first, first))
        room = 1 if settings.context == "stop" else request.max_new_tokens
        return _Attempt(shown, room)

    async def _shorten(self, request: DialogRequest, attempt: _Attempt) -> _Attempt | None:
        """Shows fewer rounds, or leaves less room for the reply; None if neither is possible."""
        shown = attempt.shown
        if self.settings.context == "stop":
            return None
        if shown.first >= request.last_round:
            return attempt._replace(room=1) if attempt.room > 1 else None
        if self.settings.summarises:
            return attempt._replace(shown=await self._summarise(request, shown))
        return attempt._replace(shown=replace(shown, first=shown.first + 1))

    async def _summarise(self, request: DialogRequest, shown: ShownRounds) -> ShownRounds:
        """Replaces the older half of the rounds by a summary."""
        return await self.summariser.summarise(request.view, shown, request.last_round)

    def _request_to_model(self, request: DialogRequest, attempt: _Attempt) -> Request:
        """Makes the request to the model."""
        settings = self.settings
        number = self.dialog.pairing.number
        names = request.seed_names
        return Request(
            messages=tuple(request.messages(self.dialog, attempt.shown)),
            methods=self.agent_methods if request.is_to_agent else (),
            sampling=replace(settings.sampling, max_new_tokens=request.max_new_tokens),
            seed=seed_of("reply", settings.seed, number, request.round, *names),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=DialogThread(request.view, number),
            keep=request.keep,
            trace=settings.trace and request.is_to_agent,
            system_as=settings.system_as,
            room=attempt.room,
            tools=self.dialog.tools if request.is_to_agent else (),
            name=f"Conversation {number}, round {request.round} ({names[0]})",
        )
