"""Gemini's API: the `contents` of a request, perhaps with the response to it.

A value, shortened:

    {"systemInstruction": {...}, "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
"""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.call_messages import output_messages, system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, require_field, require_object
from holdfast.transcripts.reader import dialog_format
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return "contents" in fields_of(value) or "contents" in fields_of(at(value, "request"))


def _read(value: Any) -> list[Event]:
    if "contents" not in fields_of(value):  # a line of a batch nests the request
        request = require_object(require_field(value, "request"))
        value = {**request, "response": value.get("response")}
    instruction = value.get("systemInstruction") or value.get("system_instruction")
    if isinstance(instruction, Mapping):
        instruction = instruction.get("parts")
    answer = value if "candidates" in value else value.get("response")
    contents = require_field(value, "contents")
    items = contents if isinstance(contents, list) else [contents]
    # a request with a single message of the user may omit its role
    messages = read_messages([{"role": "user", **require_object(item)} for item in items])
    return [*system_prompt(instruction), *messages, *output_messages(answer)]


FORMAT = dialog_format("gemini", _recognises, _read)
