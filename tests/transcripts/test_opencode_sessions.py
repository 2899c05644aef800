"""Exports of opencode 1, in variations."""

from typing import Any

import pytest
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    check,
    context_before_last_reply,
    lines,
    variations,
)


def message(name: str, role: str, *parts: dict, created: int = 0, **info: Any) -> dict:
    return {
        "info": {
            "id": name,
            "sessionID": "ses_1",
            "role": role,
            "time": {"created": created},
            **info,
        },
        "parts": [*parts],
    }


def text_part(words: str, **fields: Any) -> dict:
    return {"id": f"prt_{words}", "type": "text", "text": words, **fields}


def call_part(command: str = "ls", status: str = "completed", **state: Any) -> dict:
    return {
        "id": "prt_c",
        "type": "tool",
        "callID": "c1",
        "tool": "bash",
        "state": {"status": status, "input": {"command": command}, **state},
    }


def session(*messages: dict, **info: Any) -> dict:
    return {"o.json": {"info": {"id": "ses_1", **info}, "messages": [*messages]}}


HI, A = (
    message("msg_1", "user", text_part("Hi"), created=1),
    message("msg_2", "assistant", text_part("A."), created=2),
)
MORE, B = (
    message("msg_3", "user", text_part("More?"), created=3),
    message("msg_4", "assistant", text_part("B."), created=4),
)
COMPACTED = message("msg_5", "user", {"id": "prt_5", "type": "compaction", "auto": True}, created=5)
SUMMARY = message(
    "msg_6", "assistant", text_part("Summary."), created=6, summary=True, finish="stop"
)

