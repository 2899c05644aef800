"""The requests of one dialog, each fitted into the model's context."""

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
    SummaryKey,
    agent_view,
    outcomes_of,
    place_of,
    system_of,
)
from holdfast.drift.pairing import ProbeQuestion
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.settings import Settings, Shown, to_summarise, with_summary
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.checked_replies import CheckedReply, generate_checked
from holdfast.models.failures import OutageWatch
from holdfast.models.protocol import Engine
from holdfast.models.requests import Request
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


@dataclass(frozen=True)
class _View:
    """The part of the dialog that a request shows, and the room it must leave for the reply."""

    shown: Shown
    room: int  # tokens


@dataclass
class DialogRequests:
    """Asks the model for the turns and the answers to probes of one dialog.

    The part of a dialog that a view leaves out for lack of room only grows (`Settings.context`).
    """

    engine: Engine
    dialog: Dialog
    methods: tuple[Method, ...]  # applied only to the agent
    settings: Settings
    watch: OutageWatch
    _summarising: defaultdict[SummaryKey, asyncio.Lock] = field(
        init=False, repr=False, default_factory=lambda: defaultdict(asyncio.Lock)
    )

    @cached_property
    def rules(self) -> CaseRules:
        """The rules of the agent's prompt."""
        return CaseRules(self.dialog.pairing.agent)

    @cached_property
    def agent_methods(self) -> tuple[Method, ...]:
        """The methods, of which those that need the rules of the agent's prompt know them."""
        return with_rules(self.rules, self.methods)

    async def ask(self, question: Question) -> Answer:
        """The reply to a question.

        A chat that is too long is asked again with fewer rounds, or with a summary of them, as far
        as the settings allow; if nothing helps, the reply's stop reason is "context".

        Raises:
            RequestFailed: the question was not answered.
        """
        view = self._first_view(question)
        while True:
            view = await self._within_window(question, view)
            request = self._request(question, view)
            try:
                checked = await generate_checked(self.engine, request)
            except RequestFailed as error:
                # the server knows how much room it needs
                least = replace(view, room=1)
                shorter = await self._shorter(question, least) if error.why == "context" else None
                if shorter is None:
                    self.watch.failed(self.dialog.pairing.number, error)
                    raise
            else:
                is_full = checked.reply.stop_reason == "context"
                shorter = await self._shorter(question, view) if is_full else None
                if shorter is None:
                    self.watch.answered(request)
                    return self._answer(question, view, checked)
            view = shorter

    def _first_view(self, question: Question) -> _View:
        """As much of the dialog as the turn before was shown, or as the window allows."""
        settings = self.settings
        shown = self.dialog.shown.get(question.view, Shown())
        if settings.window is not None and not settings.summarises:
            first = max(shown.first, question.rounds - settings.window + 1)
            shown = replace(shown, first=first)
        return _View(shown, 1 if settings.context == "stop" else self._most_tokens(question))

    def _answer(self, question: Question, view: _View, checked: CheckedReply) -> Answer:
        """The answer of a reply, whose cost is counted, as is that of those that are not used."""
        reply = checked.reply
        for drawn in (*checked.discarded, reply):
            self.dialog.count(question.view, drawn)
        if reply.stop_reason == "length":
            self.rules.cut_replies.add(reply.text)
        return Answer(reply, view.shown, len(checked.discarded))

    def _most_tokens(self, question: Question) -> int:
        """The most tokens that the reply to a question may have."""
        return max(self.settings.sampling.max_new_tokens, question.least_tokens)

    def _request(self, question: Question, view: _View) -> Request:
        settings, number = self.settings, self.dialog.pairing.number
        by_agent = question.view == AGENT_VIEW
        return Request(
            messages=tuple(question.messages(view.shown)),
            methods=self.agent_methods if by_agent else (),
            sampling=replace(settings.sampling, max_new_tokens=self._most_tokens(question)),
            seed=seed_of("reply", settings.seed, number, *question.seed_names),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(question.view, number),
            keep=question.keep,
            trace=settings.trace and by_agent,
            system_as=settings.system_as,
            room=view.room,
            tools=self.dialog.tools if by_agent else (),
            name=self._name(question),
        )

    async def _within_window(self, question: Question, view: _View) -> _View:
        """Summarises until no more rounds are shown than the window allows."""
        window, shown = self.settings.window, view.shown
        while window is not None and question.rounds - shown.first >= window:
            shown = await self._summarised(question, shown)
        return replace(view, shown=shown)

    async def _shorter(self, question: Question, view: _View) -> _View | None:
        """A shorter part of the dialog, or less room for the reply; None if neither is possible."""
        if self.settings.context == "stop":
            return None
        if view.shown.first < question.rounds:
            if self.settings.summarises:
                return replace(view, shown=await self._summarised(question, view.shown))
            return replace(view, shown=replace(view.shown, first=view.shown.first + 1))
        return replace(view, room=1) if view.room > 1 else None

    async def _summarised(self, question: Question, shown: Shown) -> Shown:
        """The dialog with its older half summarised, once for all questions that need it."""
        before = (shown.first + question.rounds + 1) // 2
        key = SummaryKey(question.view, shown.first, before, shown.summary)
        compacts = self.settings.context == "compact" and question.view == AGENT_VIEW
        async with self._summarising[key]:
            if key not in self.dialog.summaries:
                self.dialog.summaries[key] = await self._summary(question, shown, key, compacts)
        summary = self.dialog.summaries[key]
        return Shown(before, summary, compacts and bool(summary))

    async def _summary(
        self, question: Question, shown: Shown, key: SummaryKey, compacts: bool
    ) -> str:
        """A summary of the rounds before `key.before`; "" if even they leave no room for one."""
        settings, number = self.settings, self.dialog.pairing.number
        system = system_of(self.dialog.pairing) if compacts else ""
        request = Request(
            to_summarise(
                str(settings.summary_prompt), self.dialog.turns, shown, key.before, system
            ),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *key.seed_names),
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
