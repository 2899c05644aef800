"""OpenAI's Responses API: a request with its response, or a list of items."""

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.call_messages import output_messages, system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.reader import (
    Format,
    Located,
    Unread,
    dialog_per_value,
    field_of,
    fields_of,
    is_item,
    is_message_list,
)
from holdfast.transcripts.transcript import Event, Transcript


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


def _transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    for value in values:
        yield from dialog_per_value(_read)([value])
        if before := fields_of(value.value).get("previous_response_id"):
            yield Unread(
                f"{value.source}: it continues response {shortened(before)}, which is not included"
            )


FORMAT = Format("responses", _recognises, _transcripts, is_per_value=True)
