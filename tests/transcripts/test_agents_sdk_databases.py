"""Databases of OpenAI's Agents SDK, in variations."""

import json
from typing import Any

from agent_databases import database
from log_variations import ONE_TURN, TWO_TURNS, Variation, variations


def item(number: int, value: Any, session: str = "u7") -> dict:
    data = value if isinstance(value, str) else json.dumps(value)
    return {"id": number, "session_id": session, "message_data": data, "created_at": "2026-09-10"}


def output(words: str) -> dict:
    part = {"type": "output_text", "text": words, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def on_branch(number: int, message: int, branch: str) -> dict:
    row = {"id": number, "session_id": "u7", "message_id": message, "branch_id": branch}
    return {**row, "message_type": "user", "sequence_number": number}


HI, A = {"role": "user", "content": "Hi"}, output("A.")
MORE = {"role": "user", "content": "More?"}
WHY = {"role": "user", "content": "Why?"}

test_databases_of_the_agents_sdk = variations(
    Variation(
        "a session",
        {"chat.db": database(agent_messages=[item(1, HI), item(2, A)])},
        ONE_TURN,
        format="openai-agents",
    ),
    Variation(
        "two sessions",
        {
            "chat.sqlite": database(
                agent_messages=[
                    item(1, HI),
                    item(2, HI, "u8"),
                    item(3, A),
                    item(4, output("C."), "u8"),
                ]
            )
        },
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "a call",
        {
            "chat.db": database(
                agent_messages=[
                    item(1, HI),
                    item(
                        2,
                        {
                            "type": "function_call",
                            "call_id": "c",
                            "name": "shell",
                            "arguments": '{"command": "ls"}',
                        },
                    ),
                    item(3, {"type": "function_call_output", "call_id": "c", "output": "a.py"}),
                    item(4, A),
                ]
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "an item that is not JSON",
        {"chat.db": database(agent_messages=[item(1, HI), item(2, "{"), item(3, A)])},
        ONE_TURN,
        problem="item 2 is not JSON",
    ),
    Variation(
        "an item that is encrypted",
        {
            "chat.db": database(
                agent_messages=[
                    item(1, HI),
                    item(2, {"__enc__": 1, "v": 1, "payload": "x"}),
                    item(3, A),
                ]
            )
        },
        ONE_TURN,
        problem="item 2 is encrypted",
    ),
    Variation(
        "branches",
        {
            "chat.db": database(
                agent_messages=[
                    item(1, HI),
                    item(2, A),
                    item(3, WHY),
                    item(4, output("C.")),
                    item(5, MORE),
                    item(6, output("B.")),
                ],
                message_structure=[
                    *(on_branch(n, n, "main") for n in range(1, 5)),
                    on_branch(5, 1, "b"),
                    on_branch(6, 2, "b"),
                    on_branch(7, 5, "b"),
                    on_branch(8, 6, "b"),
                ],
            )
        },
        TWO_TURNS,
        problem="left out 2 items of branches that were given up",
    ),
)
