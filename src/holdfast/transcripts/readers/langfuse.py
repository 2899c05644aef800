"""Langfuse: observations as in its API and exports, or traces that contain them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from holdfast.transcripts.call_messages import output_messages, request_messages, system_prompt
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.json_fields import at, decoded, entries, field_of, list_of, mapping
from holdfast.transcripts.reader import Format, Unread
from holdfast.transcripts.transcript import Event, Malformed
from holdfast.validation.json_values import fields_of

TYPES = ("GENERATION", "SPAN", "EVENT")  # of observations
_ROLES = ("system", "developer", "user", "human", "assistant", "ai", "model")  # of no tool


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    names = {"traceId", "trace_id", "observations"} & fields.keys()
    return bool(names) or fields.get("type") in TYPES


def _calls(where: str, value: Any) -> Iterator[Call | Unread]:
    fields = fields_of(value)
    if isinstance(fields.get("observations"), list):
        session = fields.get("sessionId") or fields.get("session_id") or fields.get("id")
        yield from _calls_of_trace(where, [*map(mapping, fields["observations"])], session)
    elif _is_generation(mapping(value)):
        yield _call(where, value)


class _Observation(NamedTuple):
    """A call of a trace; `parent` is the id of the observation that contains it, or ""."""

    id: str
    parent: str
    call: Call


def _calls_of_trace(
    where: str, observations: Sequence[Mapping[str, Any]], session: Any
) -> Iterator[Call | Unread]:
    """The calls of a trace, without those that contain an answered call with the same input."""
    calls: list[_Observation] = []
    for fields in filter(_is_generation, observations):
        identity = fields.get("id")
        parent = fields.get("parentObservationId")
        try:
            call = _call(where, {"sessionId": session, **fields})
        except Malformed as error:
            yield Unread(f"{where}, observation {identity}: {error}")
        else:
            calls.append(_Observation(str(identity or ""), str(parent or ""), call))
    by_parent: dict[str, list[_Observation]] = {}
    for inner in calls:
        by_parent.setdefault(inner.parent, []).append(inner)
    replacements: dict[str, str] = {}  # of each call that is left out, the one within it
    for outer in calls:
        inner_calls = by_parent.get(outer.id, []) if outer.id else []
        replacement = next((inner for inner in inner_calls if _has_input_of(inner, outer)), None)
        if (
            replacement is None or _end_of(replacements, replacement.id) == outer.id
        ):  # ids in a circle
            yield outer.call
            continue
        replacements[outer.id] = replacement.id
        inner_events = [event for inner in inner_calls for event in inner.call.events]
        if any(event not in inner_events for event in outer.call.events):
            yield Unread(
                f"{where}, observation {outer.id}: left out, since"
                f" {replacement.id or 'one'} within it has the same input"
            )


def _end_of(replacements: Mapping[str, str], identity: str) -> str:
    """The call that is read in place of one, which may have been replaced itself."""
    while identity in replacements:
        identity = replacements[identity]
    return identity


def _has_input_of(inner: _Observation, outer: _Observation) -> bool:
    """Whether an inner call was answered, and its input has all that is in the outer one's."""
    if not any(event.text or event.call for event in inner.call.output):
        return False
    if _messages(inner.call.input) != _messages(outer.call.input):
        return False
    outer_prompts = _prompts(outer.call.input)
    return not outer_prompts or outer_prompts == _prompts(inner.call.input)


def _prompts(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.is_prompt]


def _messages(events: Sequence[Event]) -> list[Event]:
    """The events that are no system prompts."""
    return [event for event in events if not event.is_prompt]


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
    messages = _with_calls([message for message in value if not _is_declaration(message)])
    calls = chain.from_iterable(entries(at(message, "tool_calls")) for message in messages)
    tools = [name for call in calls if (name := at(call, "function", "name")) not in _ROLES]
    # LangGraph's exporter writes a tool's name for the role of its result
    return [
        {**message, "role": "tool"} if (at(message, "role") or "") in tools else message
        for message in messages
    ]


def _is_declaration(message: Any) -> bool:
    """Whether a message is a tool that the model may call, as LangChain's exporter lists them."""
    return bool(at(message, "role") == "tool" and at(message, "content", "type") == "function")


def _with_calls(messages: Sequence[Any]) -> list[Any]:
    """Messages in which those are calls whose content is calls in JSON, as Koog writes them: by the
    role `tool`, which the results have, too.
    """
    converted: list[Any] = []
    open_calls = 0  # whose results have yet to come
    for message in messages:
        role = at(message, "role")
        is_result = role == "tool" and (open_calls > 0 or at(message, "tool_call_id"))
        if not is_result and (calls := _calls_in_content(message)):
            message = {"role": "assistant", "tool_calls": calls}
        number_of_calls = len(entries(at(message, "tool_calls")))
        if number_of_calls or role != "tool":
            open_calls = number_of_calls
        else:
            open_calls = max(open_calls - 1, 0)
        converted.append(message)
    return converted


def _calls_in_content(message: Any) -> list[Any]:
    """The calls that are a message's content, as JSON; [] if it is something else."""
    if at(message, "role") not in (None, "assistant", "tool"):
        return []
    calls = list_of(decoded(at(message, "content")))
    is_calls = all(at(call, "function", "name") for call in calls)
    return calls if is_calls else []


_DESCRIPTION = "of the type GENERATION, which Langfuse's model calls are"
FORMAT = Format("langfuse", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
