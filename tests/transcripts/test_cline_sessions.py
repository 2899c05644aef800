"""Sessions of Cline in summer 2026, in variations."""

import json
from typing import Any

from log_variations import ONE_TURN, Variation, text, variations

from holdfast.logs import read_logs


def message(role: str, *parts: Any, **fields: Any) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"id": "m", "role": role, "content": content, **fields}


def session(*messages: dict) -> dict:
    return {"version": 1, "agent": "lead", "sessionId": "s1", "messages": [*messages]}


def result(content: Any, **fields: Any) -> dict:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **fields}


HI = message("user", '<user_input mode="act">Hi</user_input>')
CALL = message(
    "assistant",
    {
        "type": "tool_use",
        "id": "t1",
        "name": "run_commands",
        "input": {"commands": ["ls"]},
    },
)
A = message("assistant", "A.")


def after_call(result: dict) -> dict:
    return {"s.messages.json": session(HI, CALL, message("user", result), A)}


test_sessions_of_cline_in_summer_2026 = variations(
    Variation(
        "results of operations",
        after_call(
            result(
                [
                    {"query": "ls", "result": "a.py", "success": True, "duration": 3},
                    {"query": "cat b", "result": "", "error": "no b", "success": False},
                ]
            )
        ),
        ONE_TURN,
        results=["a.py\nno b"],
    ),
    Variation(
        "a picture in the result of an operation",
        after_call(
            result(
                [
                    {
                        "query": "a.png",
                        "success": True,
                        "result": [
                            text("a.png"),
                            {"type": "image", "data": "AA==", "mediaType": "image/png"},
                        ],
                    }
                ]
            )
        ),
        ONE_TURN,
        results=["a.png"],
        problem="1 of the type 'image'",
    ),
    Variation(
        "a file that the user attached",
        {
            "s.messages.json": session(
                message(
                    "user",
                    '<user_input mode="act">Hi</user_input>',
                    {"type": "file", "path": "/x/a.py", "content": "price"},
                ),
                A,
            )
        },
        ONE_TURN,
        seen=['<file_content path="/x/a.py">\nprice\n</file_content>'],
    ),
    Variation(
        "a call that the user refused",
        after_call(
            result(json.dumps({"error": 'Tool "run_commands" was denied by user'}), is_error=True)
        ),
        ONE_TURN,
        calls=[],
    ),
    Variation(
        "a call that failed",
        after_call(result(json.dumps({"error": "exit code 1"}), is_error=True)),
        ONE_TURN,
        calls=["['ls'] ls"],
    ),
    Variation(
        "what was done since, which a compaction added",
        {
            "s.messages.json": session(
                message(
                    "user",
                    '<user_input mode="act">Hi</user_input>',
                    "<SYSTEM_NOTICE>\nEarlier context was compacted.</SYSTEM_NOTICE>",
                    metadata={"kind": "compaction", "displayRole": "system"},
                ),
                A,
            )
        },
        ONE_TURN,
        seen=["<SYSTEM_NOTICE>\nEarlier context was compacted.</SYSTEM_NOTICE>"],
    ),
    Variation(
        "what Cline put there",
        {
            "s.messages.json": session(
                HI,
                A,
                message("user", "Go on.", metadata={"kind": "completion_reminder"}),
                message("user", "price", metadata={"displayRole": "system", "userRunSpan": 0}),
                message("assistant", "B."),
            )
        },
        [[("Hi", "A.\n\nB.")]],
        seen=["Go on.", "price"],
    ),
    Variation(
        "a summary",
        {
            "s.messages.json": session(
                message(
                    "user",
                    "Context summary:\n\nSo far.",
                    metadata={"kind": "compaction_summary", "displayRole": "system"},
                ),
                HI,
                A,
            )
        },
        ONE_TURN,
        seen=[],
    ),
)


def test_the_files_beside_a_session_of_cline_are_no_dialogs(tmp_path):
    content = session(HI, A)
    compacted = {"version": 1, "source_message_count": 2, "messages": content["messages"]}
    manifest = {"version": 1, "session_id": "s1", "status": "completed", "prompt": "Hi"}
    for name, value in {"messages": content, "compaction": compacted}.items():
        (tmp_path / f"s1.{name}.json").write_text(json.dumps(value))
    (tmp_path / "s1.json").write_text(json.dumps(manifest))
    logs = read_logs([tmp_path])
    assert [dialog.source.rpartition("/")[2] for dialog in logs.dialogs] == [
        "s1.messages.json, entry 1"
    ]
    (problem,) = logs.problems
    assert "s1.compaction.json is the compacted context" in problem
