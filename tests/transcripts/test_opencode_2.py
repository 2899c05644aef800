"""Exports and databases of opencode 2, in variations."""

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    context_before_last_reply,
    text,
    variations,
)

from holdfast.logs import read_logs


def message(kind: str, number: int, **fields: Any) -> dict:
    return {"id": f"msg_{number}", "type": kind, "time": {"created": number}, **fields}


def call_part(status: str, **state: Any) -> dict:
    return {
        "type": "tool",
        "id": "c1",
        "name": "bash",
        "time": {"created": 1},
        "state": {"status": status, "input": {"command": "ls"}, **state},
    }


def reply(number: int, *content: dict, **fields: Any) -> dict:
    return message("assistant", number, agent="build", content=[*content], **fields)


def session(*messages: dict, **info: Any) -> dict:
    return {"o.json": {"info": {"id": "ses_1", **info}, "messages": [*messages]}}


HI, A = message("user", 1, text="Hi", files=[], agents=[]), reply(2, text("A."))
MORE, B = message("user", 5, text="More?"), reply(6, text("B."))
FILE = {"mime": "text/plain", "name": "a.txt", "data": base64.b64encode(b"price").decode()}

test_exports_of_opencode_2 = variations(
    Variation("two turns", session(HI, A, MORE, B), TWO_TURNS, format="opencode"),
    Variation(
        "a call and its result",
        session(
            HI,
            reply(
                2,
                {"type": "reasoning", "text": "price"},
                call_part("completed", content=[text("a.py")], metadata={}),
                text("A."),
            ),
        ),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a call that failed, and one that was cut off",
        session(
            HI,
            reply(
                2,
                call_part("error", error={"type": "unknown", "message": "no"}),
                {
                    **call_part("streaming"),
                    "id": "c2",
                    "state": {"status": "streaming", "input": '{"com'},
                },
                text("A."),
            ),
        ),
        ONE_TURN,
        calls=["ls", ""],
        results=["no"],
    ),
    Variation(
        "what opencode wrote, and a command of the user's",
        session(
            message("system", 0, text="Use pnpm."),
            HI,
            message("synthetic", 31, text="price"),
            message("skill", 32, skill="x", name="x", text="cost"),
            message("shell", 33, shellID="s", command="ls", output={"output": "a.py"}),
            A,
        ),
        ONE_TURN,
        seen=["Use pnpm.", "price", "cost", "ls\na.py"],
    ),
    Variation(
        "a file that the user attached",
        session({**HI, "files": [FILE, {"mime": "image/png", "data": "AA=="}]}, A),
        ONE_TURN,
        seen=["price"],
        problem="1 of the type 'image/png'",
    ),
    Variation(
        "messages for display",
        session(
            message("model-switched", 0, model={}),
            HI,
            A,
            message("agent-switched", 3, agent="x"),
            message("idle", 4, outcome="succeeded"),
            MORE,
            B,
        ),
        TWO_TURNS,
    ),
    Variation(
        "an interruption",
        session(HI, A, message("idle", 3, outcome="interrupted"), MORE, B),
        TWO_TURNS,
    ),
    Variation(
        "an error",
        session(
            HI, reply(3, finish="error", error={"type": "provider.transport", "message": "429"}), A
        ),
        ONE_TURN,
    ),
    Variation("an end at the limit", session(HI, {**A, "finish": "length"}), ONE_TURN, is_cut=True),
    Variation(
        "messages that were taken back",
        session(HI, A, MORE, B, revert={"messageID": "msg_5"}),
        ONE_TURN,
        problem="2 messages",
    ),
    Variation(
        "a message of an unknown type",
        session(HI, message("hologram", 3), A),
        ONE_TURN,
        problem="unknown type 'hologram'",
    ),
    Variation("a subagent", session(HI, A, parentID="ses_0"), ONE_TURN, subagents=1),
    Variation(
        "a call that a permission refused",
        session(
            HI,
            reply(
                2,
                call_part(
                    "error",
                    error={"type": "permission.rejected", "message": "Permission denied: bash"},
                ),
                text("A."),
            ),
        ),
        ONE_TURN,
        calls=[],
        results=["Permission denied: bash"],
    ),
    Variation(
        "a call that failed, with what it had written",
        session(
            HI,
            reply(
                2,
                call_part(
                    "error",
                    error={"type": "tool.execution", "message": "no"},
                    content=[text("a.py")],
                ),
                text("A."),
            ),
        ),
        ONE_TURN,
        calls=["ls"],
        results=["no\na.py"],
    ),
    Variation(
        "a picture in a result",
        session(
            HI,
            reply(
                2,
                call_part(
                    "completed",
                    content=[text("a.png"), {"type": "file", "uri": "data:", "mime": "image/png"}],
                ),
                text("A."),
            ),
        ),
        ONE_TURN,
        results=["a.png"],
        problem="1 of the type 'image/png'",
    ),
    Variation(
        "a result that is a value",
        session(
            HI,
            reply(
                2, call_part("completed", content=[], structured={"files": ["a.py"]}), text("A.")
            ),
        ),
        ONE_TURN,
        results=['{"files": ["a.py"]}'],
    ),
    Variation(
        "a folder that the user attached",
        session({**HI, "files": [{**FILE, "mime": "application/x-directory"}]}, A),
        ONE_TURN,
        seen=["price"],
    ),
    Variation(
        "a picture in a result of version 1",
        {
            "o.json": {
                "info": {"id": "s"},
                "messages": [
                    {"info": {"id": "m1", "role": "user"}, "parts": [text("Hi")]},
                    {
                        "info": {"id": "m2", "role": "assistant"},
                        "parts": [
                            {
                                "type": "tool",
                                "tool": "read",
                                "callID": "c1",
                                "state": {
                                    "status": "completed",
                                    "input": {"filePath": "a.png"},
                                    "output": "Read.",
                                    "attachments": [
                                        {"type": "file", "mime": "image/png", "url": "data:"}
                                    ],
                                },
                            },
                            text("A."),
                        ],
                    },
                ],
            }
        },
        ONE_TURN,
        results=["Read."],
        problem="1 of the type 'image/png'",
    ),
)


