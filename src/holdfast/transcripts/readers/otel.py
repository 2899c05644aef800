"""OpenTelemetry: spans with `gen_ai` attributes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.transcripts.call_messages import input_messages, output_messages, system_prompt
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, decoded, list_of, mapping
from holdfast.transcripts.reader import Format
from holdfast.transcripts.trace_spans import is_gen_ai, session_of, trace_span_of, unflattened
from holdfast.transcripts.transcript import Event, Malformed
from holdfast.validation.json_values import fields_of

CHOICE = "gen_ai.choice"  # the event that is a call's answer
_MESSAGE_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_GENERATING = ("chat", "text_completion", "generate_content")  # operations that call a model


def is_generating(operation: Any) -> bool:
    """Whether a span's operation is a call of a model, as far as is known."""
    return operation is None or operation in _GENERATING


class WithoutMessages(Malformed):
    """A span of a call of a model has no messages, which may be elsewhere."""


def calls_in_span(where: str, value: Any) -> Iterator[Call]:
    """The call of a model in a span."""
    span = unflattened(_with_messages_of_events(mapping(value)))
    attributes = mapping(at(span, "attributes", "gen_ai") or {})
    operation = at(attributes, "operation", "name")
    if not is_generating(operation):
        return
    messages = _messages_of(span, attributes)
    if messages is None and operation is None:
        return
    if messages is None:
        raise WithoutMessages(
            "its gen_ai span has no messages (gen_ai.input.messages), as their content was not"
            " recorded, or was recorded as log records beside it"
        )
    yield Call(
        where,
        session_of(span),
        start=str(span.get("start_time") or span.get("startTimeUnixNano") or ""),
        input=[*_instructions(attributes), *input_messages(_with_parts(messages.inputs))],
        output=_answer(attributes, messages.outputs),
        trace_span=trace_span_of(span),
    )


class _Messages(NamedTuple):
    """The messages of a call, as its span has them."""

    inputs: Any
    outputs: Any


def _messages_of(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> _Messages | None:
    """The messages in a span, whose attributes of `gen_ai` are given; None if it has none."""
    inputs = _unwrapped(at(attributes, "input", "messages"))
    if inputs is not None:
        return _Messages(inputs, _unwrapped(at(attributes, "output", "messages")))
    inputs = decoded(attributes.get("prompt"))  # as OpenLLMetry has it
    if inputs is not None:
        return _Messages(inputs, decoded(attributes.get("completion")))
    inputs = at(span, "attributes", "ai", "prompt", "messages")  # as Vercel's AI SDK has it
    if inputs:
        response = fields_of(at(span, "attributes", "ai", "response"))
        return _Messages(decoded(inputs), _answer_of_ai_sdk(response))
    return None


def _instructions(attributes: Mapping[str, Any]) -> list[Event]:
    """The system prompt that is beside the messages; [] without one."""
    instructions = decoded(at(attributes, "system_instructions"))
    if isinstance(instructions, list):
        return input_messages([{"role": "system", "parts": instructions}])
    return system_prompt(instructions)


def _answer(attributes: Mapping[str, Any], outputs: Any) -> list[Event]:
    events = output_messages(_first_choice(_with_parts(outputs)))
    reasons = decoded(at(attributes, "response", "finish_reasons"))
    if not isinstance(reasons, list):
        reasons = [reasons]
    if events and any(is_cut({"finish_reason": reason}) for reason in reasons):
        events[-1] = replace(events[-1], is_cut=True)
    return events


def _unwrapped(messages: Any) -> Any:
    """Messages, taken out of the object with a version that Microsoft's SDKs wrap them in."""
    messages = decoded(messages)
    wrapped = at(messages, "messages")
    return wrapped if isinstance(wrapped, list) else messages


def _answer_of_ai_sdk(response: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in a span of Vercel's AI SDK, whose attributes are its own."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": str(response.get("text") or "")}]
    for call in list_of(decoded(response.get("toolCalls"))):
        parts.append({"type": "tool-call", **mapping(call)})
    return {"role": "assistant", "parts": parts}


def _with_parts(messages: Any) -> Any:
    """Messages whose contents are parts, where OpenLLMetry has those as JSON in a string."""
    if not isinstance(messages, list):
        return messages
    return [
        {**message, "content": decoded(message["content"])}
        if isinstance(message, Mapping) and _is_of_parts(decoded(message.get("content")))
        else message
        for message in messages
    ]


def _is_of_parts(content: Any) -> bool:
    return isinstance(content, list) and bool(content) and all(at(p, "type") for p in content)


def _first_choice(outputs: Any) -> Any:
    """The first of several answers to choose from, as is taken of an API's choices."""
    is_choices = isinstance(outputs, list) and all(at(o, "finish_reason") for o in outputs)
    return outputs[:1] if is_choices else outputs


def _with_messages_of_events(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """A span with the messages that are attributes of its events, as some exporters write them."""
    attributes = fields_of(span.get("attributes"))
    events = [*list_of(span.get("events"))]
    for event in list_of(decoded(attributes.get("events"))):  # as Logfire writes them
        events.append({"name": at(event, "event.name"), "attributes": event})
    if not events:
        return span
    of_events: dict[str, Any] = {}  # attributes of the events, as a span would have them
    messages: list[dict[str, Any]] = []
    for event in events:
        name = str(at(event, "name"))
        fields = fields_of(at(event, "attributes"))
        if name == CHOICE:
            of_events["gen_ai.completion"] = decoded(fields.get("message", fields.get("content")))
        elif message := _MESSAGE_EVENT.fullmatch(name):
            content = decoded(fields.get("content"))
            calls = decoded(fields.get("tool_calls"))
            messages.append({"role": message[1], "content": content, "tool_calls": calls or []})
        else:
            of_events |= {key: v for key, v in fields.items() if str(key).startswith("gen_ai.")}
    prompt = {"gen_ai.prompt": messages} if messages else {}
    return {**span, "attributes": {**prompt, **of_events, **attributes}}


def is_message_event(name: str) -> bool:
    """Whether an event with this name is a message of a call's input."""
    return _MESSAGE_EVENT.fullmatch(name) is not None


_DESCRIPTION = "a model call (a gen_ai span of the operation chat or the like)"
FORMAT = Format("otel", is_gen_ai, transcripts_of_calls(calls_in_span, _DESCRIPTION), streams=True)
