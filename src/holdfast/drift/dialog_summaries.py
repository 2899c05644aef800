"""Summaries of rounds that a dialog leaves out: the model writes them, later chats show them.

The model is asked for a summary of the older half of the rounds, in a chat of its own:

    user: "Summarise the conversation below ... User: a1  Assistant: b1  User: a2  Assistant: b2"

A chat that leaves these rounds out then begins with the summary:

    system: s_B, user: "Summary of our conversation so far: ...  a3", assistant: b3, ...
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.chat.messages import Message
from holdfast.drift.dialog import (
    AGENT_VIEW,
    Dialog,
    DialogSide,
    DialogThread,
    ShownRounds,
    system_of,
)
from holdfast.drift.settings import Settings
from holdfast.errors import RequestFailed
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine
from holdfast.models.requests import Request
from holdfast.records import ContextSummary, Turn
from holdfast.seeds import seed_of

_LEAD = "Summary of our conversation so far:"
_SPEAKERS = {"user": "User", "agent": "Assistant", "tool": "Tool"}  # in the text to summarise


class _SummarisedRounds(NamedTuple):
    """The rounds that a summary covers."""

    view: DialogSide
    first: int
    before: int  # the round after the last
    earlier: str  # the summary of still earlier rounds, which it includes; "" for none

    @property
    def seed_names(self) -> tuple[str | int, ...]:
        """The names that seed the draw of the summary."""
        earlier = (self.earlier,) if self.earlier else ()
        return (self.view, self.first, self.before, *earlier)


@dataclass
class Summariser:
    """Asks the model for the summaries of one dialog, and for each only once.

    Attributes:
        engine: the engine of the model that writes them.
        dialog: the dialog, which also records its summaries.
        settings: the protocol.
        breaker: learns of every request that fails or is answered.
    """

    engine: Engine
    dialog: Dialog
    settings: Settings
    breaker: CircuitBreaker
    _texts: dict[_SummarisedRounds, str] = field(init=False, repr=False, default_factory=dict)
    # held while a summary is written, as several probes need it at the same time
    _locks: defaultdict[_SummarisedRounds, asyncio.Lock] = field(
        init=False, repr=False, default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def summarise(self, view: DialogSide, shown: ShownRounds, last_round: int) -> ShownRounds:
        """Replaces the older half of the rounds shown, up to `last_round`, by a summary.

        If there is no room to write one, these rounds are left out without a summary.
        """
        before = (shown.first + last_round + 1) // 2
        covered = _SummarisedRounds(view, shown.first, before, shown.summary)
        replaces_prompt = self.settings.context == "compact" and view == AGENT_VIEW
        system = system_of(self.dialog.pairing) if replaces_prompt else ""
        async with self._locks[covered]:
            if covered not in self._texts:
                text = await self._ask(covered, shown, system)
                self._texts[covered] = text
                self.dialog.summaries.append(
                    ContextSummary(view=view, rounds=(covered.first, before - 1), text=text)
                )
        text = self._texts[covered]
        return ShownRounds(before, text, replaces_prompt and bool(text))

    async def _ask(self, covered: _SummarisedRounds, shown: ShownRounds, system: str) -> str:
        """Asks for a summary; "" if the context has no room for one."""
        settings = self.settings
        number = self.dialog.pairing.number
        view = covered.view
        prompt = str(settings.summary_prompt)
        request = Request(
            summary_messages(prompt, self.dialog.turns, shown, covered.before, system),
            sampling=settings.sampling,
            seed=seed_of("summary", settings.seed, number, *covered.seed_names),
            thread=DialogThread(view, number),
            system_as=settings.system_as,
            name=f"Conversation {number}, summary of the rounds before {covered.before} ({view})",
        )
        try:
            reply = await self.engine.generate(request)
        except RequestFailed as error:
            if error.why == "context":
                return ""
            self.breaker.failed(number, error)
            raise
        self.breaker.answered(request)
        self.dialog.count_tokens(f"{view} summary", reply)
        return reply.without_reasoning().text


def summary_messages(
    prompt: str, turns: Sequence[Turn], shown: ShownRounds, before: int, system: str = ""
) -> list[Message]:
    """Builds the chat that asks for a summary of the rounds shown, up to the round before `before`.

    Args:
        prompt: asks for the summary.
        turns: all turns of the dialog.
        shown: the rounds shown so far; their summary of earlier rounds is included.
        system: the system prompt, if it is to be summarised too.
    """
    parts = [prompt]
    if system and not shown.replaces_prompt:
        parts.append(f"System: {system}")
    if shown.summary:
        parts.append(f"{_LEAD} {shown.summary}")
    parts += [_transcribe(turn) for turn in turns if shown.first <= turn.round < before]
    return [{"role": "user", "content": "\n\n".join(parts)}]


def _transcribe(turn: Turn) -> str:
    """Writes a turn as text to summarise, with the tool calls of a replayed turn."""
    if not turn.messages:
        return f"{_SPEAKERS[turn.speaker]}: {turn.text}"
    parts = []
    for message in turn.messages:
        speaker = "tool" if message["role"] == "tool" else "agent"
        calls = [json.dumps(call["function"]) for call in message.get("tool_calls", ())]
        text = "\n".join(filter(None, [message["content"], *calls]))
        parts.append(f"{_SPEAKERS[speaker]}: {text}")
    return "\n\n".join(parts)


def with_summary(messages: Sequence[Message], shown: ShownRounds) -> list[Message]:
    """Adds the summary to a chat: before its first message, or in place of the system prompt."""
    if not shown.summary:
        return list(messages)
    summary = f"{_LEAD} {shown.summary}"
    start = 1 if messages[0]["role"] == "system" else 0
    if shown.replaces_prompt:
        return [{"role": "system", "content": summary}, *messages[start:]]
    first = messages[start]
    content = f"{summary}\n\n{first['content']}"
    return [*messages[:start], {**first, "content": content}, *messages[start + 1 :]]
