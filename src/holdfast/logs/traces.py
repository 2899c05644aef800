"""Traces, and logs of single calls of a model: each call has its whole input and its answer.

Every call repeats the dialog so far, so one that continues an earlier one of its session replaces
it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, is_message
from holdfast.logs.reading import (
    Dialogs,
    Reader,
    Values,
    answer_messages,
    at,
    decoded,
    entries,
    field_of,
    file_of,
    given_messages,
    mapping,
    system_prompt,
)


@dataclass(frozen=True)
class _Call:
    """A call of a model: its whole input, and its answer."""

    where: str
    session: str  # "" if the log names none
    start: str
    messages: tuple[LoggedMessage, ...]


def _calls(read: Callable[[str, Any], Iterable[_Call]], called: str) -> Reader:
    """A reader of a format that consists of calls; `called` names them in the plural."""

    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        calls: list[_Call] = []
        failed = False
        for where, value in values:
            try:
                calls += read(where, value)
            except Malformed as error:
                problems.append(f"{where}: {error}")
                failed = True
        if values and not calls and not failed:
            problems.append(f"{file_of(values[0][0])}: none of its {len(values)} are {called}")
        by_session: dict[str, list[_Call]] = {}
        for call in sorted(calls, key=lambda call: call.start):
            kept = by_session.setdefault(call.session, [])
            begun = next((n for n, other in enumerate(kept) if _continues(call, other)), None)
            if begun is None:
                kept.append(call)
            else:
                kept[begun] = call
        for session, kept in by_session.items():
            for call in kept:
                name = f"{file_of(call.where)}, session {session}" if session else call.where
                yield name, list(call.messages)

    return dialogs


def _continues(call: _Call, other: _Call) -> bool:
    """Whether a call's input extends that of an earlier call."""
    before = [message for message in other.messages[:-1] if message.role != "system"]
    now = [message for message in call.messages if message.role != "system"]
    return len(now) > len(before) and now[: len(before)] == before


def _langfuse(where: str, value: Any) -> Iterator[_Call]:
    """Langfuse: observations as in its API and exports, or traces that contain them."""
    if isinstance(value, Mapping) and isinstance(value.get("observations"), list):
        session = value.get("sessionId") or value.get("session_id") or value.get("id")
        for observation in value["observations"]:
            yield from _langfuse(where, {"sessionId": session, **mapping(observation)})
        return
    value = mapping(value)
    if value.get("type") != "GENERATION":
        return
    trace = field_of(value, "traceId", "trace_id", "sessionId")
    session = value.get("sessionId") or value.get("session_id") or trace
    given = decoded(value.get("input"))
    if isinstance(given, Mapping) and not is_message(given):
        given = field_of(given, "messages", "input", "prompt")
    messages = given_messages(given) + answer_messages(value.get("output"))
    start = str(value.get("startTime") or value.get("start_time") or "")
    yield _Call(where, str(session), start, tuple(messages))


def _phoenix(where: str, value: Any) -> Iterator[_Call]:
    """Phoenix: spans with OpenInference attributes, nested or with dotted names."""
    span = _unflattened(mapping(value))
    attributes = mapping(span.get("attributes", {}))
    kind = span.get("span_kind") or at(attributes, "openinference", "span", "kind")
    if kind != "LLM":
        return
    given = at(attributes, "llm", "input_messages") or decoded(at(attributes, "input", "value"))
    if isinstance(given, Mapping) and not is_message(given):
        given = field_of(given, "messages", "input")
    answer = at(attributes, "llm", "output_messages") or at(attributes, "output", "value")
    messages = given_messages(given) + answer_messages(answer)
    yield _Call(where, _session_of(span), str(span.get("start_time", "")), tuple(messages))


def _session_of(span: Mapping[str, Any]) -> str:
    attributes = span.get("attributes")
    conversation = at(attributes, "session", "id") or at(attributes, "gen_ai", "conversation", "id")
    trace = at(span, "context", "trace_id") or span.get("trace_id") or span.get("traceId")
    return str(conversation or trace)


_GENERATING = ("chat", "text_completion", "generate_content")  # operations that call a model


def _otel(where: str, value: Any) -> Iterator[_Call]:
    """OpenTelemetry: spans with `gen_ai` attributes."""
    span = _unflattened(mapping(value))
    found = mapping(at(span, "attributes", "gen_ai") or {})
    operation = at(found, "operation", "name")
    if operation is not None and operation not in _GENERATING:
        return
    start = str(span.get("start_time") or span.get("startTimeUnixNano") or "")
    given = decoded(at(found, "input", "messages"))
    answer = decoded(at(found, "output", "messages"))
    if given is None and "prompt" in found:  # as OpenLLMetry has it
        given, answer = found["prompt"], found.get("completion")
    if given is None:
        if operation is None:
            return
        raise Malformed(
            "its gen_ai span has no messages (gen_ai.input.messages), as their content was not"
            " recorded, or was recorded as events, which are not read"
        )
    instructions = decoded(at(found, "system_instructions"))
    if isinstance(instructions, list):
        instructions = [{"role": "system", "parts": instructions}]
        prompt = given_messages(instructions)
    else:
        prompt = system_prompt(instructions)
    messages = [*prompt, *given_messages(given), *answer_messages(answer)]
    yield _Call(where, _session_of(span), start, tuple(messages))