@pytest.mark.parametrize(
    ("status", "texts"), [("completed", ["Summary.\n\nrecent", "More?"]), ("failed", None)]
)
def test_a_compaction_of_opencode_2_replaces_the_context(status, texts, tmp_path):
    between = message("compaction", 3, status=status, summary="Summary.", recent="recent")
    content = session(HI, A, between, MORE, B)["o.json"]
    context = context_before_last_reply(tmp_path, "o.json", content)
    assert context == (texts or ["Hi", "A.", "More?"])


def opencode_database(path: Path, first: list[dict], later: list[dict]) -> None:
    """A database with messages of version 1 (with `info` and `parts`) and of version 2."""
    with sqlite3.connect(path) as database:
        if first:
            database.execute("CREATE TABLE session (id, parent_id, revert)")
            database.execute("CREATE TABLE message (id, session_id, time_created, data)")
            database.execute("CREATE TABLE part (id, message_id, session_id, data)")
        for number, message in enumerate(first):
            name, session = message["info"]["id"], message["info"]["sessionID"]
            row = (name, session, number, json.dumps(message["info"]))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for index, part in enumerate(message["parts"]):
                row = (f"prt_{number}_{index}", name, session, json.dumps(part))
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
        database.execute("CREATE TABLE session_v2 (id, parent_id, revert)")
        database.execute(
            "CREATE TABLE session_message (id, session_id, type, seq, time_created, data)"
        )
        for number, message in enumerate(later):
            fields = {n: v for n, v in message.items() if n not in ("id", "type", "session")}
            row = (
                message["id"],
                message["session"],
                message["type"],
                number,
                message["time"]["created"],
                json.dumps(fields),
            )
            database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
    database.close()


def of_version_1(session: str) -> list[dict]:
    return [
        {
            "info": {"id": f"msg_{session}_1", "sessionID": session, "role": "user"},
            "parts": [text("Hi")],
        },
        {
            "info": {"id": f"msg_{session}_2", "sessionID": session, "role": "assistant"},
            "parts": [text("A.")],
        },
    ]


def of_version_2(session: str, *messages: dict) -> list[dict]:
    return [{**message, "session": session} for message in messages]


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        ([], of_version_2("s2", HI, A), ONE_TURN),
        (of_version_1("s1"), of_version_2("s2", MORE, B), [ONE_TURN[0], [("More?", "B.")]]),
        (of_version_1("s1"), of_version_2("s1", HI, A, MORE, B), TWO_TURNS),
        (of_version_1("s1"), of_version_2("s1", message("agent-switched", 9)), ONE_TURN),
    ],
    ids=["version 2 alone", "a session of each", "a session that goes on", "bookkeeping alone"],
)
def test_the_tables_of_both_versions_of_opencode_are_read(first, later, expected, tmp_path):
    opencode_database(tmp_path / "opencode.db", first, later)
    logs = read_logs([tmp_path / "opencode.db"])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == expected and not logs.problems
