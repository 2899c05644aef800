"""ATIF, the Agent Trajectory Interchange Format: an agent's steps."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.reader import (
    Format,
    at,
    dialog_per_value,
    entries,
    field_of,
    fields_of,
    mapping,
)
from holdfast.transcripts.transcript import Event, Kind, Malformed, message_events

_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def _recognises(value: Any) -> bool:
    version = fields_of(value).get("schema_version", "")
    return "steps" in fields_of(value) and str(version).startswith("ATIF")


def _read(value: Any) -> list[Event]:
    events: list[Event] = []
    for number, step in enumerate(entries(field_of(value, "steps")), start=1):
        try:
            events += _events_of(mapping(step))
        except Malformed as error:
            raise Malformed(f"step {number}: {error}") from error
    return events


def _events_of(step: Mapping[str, Any]) -> list[Event]:
    """The message of a step, its calls of tools and their results."""
    role = _ROLES.get(str(step.get("source")))
    if role is None:
        source, known = shortened(step.get("source")), ", ".join(_ROLES)
        raise Malformed(f"its source is {source}; known are {known}")
    text = text_of(step.get("message"))
    events = message_events(role, text, [_call(call) for call in entries(step.get("tool_calls"))])
    for result in entries(at(step, "observation", "results")):
        fields = mapping(result)
        call_id = str(fields.get("source_call_id") or "")
        events += message_events("tool", text_of(fields.get("content")), call_id=call_id)
    if step.get("is_copied_context") and role != "system":
        # it was scored in the trajectory that it comes from, and is in the model's context here
        return [Event(Kind.REMINDER, _in_words(event)) for event in events]
    return events


def _call(call: Any) -> ToolCall:
    """A tool call, whose fields have names of their own."""
    fields = mapping(call)
    renamed = {"name": field_of(fields, "function_name"), "id": fields.get("tool_call_id")}
    return read_call({**renamed, "arguments": fields.get("arguments")})


def _in_words(event: Event) -> str:
    if event.call is None:
        return event.text
    return f"{event.call.name} {json.dumps(dict(event.call.arguments))}"


FORMAT = Format("atif", _recognises, dialog_per_value(_read), is_per_value=True)
