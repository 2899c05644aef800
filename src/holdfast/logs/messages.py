"""Messages as chat APIs write them, read into one form.

One reader takes the messages of OpenAI's Chat Completions (with `tool_calls` and `tool` messages),
the items of its Responses API, Anthropic's messages with content blocks, and ShareGPT's turns:
their fields do not collide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.validation import shortened

ROLES = {  # of OpenAI, Anthropic and ShareGPT
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "function_call": "call",
    "tool_call": "call",
}
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "mcp_call")
_SAID_TO_NOBODY = ("reasoning", "item_reference", "thinking", "redacted_thinking", "compaction")


class Malformed(Exception):
    """A message or a line that is none; its text says why."""


@dataclass(frozen=True)
class Message:
    """A message of a dialog."""

    role: str  # system, user, assistant or tool
    text: str  # "" where it holds none
    calls: tuple[ToolCall, ...] = ()  # of tools, by the assistant


def read_messages(items: Any) -> list[Message]:
    """The messages of a list of messages or items."""
    if not isinstance(items, list):
        raise Malformed(f"{shortened(items)} is no list of messages")
    messages: list[Message] = []
    for number, item in enumerate(items, start=1):
        try:
            messages += _read_item(item)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    return messages


def _read_item(item: Any) -> Iterator[Message]:
    if not isinstance(item, Mapping):
        raise Malformed(f"{shortened(item)} is no object")
    item = item.get("message", item) if "role" not in item else item  # as OpenInference nests them
    kind = item.get("type")
    if kind in _CALLS:
        yield Message("assistant", "", (_read_call(item),))
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        yield Message("tool", _text_of(item.get("output")))
    elif kind in _SAID_TO_NOBODY or (isinstance(kind, str) and kind.endswith("_call")):
        return  # thoughts, and tools that the provider runs itself
    else:
        yield from _read_message(item)


def _read_message(item: Mapping[str, Any]) -> Iterator[Message]:
    speaker = item.get("role", item.get("from"))
    role = ROLES.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        raise Malformed(f"it has the role {shortened(speaker)}; known are {', '.join(ROLES)}")
    content = item.get("content", item.get("contents", item.get("value")))
    if role == "call":  # ShareGPT: a call as the text of a message
        yield Message("assistant", "", (_call_in_text(content),))
        return
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if _type_of(block) == "tool_result"]
    yield from (Message("tool", _text_of(block.get("content"))) for block in results)
    text = _text_of([block for block in blocks if block not in results] if blocks else content)
    calls = [_read_call(block) for block in blocks if _type_of(block) in ("tool_use", *_CALLS)]
    calls += [_read_call(_inner(call)) for call in item.get("tool_calls") or ()]
    if isinstance(item.get("function_call"), Mapping):
        calls.append(_read_call(item["function_call"]))
    if text or calls or not results:
        yield Message(role, text, tuple(calls))


def _inner(call: Any) -> Any:
    """A tool call without what OpenAI (`function`) and OpenInference (`tool_call`) wrap it in."""
    if isinstance(call, Mapping) and "tool_call" in call:
        call = call["tool_call"]
    return call.get("function", call.get("custom", call)) if isinstance(call, Mapping) else call


def _read_call(call: Any) -> ToolCall:
    if not isinstance(call, Mapping):
        raise Malformed(f"{shortened(call)} is no tool call")
    if call.get("type") == "local_shell_call":
        return ToolCall("local_shell", call.get("action") or {})
    name = call.get("name")
    if not isinstance(name, str):
        raise Malformed(f"the tool call {shortened(dict(call))} has no name")
    values = (call[key] for key in ("arguments", "input", "parameters") if key in call)
    arguments: Any = next(values, {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"input": arguments}  # a free-form tool, or a call that was cut off
    return ToolCall(name, arguments if isinstance(arguments, Mapping) else {"input": arguments})


def _call_in_text(content: Any) -> ToolCall:
    try:
        return _read_call(json.loads(content) if isinstance(content, str) else content)
    except (ValueError, RecursionError):
        raise Malformed(f"the call {shortened(content)} is not JSON") from None


def _type_of(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _text_of(content: Any) -> str:
    """The texts of a content: a string, or a list of blocks; other kinds of blocks are left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        raise Malformed(f"{shortened(content)} is no text and no list of parts")
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, Mapping):
            raise Malformed(f"{shortened(part)} is no part of a message")
        else:
            part = part.get("message_content", part)  # OpenInference
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str) and part.get("type") not in _SAID_TO_NOBODY:
                texts.append(text)
    return "\n".join(texts)
