"""Batches of OTLP with spans and log records, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, file_text, lines, variations
from opentelemetry_messages import (
    HI,
    SECOND_INPUT,
    TOOL_CALL,
    A,
    B,
    messages,
    otlp_attributes,
    otlp_spans,
    otlp_value,
    part,
    span,
)

from holdfast.logs import read_logs


def otlp(*items: dict, name: str = "o.jsonl") -> dict:
    batch = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*items]}]}]}
    return {name: lines(batch) if name.endswith("l") else batch}


def ospan(number: int = 1, **attributes: Any) -> dict:
    fields = [
        {"key": k, "value": otlp_value(v)} for k, v in span(**attributes)["attributes"].items()
    ]
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "name": "chat",
        "startTimeUnixNano": str(number),
        "attributes": fields,
    }


test_batches_of_otlp = variations(
    Variation("messages as text", otlp(ospan(**messages())), ONE_TURN, format="otlp"),
    Variation(
        "messages as values", otlp(ospan(input__messages=[HI], output__messages=[A])), ONE_TURN
    ),
    Variation("a document", otlp(ospan(**messages()), name="o.json"), ONE_TURN),
    Variation(
        "two spans of a trace",
        otlp(ospan(**messages()), ospan(2, **messages(SECOND_INPUT, [B]))),
        TWO_TURNS,
    ),
    Variation(
        "messages in an event",
        otlp(
            {
                **ospan(),
                "events": [
                    {
                        "name": "x",
                        "attributes": [
                            {"key": "gen_ai.input.messages", "value": otlp_value(json.dumps([HI]))},
                            {"key": "gen_ai.output.messages", "value": otlp_value(json.dumps([A]))},
                        ],
                    }
                ],
            }
        ),
        ONE_TURN,
    ),
    Variation(
        "OpenInference",
        otlp(
            {
                "traceId": "t",
                "spanId": "s",
                "attributes": [
                    {"key": "openinference.span.kind", "value": otlp_value("LLM")},
                    {"key": "llm.input_messages.0.message.role", "value": otlp_value("user")},
                    {"key": "llm.input_messages.0.message.content", "value": otlp_value("Hi")},
                    {"key": "llm.output_messages.0.message.role", "value": otlp_value("assistant")},
                    {"key": "llm.output_messages.0.message.content", "value": otlp_value("A.")},
                ],
            }
        ),
        ONE_TURN,
    ),
    Variation(
        "a batch of an older OTLP",
        {
            "o.json": {
                "resourceSpans": [
                    {"instrumentationLibrarySpans": [{"spans": [ospan(**messages())]}]}
                ]
            }
        },
        ONE_TURN,
    ),
)


def log_record(name: str, body: Any = None, span: str = "s1", **attrs: Any) -> dict:
    record = {
        "timeUnixNano": "1",
        "traceId": "t1",
        "spanId": span,
        "eventName": name,
        "attributes": otlp_attributes(**attrs),
    }
    return {**record, "body": otlp_value(body)} if body else record


def otlp_logs(*records: dict) -> dict:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [*records]}]}]}


def chat_span(number: int, **attrs: Any) -> dict:
    chat = {"gen_ai.operation.name": "chat"}
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "name": "chat m",
        "startTimeUnixNano": str(number),
        "attributes": otlp_attributes(**chat, **attrs),
    }


DETAILS_EVENT = "gen_ai.client.inference.operation.details"
MESSAGES = {"gen_ai.input.messages": [HI], "gen_ai.output.messages": [A]}
MESSAGES_AS_JSON = {name: json.dumps(value) for name, value in MESSAGES.items()}
CHAT = {"gen_ai.operation.name": "chat"}

HI_RECORD = log_record("gen_ai.user.message", {"content": "Hi"})
A_RECORD = log_record("gen_ai.choice", {"message": {"content": "A."}})

test_batches_of_otlp_with_log_records = variations(
    Variation(
        "details of a call",
        {"o.jsonl": lines(otlp_logs(log_record(DETAILS_EVENT, **CHAT, **MESSAGES)))},
        ONE_TURN,
        format="otlp",
    ),
    Variation(
        "details whose messages are JSON",
        {"o.jsonl": lines(otlp_logs(log_record(DETAILS_EVENT, **CHAT, **MESSAGES_AS_JSON)))},
        ONE_TURN,
    ),
    Variation(
        "details with the system prompt",
        {
            "o.jsonl": lines(
                otlp_logs(
                    log_record(
                        DETAILS_EVENT,
                        **CHAT,
                        **MESSAGES,
                        **{"gen_ai.system_instructions": [part("text", "Be brief.")]},
                    )
                )
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "details of an agent, which repeat those of its calls",
        {
            "o.jsonl": lines(
                otlp_logs(
                    log_record(DETAILS_EVENT, span="s1", **CHAT, **MESSAGES),
                    log_record(
                        DETAILS_EVENT,
                        span="s0",
                        **{"gen_ai.operation.name": "invoke_agent"},
                        **MESSAGES,
                    ),
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a record for each message",
        {
            "o.jsonl": lines(
                otlp_logs(
                    log_record("gen_ai.system.message", {"content": "Be brief."}),
                    log_record("gen_ai.user.message", {"content": "Hi"}),
                    log_record("gen_ai.assistant.message", TOOL_CALL),
                    log_record("gen_ai.tool.message", {"content": "y", "id": "c1"}),
                    log_record(
                        "gen_ai.choice",
                        {"index": "0", "message": {"role": "assistant", "content": "A."}},
                    ),
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
        system="Be brief.",
    ),
    Variation(
        "names of events as attributes",
        {
            "o.jsonl": lines(
                otlp_logs(
                    {**log_record("", {"content": "Hi"}, **{"event.name": "gen_ai.user.message"})},
                    {
                        **log_record(
                            "", {"message": {"content": "A."}}, **{"event.name": "gen_ai.choice"}
                        )
                    },
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "other records between them",
        {
            "o.jsonl": lines(
                otlp_logs(
                    log_record("http.request", "GET /"),
                    log_record(DETAILS_EVENT, **CHAT, **MESSAGES),
                    {"body": {"stringValue": "price"}},
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a call both as a span and as a record",
        {
            "o.jsonl": lines(
                otlp_spans(chat_span(1, **MESSAGES_AS_JSON)),
                otlp_logs(log_record(DETAILS_EVENT, **CHAT, **MESSAGES)),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "records of a call in two batches",
        {
            "o.jsonl": lines(
                otlp_logs(log_record("gen_ai.system.message", {"content": "Be brief."}), HI_RECORD),
                otlp_logs(A_RECORD),
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "records of calls in two traces whose spans have the same id",
        {
            "o.jsonl": lines(
                otlp_logs(HI_RECORD, {**HI_RECORD, "traceId": "t2"}),
                otlp_logs(A_RECORD, {**A_RECORD, "traceId": "t2"}),
            )
        },
        ONE_TURN * 2,
    ),
    Variation(
        "records without an answer",
        {
            "o.jsonl": lines(
                otlp_logs(log_record("gen_ai.user.message", {"content": "Hi"}, span="s2")),
                otlp_logs(log_record(DETAILS_EVENT, **CHAT, **MESSAGES)),
            )
        },
        ONE_TURN,
        problem="messages and no answer",
    ),
    Variation(
        "records with only an answer",
        {
            "o.jsonl": lines(
                otlp_logs(log_record("gen_ai.choice", {"message": {"content": "A."}}, span="s2")),
                otlp_logs(log_record(DETAILS_EVENT, **CHAT, **MESSAGES)),
            )
        },
        ONE_TURN,
        problem="an answer and no messages",
    ),
    Variation(
        "records without the id of a span",
        {
            "o.jsonl": lines(
                otlp_logs(
                    {**HI_RECORD, "spanId": ""},
                    {**A_RECORD, "spanId": ""},
                    log_record(DETAILS_EVENT, span="", **CHAT, **MESSAGES),
                )
            )
        },
        ONE_TURN,
        problem="2 messages in log records",
    ),
    Variation(
        "one record without the id of a span",
        {
            "o.jsonl": lines(
                otlp_logs(
                    {**HI_RECORD, "spanId": ""},
                    log_record(DETAILS_EVENT, span="", **CHAT, **MESSAGES),
                )
            )
        },
        ONE_TURN,
        problem="nothing tells which call it belongs to",
    ),
    Variation(
        "a span whose messages are records of its batch",
        {"o.jsonl": lines({**otlp_spans(chat_span(1)), **otlp_logs(HI_RECORD, A_RECORD)})},
        ONE_TURN,
    ),
    Variation(
        "spans whose messages are records of another batch",
        {"o.jsonl": lines(otlp_spans(chat_span(1)), otlp_logs(HI_RECORD, A_RECORD))},
        ONE_TURN,
    ),
    Variation(
        "a score beside a span with its messages",
        {
            "o.jsonl": lines(
                otlp_spans(chat_span(1, **MESSAGES)),
                otlp_logs(log_record("gen_ai.evaluation.result", **CHAT)),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a score beside a span without messages",
        {
            "o.jsonl": lines(
                otlp_spans(chat_span(1), chat_span(2, **MESSAGES)),
                otlp_logs(log_record("gen_ai.evaluation.result", **CHAT)),
            )
        },
        ONE_TURN,
        problem="no messages",
    ),
    Variation(
        "a span without messages among others",
        {"o.jsonl": lines(otlp_spans(chat_span(1), chat_span(2, **MESSAGES_AS_JSON)))},
        ONE_TURN,
        problem="no messages",
    ),
)


def test_an_answer_that_is_a_log_record_of_a_span_with_messages_is_named(tmp_path):
    inputs = {name: value for name, value in MESSAGES.items() if "input" in name}
    batches = otlp_spans(chat_span(1, **inputs), chat_span(2, **MESSAGES)), otlp_logs(A_RECORD)
    (tmp_path / "o.jsonl").write_text(file_text(lines(*batches)))
    problems = read_logs([tmp_path]).problems
    assert any("an answer and no messages" in problem for problem in problems)
