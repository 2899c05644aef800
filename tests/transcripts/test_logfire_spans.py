"""Spans of Logfire, whose messages are events in an attribute, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, Variation, lines, variations
from opentelemetry_messages import TOOL_CALL


def chat_span(
    inputs: Any, outputs: Any, operation: str = "chat", span: str = "0x2", **more: Any
) -> dict:
    messages = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
    attributes = {"gen_ai.operation.name": operation}
    attributes |= {name: json.dumps(value) for name, value in messages.items()}
    return {
        "name": "chat m",
        "context": {"trace_id": "0x1", "span_id": span},
        "attributes": {**attributes, **more},
    }


def logfire_span(*events: dict) -> dict:
    span = chat_span([], [])
    span["attributes"] = {"gen_ai.operation.name": "chat", "events": json.dumps(events)}
    return span


def named_event(name: str, **fields: Any) -> dict:
    return {**fields, "gen_ai.system": "openai", "event.name": f"gen_ai.{name}"}


SAYS_HI = named_event("user.message", role="user", content="Hi")
CHOICE = named_event("choice", index=0, message={"role": "assistant", "content": "A."})

test_spans_of_logfire = variations(
    Variation(
        "a question and its answer",
        {"x.jsonl": lines(logfire_span(SAYS_HI, CHOICE))},
        ONE_TURN,
        format="otel",
    ),
    Variation(
        "a system prompt",
        {
            "x.jsonl": lines(
                logfire_span(
                    named_event("system.message", role="system", content="Be brief."),
                    SAYS_HI,
                    CHOICE,
                )
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a call",
        {
            "x.jsonl": lines(
                logfire_span(
                    SAYS_HI,
                    named_event("assistant.message", **TOOL_CALL),
                    named_event("tool.message", content="y", role="tool", id="c1"),
                    CHOICE,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a call as the answer",
        {
            "x.jsonl": lines(
                logfire_span(SAYS_HI, named_event("choice", index=0, message=TOOL_CALL))
            )
        },
        [[("Hi", "")]],
        calls=["ls"],
    ),
)
