"""ChatGPT's export: a conversation is a tree of nodes, `mapping`."""

from collections.abc import Mapping
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, parents_in, transcripts_of_exports
from holdfast.transcripts.reader import Format, at, entries, field_of, fields_of, mapping
from holdfast.transcripts.transcript import Event, message_events

_HIDDEN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")


def _recognises(value: Any) -> bool:
    return isinstance(fields_of(value).get("mapping"), Mapping)


def _export(value: Mapping[str, Any]) -> Export:
    nodes = {name: mapping(node) for name, node in mapping(field_of(value, "mapping")).items()}
    return Export(nodes, parents_in(nodes, "parent"), value.get("current_node"))


def _events(node: Mapping[str, Any]) -> list[Event]:
    logged = node.get("message")
    content = at(logged, "content")
    kind = at(content, "content_type")
    if not content or at(logged, "metadata", "is_visually_hidden_from_conversation"):
        return []
    if kind in _HIDDEN:
        return []
    parts = [part for part in entries(at(content, "parts")) if isinstance(part, str)]
    text = "\n".join(parts) or at(content, "text") or at(content, "result") or ""
    role, recipient = at(logged, "author", "role"), at(logged, "recipient") or "all"
    if role == "assistant" and recipient != "all":  # a tool's name
        return message_events("assistant", "", [ToolCall(recipient, {"input": text})])
    if role == "system" and not text:
        return []
    return read_message({"role": role, "content": text})


FORMAT = Format("chatgpt", _recognises, transcripts_of_exports(_export, _events))
