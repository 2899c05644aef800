"""Spans of traces: attributes with dotted names, and the session that a span is of."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.json_fields import at
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of


def session_of(span: Mapping[str, Any]) -> str:
    """The id of a span's session or conversation; else that of its trace."""
    attributes = span.get("attributes")
    conversation = at(attributes, "session", "id") or at(attributes, "gen_ai", "conversation", "id")
    return str(conversation or _id_of(span, "trace_id", "traceId") or "")


def trace_span_of(span: Mapping[str, Any]) -> str:
    """The ids of a span's trace and of itself, as `Event` has them; "" if it lacks one."""
    trace_id = _id_of(span, "trace_id", "traceId")
    span_id = _id_of(span, "span_id", "spanId")
    return f"{trace_id}/{span_id}" if trace_id and span_id else ""


def _id_of(span: Mapping[str, Any], name: str, name_in_otlp: str) -> Any:
    return at(span, "context", name) or span.get(name) or span.get(name_in_otlp)


# `llm.` alone does not tell: OpenLLMetry has `llm.request.type` beside attributes of `gen_ai`
_OPENINFERENCE = ("openinference", "llm.input_messages", "llm.output_messages", "llm.model_name")


def is_gen_ai(value: Any) -> bool:
    """Whether a span has `gen_ai` attributes, and none of OpenInference."""
    names = [*fields_of(at(value, "attributes"))]
    names += [str(name).removeprefix("attributes.") for name in fields_of(value)]
    inference = any(str(name).startswith(_OPENINFERENCE) for name in names)
    return not inference and any(str(name).startswith("gen_ai") for name in names)


def unflattened(span: Mapping[str, Any]) -> dict[str, Any]:
    """Turns dotted names into nested objects, and numbers among them into list positions."""
    tree: dict[str, Any] = {}
    for name, value in span.items():
        value = unflattened(value) if isinstance(value, Mapping) else value
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
    return {name: _listified(value) for name, value in tree.items()}


def _listified(value: Any) -> Any:
    if isinstance(value, list):
        return [
            unflattened(entry) if isinstance(entry, Mapping) else _listified(entry)
            for entry in value
        ]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_listified(value[name]) for name in sorted(value, key=int)]
    return {name: _listified(entry) for name, entry in value.items()}
