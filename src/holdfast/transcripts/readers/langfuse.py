"""Langfuse's observations, as its API and its exports have them, or traces that contain them.

A value, shortened:

    {"type": "GENERATION", "session_id": "s", "input": [...], "output": {...}}
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from holdfast.transcripts.call_messages import output_messages, request_messages, system_prompt
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Format, Unread
from holdfast.transcripts.transcript import Event, Malformed
from holdfast.validation.json_values import fields_of

TYPES = ("GENERATION", "SPAN", "EVENT")  # the types of observations
_ROLES = ("system", "developer", "user", "human", "assistant", "ai", "model")  # all but a tool's


class _Observation(NamedTuple):
    """A call in a trace; `parent` is the id of the observation that contains it, or ""."""

    id: str
    parent: str
    call: Call


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    names = {"traceId", "trace_id", "observations"} & fields.keys()
    return bool(names) or fields.get("type") in TYPES


def _calls(source: str, value: Any) -> Iterator[Call | Unread]:
    """Reads the calls in an observation, or in a trace with its observations."""
    fields = fields_of(value)
    if isinstance(fields.get("observations"), list):
        session = fields.get("sessionId") or fields.get("session_id") or fields.get("id")
        yield from _calls_of_trace(source, [*map(require_object, fields["observations"])], session)
    elif _is_generation(require_object(value)):
        yield _call(source, value)


def _calls_of_trace(
    source: str, observations: Sequence[Mapping[str, Any]], session: Any
) -> Iterator[Call | Unread]:
    """Reads the calls of a trace, but not those around an answered call with the same input."""
    calls: list[_Observation] = []
    for fields in filter(_is_generation, observations):
        identity = str(fields.get("id") or "")
        parent = str(fields.get("parentObservationId") or "")
        try:
            call = _call(source, {"sessionId": session, **fields})
        except Malformed as error:
            yield Unread(f"{source}, observation {fields.get('id')}: {error}")
        else:
            calls.append(_Observation(identity, parent, call))
    inner_calls: dict[str, list[_Observation]] = {}  # by the observation that contains them
    for observation in calls:
        inner_calls.setdefault(observation.parent, []).append(observation)
    replacements: dict[str, str] = {}  # the ids of calls that are left out, and of those inside
    for outer in calls:
        inside = inner_calls.get(outer.id, []) if outer.id else []
        replacement = next((inner for inner in inside if _has_input_of(inner, outer)), None)
        # in a damaged log, the ids may form a circle
        if replacement is None or _end_of(replacements, replacement.id) == outer.id:
            yield outer.call
            continue
        replacements[outer.id] = replacement.id
        events_inside = [event for inner in inside for event in inner.call.events]
        if any(event not in events_inside for event in outer.call.events):
            yield Unread(
                f"{source}, observation {outer.id}: left out, since"
                f" {replacement.id or 'one'} within it has the same input"
            )


def _end_of(replacements: Mapping[str, str], identity: str) -> str:
    """Follows replacements from a call to the one that is read instead."""
    while identity in replacements:
        identity = replacements[identity]
    return identity


def _has_input_of(inner: _Observation, outer: _Observation) -> bool:
    """Whether an inner call was answered, and its input has all of the outer call's input."""
    if not any(event.text or event.call for event in inner.call.output):
        return False
    if _messages(inner.call.input) != _messages(outer.call.input):
        return False
    outer_prompts = _prompts(outer.call.input)
    return not outer_prompts or outer_prompts == _prompts(inner.call.input)


def _prompts(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.is_prompt]


def _messages(events: Sequence[Event]) -> list[Event]:
    """Returns the events that are not system prompts."""
    return [event for event in events if not event.is_prompt]


def _call(source: str, value: Mapping[str, Any]) -> Call:
    """Reads an observation of a model's call."""
    trace = require_field(value, "traceId", "trace_id", "sessionId")
    session = value.get("sessionId") or value.get("session_id") or trace
    start = str(value.get("startTime") or value.get("start_time") or "")
    inputs = request_messages(_as_messages(value.get("input")))
    output = _as_messages(value.get("output"))
    if not any(event.is_prompt for event in inputs):  # the Responses API repeats it in the output
        inputs = [*system_prompt(at(output, "instructions")), *inputs]
    return Call(source, str(session), start, inputs, output_messages(output))


def _is_generation(observation: Mapping[str, Any]) -> bool:
    return str(observation.get("type")).upper() == "GENERATION"


def _as_messages(value: Any) -> Any:
    """Returns messages in the form of the APIs, without what exporters put among them."""
    value = decode_json(value)
    if not isinstance(value, list):
        return value
    messages = _with_calls([message for message in value if not _is_declaration(message)])
    calls = chain.from_iterable(optional_list(at(message, "tool_calls")) for message in messages)
    tools = [name for call in calls if (name := at(call, "function", "name")) not in _ROLES]
    # LangGraph's exporter writes the name of a tool in place of its result's role
    return [
        {**message, "role": "tool"} if (at(message, "role") or "") in tools else message
        for message in messages
    ]


def _is_declaration(message: Any) -> bool:
    """Whether a message declares a tool to the model, as LangChain's exporter writes it."""
    return bool(at(message, "role") == "tool" and at(message, "content", "type") == "function")


def _with_calls(messages: Sequence[Any]) -> list[Any]:
    """Turns messages whose content is tool calls as JSON into calls of the assistant.

    Koog writes calls so, under the role `tool`, which the results have as well.
    """
    converted: list[Any] = []
    open_calls = 0  # the number of calls whose results have yet to come
    for message in messages:
        role = at(message, "role")
        is_result = role == "tool" and (open_calls > 0 or at(message, "tool_call_id"))
        if not is_result and (calls := _calls_in_content(message)):
            message = {"role": "assistant", "tool_calls": calls}
        number_of_calls = len(optional_list(at(message, "tool_calls")))
        if number_of_calls or role != "tool":
            open_calls = number_of_calls
        else:
            open_calls = max(open_calls - 1, 0)
        converted.append(message)
    return converted


def _calls_in_content(message: Any) -> list[Any]:
    """Returns the tool calls that are a message's content, as JSON; [] for any other content."""
    if at(message, "role") not in (None, "assistant", "tool"):
        return []
    calls = list_or_empty(decode_json(at(message, "content")))
    is_calls = all(at(call, "function", "name") for call in calls)
    return calls if is_calls else []


_DESCRIPTION = "of the type GENERATION, which Langfuse's model calls are"
FORMAT = Format("langfuse", _recognises, call_reader(_calls, _DESCRIPTION), streams=True)
