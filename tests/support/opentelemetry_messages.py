"""Messages and spans in OpenTelemetry's conventions for generative AI, for tests of their readers.

`span(**messages())` is a call of a model: the user says "Hi", and the reply is "A.".
"""

import json
from typing import Any


def part(kind: str, content: str) -> dict:
    return {"type": kind, "content": content}


def text_part(words: str) -> dict:
    return part("text", words)


def message(role: str, *parts: dict, **fields: Any) -> dict:
    return {"role": role, "parts": [*parts], **fields}


HI = message("user", text_part("Hi"))
A = message("assistant", text_part("A."), finish_reason="stop")
B = message("assistant", text_part("B."))
SECOND_INPUT = [HI, message("assistant", text_part("A.")), message("user", text_part("More?"))]
TOOL_CALL = {
    "role": "assistant",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": '{"c": "ls"}'}}
    ],
}


def messages(inputs: Any = (HI,), outputs: Any = (A,), **fields: Any) -> dict:
    """The attributes of a span with these messages as JSON, named as `span` takes them."""
    return {
        "input__messages": json.dumps(inputs),
        "output__messages": json.dumps(outputs),
        **fields,
    }


def span(name: str = "s1", trace: str = "t1", start: Any = 1, **attributes: Any) -> dict:
    """A call of a model; an attribute `a__b` stands for `gen_ai.a.b`."""
    fields = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return {
        "name": "chat x",
        "context": {"trace_id": trace, "span_id": name},
        "start_time": start,
        "attributes": {"gen_ai.operation.name": "chat", **fields},
    }


def otlp_value(of: Any) -> dict:
    if isinstance(of, list):
        return {"arrayValue": {"values": [otlp_value(entry) for entry in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": otlp_attributes(**of)}}
    return {"stringValue": of}


def otlp_attributes(**of: Any) -> list[dict]:
    return [{"key": key, "value": otlp_value(value)} for key, value in of.items()]


def otlp_spans(*spans: dict) -> dict:
    """A batch of OTLP with these spans."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [*spans]}]}]}
