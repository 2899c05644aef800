"""OpenTelemetry: spans with `gen_ai` attributes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, system_prompt
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, decoded, fields_of, mapping
from holdfast.transcripts.reader import Format
from holdfast.transcripts.trace_spans import is_gen_ai, session_of, trace_span_of, unflattened
from holdfast.transcripts.transcript import Malformed

CHOICE = "gen_ai.choice"  # the event that is a call's answer
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_GENERATING = ("chat", "text_completion", "generate_content")  # operations that call a model


def is_generating(operation: Any) -> bool:
    """Whether a span's operation is a call of a model, as far as is known."""
    return operation is None or operation in _GENERATING


class WithoutMessages(Malformed):
    """A span of a call of a model has no messages, which may be elsewhere."""


def calls_in_span(where: str, value: Any) -> Iterator[Call]:
    """The call of a model in a span."""
    span = unflattened(_with_events(mapping(value)))
    attributes = mapping(at(span, "attributes", "gen_ai") or {})
    operation = at(attributes, "operation", "name")
    if not is_generating(operation):
        return
    start = str(span.get("start_time") or span.get("startTimeUnixNano") or "")
    inputs = _listed(at(attributes, "input", "messages"))
    outputs = _listed(at(attributes, "output", "messages"))
    if inputs is None and "prompt" in attributes:  # as OpenLLMetry has it
        inputs, outputs = decoded(attributes["prompt"]), decoded(attributes.get("completion"))
    if inputs is None and (prompt := at(span, "attributes", "ai", "prompt", "messages")):
        inputs = decoded(prompt)
        outputs = _answer_of_ai_sdk(fields_of(at(span, "attributes", "ai", "response")))
    if inputs is None:
        if operation is None:
            return
        raise WithoutMessages(
            "its gen_ai span has no messages (gen_ai.input.messages), as their content was not"
            " recorded, or was recorded as log records beside it"
        )
    instructions = decoded(at(attributes, "system_instructions"))
    if isinstance(instructions, list):
        instructions = [{"role": "system", "parts": instructions}]
        prompt = input_messages(instructions)
    else:
        prompt = system_prompt(instructions)
    inputs = [*prompt, *input_messages(_with_parts(inputs))]
    answer = output_messages(_first_choice(_with_parts(outputs)))
    ends = decoded(at(attributes, "response", "finish_reasons"))
    ends = ends if isinstance(ends, list) else [ends]
    if answer and any(is_cut({"finish_reason": end}) for end in ends):
        answer[-1] = replace(answer[-1], is_cut=True)
    yield Call(where, session_of(span), start, inputs, answer, trace_span_of(span))


def _listed(messages: Any) -> Any:
    """Messages, taken out of the object with a version that Microsoft's SDKs wrap them in."""
    messages = decoded(messages)
    listed = at(messages, "messages")
    return listed if isinstance(listed, list) else messages


def _answer_of_ai_sdk(response: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in a span of Vercel's AI SDK, whose attributes are its own."""
    calls = decoded(response.get("toolCalls"))
    parts = [{"type": "text", "text": str(response.get("text") or "")}]
    parts += [{"type": "tool-call", **call} for call in calls] if isinstance(calls, list) else []
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


def _with_events(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """A span with the messages that are attributes of its events, as some exporters write them."""
    attributes = fields_of(span.get("attributes"))
    events = _list_of(span.get("events"))
    for event in _list_of(decoded(attributes.get("events"))):  # as Logfire writes them
        events.append({"name": at(event, "event.name"), "attributes": event})
    if not events:
        return span
    found: dict[str, Any] = {}
    said: list[dict[str, Any]] = []
    for event in events:
        name, fields = str(at(event, "name")), fields_of(at(event, "attributes"))
        role = _EVENT.fullmatch(name)
        if name == CHOICE:
            choice = fields.get("message", fields.get("content"))
            found["gen_ai.completion"] = decoded(choice)
        elif role is not None:
            calls = decoded(fields.get("tool_calls"))
            content = decoded(fields.get("content"))
            said.append({"role": role[1], "content": content, "tool_calls": calls or []})
        else:
            found |= {k: v for k, v in fields.items() if str(k).startswith("gen_ai.")}
    prompt = {"gen_ai.prompt": said} if said else {}
    return {**span, "attributes": {**prompt, **found, **attributes}}


def _list_of(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list) else []


def is_message_event(name: str) -> bool:
    """Whether an event with this name is a message of a call's input."""
    return _EVENT.fullmatch(name) is not None


_DESCRIPTION = "a model call (a gen_ai span of the operation chat or the like)"
FORMAT = Format("otel", is_gen_ai, transcripts_of_calls(calls_in_span, _DESCRIPTION), streams=True)
