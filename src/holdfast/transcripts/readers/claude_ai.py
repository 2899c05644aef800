"""Claude.ai's export."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, in_order, parents_in, transcripts_of_exports
from holdfast.transcripts.json_fields import at, entries, field_of, mapping
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event, Kind
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return isinstance(fields_of(value).get("chat_messages"), list)


def _export(value: Mapping[str, Any]) -> Export:
    messages = [mapping(message) for message in entries(field_of(value, "chat_messages"))]
    if not all("uuid" in message and "parent_message_uuid" in message for message in messages):
        return in_order(messages)
    by_id = {str(message["uuid"]): message for message in messages}
    return Export(
        by_id, parents_in(by_id, "parent_message_uuid"), value.get("current_leaf_message_uuid")
    )


def _events(message: Mapping[str, Any]) -> list[Event]:
    content = message.get("content") or message.get("text") or ""
    events = read_message({"role": field_of(message, "sender"), "content": content})
    texts = [at(file, "extracted_content") for file in entries(message.get("attachments"))]
    attached = [Event(Kind.REMINDER, text) for text in texts if isinstance(text, str) and text]
    return [*attached, *events]


FORMAT = Format("claude-ai", _recognises, transcripts_of_exports(_export, _events))
