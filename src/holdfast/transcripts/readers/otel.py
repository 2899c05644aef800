"""OpenTelemetry's spans with `gen_ai` attributes.

A value, shortened:

    {"attributes": {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[...]"}, ...}
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.transcripts.call_messages import input_messages, output_messages, system_prompt
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, decode_json, list_or_empty, require_object
from holdfast.transcripts.reader import Format
from holdfast.transcripts.trace_spans import is_gen_ai, session_of, trace_span_of, unflatten
from holdfast.transcripts.transcript import Event, Malformed
from holdfast.validation.json_values import fields_of

CHOICE = "gen_ai.choice"  # the name of the event with a call's answer
_MESSAGE_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_GENERATING = ("chat", "text_completion", "generate_content")  # operations that call a model
_AGENT_RUN = "invoke_agent"  # the operation of a run of an agent, which calls a model several times


class WithoutMessages(Malformed):
    """A span of a model's call has no messages; they may be in other values."""


class _Messages(NamedTuple):
    """The messages of a call as its span has them."""

    inputs: Any
    outputs: Any


def is_generating(operation: Any) -> bool:
    """Whether a span's operation is a call of a model; True if the span does not name it."""
    return operation is None or operation in _GENERATING


def is_message_event(name: str) -> bool:
    """Whether events of this name are messages in a call's input."""
    return _MESSAGE_EVENT.fullmatch(name) is not None


def calls_in_span(source: str, value: Any) -> Iterator[Call]:
    """Reads the call of a model in a span; other spans have none."""
    span = unflatten(_with_messages_of_events(require_object(value)))
    attributes = require_object(at(span, "attributes", "gen_ai") or {})
    operation = at(attributes, "operation", "name")
    messages = _messages_of_agent(span, attributes)
    is_agent_run = messages is None and operation == _AGENT_RUN
    if not (is_generating(operation) or is_agent_run) and messages is None:
        return
    messages = messages or _messages_of(span, attributes)
    if messages is None and (operation is None or is_agent_run):
        return
    if messages is None:
        raise WithoutMessages(
            "its gen_ai span has no messages (gen_ai.input.messages), as their content was not"
            " recorded, or was recorded as log records beside it"
        )
    yield Call(
        source,
        session_of(span),
        start=str(span.get("start_time") or span.get("startTimeUnixNano") or ""),
        input=[*_instructions(attributes), *input_messages(_with_parts(messages.inputs))],
        output=_answer(attributes, messages.outputs),
        trace_span=trace_span_of(span),
        is_agent_run=is_agent_run,
    )


def _messages_of(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> _Messages | None:
    """Finds the messages in a span, given its `gen_ai` attributes; None if it has none."""
    inputs = _unwrap(at(attributes, "input", "messages"))
    if inputs is not None:
        return _Messages(inputs, _unwrap(at(attributes, "output", "messages")))
    inputs = decode_json(attributes.get("prompt"))  # OpenLLMetry
    if inputs is not None:
        return _Messages(inputs, decode_json(attributes.get("completion")))
    inputs = at(span, "attributes", "ai", "prompt", "messages")  # Vercel's AI SDK
    if inputs:
        response = fields_of(at(span, "attributes", "ai", "response"))
        return _Messages(decode_json(inputs), _answer_of_ai_sdk(response))
    return None


def _messages_of_agent(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> _Messages | None:
    """Finds the messages of a run of Pydantic AI, whose span has all of them; None in others."""
    messages = decode_json(at(span, "attributes", "pydantic_ai", "all_messages"))
    if not isinstance(messages, list) or at(attributes, "input", "messages") is not None:
        return None
    last = 1 if messages and at(messages[-1], "role") == "assistant" else 0
    return _Messages(messages[: len(messages) - last], messages[len(messages) - last :])


def _instructions(attributes: Mapping[str, Any]) -> list[Event]:
    """Reads the system prompt that is beside the messages; [] if there is none."""
    instructions = decode_json(at(attributes, "system_instructions"))
    if isinstance(instructions, list):
        return input_messages([{"role": "system", "parts": instructions}])
    return system_prompt(instructions)


def _answer(attributes: Mapping[str, Any], outputs: Any) -> list[Event]:
    """Reads the answer of a call; of several alternatives, the first."""
    reasons = decode_json(at(attributes, "response", "finish_reasons"))
    reasons = reasons if isinstance(reasons, list) else [reasons]
    outputs = _with_parts(outputs)
    if isinstance(outputs, list) and _are_choices(outputs, reasons):
        outputs = outputs[:1]
        reasons = reasons[:1]
    events = output_messages(outputs)
    if events and any(is_cut({"finish_reason": reason}) for reason in reasons):
        events[-1] = replace(events[-1], is_cut=True)
    return events


def _unwrap(messages: Any) -> Any:
    """Removes the versioned object that Microsoft's SDKs put around messages."""
    messages = decode_json(messages)
    wrapped = at(messages, "messages")
    return wrapped if isinstance(wrapped, list) else messages


def _answer_of_ai_sdk(response: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer in a span of Vercel's AI SDK, which has its own attributes."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": str(response.get("text") or "")}]
    for call in list_or_empty(decode_json(response.get("toolCalls"))):
        parts.append({"type": "tool-call", **require_object(call)})
    return {"role": "assistant", "parts": parts}


def _with_parts(messages: Any) -> Any:
    """Decodes contents that are parts as JSON text, as OpenLLMetry writes them."""
    if not isinstance(messages, list):
        return messages
    return [
        {**message, "content": decode_json(message["content"])}
        if isinstance(message, Mapping) and _is_of_parts(decode_json(message.get("content")))
        else message
        for message in messages
    ]


def _is_of_parts(content: Any) -> bool:
    return isinstance(content, list) and bool(content) and all(at(p, "type") for p in content)


def _are_choices(outputs: list[Any], reasons: list[Any]) -> bool:
    """Whether outputs are alternatives: each has a reason for its end, in newer versions of the
    conventions in an attribute of the span.
    """
    has_reasons = all(at(output, "finish_reason") for output in outputs)
    return has_reasons or len(outputs) == len(reasons) > 1


def _with_messages_of_events(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds the messages in a span's events to its attributes, where some exporters have them."""
    attributes = fields_of(span.get("attributes"))
    events = [*list_or_empty(span.get("events"))]
    for event in list_or_empty(decode_json(attributes.get("events"))):  # Logfire's
        events.append({"name": at(event, "event.name"), "attributes": event})
    if not events:
        return span
    event_attributes: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    for event in events:
        name = str(at(event, "name"))
        fields = fields_of(at(event, "attributes"))
        if name == CHOICE:
            answer = decode_json(fields.get("message", fields.get("content")))
            event_attributes["gen_ai.completion"] = answer
        elif message := _MESSAGE_EVENT.fullmatch(name):
            content = decode_json(fields.get("content"))
            calls = decode_json(fields.get("tool_calls"))
            messages.append({"role": message[1], "content": content, "tool_calls": calls or []})
        else:
            event_attributes |= {
                key: value for key, value in fields.items() if str(key).startswith("gen_ai.")
            }
    prompt = {"gen_ai.prompt": messages} if messages else {}
    return {**span, "attributes": {**prompt, **event_attributes, **attributes}}


_DESCRIPTION = "a model call (a gen_ai span of the operation chat or the like)"
FORMAT = Format("otel", is_gen_ai, call_reader(calls_in_span, _DESCRIPTION), streams=True)
