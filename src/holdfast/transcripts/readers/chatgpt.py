"""ChatGPT's export: a conversation is a tree of nodes, in the field `mapping`.

A value, shortened:

    {"current_node": "a", "mapping": {"u": {"parent": null, "message": {"author": {"role": "user"},
     "content": {"parts": ["Hi"]}}}, "a": {"parent": "u", ...}}}
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, export_reader, parent_ids
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event, EventKind, message_events, with_unread
from holdfast.validation.json_values import fields_of

_TEXTS = ("text", "multimodal_text", "code", "execution_output")  # which may be empty
_HIDDEN = ("thoughts", "reasoning_recap", "model_editable_context")  # types that are not shown
_CUSTOM = ("user_profile", "user_instructions")  # the fields of the user's custom instructions
_CITATION = re.compile("[ \\t]*\ue200[^\ue200\ue201]*\ue201")  # shown as a link in ChatGPT


def _recognises(value: Any) -> bool:
    return isinstance(fields_of(value).get("mapping"), Mapping)


def _export(value: Mapping[str, Any]) -> Export:
    by_id = require_object(require_field(value, "mapping"))
    nodes = {name: require_object(node) for name, node in by_id.items()}
    return Export(nodes, parent_ids(nodes, "parent"), value.get("current_node"))


def _events(node: Mapping[str, Any]) -> list[Event]:
    """Reads the message of a node; a node without one, or with a hidden one, has no events."""
    message = node.get("message")
    content = at(message, "content")
    kind = at(content, "content_type")
    if kind == "user_editable_context":
        texts = [content[name] for name in _CUSTOM if isinstance(content.get(name), str)]
        return [Event(EventKind.REMINDER, text) for text in texts if text.strip()]
    if not content or at(message, "metadata", "is_visually_hidden_from_conversation"):
        return []
    if kind in _HIDDEN:
        return []
    if kind == "system_error":
        return [Event(EventKind.ERROR, str(at(content, "text") or ""))]
    return _events_of_content(message, content)


def _events_of_content(message: Any, content: Any) -> list[Event]:
    """Reads what the user, the assistant or a tool said in a message with this content."""
    parts = [part for part in optional_list(at(content, "parts")) if part is not None]
    texts = [text for part in parts if (text := _text_in(part)) is not None]
    joined = _CITATION.sub("", "\n".join(texts))
    text = joined or at(content, "text") or at(content, "result") or ""
    unread = tuple(_kind_of(part) for part in parts if _text_in(part) is None)
    kind = at(content, "content_type")
    if not (text or unread) and kind not in _TEXTS:
        unread = (str(kind),)
    role = at(message, "author", "role")
    recipient = str(at(message, "recipient") or "all")
    if role == "assistant" and recipient != "all":  # the recipient is a tool
        return message_events("assistant", "", [ToolCall(recipient, {"input": text})])
    if role == "system" and not text:
        return []
    events = read_message({"role": role, "content": text})
    is_cut = at(message, "metadata", "finish_details", "type") == "max_tokens"
    return with_unread([replace(event, is_cut=is_cut) for event in events], unread)


def _text_in(part: Any) -> str | None:
    """Returns the text of a part, or the transcript of a spoken one; None if it has none."""
    has_text = at(part, "content_type") in ("text", "audio_transcription")
    text = at(part, "text") if has_text else part
    return text if isinstance(text, str) else None


def _kind_of(part: Any) -> str:
    return str(at(part, "content_type") or "part")


FORMAT = Format("chatgpt", _recognises, export_reader(_export, _events))
