"""ATIF, the Agent Trajectory Interchange Format: the steps of an agent.

A value, shortened:

    {"schema_version": "ATIF-v1.7", "steps": [{"source": "user", "message": "Hi"},
     {"source": "agent", "message": "", "tool_calls": [...], "observation": {"results": [...]}}]}

Reasoning (`reasoning_content`) is left out, as it is not part of the reply. Subagents with embedded
trajectories are dialogs of their own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of

_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def _recognises(value: Any) -> bool:
    version = fields_of(value).get("schema_version", "")
    return "steps" in fields_of(value) and str(version).startswith("ATIF")


def _read(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    for source, value in values:
        yield from _transcripts_of(source, value)


def _transcripts_of(source: str, trajectory: Any) -> Iterator[Transcript | Unread]:
    """Reads the dialog of a trajectory, and those of the subagents embedded in it."""
    try:
        yield linear_transcript(source, _dialog(trajectory))
        subagents = optional_list(fields_of(trajectory).get("subagent_trajectories"))
    except Malformed as error:
        yield Unread(f"{source}: {error}")
        return
    for number, subagent in enumerate(subagents, start=1):
        for part in _transcripts_of(f"{source}, subagent {number}", subagent):
            yield replace(part, is_of_subagent=True) if isinstance(part, Transcript) else part


def _dialog(trajectory: Any) -> list[Event]:
    """Reads the steps of a trajectory, without its subagents."""
    events: list[Event] = []
    for number, step in enumerate(optional_list(require_field(trajectory, "steps")), start=1):
        try:
            new_events = _events_of(require_object(step))
        except Malformed as error:
            raise Malformed(f"step {number}: {error}") from error
        if _replaces_context(step):
            new_events = _with_summary(new_events)
        has_begun = any(not event.is_prompt for event in events)
        for event in new_events:
            if event.is_prompt and has_begun:  # a note of the program's: "Context compacted."
                event = Event(EventKind.REMINDER, event.text)
            events.append(event)
    return events


def _replaces_context(step: Any) -> bool:
    """Whether a step's results replace the context before it.

    This is the convention for compactions, since version 1.7.
    """
    return bool(at(step, "extra", "context_management", "boundary") == "replace")


def _with_summary(events: list[Event]) -> list[Event]:
    """Turns the results of a step into a summary that replaces the context."""
    results = [event.text for event in events if event.kind is EventKind.TOOL_RESULT]
    others = [event for event in events if event.kind is not EventKind.TOOL_RESULT]
    return [*others, Event(EventKind.COMPACTION, "\n".join(results))]


def _events_of(step: Mapping[str, Any]) -> list[Event]:
    """Reads a step: its message, its tool calls and their results."""
    role = _ROLES.get(str(step.get("source")))
    if role is None:
        source = shortened(step.get("source"))
        raise Malformed(f"its source is {source}; known are {', '.join(_ROLES)}")
    message = step.get("message")
    calls = [_call(call) for call in optional_list(step.get("tool_calls"))]
    unread = kinds_without_text(message)
    events = message_events(role, text_of(message), calls, unread=unread)
    for result in optional_list(at(step, "observation", "results")):
        fields = require_object(result)
        content = fields.get("content")
        call_id = str(fields.get("source_call_id") or "")
        unread = kinds_without_text(content)
        events += message_events("tool", text_of(content), call_id=call_id, unread=unread)
    if step.get("is_copied_context") and role != "system":
        # scored in the trajectory that they are copied from; here they are only context
        return [Event(EventKind.REMINDER, _text_of_event(event)) for event in events]
    return events


def _call(call: Any) -> ToolCall:
    """Reads a tool call, whose fields have other names here than elsewhere."""
    fields = require_object(call)
    name = require_field(fields, "function_name")
    arguments = fields.get("arguments")
    return read_call({"name": name, "id": fields.get("tool_call_id"), "arguments": arguments})


def _text_of_event(event: Event) -> str:
    """Returns an event's text, or its tool call as text."""
    if event.call is None:
        return event.text
    arguments = json.dumps(dict(event.call.arguments), ensure_ascii=False)
    return f"{event.call.name} {arguments}"


FORMAT = Format("atif", _recognises, _read, is_per_value=True)
