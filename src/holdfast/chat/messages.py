"""The messages of a chat, in the format of OpenAI and Hugging Face."""

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from holdfast.errors import UsageError, option, shortened

# A role and a text. An assistant message may have `tool_calls`, whose arguments are objects, as
# chat templates expect; a tool's result may have the `tool_call_id` of its call.
Message = dict[str, Any]
Messages = Sequence[Message]
Tool = dict[Any, Any]  # a declaration: {"type": "function", "function": {"name": ..., ...}}

ROLES = ("system", "user", "assistant")  # a chat template may support more, such as "tool"
SYSTEM_AS = ("role", "first-user")  # in a role of its own, or before the first user message


def uses_tools(messages: Messages) -> bool:
    """Whether a chat has tool calls or their results."""
    return any(message["role"] == "tool" or message.get("tool_calls") for message in messages)


def has_prompt(messages: Messages) -> bool:
    """Whether a chat has a system prompt that is not blank."""
    return any(message["role"] == "system" and message["content"].strip() for message in messages)


def dialog_seed(messages: Sequence[Message]) -> int:
    """A seed shared by all turns of a dialog, so that methods repeat their edits of messages.

    It depends only on what later turns do not change: the system prompts and the user's first
    message.
    """
    first = next((m["content"] for m in messages if m["role"] == "user"), "")
    system = [m["content"] for m in messages if m["role"] == "system"]
    return int.from_bytes(hashlib.sha256(repr((system, first)).encode()).digest()[:8], "big")


def read_messages(messages: object) -> tuple[Message, ...]:
    """Checks that a value from outside is a list of messages, and returns them.

    Raises:
        UsageError: it is a text or a single message, or a message is malformed.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise UsageError(
            f"The chat is {shortened(messages)}, not a list of messages; write it as"
            " [{'role': 'user', 'content': 'Hello.'}].",
            value=messages,
        )
    return tuple(read_message(number, message) for number, message in enumerate(messages, 1))


def read_message(number: int, message: object) -> Message:
    """Checks that a message has a role and a text, and returns it.

    The role `developer`, OpenAI's newer name for `system`, becomes `system`.

    Args:
        number: the position of the message in its chat, from 1, for errors.
        message: a value from outside.

    Raises:
        UsageError: the message lacks a role or a text, or has a malformed tool call.
    """
    _check_message(number, message)
    read = cast(Message, message)
    return {**read, "role": "system"} if read["role"] == "developer" else read


def check_end(messages: Messages, *, continues: bool) -> None:
    """Raises a `UsageError` if the last message cannot be answered or, with `continues`, continued.

    Only a text of the assistant can be continued, and any other message can be answered.
    """
    last = messages[-1]
    if last["role"] == "assistant" and not continues:
        raise UsageError(
            "The last message is the assistant's, so a reply would be its second turn in a row;"
            " end with a message of the user, or continue that one with"
            f" {option('continue_final_message', True)}.",
            option="continue_final_message",
            value=False,
        )
    if last["role"] != "assistant" and continues:
        raise UsageError(
            f"{option('continue_final_message', True)} continues a message of the assistant, and"
            f" the last one has the role {last['role']!r}; leave it out.",
            option="continue_final_message",
            value=True,
        )
    if continues and last.get("tool_calls"):
        raise UsageError(
            "The last message calls a tool, and only a text can be continued; add the tool's"
            f" result, and leave out {option('continue_final_message', True)}.",
            option="continue_final_message",
            value=True,
        )


def check_system_as(system_as: object) -> None:
    """Raises a `UsageError` for a value that is not in `SYSTEM_AS`."""
    if system_as not in SYSTEM_AS:
        raise UsageError(
            f"system_as is {' or '.join(SYSTEM_AS)}, not {shortened(system_as)}.",
            option="system_as",
            value=system_as,
            allowed=SYSTEM_AS,
        )


def check_tool(tool: object) -> None:
    """Raises a `UsageError` if the declaration of a tool has no name."""
    if _function_of(tool) is None:
        raise UsageError(
            f"A tool is declared as {{'type': 'function', 'function': {{'name': 'add'}}}}, not as"
            f" {shortened(tool)}; give its name there.",
            option="tools",
            value=tool,
        )


def _check_message(number: int, message: object) -> None:
    """Refuses a message without a role or a text that a chat can have."""
    if not isinstance(message, dict):
        raise UsageError(
            f"Message {number} is {shortened(message)}; write it as {{'role': 'user', 'content':"
            " 'Hello.'}.",
            option="messages",
            value=message,
        )
    role = message.get("role")
    if not isinstance(role, str) or not role.strip() or _is_misspelt(role):
        raise UsageError(
            f"Message {number} has the role {shortened(role)}; use {', '.join(ROLES[:-1])} or"
            f" {ROLES[-1]}.",
            option="role",
            value=role,
            allowed=ROLES,
        )
    _check_content(number, message)
    calls = message.get("tool_calls") or ()
    for call in calls if isinstance(calls, (list, tuple)) else [calls]:
        _check_call(number, call)


def _is_misspelt(role: str) -> bool:
    """Whether a role is nearly one of `ROLES`; others may be known to the chat template."""
    near = difflib.get_close_matches(role.strip().lower(), ROLES, 1, 0.8)
    return role not in ROLES and bool(near)


def _check_content(number: int, message: Message) -> None:
    """Refuses a message whose content is not a text."""
    content = message.get("content")
    if isinstance(content, str):
        return
    if "content" not in message:
        raise UsageError(
            f"Message {number} has no 'content' ({shortened(message)}); give its text there.",
            option="content",
            value=message,
        )
    if isinstance(content, list):
        raise UsageError(
            f"Message {number} has a list as its content ({shortened(content)}), and only text is"
            " supported; join its texts into one string.",
            option="content",
            value=content,
        )
    raise UsageError(
        f"Message {number} has the content {shortened(content)}, and only text is supported;"
        " give a string.",
        option="content",
        value=content,
    )


def _check_call(number: int, call: object) -> None:
    """Refuses a tool call without the name of a function, or without an object of arguments."""
    function = _function_of(call)
    if function is None or not isinstance(function.get("arguments"), dict):
        raise UsageError(
            f"Message {number} has the tool call {shortened(call)}; write it as {{'id': '1',"
            " 'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 2}}}.",
            option="tool_calls",
            value=call,
        )


def _function_of(value: object) -> dict[str, Any] | None:
    """The function of a declared or called tool; None if there is none with a name."""
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    return function
