"""ChatGPT's export: a conversation is a tree of nodes, `mapping`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, parents_in, transcripts_of_exports
from holdfast.transcripts.json_fields import at, entries, field_of, mapping
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event, Kind, message_events
from holdfast.validation.json_values import fields_of

_HIDDEN = ("thoughts", "reasoning_recap", "model_editable_context")
_CUSTOM = ("user_profile", "user_instructions")  # the user's custom instructions
_CITATION = re.compile("[ \\t]*\ue200[^\ue200\ue201]*\ue201")  # which ChatGPT shows as a link


def _recognises(value: Any) -> bool:
    return isinstance(fields_of(value).get("mapping"), Mapping)


def _export(value: Mapping[str, Any]) -> Export:
    nodes = {name: mapping(node) for name, node in mapping(field_of(value, "mapping")).items()}
    return Export(nodes, parents_in(nodes, "parent"), value.get("current_node"))


def _events(node: Mapping[str, Any]) -> list[Event]:
    message = node.get("message")
    content = at(message, "content")
    kind = at(content, "content_type")
    if kind == "user_editable_context":
        texts = [content[name] for name in _CUSTOM if isinstance(content.get(name), str)]
        return [Event(Kind.REMINDER, text) for text in texts if text.strip()]
    if not content or at(message, "metadata", "is_visually_hidden_from_conversation"):
        return []
    if kind in _HIDDEN:
        return []
    if kind == "system_error":
        return [Event(Kind.ERROR, str(at(content, "text") or ""))]
    parts = "\n".join(_texts(entries(at(content, "parts"))))
    text = _CITATION.sub("", parts) or at(content, "text") or at(content, "result") or ""
    role = at(message, "author", "role")
    recipient = at(message, "recipient") or "all"
    if role == "assistant" and recipient != "all":  # a tool's name
        return message_events("assistant", "", [ToolCall(recipient, {"input": text})])
    if role == "system" and not text:
        return []
    events = read_message({"role": role, "content": text})
    is_cut = at(message, "metadata", "finish_details", "type") == "max_tokens"
    return [replace(event, is_cut=is_cut) for event in events]


def _texts(parts: list[Any]) -> Iterator[str]:
    """The texts of a message's parts, also of those that were spoken."""
    for part in parts:
        has_text = at(part, "content_type") in ("text", "audio_transcription")
        text = at(part, "text") if has_text else part
        if isinstance(text, str):
            yield text


FORMAT = Format("chatgpt", _recognises, transcripts_of_exports(_export, _events))
