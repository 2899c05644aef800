"""A conversation in progress: its state, and the chat that each side sees.

A view is the chat as one side sees it. Before the agent's second reply, the agent's view is

    system: s_B, user: a1, assistant: b1, user: a2

and the view of the user model, before it writes a3 (a chat has to begin with a user message),

    system: s_A, user: "You asked: a1 / I answered: b1", assistant: a2, user: b2

If a dialog does not fit into the model's context, whole rounds are left out of a view, the oldest
first, so that the chat still begins with a user message. The system prompt stays, unless a summary
of these rounds replaces it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

from holdfast.chat.messages import Message, Tool
from holdfast.drift.pairing import Pairing
from holdfast.drift.probe_outcomes import ProbeOutcome
from holdfast.models.requests import Reply, Request, TokenUsage
from holdfast.records import ContextSummary, Ended, Turn
from holdfast.records.traces import TurnTrace

DialogSide = Literal["user", "agent"]
# the views of a dialog
AGENT_VIEW: DialogSide = "agent"
USER_VIEW: DialogSide = "user"
_AGENT_ROLES = {"user": "user", "agent": "assistant"}  # of the speakers, in the agent's view
_USER_ROLES = {"user": "assistant", "agent": "user"}  # and in the view of the user model


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
        replaces_prompt: whether the summary replaces the system prompt too.
    """

    first: int = 1
    summary: str = ""
    replaces_prompt: bool = False


ALL_ROUNDS = ShownRounds()


class ProcessedSequence(NamedTuple):
    """The tokens that the model had to process for a reply.

    The last token of a reply that was cut off is drawn, but not processed.
    """

    chat: str  # the chat that the reply continues: "agent", "user", "agent summary"...
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
        latest_shown: the rounds that each view showed at its latest turn.
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
    latest_shown: dict[DialogSide, ShownRounds] = field(default_factory=dict)
    summaries: list[ContextSummary] = field(default_factory=list)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a replayed dialog declares; () for any other dialog."""
        return () if self.pairing.recorded is None else self.pairing.recorded.tools

    def fork_before(self, number: int) -> Self:
        """The dialog as it was before round `number`."""
        return replace(self, turns=[turn for turn in self.turns if turn.round < number])

    def turns_in(self, shown: ShownRounds) -> list[Turn]:
        """The turns of the rounds shown."""
        return [turn for turn in self.turns if turn.round >= shown.first]

    def count_tokens(self, chat: str, reply: Reply) -> None:
        """Counts the tokens of a reply, and of the discarded replies that it replaces.

        Args:
            chat: the chat that the reply continues (`ProcessedSequence.chat`).
        """
        for discarded in reply.discarded:
            self.count_tokens(chat, discarded)
        self.forwarded += reply.forwarded
        self.usage.append(reply.usage)
        if reply.prompt_ids is None or reply.token_ids is None or reply.stop_reason == "context":
            return
        processed = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
        self.sequences.append(ProcessedSequence(chat, reply.prompt_ids + processed))


def agent_view(dialog: Dialog, shown: ShownRounds = ALL_ROUNDS) -> list[Message]:
    """The agent's chat: [s_B, a1, b1, ...]."""
    chat = _system_message(system_of(dialog.pairing))
    for turn in dialog.turns_in(shown):
        if turn.messages:  # a replayed turn with tool calls
            chat += turn.messages
        else:
            chat.append({"role": _AGENT_ROLES[turn.speaker], "content": turn.text})
    return chat


def user_view(dialog: Dialog, shown: ShownRounds = ALL_ROUNDS) -> list[Message]:
    """The user model's chat: the dialog with the roles swapped, under s_A.

    Its first message recaps the first round shown, as a chat has to begin with a user message.
    """
    question, answer, *later = dialog.turns_in(shown)
    recap = f"You asked: {question.text}\nI answered: {answer.text}"
    return [
        *_system_message(dialog.pairing.user.system_prompt if dialog.pairing.user else ""),
        {"role": "user", "content": recap},
        *({"role": _USER_ROLES[turn.speaker], "content": turn.text} for turn in later),
    ]


def system_of(pairing: Pairing) -> str:
    """The agent's system prompt as the model reads it, with its canary."""
    return "\n\n".join(filter(None, (pairing.agent.system_prompt, pairing.canary)))


def _system_message(text: str) -> list[Message]:
    """The message with a system prompt; [] without one."""
    return [{"role": "system", "content": text}] if text else []
