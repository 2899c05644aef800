"""Spans of OpenInference, in variations."""

import json
from typing import Any

from log_variations import HI, ONE_TURN, TWO_TURNS, Variation, lines, variations
from opentelemetry_messages import otlp_attributes, otlp_spans


def inference_span(**otlp_attributes: Any) -> dict:
    return {
        "span_kind": "LLM",
        "context": {"trace_id": "1", "span_id": "2"},
        "attributes": {"openinference.span.kind": "LLM", **otlp_attributes},
    }


def tool_call_of(call: str, command: str) -> dict:
    arguments = json.dumps({"command": command})
    function = {"name": "bash", "arguments": arguments}
    return {"tool_call": {"id": call, "function": function}}


FIRST_CALL, SECOND_CALL = tool_call_of("c1", "ls"), tool_call_of("c2", "pwd")
USER_HI = [{"message.role": "user", "message.content": "Hi"}]

test_spans_of_openinference_in_summer_2026 = variations(
    Variation(
        "a reply that ended at the limit",
        {
            "s.jsonl": lines(
                inference_span(
                    **{
                        "llm.input_messages": USER_HI,
                        "llm.finish_reason": "length",
                        "llm.output_messages": [
                            {"message.role": "assistant", "message.content": "A."}
                        ],
                    }
                )
            )
        },
        ONE_TURN,
        is_cut=True,
    ),
    Variation(
        "a completion",
        {
            "s.jsonl": lines(
                inference_span(
                    **{
                        "llm.prompts.0.prompt.text": "Hi",
                        "llm.choices.0.completion.text": "A.",
                        "llm.choices.1.completion.text": "B.",
                    }
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "calls of which one is among the texts",
        {
            "s.jsonl": lines(
                inference_span(
                    **{
                        "llm.input_messages": USER_HI,
                        "llm.output_messages": [
                            {
                                "message": {
                                    "role": "assistant",
                                    "tool_calls": [FIRST_CALL, SECOND_CALL],
                                    "contents": [
                                        {"message_content": {"type": "reasoning", "text": "price"}},
                                        {"message_content": {"type": "text", "text": "A."}},
                                        {"message_content": {"type": "tool_use"}, **FIRST_CALL},
                                    ],
                                }
                            }
                        ],
                    }
                )
            )
        },
        ONE_TURN,
        calls=["ls", "pwd"],
    ),
)


def llm_span(number: int = 1, **fields: Any) -> dict:
    context = {"trace_id": "t", "span_id": f"s{number}"}
    return {
        "context": context,
        "span_kind": "LLM",
        "start_time": str(number),
        "attributes": {"llm": fields},
    }


def content_part(kind: str, **fields: Any) -> dict:
    return {"message_content": {"type": kind, **fields}}


CALL_PART = {
    **content_part("tool_use"),
    "tool_call": {"id": "c1", "function": {"name": "sh", "arguments": '{"c": "ls"}'}},
}
ASKED_IN_SPAN = [{"message": HI}]
IN_ORDER = [content_part("reasoning", text="price"), content_part("text", text="A."), CALL_PART]
DOTTED = {
    "context.trace_id": "t",
    "context.span_id": "s",
    "span_kind": "LLM",
    "attributes.llm.input_messages.0.message.role": "user",
    "attributes.llm.input_messages.0.message.content": "Hi",
    "attributes.llm.output_messages.0.message.role": "assistant",
    **{
        f"attributes.llm.output_messages.0.message.contents.0.{name}": value
        for name, value in {"message_content.type": "text", "message_content.text": "A."}.items()
    },
    **{
        f"attributes.llm.output_messages.0.message.contents.1.{name}": value
        for name, value in {
            "message_content.type": "tool_use",
            "tool_call.id": "c1",
            "tool_call.function.name": "sh",
            "tool_call.function.arguments": '{"c": "ls"}',
        }.items()
    },
}


def openinference_span(number: int, texts: list[str], answer: str) -> dict:
    fields = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    for n, words in enumerate(texts):
        fields[f"llm.input_messages.{n}.message.role"] = "assistant" if n % 2 else "user"
        fields[f"llm.input_messages.{n}.message.content"] = words
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "startTimeUnixNano": str(number),
        "attributes": otlp_attributes(**fields),
    }


test_spans_of_openinference = variations(
    Variation(
        "reasoning, text and a call in order",
        {
            "x.jsonl": lines(
                llm_span(
                    input_messages=ASKED_IN_SPAN,
                    output_messages=[{"message": {"role": "assistant", "contents": IN_ORDER}}],
                )
            )
        },
        ONE_TURN,
        format="phoenix",
        calls=["ls"],
    ),
    Variation(
        "the same call among the tool calls too",
        {
            "x.jsonl": lines(
                llm_span(
                    input_messages=ASKED_IN_SPAN,
                    output_messages=[
                        {
                            "message": {
                                "role": "assistant",
                                "contents": IN_ORDER,
                                "tool_calls": [{"tool_call": CALL_PART["tool_call"]}],
                            }
                        }
                    ],
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation("dotted names", {"x.jsonl": lines(DOTTED)}, ONE_TURN, calls=["ls"]),
    Variation(
        "a call of an older version",
        {
            "x.jsonl": lines(
                llm_span(
                    input_messages=ASKED_IN_SPAN,
                    output_messages=[
                        {
                            "message": {
                                "role": "assistant",
                                "content": "A.",
                                "function_call_name": "sh",
                                "function_call_arguments_json": '{"c": "ls"}',
                            }
                        }
                    ],
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a batch of OTLP in the order in which the spans ended",
        {
            "o.jsonl": lines(
                otlp_spans(
                    openinference_span(2, ["Hi", "A.", "More?"], "B."),
                    openinference_span(1, ["Hi"], "A."),
                )
            )
        },
        TWO_TURNS,
    ),
)
