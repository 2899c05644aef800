"""States of LangGraph, in variations."""

from typing import Any

from log_variations import ONE_TURN, TWO_TURNS, Variation, lines, variations


def message(kind: str, words: Any, **fields: Any) -> dict:
    return {"type": kind, "content": words, "additional_kwargs": {}, "id": words, **fields}


def state(*messages: dict, step: int = 1, **fields: Any) -> dict:
    thread = {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": f"k{step}"}
    return {
        "values": {"messages": messages},
        "next": [],
        "tasks": [],
        "metadata": {"step": step},
        "checkpoint": thread,
        "created_at": f"2026-10-01T10:00:0{step}Z",
        **fields,
    }


BRIEF, HI, A = message("system", "Be brief."), message("human", "Hi"), message("ai", "A.")
MORE, B = message("human", "More?"), message("ai", "B.")
SNAPSHOT = {**state(HI, A), "config": {"configurable": {"thread_id": "t1"}}}
del SNAPSHOT["checkpoint"]
WITHIN = {"name": "worker", "state": state(HI, A)}

test_states_of_langgraph = variations(
    Variation(
        "a state", {"s.json": state(BRIEF, HI, A)}, ONE_TURN, system="Be brief.", format="langgraph"
    ),
    Variation(
        "a history, the latest first",
        {
            "s.json": [
                state(HI, A, MORE, B, step=4),
                state(HI, A, MORE, step=3),
                state(HI, A, step=2),
                state(HI, step=1),
                state(step=0),
            ]
        },
        TWO_TURNS,
    ),
    Variation(
        "a state per line",
        {"s.jsonl": lines(state(HI, A), state(HI, A, MORE, B, step=2))},
        TWO_TURNS,
    ),
    Variation(
        "a thread",
        {"t.json": {"thread_id": "t1", "status": "idle", "values": {"messages": [HI, A]}}},
        ONE_TURN,
    ),
    Variation("a snapshot", {"s.json": SNAPSHOT}, ONE_TURN, format="langgraph"),
    Variation("messages as the values", {"s.json": {**state(), "values": [HI, A]}}, ONE_TURN),
    Variation(
        "serialised objects",
        {
            "s.json": state(
                *(
                    {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["langchain_core", "messages", name],
                        "kwargs": {"content": words},
                    }
                    for name, words in (("HumanMessage", "Hi"), ("AIMessage", "A."))
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "two threads",
        {
            "s.jsonl": lines(
                state(HI, A), state(HI, message("ai", "C."), checkpoint={"thread_id": "t2"})
            )
        },
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "a subgraph",
        {"s.json": state(HI, A, tasks=[WITHIN])},
        ONE_TURN,
        problem="left out the messages of the subgraph 'worker'",
    ),
    Variation(
        "no messages",
        {"s.json": {**state(), "values": {"total": 1}}},
        refused="its only value is not a state with messages",
    ),
    Variation(
        "messages of a graph alone",
        {"s.json": {"messages": [HI, A], "remaining_steps": 24}},
        ONE_TURN,
        format="openai",
    ),
)
