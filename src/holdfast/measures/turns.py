"""The turns of a log, and the conditions under which a rule applies to one."""

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.measures.patterns import composed, matches


@dataclass(frozen=True)
class UserAnswer:
    """The user's answer to a question that a tool asked."""

    question: str
    text: str


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by an assistant.

    Args:
        name: of the tool.
        arguments: by name; {} if the log has no object.
        id: its id in the log, to which its result refers.
        answers: for a tool that asks the user: the answers that the log shows.
        result: the text that it returned, if the log shows it.
        folder: the session's working folder at the call; "" if the log names none.
        first_folder: that at the session's first call.
        branch: the branch of Git that was checked out before the call; "" if the log does not show
            it.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default="", compare=False)
    answers: tuple[UserAnswer, ...] = field(default=(), compare=False)
    result: str = field(default="", compare=False)
    folder: str = field(default="", compare=False)
    first_folder: str = field(default="", compare=False)
    branch: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class AssistantTurn:
    """A turn of an assistant: everything it said and did between two messages of the user.

    Args:
        text: all that it said; "" if it only called tools.
        calls: its tool calls, in order.
        earlier: the calls of the dialog's earlier turns, in order.
        is_cut: whether its last message ended at the token limit.
        user: the user's message before it; "" if the log has none.
        previous: the assistant's text that the user's message answers.
        refused: calls that never ran, which are not among `calls`.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    earlier: tuple[ToolCall, ...] = ()
    is_cut: bool = False
    user: str = ""
    previous: str = ""
    refused: tuple[ToolCall, ...] = ()

    def text_with_calls(self) -> str:
        """Returns all that it said, and then its tool calls in order, for a judge to read."""
        if not self.calls:
            return self.text
        calls = (
            f"{number}. {call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}"
            for number, call in enumerate(self.calls, 1)
        )
        return "\n".join([self.text, "", "Tool calls, in order:", *calls]).lstrip()


@dataclass(frozen=True)
class When:
    """The conditions under which a rule applies to a turn; "" is no condition.

    Args:
        user: a regular expression that the user's message matches, in either case.
        reply: a regular expression that the assistant's text matches, in either case.
        tool: the name, with * and ?, of a tool that the turn calls.
        role: "user" or "tool": of the message that the turn's last text answers.
    """

    user: str = ""
    reply: str = ""
    tool: str = ""
    role: str = ""

    def applies(self, turn: AssistantTurn, user: str, role: str) -> bool:
        """Whether a turn meets the conditions.

        Args:
            user: the user's message before it.
            role: of the message that the turn's last text answers.
        """
        if self.user and not matches(composed(self.user), composed(user), "i"):
            return False
        if self.reply and not matches(composed(self.reply), composed(turn.text), "i"):
            return False
        if self.tool and not any(fnmatch.fnmatchcase(call.name, self.tool) for call in turn.calls):
            return False
        return not self.role or self.role == role


EVERY_TURN = When()


@dataclass(frozen=True)
class Unless:
    """The words of a user that lift a rule for the next turn.

    Args:
        user: a regular expression that the user's message matches, in either case; "" for none.
    """

    user: str = ""


NEVER_LIFTED = Unless()
