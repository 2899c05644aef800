"""Traces in Jaeger's JSON, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, variations
from opentelemetry_messages import HI, SECOND_INPUT, A, B

INSTRUCTIONS = json.dumps([{"type": "text", "content": "Be brief."}])


def tags(**values: Any) -> list[dict]:
    return [
        {"key": name.replace("__", "."), "type": "string", "value": value}
        for name, value in values.items()
    ]


def span(number: int = 1, logs: Any = (), **values: Any) -> dict:
    ids = {"traceID": "t1", "spanID": f"s{number}", "operationName": "chat m", "references": []}
    return {**ids, "startTime": number, "duration": 5, "tags": tags(**values), "logs": logs}


def trace(*spans: dict) -> dict:
    return {
        "data": [{"traceID": "t1", "spans": spans, "processes": {}, "warnings": None}],
        "total": 0,
        "errors": None,
    }


def chat(inputs: Any = (HI,), outputs: Any = (A,), **fields: Any) -> dict:
    messages = {
        "gen_ai__input__messages": json.dumps(inputs),
        "gen_ai__output__messages": json.dumps(outputs),
    }
    return {"gen_ai__operation__name": "chat", **messages, **fields}


INFERENCE = {
    "openinference__span__kind": "LLM",
    "llm__input_messages__0__message__role": "user",
    "llm__input_messages__0__message__content": "Hi",
    "llm__output_messages__0__message__role": "assistant",
    "llm__output_messages__0__message__content": "A.",
}
CHOICE = json.dumps({"role": "assistant", "content": "A."})
LOGS = [
    {"timestamp": 2, "fields": tags(event="gen_ai.user.message", content="Hi")},
    {"timestamp": 3, "fields": tags(event="gen_ai.choice", message=CHOICE)},
]

OTLP = {
    "scopeSpans": [
        {
            "spans": [
                {
                    "traceId": "t1",
                    "spanId": "s1",
                    "attributes": [
                        {"key": entry["key"], "value": {"stringValue": entry["value"]}}
                        for entry in tags(**chat())
                    ],
                }
            ]
        }
    ]
}

test_traces_of_jaeger = variations(
    Variation(
        "a trace",
        {"j.json": trace(span(**chat(gen_ai__system_instructions=INSTRUCTIONS)))},
        ONE_TURN,
        system="Be brief.",
        format="jaeger",
    ),
    Variation("a trace alone", {"j.json": trace(span(**chat()))["data"][0]}, ONE_TURN),
    Variation(
        "other spans beside it",
        {"j.json": trace(span(2, http__method="GET"), span(**chat()))},
        ONE_TURN,
    ),
    Variation(
        "two calls",
        {"j.json": trace(span(9, **chat(SECOND_INPUT, [B])), span(**chat()))},
        TWO_TURNS,
    ),
    Variation("OpenInference", {"j.json": trace(span(**INFERENCE))}, ONE_TURN),
    Variation(
        "events", {"j.json": trace(span(logs=LOGS, gen_ai__operation__name="chat"))}, ONE_TURN
    ),
    Variation(
        "the API of version 3",
        {"j.json": {"result": {"resourceSpans": [OTLP]}}},
        ONE_TURN,
        format="otlp",
    ),
    Variation("Grafana Tempo's API", {"j.json": {"batches": [OTLP]}}, ONE_TURN, format="otlp"),
    Variation(
        "version 2 of Tempo's API",
        {"j.json": {"trace": {"resourceSpans": [OTLP]}}},
        ONE_TURN,
        format="otlp",
    ),
    Variation(
        "no call of a model",
        {"j.json": trace(span(http__method="GET"))},
        refused="not an OTLP batch with a model call",
    ),
)
