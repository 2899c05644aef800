"""ATIF, the Agent Trajectory Interchange Format: an agent's steps."""

from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_messages
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
    version = fields_of(value).get("schema_version", "ATIF")
    return "steps" in fields_of(value) and str(version).startswith("ATIF")


def _read(value: Any) -> list[Event]:
    events: list[Event] = []
    for number, step in enumerate(entries(field_of(value, "steps")), start=1):
        role = _ROLES.get(str(mapping(step).get("source")))
        if role is None:
            known = ", ".join(_ROLES)
            raise Malformed(
                f"step {number} has the source {shortened(step.get('source'))}; known are {known}"
            )
        messages = read_messages([{"role": role, "content": step.get("message") or ""}])
        if step.get("is_copied_context"):  # of an earlier trajectory, which has its scores
            kept = role == "system"
            events += messages if kept else [Event(Kind.REMINDER, event.text) for event in messages]
            continue
        calls = [
            ToolCall(
                str(field_of(call, "function_name")),
                mapping(call.get("arguments") or {}),
                str(call.get("tool_call_id", "")),
            )
            for call in entries(step.get("tool_calls"))
        ]
        events += message_events(role, messages[0].text, calls)
        for result in entries(at(step, "observation", "results")):
            content = mapping(result).get("content") or ""
            events += read_messages([{"role": "tool", "content": content}])
    return events


FORMAT = Format("atif", _recognises, dialog_per_value(_read))
