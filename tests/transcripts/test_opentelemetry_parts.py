"""Parts of OpenTelemetry's messages in 2026: tools of the provider, compactions, runs of agents."""

import json
from typing import Any

from log_variations import ONE_TURN, Variation, context_before_last_reply, lines, variations
from opentelemetry_messages import HI, A, part


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


def server_call(**fields: Any) -> dict:
    called = {
        "type": "server_tool_call",
        "id": "s1",
        "name": "web_search",
        "server_tool_call": {"type": "web_search", **fields},
    }
    answered = {
        "type": "server_tool_call_response",
        "id": "s1",
        "server_tool_call_response": {"type": "web_search", "response": "y"},
    }
    return {
        "role": "assistant",
        "parts": [called, answered, part("text", "A.")],
        "finish_reason": "stop",
    }


COMPACTED = {"role": "user", "parts": [part("compaction", "We spoke of Rome."), *HI["parts"]]}
CODE = {"executableCode": {"language": "PYTHON", "code": "ls"}}
CODE_RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "y"}}

test_parts_of_opentelemetry_and_gemini = variations(
    Variation(
        "a tool that the provider runs",
        {"o.jsonl": lines(chat_span([HI], [server_call(arguments={"query": "ls"})]))},
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "the arguments of such a tool as they are",
        {"o.jsonl": lines(chat_span([HI], [server_call(query="ls")]))},
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "alternatives whose reasons are in an attribute",
        {
            "o.jsonl": lines(
                chat_span(
                    [HI],
                    [{"role": "assistant", "parts": [part("text", words)]} for words in "AB"],
                    **{
                        "gen_ai.response.finish_reasons": ["stop", "length"],
                        "gen_ai.request.choice.count": 2,
                    },
                )
            )
        },
        [[("Hi", "A")]],
    ),
    Variation(
        "a run of an agent whose calls were not recorded",
        {"o.jsonl": lines(chat_span([HI], [A], "invoke_agent"))},
        ONE_TURN,
    ),
    Variation(
        "a run of an agent and its call",
        {
            "o.jsonl": lines(
                chat_span([HI], [{**A, "parts": [part("text", "A.")]}]),
                chat_span([HI], [A], "invoke_agent", "0x3"),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a run of an agent without messages",
        {
            "o.jsonl": lines(
                chat_span([HI], [A]),
                {
                    "context": {"trace_id": "0x1", "span_id": "0x3"},
                    "attributes": {"gen_ai.operation.name": "invoke_agent"},
                },
            )
        },
        ONE_TURN,
    ),
    Variation(
        "messages in an object with its version",
        {
            "o.jsonl": lines(
                chat_span(
                    {"version": "0.1.0", "messages": [HI]}, {"version": "0.1.0", "messages": [A]}
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "code that Gemini ran",
        {
            "g.json": {
                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
                "candidates": [
                    {"content": {"role": "model", "parts": [CODE, CODE_RESULT, {"text": "A."}]}}
                ],
            }
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "code that Gemini ran, as its SDK writes it",
        {
            "g.json": {
                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [
                                {"executable_code": CODE["executableCode"]},
                                {"code_execution_result": CODE_RESULT["codeExecutionResult"]},
                                {"text": "A."},
                            ],
                        }
                    }
                ],
            }
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
)


def test_a_compaction_in_a_message_of_opentelemetry_replaces_what_was_before_it(tmp_path):
    span = chat_span([HI, A, COMPACTED], [A])
    context = context_before_last_reply(tmp_path, "o.jsonl", lines(span))
    assert context == ["We spoke of Rome.", "Hi"]
