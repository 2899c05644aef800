"""The output of `gemini --output-format stream-json`: an event per line.

For example:

    {"type": "message", "role": "assistant", "content": "I will ", "delta": true, ...}
    {"type": "message", "role": "assistant", "content": "look.", "delta": true, ...}
    {"type": "tool_use", "tool_name": "glob", "tool_id": "t1", "parameters": {...}, ...}
    -> Event(MESSAGE, "I will look.", "assistant"), Event(TOOL_CALL, glob)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.json_fields import at, require_field, require_object
from holdfast.transcripts.reader import Format, Unread, Values, file_of, separate_objects
from holdfast.transcripts.refused_calls import is_refusal_by_gemini_cli
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of

# the fields that an event has, by its type
_FIELDS = {
    "init": {"session_id", "model"},
    "message": {"role", "content"},
    "tool_use": {"tool_name", "tool_id"},
    "tool_result": {"tool_id", "status"},
    "error": {"severity", "message"},
    "result": {"status"},
}
# the kinds of errors of calls that the program did not run
_NOT_RUN = ("invalid_tool_params", "tool_not_registered", "policy_violation")


@dataclass
class _Session:
    """A session under construction; `reply` is the part of a message that has arrived so far."""

    name: str
    events: list[Event] = field(default_factory=list)
    reply: str = ""

    def add(self, event: Mapping[str, Any]) -> None:
        """Adds an event; raises `Malformed` if it cannot be read."""
        if event.get("type") == "message" and event.get("role") == "assistant":
            self.reply += _text(event)
            if event.get("delta") is not True:
                self.end_reply()
            return
        self.end_reply()
        self.events += _events_of(event)

    def end_reply(self) -> None:
        if self.reply:
            self.events += message_events("assistant", self.reply)
            self.reply = ""


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    needed = _FIELDS.get(str(fields.get("type")))
    if needed is None or not (needed | {"timestamp"}) <= fields.keys():
        return False
    return fields.get("type") != "message" or isinstance(fields.get("content"), str)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    sessions = [_Session(file_of(values[0].source))]
    for source, event in records:
        if event.get("type") == "init":
            name = f"{file_of(source)}, session {event.get('session_id')}"
            sessions.append(_Session(name))
            continue
        try:
            sessions[-1].add(event)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    for session in sessions:
        session.end_reply()
        if session.events:
            yield linear_transcript(session.name, session.events)


def _events_of(event: Mapping[str, Any]) -> list[Event]:
    """Reads an event other than a part of a reply."""
    match event.get("type"):
        case "message":
            return message_events("user", _text(event))
        case "tool_use":
            arguments = require_object(event.get("parameters") or {})
            name, call_id = require_field(event, "tool_name"), str(event.get("tool_id") or "")
            return [Event(EventKind.TOOL_CALL, call=ToolCall(str(name), arguments, call_id))]
        case "tool_result":
            return [_result(event)]
        case "error" | "result":
            message = event.get("message") or at(event, "error", "message")
            return [Event(EventKind.ERROR, str(message))] if message else []
    raise Malformed(f"Gemini CLI's event has the unknown type {shortened(event.get('type'))}")


def _result(event: Mapping[str, Any]) -> Event:
    text = event.get("output") or at(event, "error", "message") or ""
    is_refusal = event.get("status") == "error" and (
        at(event, "error", "type") in _NOT_RUN or is_refusal_by_gemini_cli(str(text))
    )
    call_id = str(event.get("tool_id") or "")
    return Event(EventKind.TOOL_RESULT, str(text), call_id=call_id, is_refusal=is_refusal)


def _text(event: Mapping[str, Any]) -> str:
    text = event.get("content")
    if not isinstance(text, str):
        raise Malformed(f"the content {shortened(text)} of a message is not a text")
    return text


FORMAT = Format("gemini-cli-stream", _recognises, _read, has_events=True)
