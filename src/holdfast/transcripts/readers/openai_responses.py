"""OpenAI's Responses API: a request with its response, or a list of items."""

from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.reader import (
    Format,
    dialog_per_value,
    field_of,
    fields_of,
    is_item,
    is_message_list,
    output_messages,
    system_prompt,
)
from holdfast.transcripts.transcript import Event


def _recognises(value: Any) -> bool:
    if is_message_list(value):
        return is_item(value[0])
    fields = fields_of(value)
    return "input" in fields and ("output" in fields or "instructions" in fields)


def _read(value: Any) -> list[Event]:
    if isinstance(value, list):
        return read_messages(value)
    inputs = field_of(value, "input")
    items = [{"role": "user", "content": inputs}] if isinstance(inputs, str) else inputs
    output = value.get("output") or []
    return [
        *system_prompt(value.get("instructions")),
        *read_messages(items),
        *(output_messages(value) if output else []),
    ]


FORMAT = Format("responses", _recognises, dialog_per_value(_read), is_per_value=True)
