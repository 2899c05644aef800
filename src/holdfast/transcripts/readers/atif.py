"""ATIF, the Agent Trajectory Interchange Format: an agent's steps."""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_message
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
    message = read_message({"role": role, "content": step.get("message") or ""})
    if step.get("is_copied_context"):  # of an earlier trajectory, which has its scores
        is_kept = role == "system"
        return message if is_kept else [Event(Kind.REMINDER, event.text) for event in message]
    calls = [
        ToolCall(
            str(field_of(call, "function_name")),
            mapping(call.get("arguments") or {}),
            str(call.get("tool_call_id", "")),
        )
        for call in entries(step.get("tool_calls"))
    ]
    events = message_events(role, message[0].text, calls)
    for result in entries(at(step, "observation", "results")):
        fields = mapping(result)
        answers = {"tool_call_id": fields["source_call_id"]} if fields.get("source_call_id") else {}
        events += read_message({"role": "tool", "content": fields.get("content") or "", **answers})
    return events


FORMAT = Format("atif", _recognises, dialog_per_value(_read))
