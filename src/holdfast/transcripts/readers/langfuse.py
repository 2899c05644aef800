"""Langfuse: observations as in its API and exports, or traces that contain them."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.call_messages import output_messages, request_messages
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import Format, field_of, fields_of, mapping

TYPES = ("GENERATION", "SPAN", "EVENT")  # of observations


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    named = {"traceId", "trace_id", "observations"} & fields.keys()
    return bool(named) or fields.get("type") in TYPES


def _calls(where: str, value: Any) -> Iterator[Call]:
    if isinstance(value, Mapping) and isinstance(value.get("observations"), list):
        session = value.get("sessionId") or value.get("session_id") or value.get("id")
        for observation in value["observations"]:
            yield from _calls(where, {"sessionId": session, **mapping(observation)})
        return
    value = mapping(value)
    if str(value.get("type")).upper() != "GENERATION":
        return
    trace = field_of(value, "traceId", "trace_id", "sessionId")
    session = value.get("sessionId") or value.get("session_id") or trace
    start = str(value.get("startTime") or value.get("start_time") or "")
    outputs = output_messages(value.get("output"))
    yield Call(where, str(session), start, request_messages(value.get("input")), outputs)


_DESCRIPTION = "of the type GENERATION, which Langfuse's model calls are"
FORMAT = Format("langfuse", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
