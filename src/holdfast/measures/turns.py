"""Turns of a log, and the turns that a rule applies to."""

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.measures.patterns import matches


@dataclass(frozen=True)
class ToolCall:
    """A tool call."""

    name: str  # of the tool
    # by name; {} if they were not an object
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default="", compare=False)  # its id in the log, which a result refers to


@dataclass(frozen=True)
class AssistantTurn:
    """A turn of an assistant: everything it said and did between two messages of the user."""

    text: str  # everything it said, "" for tool calls alone
    calls: tuple[ToolCall, ...] = ()  # in order
    earlier: tuple[ToolCall, ...] = ()  # the calls of the dialog's earlier turns, in order
    is_cut: bool = False  # whether its last message ended at the token limit
    user: str = ""  # the user's message before it, "" if the log has none
    previous: str = ""  # the assistant's text that this message answers

    def text_with_calls(self) -> str:
        """Everything it said, followed by its tool calls in order, for a judge to read."""
        if not self.calls:
            return self.text
        calls = (
            f"{number}. {call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}"
            for number, call in enumerate(self.calls, 1)
        )
        return "\n".join([self.text, "", "Tool calls, in order:", *calls]).lstrip()


@dataclass(frozen=True)
class When:
    """The turns that a rule applies to: those that meet every given condition."""

    user: str = ""  # a regular expression that the user's message matches, in either case
    reply: str = ""  # the same for what the assistant says
    tool: str = ""  # the name, with * and ?, of a tool that the turn calls
    role: str = ""  # of the message that the turn's last text answers: user or tool

    def applies(self, turn: AssistantTurn, user: str, role: str) -> bool:
        """Whether a rule applies to a turn after this message of the user, answering this role."""
        if self.user and not matches(self.user, user, "i"):
            return False
        if self.reply and not matches(self.reply, turn.text, "i"):
            return False
        if self.tool and not any(fnmatch.fnmatchcase(call.name, self.tool) for call in turn.calls):
            return False
        return not self.role or self.role == role


EVERY_TURN = When()


@dataclass(frozen=True)
class Unless:
    """Words of the user that lift a rule for the turn that follows."""

    user: str = ""  # a regular expression that the user's message matches, in either case


NEVER_LIFTED = Unless()