test_sessions_of_opencode = variations(
    Variation("a session", session(HI, A, MORE, B), TWO_TURNS, format="opencode"),
    Variation("a list of messages", {"o.json": [HI, A]}, ONE_TURN),
    Variation(
        "a command that the user ran",
        session(
            message(
                "msg_8",
                "user",
                text_part("The following tool was executed by the user", synthetic=True),
            ),
            message("msg_9", "assistant", call_part("git push", output="ok"), parentID="msg_8"),
            HI,
            A,
        ),
        ONE_TURN,
        calls=[],
        seen=["The following tool was executed by the user", "git push", "ok"],
    ),
    Variation(
        "parts for display",
        session(
            HI,
            message(
                "msg_2",
                "assistant",
                {"id": "p", "type": "step-start"},
                {"id": "q", "type": "reasoning", "text": "hm."},
                text_part("A."),
                {"id": "r", "type": "patch", "files": []},
            ),
        ),
        ONE_TURN,
    ),
    Variation(
        "a call",
        session(HI, message("msg_2", "assistant", call_part(output="x"), text_part("A."))),
        ONE_TURN,
        calls=["ls"],
        results=["x"],
    ),
    Variation(
        "a call that is running",
        session(HI, message("msg_2", "assistant", call_part(status="running"))),
        [[("Hi", "")]],
        calls=["ls"],
    ),
    Variation(
        "a call that failed",
        session(
            HI,
            message("msg_2", "assistant", call_part(status="error", error="no"), text_part("A.")),
        ),
        ONE_TURN,
        results=["no"],
    ),
    Variation(
        "text that is synthetic",
        session(message("msg_1", "user", text_part("Hi"), text_part("price", synthetic=True)), A),
        ONE_TURN,
        seen=["price"],
    ),
    Variation(
        "text that is ignored",
        session(message("msg_1", "user", text_part("Hi"), text_part("price", ignored=True)), A),
        ONE_TURN,
    ),
    Variation(
        "a revert",
        session(HI, A, MORE, B, revert={"messageID": "msg_3"}),
        ONE_TURN,
        problem="took back",
    ),
    Variation(
        "a revert of a part",
        session(
            HI,
            message("msg_2", "assistant", text_part("A."), text_part("B.")),
            revert={"messageID": "msg_2", "partID": "prt_B."},
        ),
        ONE_TURN,
        problem="took back",
    ),
    Variation(
        "an interruption",
        session(
            HI,
            message(
                "msg_2",
                "assistant",
                text_part("A."),
                error={"name": "MessageAbortedError", "data": {}},
            ),
            MORE,
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "an error",
        session(
            HI,
            message("msg_x", "assistant", error={"name": "APIError", "data": {"message": "429"}}),
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "a compaction",
        session(
            HI,
            A,
            COMPACTED,
            SUMMARY,
            message("msg_7", "user", text_part("Continue if you have next steps", synthetic=True)),
            message("msg_8", "assistant", text_part("B.")),
        ),
        [[("Hi", "A.\n\nB.")]],
    ),
    Variation(
        "a message that is sent again after a compaction",
        session(
            HI,
            A,
            MORE,
            message("msg_4", "assistant", error={"name": "ContextOverflowError", "data": {}}),
            COMPACTED,
            SUMMARY,
            message("msg_7", "user", text_part("More?")),
            message("msg_8", "assistant", text_part("B.")),
        ),
        TWO_TURNS,
        problem="sent again",
    ),
    Variation("a subagent", session(HI, A, parentID="ses_0"), ONE_TURN, subagents=1),
    Variation(
        "a reply that was cut",
        session(HI, message("msg_2", "assistant", text_part("A."), finish="length")),
        ONE_TURN,
        is_cut=True,
    ),
    Variation(
        "a part of an unknown type",
        session(HI, message("msg_2", "assistant", {"type": "new"}, text_part("A."))),
        ONE_TURN,
        problem="unknown type",
    ),
    Variation(
        "a file",
        session(
            message("msg_1", "user", text_part("Hi"), {"type": "file", "mime": "text/plain"}), A
        ),
        ONE_TURN,
    ),
    Variation(
        "a subtask",
        session(
            message("msg_1", "user", text_part("Hi"), {"type": "subtask", "prompt": "Count."}), A
        ),
        ONE_TURN,
        seen=["Count."],
    ),
    Variation(
        "messages of two sessions of opencode",
        {
            "o.jsonl": lines(
                HI, A, *({**m, "info": {**m["info"], "sessionID": "ses_2"}} for m in (MORE, B))
            )
        },
        [ONE_TURN[0], [("More?", "B.")]],
    ),
)

OLD = message(
    "msg_2",
    "assistant",
    call_part(output="price", time={"compacted": 25}),
    text_part("A."),
    created=20,
)


@pytest.mark.parametrize(
    ("messages", "texts"),
    [
        (
            [
                HI,
                OLD,
                message("msg_3", "user", text_part("More?"), created=30),
                message("msg_4", "assistant", text_part("B."), created=40),
            ],
            ["Hi", "A.", "More?"],
        ),
        ([HI, OLD], ["Hi", "price"]),
        (
            [
                HI,
                A,
                message("msg_5", "user", {"type": "compaction", "tail_start_id": "msg_2"}),
                SUMMARY,
                message("msg_7", "user", text_part("More?")),
                message("msg_8", "assistant", text_part("B.")),
            ],
            ["A.", "Summary.", "More?"],
        ),
        (
            [
                HI,
                A,
                COMPACTED,
                SUMMARY,
                message("msg_7", "user", text_part("More?")),
                message("msg_8", "assistant", text_part("B.")),
            ],
            ["Summary.", "More?"],
        ),
    ],
    ids=["a result is cleared", "cleared after the turn", "a kept tail", "no tail"],
)
def test_the_context_of_opencode_before_its_last_reply(messages, texts, tmp_path):
    content = session(*messages)["o.json"]
    assert context_before_last_reply(tmp_path, "o.json", content) == texts


def test_copies_in_a_fork_of_opencode_count_once(tmp_path):
    fork = [
        {**message, "info": {**message["info"], "id": f"{message['info']['id']}_new"}}
        for message in (HI, A, MORE, B)
    ]
    check(
        Variation(
            "",
            {
                "a.json": session(HI, A)["o.json"],
                "b.json": {"info": {"id": "ses_2"}, "messages": fork},
            },
            TWO_TURNS,
            problem="its only turn is in",
        ),
        tmp_path,
    )
