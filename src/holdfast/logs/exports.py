"""Exports of chat applications: ChatGPT, Claude.ai, Open WebUI and LibreChat.

In all of them a message names its parent, so an edited question or a regenerated answer begins a
new branch. The branch that the application shows is read, the others are left out and named.
"""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, read_messages
from holdfast.logs.reading import (
    Dialogs,
    Reader,
    Values,
    at,
    entries,
    field_of,
    mapping,
    system_prompt,
)
from holdfast.logs.trees import path_to
from holdfast.measures.turns import ToolCall

Branch = tuple[list[LoggedMessage], int]  # the messages, and how many others were left out


def _reader(read: Callable[[Mapping[str, Any]], Branch]) -> Reader:
    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        for where, value in values:
            try:
                messages, left_out = read(mapping(value))
            except Malformed as error:
                problems.append(f"{where}: {error}")
                continue
            if left_out:
                problems.append(
                    f"{where}: {left_out} {'message' if left_out == 1 else 'messages'} of abandoned"
                    " branches (an edited question, or another answer) left out"
                )
            yield where, messages

    return dialogs


def _active(
    messages: Mapping[str, Mapping[str, Any]], parent: str, leaf: Any
) -> tuple[list[Mapping[str, Any]], int]:
    """The messages of the path to `leaf`, or to the last one, and how many are on none."""
    named = {name: message.get(parent) for name, message in messages.items()}
    parents = {name: None if above is None else str(above) for name, above in named.items()}
    if not isinstance(leaf, str) or leaf not in messages:
        leaf = next(reversed([*messages]), "")
    path = path_to(leaf, parents)
    return [messages[name] for name in path], len(messages) - len(path)


_HIDDEN_CONTENT = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")


def _chatgpt(value: Mapping[str, Any]) -> Branch:
    """A conversation of ChatGPT's export: a tree of nodes, `mapping`."""
    nodes = {name: mapping(node) for name, node in mapping(field_of(value, "mapping")).items()}
    active, _ = _active(nodes, "parent", value.get("current_node"))
    messages: list[LoggedMessage] = []
    for node in active:
        messages += _chatgpt_message(node.get("message"))
    shown = {id(node) for node in active}
    return messages, sum(
        id(node) not in shown and bool(_chatgpt_message(node.get("message")))
        for node in nodes.values()
    )


def _chatgpt_message(message: Any) -> list[LoggedMessage]:
    content = at(message, "content")
    kind = at(content, "content_type")
    if not content or at(message, "metadata", "is_visually_hidden_from_conversation"):
        return []
    if kind in _HIDDEN_CONTENT:
        return []
    parts = [part for part in entries(at(content, "parts")) if isinstance(part, str)]
    text = "\n".join(parts) or at(content, "text") or at(content, "result") or ""
    role, recipient = at(message, "author", "role"), at(message, "recipient") or "all"
    if role == "assistant" and recipient != "all":  # a tool's name
        return [LoggedMessage("assistant", "", (ToolCall(recipient, {"input": text}),))]
    if role == "system" and not text:
        return []
    return read_messages([{"role": role, "content": text}])


def _claude_ai(value: Mapping[str, Any]) -> Branch:
    """A conversation of Claude.ai's export."""
    listed = [mapping(message) for message in entries(field_of(value, "chat_messages"))]
    active, left_out = listed, 0
    if all("uuid" in message and "parent_message_uuid" in message for message in listed):
        by_id = {str(message["uuid"]): message for message in listed}
        leaf = value.get("current_leaf_message_uuid")
        active, left_out = _active(by_id, "parent_message_uuid", leaf)
    messages = []
    for message in active:
        content = message.get("content") or message.get("text") or ""
        messages += read_messages([{"role": field_of(message, "sender"), "content": content}])
    return messages, left_out


def _open_webui(value: Mapping[str, Any]) -> Branch:
    """A chat of Open WebUI's export."""
    chat = mapping(field_of(value, "chat"))
    prompt = system_prompt(chat.get("system") or at(chat, "params", "system"))
    by_id = at(chat, "history", "messages")
    if not by_id:
        return [*prompt, *read_messages(field_of(chat, "messages"))], 0
    nodes = {name: mapping(node) for name, node in mapping(by_id).items()}
    active, left_out = _active(nodes, "parentId", at(chat, "history", "currentId"))
    return [*prompt, *read_messages([dict(node) for node in active])], left_out


def _librechat(value: Mapping[str, Any]) -> Branch:
    """A conversation of LibreChat's export."""
    listed = [mapping(message) for message in entries(field_of(value, "messages"))]
    if value.get("recursive") or any("children" in message for message in listed):
        raise Malformed(
            "LibreChat's export is nested (“recursive”), which is not read; export it again"
            " without that option"
        )
    by_id = {str(field_of(message, "messageId")): message for message in listed}
    active, left_out = _active(by_id, "parentMessageId", None)
    messages = system_prompt(at(value, "options", "promptPrefix"))
    for message in active:
        role = "user" if message.get("isCreatedByUser") else "assistant"
        content = message.get("content") or message.get("text") or ""
        messages += read_messages([{"role": role, "content": content}])
    return messages, left_out


read_chatgpt = _reader(_chatgpt)
read_claude_ai = _reader(_claude_ai)
read_open_webui = _reader(_open_webui)
read_librechat = _reader(_librechat)
