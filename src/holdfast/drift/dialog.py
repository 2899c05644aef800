"""A conversation in progress: its state, what each side sees of it, and what the model is asked.

A view is a chat with the model: the agent's, or the user model's. The part of the dialog that a
view leaves out for lack of room only grows (`Settings.context`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from holdfast.chat.messages import Message, Tool
from holdfast.drift.pairing import Pairing
from holdfast.drift.probe_outcomes import ProbeOutcome
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.reply_progress import CutWatch, ReplyProgress
from holdfast.drift.settings import Settings
from holdfast.drift.shown_rounds import ALL_ROUNDS, ShownRounds, to_summarise
from holdfast.errors import RequestFailed
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method
from holdfast.models.checked_replies import generate_checked
from holdfast.models.failures import OutageWatch
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request
from holdfast.records import Ended, Turn
from holdfast.records.traces import TurnTrace
from holdfast.seeds import seed_of

Speaker = Literal["user", "agent"]
# the views of a dialog, each a thread of the engine
AGENT_VIEW: Speaker = "agent"
USER_VIEW: Speaker = "user"
_ROLES = {"user": "user", "agent": "assistant"}

Chat = Callable[[ShownRounds], list[Message]]  # the chat that shows a given part of the dialog


class SummaryKey(NamedTuple):
    """The rounds that a summary is of."""

    view: str  # of the agent or of the user
    first: int
    before: int  # the round after the last
    earlier: str  # the summary of the rounds before them, which it includes; "" for none

    @property
    def seed_names(self) -> tuple[str | int, ...]:
        """The names that its draw is seeded by."""
        return self if self.earlier else self[:3]


@dataclass
class Dialog:
    """One conversation in progress."""

    pairing: Pairing
    turns: list[Turn] = field(default_factory=list)  # of both sides
    probes: list[ProbeOutcome] = field(default_factory=list)  # in the order of their answers
    ended: Ended | None = None  # where it ended early, and why
    traces: dict[int, TurnTrace] = field(default_factory=dict)  # of the agent's turns, by round
    forwarded: int = 0  # tokens that went through the model
    usage: list[tuple[int, int] | None] = field(default_factory=list)  # read and written, per reply
    # for each reply, its view and the tokens that the model had to process for it
    sequences: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    shown: dict[str, ShownRounds] = field(default_factory=dict)  # by view, in its last turn
    summaries: dict[SummaryKey, str] = field(default_factory=dict)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a replayed dialog declares."""
        return () if self.pairing.dialog is None else self.pairing.dialog.tools

    def count(self, view: str, reply: Reply) -> None:
        """Notes the tokens that a reply took, and those of the replies that it replaced."""
        for discarded in reply.discarded:
            self.count(view, discarded)
        self.forwarded += reply.forwarded
        self.usage.append(reply.usage)
        if reply.prompt_ids is None or reply.token_ids is None or reply.stop_reason == "context":
            return
        written = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
        self.sequences.append((view, reply.prompt_ids + written))


@dataclass(frozen=True)
class Answer:
    """A reply as a dialog got it.

    Args:
        reply: the reply.
        shown: the part of the dialog that its chat showed.
        most_tokens: how many tokens the reply might have, as it was requested.
    """

    reply: Reply
    shown: ShownRounds
    most_tokens: int

    @property
    def cut_at(self) -> int | None:
        """After how many tokens the reply was cut, if the server, or the end of the model's
        context, cut it before `most_tokens`.
        """
        usage = self.reply.usage
        if self.reply.stop_reason != "length" or usage is None or usage[1] >= self.most_tokens:
            return None
        return usage[1]


def system_of(pairing: Pairing) -> str:
    """The agent's system prompt as the model reads it, with its canary."""
    return "\n\n".join(filter(None, (pairing.agent.system_prompt, pairing.canary)))


def _system(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def agent_view(
    dialog: Dialog, before: int | None = None, shown: ShownRounds = ALL_ROUNDS
) -> list[Message]:
    """[s_B, a1, b1, ...] with all turns, or only those of the rounds before `before`."""
    messages = _system(system_of(dialog.pairing))
    for turn in dialog.turns:
        if shown.first <= turn.round and (before is None or turn.round < before):
            messages += _messages_of(turn)
    return messages


def _messages_of(turn: Turn) -> list[Message]:
    """The messages of a turn: one, unless the agent called tools."""
    text: Message = {"role": _ROLES[turn.speaker], "content": turn.text}
    return list(turn.messages) or [text]


def user_view(dialog: Dialog, shown: ShownRounds = ALL_ROUNDS) -> list[Message]:
    """The dialog with roles swapped under s_A; the first message recaps the first round shown."""
    opening, first, *rest = (turn for turn in dialog.turns if shown.first <= turn.round)
    recap = f"You asked: {opening.text}\nI answered: {first.text}"
    roles = {"user": "assistant", "agent": "user"}
    return [
        *_system(dialog.pairing.user.system_prompt if dialog.pairing.user else ""),
        {"role": "user", "content": recap},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in rest),
    ]


