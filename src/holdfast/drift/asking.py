"""The requests of one conversation, each fitted into the model's context."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from holdfast.chat.messages import Message
from holdfast.common.seeds import seed_of
from holdfast.drift.dialog import (
    AGENT_VIEW,
    Answer,
    Dialog,
    agent_view,
    outcomes_of,
    place_of,
    system_of,
)
from holdfast.drift.pairing import ProbeQuestion
from holdfast.drift.prompt_rules import with_rules_of
from holdfast.drift.settings import Settings, Shown, to_summarise, with_summary
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.failures import OutageWatch
from holdfast.models.protocol import Engine
from holdfast.models.requests import Request
from holdfast.models.retries import generate_checked
from holdfast.records import Unanswered

RECALL_TOKENS = 300  # enough for a list of all rules of a prompt


@dataclass(frozen=True)
class Question:
    """A turn or a probe to be generated."""

    view: str  # AGENT_VIEW or USER_VIEW
    rounds: int  # the last round that it shows, including its own message
    messages: Callable[[Shown], list[Message]]  # the chat for a given part of the dialog
    seed_names: tuple[Any, ...]  # of the reply's draw in the conversation; the round comes first
    keep: bool  # whether later requests reuse what is computed for it; else it forks the dialog
    least_tokens: int = 1  # that the reply may have, whatever the settings say


_SummaryKey = tuple[str, int, int]  # the view, the first round, and the round after the last


@dataclass
class Asking:
    """Asks the questions of one conversation.

    The part of a dialog that a view leaves out for lack of room only grows (`Settings.context`).
    """

    engine: Engine
    dialog: Dialog
    methods: tuple[Method, ...]  # applied only to the agent
    settings: Settings
    watch: OutageWatch
    _summarising: defaultdict[_SummaryKey, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    @cached_property
    def agent_methods(self) -> tuple[Method, ...]:
        """The methods, of which those that need the rules of the agent's prompt know them."""
        return with_rules_of(self.dialog.pairing.agent, self.methods)

    async def ask(self, question: Question) -> Answer:
        """The reply to a question.

        A chat that is too long is asked again with fewer rounds, or with a summary of them, as far
        as the settings allow; if nothing helps, the reply's stop reason is "context".

        Raises:
            RequestFailed: the question was not answered.
        """
        settings = self.settings
        shown = self.dialog.shown.get(question.view, Shown())
        if settings.window is not None and not settings.summarises:
            first = max(shown.first, question.rounds - settings.window + 1)
            shown = replace(shown, first=first)
        room = 1 if settings.context == "stop" else settings.sampling.max_new_tokens
        while True:
            shown = await self._within_window(question, shown)
            request = self._request(question, shown, room)
            try:
                checked = await generate_checked(self.engine, request)
            except RequestFailed as error:
                # the server knows how much room it needs
                if error.why == "context" and (less := await self._less(question, shown, 1)):
                    shown, room = less
                    continue
                self.watch.failed(self.dialog.pairing.number, error)
                raise
            reply = checked.reply
            if reply.stop_reason == "context" and (less := await self._less(question, shown, room)):
                shown, room = less
                continue
            self.watch.answered(request)
            for drawn in (*checked.discarded, reply):
                self.dialog.count(question.view, drawn)
            return Answer(reply, shown, len(checked.discarded))

    def _request(self, question: Question, shown: Shown, room: int) -> Request:
        settings, view, number = self.settings, question.view, self.dialog.pairing.number
        most = max(settings.sampling.max_new_tokens, question.least_tokens)
        return Request(
            messages=tuple(question.messages(shown)),
            methods=self.agent_methods if view == AGENT_VIEW else (),
            sampling=replace(settings.sampling, max_new_tokens=most),
            seed=seed_of("reply", settings.seed, number, *question.seed_names),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(view, number),
            keep=question.keep,
            trace=settings.trace and view == AGENT_VIEW,
            system_as=settings.system_as,
            room=room,
            tools=self.dialog.tools if view == AGENT_VIEW else (),
            name=self._name(question),
        )

    async def _within_window(self, question: Question, shown: Shown) -> Shown:
        """Summarises until no more rounds are shown than the window allows."""
        window = self.settings.window
        while window is not None and question.rounds - shown.first >= window:
            shown = await self._summarised(question, shown)
        return shown

    async def _less(self, question: Question, shown: Shown, room: int) -> tuple[Shown, int] | None:
        """A shorter part of the dialog, or less room for the reply; None if neither is possible."""
        if self.settings.context == "stop":
            return None
        if shown.first < question.rounds:
            if self.settings.summarises:
                return await self._summarised(question, shown), room
            return replace(shown, first=shown.first + 1), room
        return (shown, 1) if room > 1 else None

    async def _summarised(self, question: Question, shown: Shown) -> Shown:
        """The dialog with its older half summarised, once for all questions that need it."""
        before = (shown.first + question.rounds + 1) // 2
        key = (question.view, shown.first, before)
        compacts = self.settings.context == "compact" and question.view == AGENT_VIEW
        async with self._summarising[key]:
            if key not in self.dialog.summaries:
                self.dialog.summaries[key] = await self._summary(question, shown, key, compacts)
        summary = self.dialog.summaries[key]
        return Shown(before, summary, compacts and bool(summary))

    async def _summary(
        self, question: Question, shown: Shown, key: _SummaryKey, compacts: bool
    ) -> str:
        """A summary of the rounds before `key[2]`; "" if even they leave no room for one."""
        settings, number = self.settings, self.dialog.pairing.number
        system = system_of(self.dialog.pairing) if compacts else ""
        request = Request(
            to_summarise(str(settings.summary_prompt), self.dialog.turns, shown, key[2], system),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *key),
            thread=(question.view, number),
            system_as=settings.system_as,
            name=f"{self._name(question)}, summary",
        )
        try:
            reply = await self.engine.generate(request)
        except RequestFailed as error:
            if error.why == "context":
                return ""
            self.watch.failed(number, error)
            raise
        self.watch.answered(request)
        self.dialog.count(f"{question.view} summary", reply)
        return reply.without_reasoning().text

    def _name(self, question: Question) -> str:
        number, speaker, *_ = question.seed_names
        return f"Conversation {self.dialog.pairing.number}, round {number} ({speaker})"

    async def ask_probe(
        self, number: int, probe: ProbeQuestion, before: int, *, keep: bool = False
    ) -> bool:
        """Asks a probe of round `number` in a fork of the dialog before round `before`.

        Records its scores; returns whether the context had room for it.
        """

        def messages(shown: Shown) -> list[Message]:
            message: Message = {"role": "user", "content": probe.question}
            return with_summary([*agent_view(self.dialog, before, shown), message], shown)

        dialog = self.dialog
        seed_names = (number, *probe.names)
        least_tokens = RECALL_TOKENS if probe.kind == "recall" else 1
        question = Question(AGENT_VIEW, before, messages, seed_names, keep, least_tokens)
        try:
            answer = await self.ask(question)
        except RequestFailed as error:
            for rule in probe.rules:
                place = dict(place_of(number, probe, rule))
                dialog.probes.append(Unanswered(**place, why=error.why, reason=str(error)))
            return error.why != "context"
        if answer.reply.stop_reason == "context":
            return False
        dialog.probes += outcomes_of(number, probe, answer)
        return True
