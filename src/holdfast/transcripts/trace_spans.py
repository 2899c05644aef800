"""Spans of traces: their sessions, their ids, and their attributes with dotted names.

For example:

    {"attributes": {"gen_ai.request.model": "m"}} -> unflatten
    -> {"attributes": {"gen_ai": {"request": {"model": "m"}}}}
"""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.json_fields import at
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

# The prefix `llm.` is not enough: OpenLLMetry has `llm.request.type` beside attributes of `gen_ai`.
_OPENINFERENCE = ("openinference", "llm.input_messages", "llm.output_messages", "llm.model_name")


def session_of(span: Mapping[str, Any]) -> str:
    """Returns the id of a span's session or conversation, or else of its trace; "" without any."""
    attributes = span.get("attributes")
    conversation = at(attributes, "session", "id") or at(attributes, "gen_ai", "conversation", "id")
    return str(conversation or _id_of(span, "trace_id", "traceId") or "")


def trace_span_of(span: Mapping[str, Any]) -> str:
    """Returns the ids of a trace and a span of it as `Event` has them; "" if one is missing."""
    trace_id = _id_of(span, "trace_id", "traceId")
    span_id = _id_of(span, "span_id", "spanId")
    return f"{trace_id}/{span_id}" if trace_id and span_id else ""


def _id_of(span: Mapping[str, Any], name: str, name_in_otlp: str) -> Any:
    return at(span, "context", name) or span.get(name) or span.get(name_in_otlp)


def is_gen_ai(value: Any) -> bool:
    """Whether a span has attributes of `gen_ai` and none of OpenInference."""
    names = [*fields_of(at(value, "attributes"))]
    names += [str(name).removeprefix("attributes.") for name in fields_of(value)]
    inference = any(str(name).startswith(_OPENINFERENCE) for name in names)
    return not inference and any(str(name).startswith("gen_ai") for name in names)


def unflatten(span: Mapping[str, Any]) -> dict[str, Any]:
    """Turns dotted names into nested objects, and objects whose names are numbers into lists."""
    tree: dict[str, Any] = {}
    for name, value in span.items():
        value = unflatten(value) if isinstance(value, Mapping) else value
        *outer, last = name.split(".")
        node = tree
        for part in outer:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise Malformed(f"the field {name!r} occurs beside a value of {part!r}")
        if isinstance(node.get(last), dict) and isinstance(value, dict):
            node[last].update(value)
        else:
            node[last] = value
    return {name: _to_lists(value) for name, value in tree.items()}


def _to_lists(value: Any) -> Any:
    """Turns objects whose names are all numbers into lists, at any depth."""
    if isinstance(value, list):
        return [
            unflatten(entry) if isinstance(entry, Mapping) else _to_lists(entry) for entry in value
        ]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_to_lists(value[name]) for name in sorted(value, key=int)]
    return {name: _to_lists(entry) for name, entry in value.items()}
