"""OpenTelemetry: spans with `gen_ai` attributes."""

from collections.abc import Iterator
from typing import Any

from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import (
    Format,
    at,
    decoded,
    input_messages,
    mapping,
    output_messages,
    system_prompt,
)
from holdfast.transcripts.spans import is_gen_ai, session_of, span_of, unflattened
from holdfast.transcripts.transcript import Malformed

_GENERATING = ("chat", "text_completion", "generate_content")  # operations that call a model


def calls_in_span(where: str, value: Any) -> Iterator[Call]:
    """The call of a model in a span."""
    span = unflattened(mapping(value))
    attributes = mapping(at(span, "attributes", "gen_ai") or {})
    operation = at(attributes, "operation", "name")
    if operation is not None and operation not in _GENERATING:
        return
    start = str(span.get("start_time") or span.get("startTimeUnixNano") or "")
    inputs = decoded(at(attributes, "input", "messages"))
    outputs = decoded(at(attributes, "output", "messages"))
    if inputs is None and "prompt" in attributes:  # as OpenLLMetry has it
        inputs, outputs = attributes["prompt"], attributes.get("completion")
    if inputs is None:
        if operation is None:
            return
        raise Malformed(
            "its gen_ai span has no messages (gen_ai.input.messages), as their content was not"
            " recorded, or was recorded as events, which are not read"
        )
    instructions = decoded(at(attributes, "system_instructions"))
    if isinstance(instructions, list):
        instructions = [{"role": "system", "parts": instructions}]
        prompt = input_messages(instructions)
    else:
        prompt = system_prompt(instructions)
    inputs = [*prompt, *input_messages(inputs)]
    yield Call(where, session_of(span), start, inputs, output_messages(outputs), span_of(span))


_DESCRIPTION = "model calls (gen_ai spans of the operation chat or the like)"
FORMAT = Format("otel", is_gen_ai, transcripts_of_calls(calls_in_span, _DESCRIPTION), streams=True)
