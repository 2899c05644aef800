"""Gemini's API: a request's `contents`, and perhaps the response to it."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.call_messages import output_messages, system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, field_of, mapping
from holdfast.transcripts.reader import Format, dialog_per_value
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return "contents" in fields_of(value) or "contents" in fields_of(at(value, "request"))


def _read(value: Any) -> list[Event]:
    if "contents" not in fields_of(value):  # a line of a batch
        value = {**mapping(field_of(value, "request")), "response": value.get("response")}
    instruction = value.get("systemInstruction") or value.get("system_instruction")
    if isinstance(instruction, Mapping):
        instruction = instruction.get("parts")
    answer = value if "candidates" in value else value.get("response")
    contents = field_of(value, "contents")
    items = contents if isinstance(contents, list) else [contents]
    # the role may be left out of a single message of the user
    messages = read_messages([{"role": "user", **mapping(item)} for item in items])
    return [*system_prompt(instruction), *messages, *output_messages(answer)]


FORMAT = Format("gemini", _recognises, dialog_per_value(_read), is_per_value=True)
