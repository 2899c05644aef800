"""Spans with OpenTelemetry's messages, in variations."""

import json

from log_variations import BRIEF, ONE_TURN, TWO_TURNS, Variation, file_text, lines, text, variations
from opentelemetry_messages import HI, SECOND_INPUT, A, B, message, messages, span, text_part

from holdfast.logs import read_logs


def spans(*values: dict) -> dict:
    return {"spans.jsonl": lines(*values)}


PROMPT = [text_part("Be brief.")]

SAME = span(**messages())

test_spans_of_opentelemetry = variations(
    Variation("a span", spans(span(**messages())), ONE_TURN, format="otel"),
    Variation(
        "messages that are no text",
        spans(span(input__messages=[HI], output__messages=[A])),
        ONE_TURN,
    ),
    Variation(
        "a prompt",
        spans(span(**messages(system_instructions=json.dumps(PROMPT)))),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a prompt among the messages",
        spans(span(**messages([message("system", *PROMPT), HI]))),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "reasoning",
        spans(
            span(
                **messages(
                    outputs=[
                        message(
                            "assistant", {"type": "reasoning", "content": "price"}, text_part("A.")
                        )
                    ]
                )
            )
        ),
        ONE_TURN,
    ),
    Variation(
        "a call",
        spans(
            span(
                **messages(
                    outputs=[
                        message(
                            "assistant",
                            {"type": "tool_call", "id": "c", "name": "f", "arguments": {"x": "ls"}},
                            text_part("A."),
                        )
                    ]
                )
            )
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a result",
        spans(
            span(
                **messages(
                    [
                        HI,
                        message(
                            "assistant",
                            {
                                "type": "tool_call",
                                "id": "c",
                                "name": "f",
                                "arguments": '{"x": "ls"}',
                            },
                        ),
                        message("tool", {"type": "tool_call_response", "id": "c", "response": "y"}),
                    ]
                )
            )
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "an image",
        spans(
            span(
                **messages(
                    [
                        message(
                            "user",
                            text_part("Hi"),
                            {
                                "type": "blob",
                                "modality": "image",
                                "mime_type": "image/png",
                                "content": "AA==",
                            },
                        )
                    ]
                )
            )
        ),
        ONE_TURN,
        problem="1 of the type 'blob'",
    ),
    Variation(
        "a longer call of the same trace",
        spans(span(**messages()), span("s2", start=2, **messages(SECOND_INPUT, [B]))),
        TWO_TURNS,
    ),
    Variation(
        "calls of two traces",
        spans(span(**messages()), span("s2", "t2", **messages(outputs=[B]))),
        [ONE_TURN[0], [("Hi", "B.")]],
    ),
    Variation(
        "a conversation of two traces",
        spans(
            span(**messages(conversation__id="c1")),
            span("s2", "t2", 2, **messages(SECOND_INPUT, [B], conversation__id="c1")),
        ),
        TWO_TURNS,
    ),
    Variation(
        "spans of other operations",
        spans(
            {**span(), "attributes": {"gen_ai.operation.name": "execute_tool"}}, span(**messages())
        ),
        ONE_TURN,
    ),
    Variation(
        "an agent's span beside its call",
        spans(
            {
                **span("s0", **messages()),
                "attributes": {
                    **span(**messages())["attributes"],
                    "gen_ai.operation.name": "invoke_agent",
                },
            },
            span(**messages()),
        ),
        ONE_TURN,
    ),
    Variation(
        "a span without messages",
        spans(span(), span("s2", "t2", **messages())),
        ONE_TURN,
        problem="no messages",
    ),
    Variation(
        "an end at the limit",
        spans(
            span(
                **messages(outputs=[message("assistant", text_part("A."), finish_reason="length")])
            )
        ),
        ONE_TURN,
        is_cut=True,
    ),
    Variation(
        "times that are text",
        spans(
            span("s2", start="2026-05-01T10:00:02Z", **messages(SECOND_INPUT, [B])),
            span(start="2026-05-01T10:00:01Z", **messages()),
        ),
        TWO_TURNS,
    ),
    Variation(
        "OpenLLMetry",
        spans(
            span(
                **{
                    "prompt__0__role": "system",
                    "prompt__0__content": "Be brief.",
                    "prompt__1__role": "user",
                    "prompt__1__content": "Hi",
                    "completion__0__role": "assistant",
                    "completion__0__content": "A.",
                    "completion__0__finish_reason": "stop",
                }
            )
        ),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "OpenLLMetry with a call",
        spans(
            span(
                **{
                    "prompt__0__role": "user",
                    "prompt__0__content": "Hi",
                    "completion__0__role": "assistant",
                    "completion__0__content": "A.",
                    "completion__0__tool_calls__0__id": "c",
                    "completion__0__tool_calls__0__name": "f",
                    "completion__0__tool_calls__0__arguments": '{"x": "ls"}',
                }
            )
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "OpenInference",
        spans(
            {
                "context": {"trace_id": "t", "span_id": "s"},
                "span_kind": "LLM",
                "start_time": "1",
                "attributes": {
                    "llm.input_messages.0.message.role": "user",
                    "llm.input_messages.0.message.content": "Hi",
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": "A.",
                },
            }
        ),
        ONE_TURN,
        format="phoenix",
    ),
    Variation(
        "OpenInference with contents",
        spans(
            {
                "context": {"trace_id": "t", "span_id": "s"},
                "span_kind": "LLM",
                "attributes": {
                    "llm": {
                        "input_messages": [
                            {
                                "message": {
                                    "role": "user",
                                    "contents": [
                                        {"message_content": {"type": "text", "text": "Hi"}}
                                    ],
                                }
                            }
                        ],
                        "output_messages": [
                            {
                                "message": {
                                    "role": "assistant",
                                    "content": "A.",
                                    "tool_calls": [
                                        {
                                            "tool_call": {
                                                "id": "c",
                                                "function": {
                                                    "name": "f",
                                                    "arguments": '{"x": "ls"}',
                                                },
                                            }
                                        }
                                    ],
                                }
                            }
                        ],
                    }
                },
            }
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation("a span that was exported twice", spans(SAME, SAME), ONE_TURN),
    Variation(
        "times with fewer digits",
        spans(span("s2", start=10, **messages(SECOND_INPUT, [B])), span(start=9, **messages())),
        TWO_TURNS,
    ),
    Variation(
        "times of two zones",
        spans(
            span("s2", start="2026-05-01T10:00:00+00:00", **messages(SECOND_INPUT, [B])),
            span(start="2026-05-01T11:00:00+02:00", **messages()),
        ),
        TWO_TURNS,
    ),
    Variation(
        "a failure, and again",
        spans(span(start=1, **messages(outputs=[])), span("s2", start=2, **messages())),
        ONE_TURN,
    ),
    Variation(
        "a fork in a trace",
        spans(
            span(**messages()),
            span("s2", start=2, **messages(SECOND_INPUT, [B])),
            span(
                "s3",
                start=3,
                **messages(
                    [*SECOND_INPUT[:2], message("user", text_part("Or?"))],
                    [message("assistant", text_part("C."))],
                ),
            ),
        ),
        [TWO_TURNS[0], [("Or?", "C.")]],
        problem="1 of its 2 turns",
    ),
    Variation(
        "spans without a trace",
        spans(
            {"attributes": span(**messages())["attributes"]},
            {"attributes": span(**messages(outputs=[B]))["attributes"]},
        ),
        [ONE_TURN[0], [("Hi", "B.")]],
    ),
    Variation(
        "a span of Vercel's AI SDK",
        spans(
            {
                "name": "ai.generateText.doGenerate",
                "traceId": "t",
                "spanId": "s",
                "attributes": {
                    "gen_ai.system": "openai",
                    "ai.prompt.messages": json.dumps(
                        [BRIEF, {"role": "user", "content": [text("Hi")]}]
                    ),
                    "ai.response.text": "A.",
                    "ai.response.toolCalls": json.dumps(
                        [{"toolCallId": "c", "toolName": "f", "input": {"x": "ls"}}]
                    ),
                },
            }
        ),
        ONE_TURN,
        calls=["ls"],
        system="Be brief.",
    ),
    Variation(
        "parts as JSON in a string",
        spans(
            span(
                **{
                    "prompt__0__role": "user",
                    "prompt__0__content": json.dumps([text("Hi")]),
                    "completion__0__role": "assistant",
                    "completion__0__content": "A.",
                }
            )
        ),
        ONE_TURN,
    ),
    Variation(
        "two answers to choose from",
        spans(span(**messages(outputs=[A, {**A, "parts": [text_part("B.")]}]))),
        ONE_TURN,
    ),
)


def test_turns_that_a_call_with_the_last_messages_repeats_count_once(tmp_path):
    why = [message("user", text_part("Why?"))]
    content = spans(
        span(**messages()),
        span("s2", start=2, **messages(SECOND_INPUT, [B])),
        span(
            "s3",
            start=3,
            **messages([*SECOND_INPUT[2:], B, *why], [message("assistant", text_part("C."))]),
        ),
        span(
            "s4",
            start=4,
            **messages([*why, message("assistant", text_part("C.")), *SECOND_INPUT[2:]], [B]),
        ),
    )
    path = tmp_path / "spans.jsonl"
    path.write_text(file_text(content["spans.jsonl"]))
    logs = read_logs([path])
    texts = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert texts == [TWO_TURNS[0], [("Why?", "C.")], [("More?", "B.")]]
