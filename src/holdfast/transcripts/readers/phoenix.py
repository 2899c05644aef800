"""Phoenix's spans with OpenInference attributes, nested or with dotted names.

A value, shortened:

    {"span_kind": "LLM", "attributes": {"llm": {"input_messages": [...], ...}}}
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.call_messages import output_messages, request_messages
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, list_or_empty, require_object
from holdfast.transcripts.reader import Format
from holdfast.transcripts.trace_spans import is_gen_ai, session_of, trace_span_of, unflatten
from holdfast.validation.json_values import fields_of, text_or_empty


def _recognises(value: Any) -> bool:
    names = {"context", "attributes", "context.trace_id"} & fields_of(value).keys()
    return bool(names) and not is_gen_ai(value)


def calls_in_span(source: str, value: Any) -> Iterator[Call]:
    """Reads the call of a model in a span; other spans have none."""
    span = unflatten(require_object(value))
    attributes = require_object(span.get("attributes", {}))
    kind = span.get("span_kind") or at(attributes, "openinference", "span", "kind")
    if kind != "LLM":
        return
    inputs = at(attributes, "llm", "input_messages") or _texts(attributes, "prompts", "prompt")
    outputs = at(attributes, "llm", "output_messages") or _texts(
        attributes, "choices", "completion"
    )
    inputs = inputs or at(attributes, "input", "value")
    output = output_messages(outputs or at(attributes, "output", "value"))
    if output and is_cut({"finish_reason": at(attributes, "llm", "finish_reason")}):
        output[-1] = replace(output[-1], is_cut=True)
    yield Call(
        source,
        session_of(span),
        start=str(span.get("start_time") or span.get("startTimeUnixNano") or ""),
        input=request_messages(inputs),
        output=output,
        trace_span=trace_span_of(span),
    )


def _texts(attributes: Mapping[str, Any], name: str, entry: str) -> str:
    """Returns the texts of a completion without messages: its prompts, or its first answer."""
    entries = list_or_empty(at(attributes, "llm", name))
    texts = [text_or_empty(at(value, entry, "text")) for value in entries]
    return "\n".join(filter(None, texts if entry == "prompt" else texts[:1]))


_DESCRIPTION = "a model call (a span of OpenInference's kind LLM)"
FORMAT = Format("phoenix", _recognises, call_reader(calls_in_span, _DESCRIPTION), streams=True)
