"""Langfuse: observations as in its API and exports, or traces that contain them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.transcripts.call_messages import output_messages, request_messages, system_prompt
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import (
    Format,
    Unread,
    at,
    decoded,
    entries,
    field_of,
    fields_of,
    mapping,
)
from holdfast.transcripts.transcript import Malformed

TYPES = ("GENERATION", "SPAN", "EVENT")  # of observations


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    named = {"traceId", "trace_id", "observations"} & fields.keys()
    return bool(named) or fields.get("type") in TYPES


def _calls(where: str, value: Any) -> Iterator[Call | Unread]:
    fields = fields_of(value)
    if isinstance(fields.get("observations"), list):
        session = fields.get("sessionId") or fields.get("session_id") or fields.get("id")
        yield from _calls_of_trace(where, [*map(mapping, fields["observations"])], session)
    elif _is_generation(mapping(value)):
        yield _call(where, value)


def _calls_of_trace(
    where: str, observations: Sequence[Mapping[str, Any]], session: Any
) -> Iterator[Call | Unread]:
    """The calls of a trace; of a call within another one, the inner one counts."""
    generations = [observation for observation in observations if _is_generation(observation)]
    outer = [observation.get("parentObservationId") for observation in generations]
    for observation in generations:
        try:
            call = _call(where, {"sessionId": session, **observation})
        except Malformed as error:
            yield Unread(f"{where}, observation {observation.get('id')}: {error}")
            continue
        if observation.get("id") is None or observation["id"] not in outer:
            yield call


def _call(where: str, value: Mapping[str, Any]) -> Call:
    trace = field_of(value, "traceId", "trace_id", "sessionId")
    session = value.get("sessionId") or value.get("session_id") or trace
    start = str(value.get("startTime") or value.get("start_time") or "")
    inputs = request_messages(_as_messages(value.get("input")))
    output = _as_messages(value.get("output"))
    if not any(event.is_prompt for event in inputs):  # a response of the Responses API has it too
        inputs = [*system_prompt(at(output, "instructions")), *inputs]
    return Call(where, str(session), start, inputs, output_messages(output))


def _is_generation(observation: Mapping[str, Any]) -> bool:
    return str(observation.get("type")).upper() == "GENERATION"


def _as_messages(value: Any) -> Any:
    """Messages as the APIs have them: exporters put other things among them, or into a content."""
    value = decoded(value)
    if not isinstance(value, list):
        return value
    messages = [_with_calls(message) for message in value if not _is_declaration(message)]
    calls = chain.from_iterable(entries(at(message, "tool_calls")) for message in messages)
    names = [at(call, "function", "name") or "tool" for call in calls]
    # LangGraph's exporter writes a tool's name for the role of its result
    return [{**m, "role": "tool"} if at(m, "role") in names else m for m in messages]


def _is_declaration(message: Any) -> bool:
    """Whether a message is a tool that the model may call, as LangChain's exporter lists them."""
    return bool(at(message, "role") == "tool" and at(message, "content", "type") == "function")


def _with_calls(message: Any) -> Any:
    """A message whose content is its calls in JSON, as Koog writes them."""
    calls = decoded(at(message, "content"))
    if not (isinstance(calls, list) and calls and all(at(c, "function", "name") for c in calls)):
        return message
    return {"role": "assistant", "tool_calls": calls}


_DESCRIPTION = "of the type GENERATION, which Langfuse's model calls are"
FORMAT = Format("langfuse", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
