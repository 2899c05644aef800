"""Turns of a log, and the turns that a rule is for."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.measures.patterns import matches


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool.

    Args:
        name: of the tool.
        arguments: by name; {} where they were no object.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AssistantTurn:
    """A turn of an assistant: all that it said and did between two messages of the user.

    Args:
        text: everything it said, "" for tool calls alone.
        calls: in order.
        earlier: the calls of the dialog's earlier turns, in order.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    earlier: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class When:
    """The turns that a rule is for: those in which everything that is given holds.

    Args:
        user: a regular expression that the user's message has, in either case.
        reply: the same of what the assistant says.
        tool: the name, with * and ?, of a tool that the turn calls.
        role: of the message that the turn's last text answers: user or tool.
    """

    user: str = ""
    reply: str = ""
    tool: str = ""
    role: str = ""

    def applies(self, turn: AssistantTurn, user: str, role: str) -> bool:
        """Whether a rule is for this turn.

        Args:
            turn: of the assistant.
            user: the user's message before it.
            role: of the message that its last text answers.

        Raises:
            UsageError: a regular expression takes too long.
        """
        return (
            (not self.user or matches(self.user, user, "i"))
            and (not self.reply or matches(self.reply, turn.text, "i"))
            and (not self.tool or _calls(turn, self.tool))
            and (not self.role or self.role == role)
        )


EVERY_TURN = When()


def _calls(turn: AssistantTurn, tool: str) -> bool:
    return any(fnmatch.fnmatchcase(call.name, tool) for call in turn.calls)
