"""Langfuse: observations as in its API and exports, or traces that contain them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from holdfast.transcripts.call_messages import output_messages, request_messages, system_prompt
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.json_fields import at, decoded, entries, field_of, fields_of, mapping
from holdfast.transcripts.reader import Format, Unread
from holdfast.transcripts.transcript import Event, Malformed

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
    """The calls of a trace, without those that contain an answered call with the same input."""
    calls: list[_Observed] = []
    for observation in filter(_is_generation, observations):
        name, parent = observation.get("id"), observation.get("parentObservationId")
        try:
            call = _call(where, {"sessionId": session, **observation})
        except Malformed as error:
            yield Unread(f"{where}, observation {name}: {error}")
        else:
            calls.append(_Observed(str(name or ""), str(parent or ""), call))
    inner: dict[str, list[_Observed]] = {}
    for observed in calls:
        inner.setdefault(observed.parent, []).append(observed)
    read_instead: dict[str, str] = {}  # of a call that is left out: the one within it
    for outer in calls:
        within = inner.get(outer.name, []) if outer.name else []
        same = next((observed for observed in within if _has_input_of(observed, outer)), None)
        if same is None or _last(read_instead, same.name) == outer.name:  # ids in a circle
            yield outer.call
            continue
        read_instead[outer.name] = same.name
        events = [event for other in within for event in (*other.call.input, *other.call.output)]
        if any(event not in events for event in (*outer.call.input, *outer.call.output)):
            yield Unread(
                f"{where}, observation {outer.name}: left out, since {same.name or 'one'} within it"
                " has the same input"
            )


def _last(read_instead: Mapping[str, str], name: str) -> str:
    while name in read_instead:
        name = read_instead[name]
    return name


class _Observed(NamedTuple):
    """A call of a trace; `parent` is the id of the observation that contains it, or ""."""

    name: str
    parent: str
    call: Call


def _has_input_of(inner: _Observed, outer: _Observed) -> bool:
    """Whether an inner call was answered, and its input has all that is in the outer one's."""
    prompts, spoken = _parts(inner.call.input)
    outer_prompts, outer_spoken = _parts(outer.call.input)
    is_prompted = not outer_prompts or outer_prompts == prompts
    is_answered = any(event.text or event.call for event in inner.call.output)
    return is_answered and is_prompted and spoken == outer_spoken


def _parts(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """The system prompts among the events, and the others."""
    prompts = [event for event in events if event.is_prompt]
    return prompts, [event for event in events if not event.is_prompt]


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
    names = [name for call in calls if (name := at(call, "function", "name")) not in _ROLES]
    # LangGraph's exporter writes a tool's name for the role of its result
    return [{**m, "role": "tool"} if (at(m, "role") or "") in names else m for m in messages]


_ROLES = ("system", "developer", "user", "human", "assistant", "ai", "model")  # of no tool


def _is_declaration(message: Any) -> bool:
    """Whether a message is a tool that the model may call, as LangChain's exporter lists them."""
    return bool(at(message, "role") == "tool" and at(message, "content", "type") == "function")


def _with_calls(messages: Sequence[Any]) -> list[Any]:
    """Messages in which those are calls whose content is calls in JSON, as Koog writes them: by the
    role `tool`, which the results have, too.
    """
    read = []
    open_calls = 0  # whose results have yet to come
    for message in messages:
        role = at(message, "role")
        is_result = role == "tool" and (open_calls > 0 or at(message, "tool_call_id"))
        calls = decoded(at(message, "content")) if role in (None, "assistant", "tool") else None
        is_calls = isinstance(calls, list) and calls and all(map(_is_call, calls))
        if is_calls and not is_result:
            message = {"role": "assistant", "tool_calls": calls}
        made = len(entries(at(message, "tool_calls")))
        open_calls = max(open_calls - 1, 0) if role == "tool" and not made else made
        read.append(message)
    return read


def _is_call(value: Any) -> bool:
    return bool(at(value, "function", "name"))


_DESCRIPTION = "of the type GENERATION, which Langfuse's model calls are"
FORMAT = Format("langfuse", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
