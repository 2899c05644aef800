"""Conversations of a run of Holdfast, from its `records.jsonl`."""

from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import entries, field_of
from holdfast.transcripts.reader import Format, dialog_per_value
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of

_SPEAKERS = {"user": "user", "agent": "assistant"}


def _recognises(value: Any) -> bool:
    return {"method", "conversation", "agent", "turns"} <= fields_of(value).keys()


def _read(value: Any) -> list[Event]:
    turns = [
        {
            "role": _SPEAKERS.get(field_of(turn, "speaker")),
            "content": field_of(turn, "text"),
            "stop_reason": turn.get("stop_reason"),
        }
        for turn in entries(field_of(value, "turns"))
    ]
    prompt = field_of(field_of(value, "agent"), "system_prompt")
    return [*system_prompt(prompt), *read_messages(turns)]


FORMAT = Format("run", _recognises, dialog_per_value(_read), is_per_value=True)
