"""LibreChat's export."""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.exports import Export, parents_in, transcripts_of_exports
from holdfast.transcripts.json_fields import at, entries, field_of, mapping
from holdfast.transcripts.reader import Format, first_message, has_messages
from holdfast.transcripts.transcript import Event, Kind, Malformed

_THINKING = re.compile(r":::thinking\n.*?\n:::\s*", re.DOTALL)  # of versions before content parts


def _recognises(value: Any) -> bool:
    return has_messages(value) and {"messageId", "isCreatedByUser"} <= first_message(value).keys()


def _export(value: Mapping[str, Any]) -> Export:
    messages = [mapping(message) for message in entries(field_of(value, "messages"))]
    if value.get("recursive") or any("children" in message for message in messages):
        raise Malformed(
            "LibreChat's export is nested (“recursive”), which is not read; export it again"
            " without that option"
        )
    by_id = {str(field_of(message, "messageId")): message for message in messages}
    prompt = system_prompt(at(value, "options", "promptPrefix"))
    return Export(by_id, parents_in(by_id, "parentMessageId"), prompt=prompt)


def _events(message: Mapping[str, Any]) -> list[Event]:
    role = "user" if message.get("isCreatedByUser") else "assistant"
    content = message.get("content") or message.get("text") or ""
    if message.get("error") is True:
        return [Event(Kind.ERROR, text_of(content))]
    if isinstance(content, str) and role == "assistant":
        content = _THINKING.sub("", content)
    return read_message({"role": role, "content": content})


FORMAT = Format("librechat", _recognises, transcripts_of_exports(_export, _events))
