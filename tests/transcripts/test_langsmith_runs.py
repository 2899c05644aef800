"""Runs of LangSmith, in variations."""

import json
from typing import Any

from log_variations import HI, ONE_TURN, TWO_TURNS, A, Variation, lines, variations


def run(inputs: Any, outputs: Any, **fields: Any) -> dict:
    return {
        "id": "r",
        "run_type": "llm",
        "trace_id": "t",
        "start_time": "1",
        "inputs": inputs,
        "outputs": outputs,
        **fields,
    }


LANGCHAIN_HI = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "HumanMessage"],
    "kwargs": {"content": "Hi"},
}
LANGCHAIN_A = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "A.", "tool_calls": []},
}


BULK = run(
    inputs=json.dumps({"messages": [HI]}),
    outputs=json.dumps({"choices": [{"message": A}]}),
    extra=json.dumps({"metadata": {"thread_id": "s"}}),
)


test_runs_of_langsmith = variations(
    Variation(
        "a batch of messages",
        {
            "x.jsonl": lines(
                run(
                    {"messages": [[LANGCHAIN_HI]]},
                    {"generations": [[{"text": "A.", "message": LANGCHAIN_A}]]},
                )
            )
        },
        ONE_TURN,
        format="langsmith",
    ),
    Variation(
        "choices",
        {"x.jsonl": lines(run({"messages": [HI]}, {"choices": [{"message": A}]}))},
        ONE_TURN,
    ),
    Variation("a message", {"x.jsonl": lines(run({"messages": [HI]}, {"message": A}))}, ONE_TURN),
    Variation(
        "messages as the output",
        {"x.jsonl": lines(run({"messages": [HI]}, {"messages": [A]}))},
        ONE_TURN,
    ),
    Variation(
        "prompts",
        {"x.jsonl": lines(run({"prompts": ["Hi"]}, {"generations": [[{"text": "A."}]]}))},
        ONE_TURN,
    ),
    Variation("a role and content", {"x.jsonl": lines(run({"messages": [HI]}, A))}, ONE_TURN),
    Variation(
        "runs of other types",
        {"x.jsonl": lines(run({}, {}, run_type="tool"), run({"messages": [HI]}, A))},
        ONE_TURN,
    ),
    Variation(
        "a tree of runs",
        {
            "x.json": {
                "id": "c",
                "run_type": "chain",
                "inputs": {},
                "outputs": {},
                "child_runs": [run({"messages": [HI]}, A)],
            }
        },
        ONE_TURN,
    ),
    Variation(
        "no output",
        {
            "x.jsonl": lines(
                run({"messages": [HI]}, None, error="429"),
                run({"messages": [HI]}, A, id="r2", trace_id="t2"),
            )
        },
        ONE_TURN,
        problem="the assistant says nothing",
    ),
    Variation(
        "a thread",
        {
            "x.jsonl": lines(
                run({"messages": [HI]}, A, extra={"metadata": {"thread_id": "s"}}),
                run(
                    {"messages": [HI, A, {"role": "user", "content": "More?"}]},
                    {**A, "content": "B."},
                    id="r2",
                    trace_id="t2",
                    start_time="2",
                    extra={"metadata": {"thread_id": "s"}},
                ),
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "an output that is text",
        {"x.jsonl": lines(run({"messages": [HI]}, {"output": "A."}))},
        ONE_TURN,
    ),
    Variation("a bulk export of LangSmith", {"x.jsonl": lines(BULK)}, ONE_TURN, format="langsmith"),
    Variation(
        "a page of LangSmith's interface",
        {
            "x.json": {
                "runs": [run(inputs={"messages": [HI]}, outputs=A)],
                "cursors": {"next": None},
            }
        },
        ONE_TURN,
    ),
)
