"""LibreChat's export: a list of messages, each of which names its parent.

A value, shortened:

    {"messages": [{"messageId": "m1", "parentMessageId": "...", "isCreatedByUser": true, ...}]}
"""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.exports import Export, export_reader, parent_ids
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import Format, first_message, has_messages
from holdfast.transcripts.transcript import Event, EventKind, Malformed
from holdfast.validation.json_values import text_or_empty

_THINKING = re.compile(r":::thinking\n.*?\n:::\s*", re.DOTALL)  # in versions without content parts


def _recognises(value: Any) -> bool:
    return has_messages(value) and {"messageId", "isCreatedByUser"} <= first_message(value).keys()


def _export(value: Mapping[str, Any]) -> Export:
    entries = optional_list(require_field(value, "messages"))
    messages = [require_object(entry) for entry in entries]
    if value.get("recursive") or any("children" in message for message in messages):
        raise Malformed(
            "LibreChat's export is nested (“recursive”), which is not read; export it again"
            " without that option"
        )
    by_id = {str(require_field(message, "messageId")): message for message in messages}
    prompt = system_prompt(at(value, "options", "promptPrefix"))
    return Export(by_id, parent_ids(by_id, "parentMessageId"), prompt=prompt)


def _events(message: Mapping[str, Any]) -> list[Event]:
    role = "user" if message.get("isCreatedByUser") else "assistant"
    content = message.get("content") or message.get("text") or ""
    if message.get("error") is True:
        return [Event(EventKind.ERROR, text_of(content))]
    if isinstance(content, str) and role == "assistant":
        content = _THINKING.sub("", content)
    errors: list[Event] = []
    if isinstance(content, list):
        parts = [part for part in content if at(part, "type") == "error"]
        errors = [Event(EventKind.ERROR, _text_of_error(part)) for part in parts]
        content = [part for part in content if at(part, "type") != "error"]
        if errors and not content:
            return errors
    reply = read_message({"role": role, "content": content, "files": message.get("files")})
    return [*reply, *errors]


def _text_of_error(part: Mapping[str, Any]) -> str:
    """Returns the text of an error that ended a reply, which is a part of its content."""
    return text_or_empty(part.get("error")) or text_of([{**part, "type": "text"}])


FORMAT = Format("librechat", _recognises, export_reader(_export, _events))
