"""Tool calls of coding agents, turns that consist of them, and what a rule makes of a turn."""

from typing import Any

from holdfast.measures import build
from holdfast.measures.scores import Undecided
from holdfast.measures.turns import AssistantTurn, ToolCall

UNDECIDED = "undecided"


def judge(spec: Any, turn: AssistantTurn) -> float | str | None:
    """The score of a turn by a measure: `UNDECIDED` if the turn does not show whether the rule is
    kept, None if the rule does not concern it.
    """
    judgement = build(spec).judge_turn(turn)
    if isinstance(judgement, Undecided):
        assert judgement.reason
        return UNDECIDED
    return None if judgement is None else judgement.value


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


def write(path: str, content: str = "x\n") -> ToolCall:
    return ToolCall("Write", {"file_path": path, "content": content})


def edit(path: str, old: str = "a", new: str = "b") -> ToolCall:
    return ToolCall("Edit", {"file_path": path, "old_string": old, "new_string": new})


def did(*calls: ToolCall) -> AssistantTurn:
    """A turn that consists of these calls."""
    return AssistantTurn("", calls)


def ran(*commands: str) -> AssistantTurn:
    """A turn that runs commands."""
    return AssistantTurn("", tuple(map(bash, commands)))


def wrote(path: str, content: str = "x = 1", *commands: str) -> AssistantTurn:
    """A turn that writes a file, and then runs commands."""
    return AssistantTurn("", (write(path, content), *map(bash, commands)))


def asked(user: str, *commands: str) -> AssistantTurn:
    """A turn that runs commands after these words of the user."""
    return AssistantTurn("", tuple(map(bash, commands)), user=user)


def said(text: str) -> AssistantTurn:
    """A turn with a text alone."""
    return AssistantTurn(text)
