"""Claude.ai's export: a list of messages, each of which may name its parent.

A value, shortened:

    {"chat_messages": [{"uuid": "m1", "sender": "human", "text": "Hi"}, ...]}
"""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, export_reader, parent_ids, sequential_export
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return isinstance(fields_of(value).get("chat_messages"), list)


def _export(value: Mapping[str, Any]) -> Export:
    entries = optional_list(require_field(value, "chat_messages"))
    messages = [require_object(entry) for entry in entries]
    if not all("uuid" in message and "parent_message_uuid" in message for message in messages):
        return sequential_export(messages)
    by_id = {str(message["uuid"]): message for message in messages}
    return Export(
        by_id, parent_ids(by_id, "parent_message_uuid"), value.get("current_leaf_message_uuid")
    )


def _events(message: Mapping[str, Any]) -> list[Event]:
    """Reads a message: the texts of its attachments, and then what was said."""
    content = message.get("content") or message.get("text") or ""
    attachments = optional_list(message.get("attachments"))
    names = [at(file, "file_name") for file in attachments]
    files = [
        file for file in optional_list(message.get("files")) if at(file, "file_name") not in names
    ]
    role = require_field(message, "sender")
    events = read_message({"role": role, "content": content, "files": files})
    texts = [at(file, "extracted_content") for file in attachments]
    attached = [Event(EventKind.REMINDER, text) for text in texts if isinstance(text, str) and text]
    return [*attached, *events]


FORMAT = Format("claude-ai", _recognises, export_reader(_export, _events))