def is_otel_span(value: Any) -> bool:
    """Whether a span has `gen_ai` attributes, and none of OpenInference."""
    attributes = value.get("attributes") if isinstance(value, Mapping) else None
    names = [*attributes] if isinstance(attributes, Mapping) else []
    names += [str(name).removeprefix("attributes.") for name in value]
    inference = any(str(name).startswith(("openinference", "llm.")) for name in names)
    return not inference and any(str(name).startswith("gen_ai") for name in names)


def _otlp(where: str, value: Any) -> Iterator[_Call]:
    """OpenTelemetry's spans as OTLP writes them: with names and typed values in lists."""
    for resource in entries(field_of(value, "resourceSpans")):
        for scope in entries(mapping(resource).get("scopeSpans")):
            for span in entries(mapping(scope).get("spans")):
                plain = {**mapping(span), "attributes": _plain(span.get("attributes"))}
                yield from (_otel if is_otel_span(plain) else _phoenix)(where, plain)


def _plain(listed: Any) -> dict[str, Any]:
    """OTLP's attributes as an object."""
    return {
        str(field_of(entry, "key")): _plain_value(entry.get("value")) for entry in entries(listed)
    }


def _plain_value(value: Any) -> Any:
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_plain_value(entry) for entry in entries(mapping(inner).get("values"))]
    return _plain(mapping(inner).get("values")) if kind == "kvlistValue" else inner


def _langsmith(where: str, value: Any) -> Iterator[_Call]:
    """LangSmith: runs of the type llm."""
    run = mapping(value)
    if run.get("run_type") != "llm":
        return
    inputs, outputs = mapping(run.get("inputs")), run.get("outputs")
    given = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    if isinstance(given, list) and given and isinstance(given[0], list):  # of a batch
        given = given[0]
    if isinstance(given, list) and all(isinstance(text, str) for text in given):
        given = "\n".join(given)
    answer = at(outputs, "generations")
    if isinstance(answer, list) and answer:
        batch = answer[0] if isinstance(answer[0], list) else answer
        first = batch[0] if batch else None
        answer = at(first, "message") or at(first, "text")
    else:
        answer = outputs
        for name in ("messages", "message"):
            answer = at(answer, name) or answer
    messages = given_messages(given) + answer_messages(answer)
    thread = at(run, "extra", "metadata", "thread_id") or at(run, "extra", "metadata", "session_id")
    session = str(thread or run.get("trace_id") or run.get("id"))
    yield _Call(where, session, str(run.get("start_time", "")), tuple(messages))


ANSWERS = ("response", "completion", "choices")  # the answer beside a request's messages


def _litellm(where: str, value: Any) -> Iterator[_Call]:
    """LiteLLM's payloads, and other logs of a request's messages with the response."""
    call = mapping(value)
    nested = call.get("request")
    request = nested if isinstance(nested, Mapping) else call
    answer = call if "choices" in call else next((call[n] for n in ANSWERS if n in call), None)
    if call.get("status") == "failure" or not answer:
        raise Malformed("the call has no response, as when it failed")
    prompt = system_prompt(request.get("system"))
    given = given_messages(field_of(request, "messages"))
    answered = answer_messages(answer)
    repeated = given[-len(answered) :] == answered
    messages = (*prompt, *given, *(() if repeated else answered))
    yield _Call(where, "", str(call.get("startTime") or call.get("start_time") or ""), messages)


def _unflattened(span: Mapping[str, Any]) -> dict[str, Any]:
    """Turns dotted names into nested objects, and numbers among them into list positions."""
    tree: dict[str, Any] = {}
    for name, value in span.items():
        value = _unflattened(value) if isinstance(value, Mapping) else value
        *outer, last = name.split(".")
        here = tree
        for part in outer:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise Malformed(f"the field {name!r} occurs beside a value of {part!r}")
        if isinstance(here.get(last), dict) and isinstance(value, dict):
            here[last].update(value)
        else:
            here[last] = value
    return {name: _listified(value) for name, value in tree.items()}


def _listified(value: Any) -> Any:
    if isinstance(value, list):
        return [
            _unflattened(entry) if isinstance(entry, Mapping) else _listified(entry)
            for entry in value
        ]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_listified(value[name]) for name in sorted(value, key=int)]
    return {name: _listified(entry) for name, entry in value.items()}


read_langfuse = _calls(_langfuse, "of the type GENERATION, which Langfuse's model calls are")
read_phoenix = _calls(_phoenix, "model calls (spans of OpenInference's kind LLM)")
read_otel = _calls(_otel, "model calls (gen_ai spans of the operation chat or the like)")
read_otlp = _calls(_otlp, "OTLP batches with a model call")
read_langsmith = _calls(_langsmith, "of LangSmith's run type llm")
read_litellm = _calls(_litellm, "requests with a response")
