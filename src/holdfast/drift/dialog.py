"""A conversation in progress: its state, and the chat that each side sees.

A view is the chat as one side sees it: the agent's, or the user model's. If a dialog does not fit
into the model's context, whole rounds are left out of a view, the oldest first, so that the chat
still begins with a user message. The system prompt stays, unless a summary of these rounds replaces
it too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from holdfast.chat.messages import Message, Tool
from holdfast.drift.pairing import Pairing
from holdfast.drift.probe_outcomes import ProbeOutcome
from holdfast.models.requests import Reply, Request, TokenUsage
from holdfast.records import Ended, Turn
from holdfast.records.traces import TurnTrace

DialogSide = Literal["user", "agent"]
# the views of a dialog
AGENT_VIEW: DialogSide = "agent"
USER_VIEW: DialogSide = "user"
_ROLES = {"user": "user", "agent": "assistant"}
# in the texts of summaries
_SPEAKERS = {"user": "User", "agent": "Assistant", "tool": "Tool"}
_SUMMARY_LEAD = "Summary of our conversation so far:"


class DialogThread(NamedTuple):
    """The engine's thread for one view of a conversation."""

    view: DialogSide
    conversation: int


def is_from_user_model(request: Request) -> bool:
    """Whether a request is for a turn of the user model, rather than for the agent's reply."""
    thread = request.thread
    return isinstance(thread, DialogThread) and thread.view == USER_VIEW


@dataclass(frozen=True)
class ShownRounds:
    """The rounds that a request shows.

    Args:
        first: the first round shown; earlier rounds are left out.
        summary: the summary of the rounds left out; "" if there is none.
        compacts: whether the summary replaces the system prompt too.
    """

    first: int = 1
    summary: str = ""
    compacts: bool = False


ALL_ROUNDS = ShownRounds()


class SummaryKey(NamedTuple):
    """The rounds that a summary covers."""

    view: DialogSide  # the agent's or the user's
    first: int  # the first round
    before: int  # the round after the last
    earlier: str  # the summary of still earlier rounds, which it includes; "" for none

    @property
    def seed_names(self) -> tuple[str | int, ...]:
        """The names that seed the draw of the summary; `earlier` only if there is one."""
        return self if self.earlier else (self.view, self.first, self.before)


class ProcessedSequence(NamedTuple):
    """The tokens that the model had to process for a reply.

    The last token of a reply that was cut off is drawn, but not processed.
    """

    view: str  # the view that the reply continues, or "agent summary" and the like
    token_ids: tuple[int, ...]


@dataclass
class Dialog:
    """One conversation in progress.

    Attributes:
        pairing: who talks, and which probes are asked.
        turns: the turns of both sides.
        probes: the outcomes of the probes, in the order in which they were answered.
        ended: where and why the dialog ended early; None if it did not.
        traces: the traces of the agent's turns, by round.
        forwarded: tokens that went through the model.
        usage: of each reply; None for a reply without these numbers.
        sequences: of each reply whose tokens are known.
        rounds_shown: the rounds that each view showed at its latest turn.
        summaries: the summaries of rounds that were left out.
    """

    pairing: Pairing
    turns: list[Turn] = field(default_factory=list)
    probes: list[ProbeOutcome] = field(default_factory=list)
    ended: Ended | None = None
    traces: dict[int, TurnTrace] = field(default_factory=dict)
    forwarded: int = 0
    usage: list[TokenUsage | None] = field(default_factory=list)
    sequences: list[ProcessedSequence] = field(default_factory=list)
    rounds_shown: dict[DialogSide, ShownRounds] = field(default_factory=dict)
    summaries: dict[SummaryKey, str] = field(default_factory=dict)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a replayed dialog declares; () for any other dialog."""
        return () if self.pairing.recorded is None else self.pairing.recorded.tools

    def count_tokens(self, view: str, reply: Reply) -> None:
        """Counts the tokens of a reply, and of the discarded replies that it replaces."""
        for discarded in reply.discarded:
            self.count_tokens(view, discarded)
        self.forwarded += reply.forwarded
        self.usage.append(reply.usage)
        if reply.prompt_ids is None or reply.token_ids is None or reply.stop_reason == "context":
            return
        processed = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
        self.sequences.append(ProcessedSequence(view, reply.prompt_ids + processed))


def system_of(pairing: Pairing) -> str:
    """The agent's system prompt as the model reads it, with its canary."""
    return "\n\n".join(filter(None, (pairing.agent.system_prompt, pairing.canary)))


def _system_message(text: str) -> list[Message]:
    """The message with a system prompt; [] without one."""
    return [{"role": "system", "content": text}] if text else []


def agent_view(
    dialog: Dialog, before: int | None = None, rounds: ShownRounds = ALL_ROUNDS
) -> list[Message]:
    """The agent's chat, [s_B, a1, b1, ...], with all turns or those before the round `before`."""
    messages = _system_message(system_of(dialog.pairing))
    for turn in dialog.turns:
        if rounds.first <= turn.round and (before is None or turn.round < before):
            messages += _messages_of(turn)
    return messages


def _messages_of(turn: Turn) -> list[Message]:
    """The messages of a turn: one, unless the agent called tools."""
    text: Message = {"role": _ROLES[turn.speaker], "content": turn.text}
    return list(turn.messages) or [text]


def user_view(dialog: Dialog, rounds: ShownRounds = ALL_ROUNDS) -> list[Message]:
    """The user model's chat: the dialog with the roles swapped, under s_A.

    Its first message recaps the first round shown, as a chat has to begin with a user message.
    """
    opening, first, *rest = (turn for turn in dialog.turns if rounds.first <= turn.round)
    recap = f"You asked: {opening.text}\nI answered: {first.text}"
    roles = {"user": "assistant", "agent": "user"}
    return [
        *_system_message(dialog.pairing.user.system_prompt if dialog.pairing.user else ""),
        {"role": "user", "content": recap},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in rest),
    ]


def with_summary(messages: Sequence[Message], rounds: ShownRounds) -> list[Message]:
    """Adds the summary to a chat: before its first message, or in place of the system prompt."""
    if not rounds.summary:
        return list(messages)
    summary = f"{_SUMMARY_LEAD} {rounds.summary}"
    others = (n for n, message in enumerate(messages) if message["role"] != "system")
    position = next(others)
    if rounds.compacts:
        return [{"role": "system", "content": summary}, *messages[position:]]
    first = messages[position]
    content = f"{summary}\n\n{first['content']}"
    return [*messages[:position], {**first, "content": content}, *messages[position + 1 :]]


def summary_messages(
    prompt: str, turns: Sequence[Turn], rounds: ShownRounds, before: int, system: str = ""
) -> list[Message]:
    """Builds the chat that asks for a summary of the shown rounds before `before`.

    Args:
        prompt: asks for the summary.
        rounds: the rounds shown so far; their summary of earlier rounds is included.
        system: the system prompt, if it is to be summarised too.
    """
    parts = [prompt]
    if system and not rounds.compacts:
        parts.append(f"System: {system}")
    if rounds.summary:
        parts.append(f"{_SUMMARY_LEAD} {rounds.summary}")
    parts += [_transcribe(turn) for turn in turns if rounds.first <= turn.round < before]
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