@dataclass
class DialogRequests:
    """Asks the model for the turns of one dialog and the replies to its probes."""

    engine: Engine
    dialog: Dialog
    methods: tuple[Method, ...]  # applied only to the agent
    settings: Settings
    watch: OutageWatch
    progress: ReplyProgress
    cut_watch: CutWatch
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

    async def ask(
        self,
        view: Speaker,
        names: tuple[Any, ...],
        chat: Chat,
        last_round: int,
        *,
        keep: bool = True,
        least_tokens: int = 1,
    ) -> Answer:
        """The model's reply to a chat.

        A chat that is too long is asked again with fewer rounds, or with a summary of them, as far
        as the settings allow; if nothing helps, the reply's stop reason is "context".

        Args:
            view: whose chat it is.
            names: seed the reply's draw in the conversation: the round, then the speaker or the
                kind of the probe, and so on.
            chat: the chat for any part of the dialog.
            last_round: the last round of the chat, to which its last message belongs.
            keep: whether later requests reuse what is computed for it; else it forks the dialog.
            least_tokens: the reply may have so many, whatever the settings say.

        Raises:
            RequestFailed: the request was not answered.
        """
        most_tokens = max(self.settings.sampling.max_new_tokens, least_tokens)
        shown = self._first_shown(view, last_round)
        room = 1 if self.settings.context == "stop" else most_tokens
        sampling = replace(self.settings.sampling, max_new_tokens=most_tokens)
        while True:
            shown = await self._within_window(view, last_round, shown)
            request = self._request(view, names, chat(shown), sampling, room, keep)
            try:
                reply = await generate_checked(self.engine, request)
            except RequestFailed as error:
                if error.why == "context":  # the server knows how much room it needs
                    shorter = await self._shorter(view, last_round, shown, 1)
                else:
                    shorter = None
                if shorter is None:
                    self.watch.failed(self.dialog.pairing.number, error)
                    raise
            else:
                is_full = reply.stop_reason == "context"
                shorter = await self._shorter(view, last_round, shown, room) if is_full else None
                if shorter is None:
                    self.watch.answered(request)
                    self._note(view, reply)
                    if not is_full:
                        self.progress.answered(self.dialog.forwarded)
                    return Answer(reply, shown, most_tokens)
            shown, room = shorter

    def _first_shown(self, view: Speaker, last_round: int) -> ShownRounds:
        """As much of the dialog as the turn before was shown, or as the window allows."""
        settings = self.settings
        shown = self.dialog.shown.get(view, ALL_ROUNDS)
        if settings.window is None or settings.summarises:
            return shown
        return replace(shown, first=max(shown.first, last_round - settings.window + 1))

    def _request(
        self,
        view: Speaker,
        names: tuple[Any, ...],
        messages: Sequence[Message],
        sampling: Sampling,
        room: int,
        keep: bool,
    ) -> Request:
        settings, number = self.settings, self.dialog.pairing.number
        by_agent = view == AGENT_VIEW
        round_number, speaker, *_ = names
        return Request(
            messages=tuple(messages),
            methods=self.agent_methods if by_agent else (),
            sampling=sampling,
            seed=seed_of("reply", settings.seed, number, *names),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(view, number),
            keep=keep,
            trace=settings.trace and by_agent,
            system_as=settings.system_as,
            room=room,
            tools=self.dialog.tools if by_agent else (),
            name=f"Conversation {number}, round {round_number} ({speaker})",
        )

    def _note(self, view: Speaker, reply: Reply) -> None:
        """Notes what a reply cost; and that it was cut off, for methods that check rules."""
        self.dialog.count(view, reply)
        if reply.stop_reason == "length":
            self.rules.cut_replies.add(reply.text)

    async def _within_window(
        self, view: Speaker, last_round: int, shown: ShownRounds
    ) -> ShownRounds:
        """Summarises until no more rounds are shown than the window allows."""
        window = self.settings.window
        while window is not None and last_round - shown.first >= window:
            shown = await self._summarised(view, last_round, shown)
        return shown

    async def _shorter(
        self, view: Speaker, last_round: int, shown: ShownRounds, room: int
    ) -> tuple[ShownRounds, int] | None:
        """A shorter part of the dialog, or less room for the reply; None if neither is possible."""
        if self.settings.context == "stop":
            return None
        if shown.first < last_round:
            if self.settings.summarises:
                return await self._summarised(view, last_round, shown), room
            return replace(shown, first=shown.first + 1), room
        return (shown, 1) if room > 1 else None

    async def _summarised(self, view: Speaker, last_round: int, shown: ShownRounds) -> ShownRounds:
        """The dialog with its older half summarised, once for all requests that need it."""
        before = (shown.first + last_round + 1) // 2
        key = SummaryKey(view, shown.first, before, shown.summary)
        compacts = self.settings.context == "compact" and view == AGENT_VIEW
        async with self._summarising[key]:
            if key not in self.dialog.summaries:
                self.dialog.summaries[key] = await self._summary(key, shown, compacts)
        summary = self.dialog.summaries[key]
        return ShownRounds(before, summary, compacts and bool(summary))

    async def _summary(self, key: SummaryKey, shown: ShownRounds, compacts: bool) -> str:
        """A summary of the rounds before `key.before`; "" if even they leave no room for one."""
        settings, number = self.settings, self.dialog.pairing.number
        system = system_of(self.dialog.pairing) if compacts else ""
        request = Request(
            to_summarise(
                str(settings.summary_prompt), self.dialog.turns, shown, key.before, system
            ),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *key.seed_names),
            thread=(key.view, number),
            system_as=settings.system_as,
            name=f"Conversation {number}, summary of the rounds before {key.before} ({key.view})",
        )
        try:
            reply = await self.engine.generate(request)
        except RequestFailed as error:
            if error.why == "context":
                return ""
            self.watch.failed(number, error)
            raise
        self.watch.answered(request)
        self.dialog.count(f"{key.view} summary", reply)
        return reply.without_reasoning().text
