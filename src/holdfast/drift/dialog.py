"""A conversation in progress: its state, and what each side sees of it.

A view is a chat with the model: the agent's, or the user model's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from holdfast.chat.messages import Message, Tool
from holdfast.drift.pairing import Pairing
from holdfast.drift.probe_outcomes import ProbeOutcome
from holdfast.drift.shown_rounds import ALL_ROUNDS, ShownRounds
from holdfast.models.requests import Reply
from holdfast.records import Ended, Turn
from holdfast.records.traces import TurnTrace

Speaker = Literal["user", "agent"]
# the views of a dialog, each a thread of the engine
AGENT_VIEW: Speaker = "agent"
USER_VIEW: Speaker = "user"
_ROLES = {"user": "user", "agent": "assistant"}


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
    rounds_shown: dict[str, ShownRounds] = field(default_factory=dict)  # by view, in its last turn
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


def system_of(pairing: Pairing) -> str:
    """The agent's system prompt as the model reads it, with its canary."""
    return "\n\n".join(filter(None, (pairing.agent.system_prompt, pairing.canary)))


def _system(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def agent_view(
    dialog: Dialog, before: int | None = None, rounds: ShownRounds = ALL_ROUNDS
) -> list[Message]:
    """[s_B, a1, b1, ...] with all turns, or only those of the rounds before `before`."""
    messages = _system(system_of(dialog.pairing))
    for turn in dialog.turns:
        if rounds.first <= turn.round and (before is None or turn.round < before):
            messages += _messages_of(turn)
    return messages


def _messages_of(turn: Turn) -> list[Message]:
    """The messages of a turn: one, unless the agent called tools."""
    text: Message = {"role": _ROLES[turn.speaker], "content": turn.text}
    return list(turn.messages) or [text]


def user_view(dialog: Dialog, rounds: ShownRounds = ALL_ROUNDS) -> list[Message]:
    """The dialog with roles swapped under s_A; the first message recaps the first round shown."""
    opening, first, *rest = (turn for turn in dialog.turns if rounds.first <= turn.round)
    recap = f"You asked: {opening.text}\nI answered: {first.text}"
    roles = {"user": "assistant", "agent": "user"}
    return [
        *_system(dialog.pairing.user.system_prompt if dialog.pairing.user else ""),
        {"role": "user", "content": recap},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in rest),
    ]
