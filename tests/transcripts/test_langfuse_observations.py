"""Observations of Langfuse, in variations."""

import json
from typing import Any

from api_messages import CALL_RESULT, RESPONSE_MESSAGE, function_call
from log_variations import BRIEF, HI, ONE_TURN, TWO_TURNS, A, Variation, lines, variations


def generation(inputs: Any, outputs: Any, **fields: Any) -> dict:
    return {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "startTime": "1",
        "input": inputs,
        "output": outputs,
        **fields,
    }


test_observations_of_langfuse = variations(
    Variation("messages", {"x.jsonl": lines(generation([HI], A))}, ONE_TURN, format="langfuse"),
    Variation(
        "messages in an object",
        {"x.jsonl": lines(generation({"messages": [BRIEF, HI]}, A))},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation("texts", {"x.jsonl": lines(generation("Hi", "A."))}, ONE_TURN),
    Variation(
        "JSON in texts", {"x.jsonl": lines(generation(json.dumps([HI]), json.dumps(A)))}, ONE_TURN
    ),
    Variation("a list as the output", {"x.jsonl": lines(generation([HI], [A]))}, ONE_TURN),
    Variation(
        "no output",
        {"x.jsonl": lines(generation([HI], None), generation([HI], A, traceId="t2"))},
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "a trace with observations",
        {
            "x.json": [
                {
                    "id": "t",
                    "sessionId": "s",
                    "observations": [
                        generation([HI], A),
                        {"id": "o2", "type": "SPAN", "input": "price"},
                    ],
                }
            ]
        },
        ONE_TURN,
    ),
    Variation(
        "one trace", {"x.json": {"id": "t", "observations": [generation([HI], A)]}}, ONE_TURN
    ),
    Variation(
        "names with underscores",
        {
            "x.jsonl": lines(
                {
                    "id": "o",
                    "trace_id": "t",
                    "type": "GENERATION",
                    "start_time": "1",
                    "input": [HI],
                    "output": A,
                }
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a session",
        {
            "x.jsonl": lines(
                generation([HI], A, sessionId="s"),
                generation(
                    [HI, A, {"role": "user", "content": "More?"}],
                    {**A, "content": "B."},
                    traceId="t2",
                    sessionId="s",
                    startTime="2",
                ),
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "messages of LangChain",
        {
            "x.jsonl": lines(
                generation([{"type": "human", "content": "Hi"}], {"type": "ai", "content": "A."})
            )
        },
        ONE_TURN,
    ),
    Variation(
        "choices", {"x.jsonl": lines(generation([HI], {"choices": [{"message": A}]}))}, ONE_TURN
    ),
    Variation(
        "a call without words",
        {
            "x.jsonl": lines(
                generation(
                    [HI], {"role": "assistant", "content": None, "tool_calls": [function_call()]}
                )
            )
        },
        [[("Hi", "")]],
        calls=["ls"],
    ),
    Variation(
        "a reply as a text in an object",
        {"x.jsonl": lines(generation([HI], {"content": "A."}))},
        ONE_TURN,
    ),
    Variation(
        "a reply of Google's ADK",
        {
            "x.jsonl": lines(
                generation(
                    [HI],
                    {"content": {"role": "model", "parts": [{"text": "A."}]}, "usage_metadata": {}},
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a choice as it is",
        {"x.jsonl": lines(generation([HI], [{"index": 0, "role": "assistant", "message": A}]))},
        ONE_TURN,
    ),
    Variation(
        "a prompt that only the response has",
        {
            "x.jsonl": lines(
                generation(
                    [HI],
                    {
                        "id": "r",
                        "object": "response",
                        "instructions": "Be brief.",
                        "output": [RESPONSE_MESSAGE],
                    },
                )
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "messages in one text",
        {
            "x.jsonl": lines(
                generation("system: Be brief.\nuser: H\ni\nassistant: A.\nuser: More?", "B.")
            )
        },
        [[("H\ni", "A."), ("More?", "B.")]],
        system="Be brief.",
    ),
    Variation(
        "messages in one text, as LangChain writes them",
        {"x.jsonl": lines(generation("System: Be brief.\nHuman: Hi", "A."))},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "calls in LangChain's extra fields",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {
                            "role": "assistant",
                            "content": "",
                            "additional_kwargs": {"tool_calls": [function_call()]},
                        },
                        CALL_RESULT,
                    ],
                    A,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "tools among the messages",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {
                            "role": "tool",
                            "content": {"type": "function", "function": {"name": "f"}},
                        },
                    ],
                    A,
                )
            )
        },
        ONE_TURN,
        results=[],
    ),
    Variation(
        "calls as a content",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {"role": "tool", "content": json.dumps([function_call()])},
                        {"role": "tool", "content": "y"},
                    ],
                    A,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a tool's name as the role of its result",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {"role": "assistant", "content": "", "tool_calls": [function_call()]},
                        {"role": "f", "content": "y"},
                    ],
                    A,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "calls of Vercel's SDK",
        {
            "x.jsonl": lines(
                generation([HI], [{"toolCallId": "c", "toolName": "f", "input": {"x": "ls"}}])
            )
        },
        [[("Hi", "")]],
        calls=["ls"],
    ),
    Variation(
        "a call within a call",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation({"prompt": "Hi"}, "A.", id="o1"),
                    generation([BRIEF, HI], "A.", id="o2", parentObservationId="o1", startTime="2"),
                ],
            }
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a call that is not read, beside another",
        {
            "x.json": {
                "id": "t",
                "observations": [generation([None], "A.", id="o1"), generation([HI], A, id="o2")],
            }
        },
        ONE_TURN,
        problem="observation o1",
    ),
    Variation(
        "a call with results alone",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation(
                        [HI],
                        {"role": "assistant", "content": "", "tool_calls": [function_call()]},
                        id="o1",
                    ),
                    generation([CALL_RESULT], A, id="o2", startTime="2"),
                ],
            }
        },
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a reply as a completion",
        {"x.jsonl": lines(generation([HI], {"completion": "A."}))},
        ONE_TURN,
    ),
    Variation(
        "a later call that begins with a call of a tool",
        {
            "x.jsonl": lines(
                generation([HI], A),
                generation(
                    [
                        {"role": "assistant", "content": None, "tool_calls": [function_call()]},
                        CALL_RESULT,
                    ],
                    {**A, "content": "B."},
                    startTime="2",
                ),
            )
        },
        [ONE_TURN[0], [("", "B.")]],
        calls=["ls"],
    ),
    Variation(
        "a call within a call, which is not read",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([HI], A, id="o1"),
                    generation([3], A, id="o2", parentObservationId="o1", startTime="2"),
                ],
            }
        },
        ONE_TURN,
        problem="observation o2",
    ),
    Variation(
        "a call within a call, with another input",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([BRIEF, HI], A, id="o1"),
                    generation(
                        [{**HI, "content": "Judge this: A."}],
                        {**A, "content": "safe"},
                        id="o2",
                        parentObservationId="o1",
                        startTime="2",
                    ),
                ],
            }
        },
        [ONE_TURN[0], [("Judge this: A.", "safe")]],
    ),
    Variation(
        "a call within a call, without an answer",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([HI], A, id="o1"),
                    generation([HI], None, id="o2", parentObservationId="o1", startTime="2"),
                ],
            }
        },
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "a call within a call, with an empty answer",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([HI], A, id="o1"),
                    generation([HI], "", id="o2", parentObservationId="o1", startTime="2"),
                ],
            }
        },
        [ONE_TURN[0], [("Hi", "")]],
    ),
    Variation(
        "a call within a call, with another answer",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([HI], {**A, "content": "B."}, id="o1"),
                    generation([HI], A, id="o2", parentObservationId="o1", startTime="2"),
                ],
            }
        },
        ONE_TURN,
        problem="observation o1: left out, since o2 within it has the same input",
    ),
    Variation(
        "calls within each other",
        {
            "x.json": {
                "id": "t",
                "observations": [
                    generation([HI], A, id="o1", parentObservationId="o2"),
                    generation([HI], A, id="o2", parentObservationId="o1"),
                ],
            }
        },
        ONE_TURN,
    ),
    Variation(
        "calls as the content of a result",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {"role": "assistant", "content": "", "tool_calls": [function_call()]},
                        {"role": "tool", "content": json.dumps([function_call()])},
                    ],
                    A,
                )
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=[json.dumps([function_call()])],
    ),
    Variation(
        "calls as the content of a user's message",
        {
            "x.jsonl": lines(
                generation([{"role": "user", "content": json.dumps([function_call()])}], A)
            )
        },
        [[(json.dumps([function_call()]), "A.")]],
    ),
    Variation(
        "a tool named user",
        {
            "x.jsonl": lines(
                generation(
                    [
                        HI,
                        {"role": "assistant", "content": "", "tool_calls": [function_call("user")]},
                        CALL_RESULT,
                        A,
                        {"role": "user", "content": "More?"},
                    ],
                    {**A, "content": "B."},
                )
            )
        },
        TWO_TURNS,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a user's message that begins like a label",
        {"x.jsonl": lines(generation("System: macOS 14. How do I update?", "A."))},
        [[("System: macOS 14. How do I update?", "A.")]],
    ),
    Variation(
        "a user's message with a label in it",
        {"x.jsonl": lines(generation("user: is a field\nuser: must be set", "A."))},
        [[("user: is a field\nuser: must be set", "A.")]],
    ),
    Variation(
        "an observation that was exported twice",
        {"x.jsonl": lines(generation([HI], A), generation([HI], A))},
        ONE_TURN,
    ),
    Variation(
        "a session in two exports",
        {
            "a.jsonl": lines(generation([HI], A, sessionId="s")),
            "b.jsonl": lines(
                generation(
                    [HI, A, {"role": "user", "content": "More?"}],
                    {**A, "content": "B."},
                    sessionId="s",
                    startTime="2",
                )
            ),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
)
