"""Sessions of Goose: exports, lines and databases, in variations."""

import json
from typing import Any

from agent_databases import adk_row, database, goose_database, goose_row, visible
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    context_before_last_reply,
    lines,
    text,
    variations,
)

from holdfast.logs import read_logs


def message(role: str, *parts: Any, **fields: Any) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"id": None, "role": role, "created": 1760000000, "content": content, **fields}


def request(command: str, call: str = "c1") -> dict:
    value = {"name": "developer__shell", "arguments": {"command": command}}
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": value}}


def response(value: Any, call: str = "c1") -> dict:
    result = {"status": "success", "value": value}
    return {"type": "toolResponse", "id": call, "toolResult": result}


HEADER = {"working_dir": "/app", "description": "x", "message_count": 2}
HI, A = message("user", "Hi"), message("assistant", "A.")
MORE, B = message("user", "More?"), message("assistant", "B.")
GONE = {"metadata": visible(True, False)}
CALLED = message("assistant", request("ls"))
SUMMARY = message("user", "So far.", metadata=visible(False, True))
GO_ON = message(
    "assistant",
    "Your context was compacted. The previous message contains a summary",
    metadata=visible(False, True),
)
NOTICE = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacted"}
COMPACTED = [
    {**HI, **GONE},
    {**A, **GONE},
    {**MORE, "metadata": visible(False, False)},
    SUMMARY,
    GO_ON,
    message("user", "More?"),
    B,
]


def export(*messages: dict, **fields: Any) -> dict:
    return {"id": "20260101_1", "working_dir": "/app", "conversation": messages, **fields}


test_sessions_of_goose = variations(
    Variation("lines", {"s.jsonl": lines(HEADER, HI, A)}, ONE_TURN, format="goose"),
    Variation("lines without a header", {"s.jsonl": lines(HI, A, MORE, B)}, TWO_TURNS),
    Variation("an export", {"s.json": export(HI, A)}, ONE_TURN, format="goose"),
    Variation(
        "an empty export beside another", {"a.json": export(), "s.json": export(HI, A)}, ONE_TURN
    ),
    Variation(
        "a call",
        {
            "s.jsonl": lines(
                HEADER,
                HI,
                CALLED,
                message("user", response({"content": [text("a.py")], "isError": False})),
                A,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a result in its older form",
        {"s.jsonl": lines(HEADER, HI, CALLED, message("user", response([text("a.py")])), A)},
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a result that is an error",
        {
            "s.jsonl": lines(
                HEADER,
                HI,
                CALLED,
                message(
                    "user",
                    {
                        "type": "toolResponse",
                        "id": "c1",
                        "toolResult": {"status": "error", "error": "no"},
                    },
                ),
                A,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["no"],
    ),
    Variation(
        "a call with arguments that are not valid",
        {
            "s.jsonl": lines(
                HEADER,
                HI,
                message(
                    "assistant",
                    {
                        "type": "toolRequest",
                        "id": "c1",
                        "toolCall": {"status": "error", "error": "-32602: x"},
                    },
                ),
                A,
            )
        },
        ONE_TURN,
        calls=[],
    ),
    Variation(
        "a call without arguments",
        {
            "s.jsonl": lines(
                HEADER,
                HI,
                message(
                    "assistant",
                    {
                        "type": "toolRequest",
                        "id": "c1",
                        "toolCall": {"status": "success", "value": {"name": "todo__read"}},
                    },
                ),
                A,
            )
        },
        ONE_TURN,
        calls=[""],
    ),
    Variation(
        "thinking and notices",
        {
            "s.jsonl": lines(
                HEADER,
                HI,
                message(
                    "assistant",
                    {"type": "thinking", "thinking": "hm.", "signature": ""},
                    "A.",
                    NOTICE,
                ),
            )
        },
        ONE_TURN,
    ),
    Variation(
        "an image",
        {
            "s.jsonl": lines(
                HEADER,
                message("user", "Hi", {"type": "image", "data": "AA==", "mimeType": "image/png"}),
                A,
            )
        },
        ONE_TURN,
        problem="1 of the type 'image'",
    ),
    Variation(
        "a message without content",
        {"s.jsonl": lines(HEADER, HI, message("assistant"), A)},
        ONE_TURN,
    ),
    Variation(
        "what the program added",
        {"s.jsonl": lines(HEADER, message("user", "<info-msg>\nIt is noon.\n</info-msg>"), HI, A)},
        ONE_TURN,
        seen=["<info-msg>\nIt is noon.\n</info-msg>"],
    ),
    Variation("a compaction", {"s.jsonl": lines(HEADER, *COMPACTED)}, TWO_TURNS),
    Variation(
        "a compaction that the user asked for",
        {
            "s.jsonl": lines(
                HEADER,
                {**HI, **GONE},
                {**A, **GONE},
                message("user", "/compact", **GONE),
                SUMMARY,
                GO_ON,
                MORE,
                B,
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "a compaction while the agent works",
        {
            "s.jsonl": lines(
                HEADER,
                {**HI, **GONE},
                {**CALLED, **GONE},
                message("user", response([]), **GONE),
                SUMMARY,
                GO_ON,
                HI,
                A,
            )
        },
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a subagent", {"s.json": export(HI, A, session_type="sub_agent")}, ONE_TURN, subagents=1
    ),
    Variation(
        "a database",
        {"sessions.db": goose_database(goose_row(1, HI), goose_row(2, A))},
        ONE_TURN,
        format="goose",
    ),
    Variation(
        "a subagent in a database",
        {"sessions.db": goose_database(goose_row(1, HI), goose_row(2, A), kind="sub_agent")},
        ONE_TURN,
        subagents=1,
    ),
    Variation(
        "two sessions in a database",
        {
            "sessions.db": goose_database(
                goose_row(1, HI),
                goose_row(2, HI, "20260101_2"),
                goose_row(3, A),
                goose_row(4, message("assistant", "C."), "20260101_2"),
            )
        },
        [*ONE_TURN, [("Hi", "C.")]],
    ),
    Variation(
        "a compaction in a database",
        {
            "sessions.db": goose_database(
                *(goose_row(n, message) for n, message in enumerate(COMPACTED))
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "a message in a database that is not JSON",
        {
            "sessions.db": goose_database(
                goose_row(1, HI), {**goose_row(2, A), "content_json": "["}, goose_row(3, A)
            )
        },
        ONE_TURN,
        problem="message 2 is not JSON",
    ),
    Variation(
        "a database and the file that was copied into it",
        {
            "old.jsonl": lines(HEADER, HI, A),
            "sessions.db": goose_database(goose_row(1, HI), goose_row(2, A)),
        },
        ONE_TURN,
        problem="its only turn is in",
    ),
)


def test_the_context_of_goose_begins_again_after_a_compaction(tmp_path):
    path = tmp_path / "s.jsonl"
    long = message("user", "x" * 8000, **GONE)
    rows = [
        HEADER,
        long,
        {**A, **GONE},
        message("user", "/compact", **GONE),
        SUMMARY,
        GO_ON,
        MORE,
        B,
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (dialog,) = read_logs([path]).dialogs
    assert dialog.turns[1].tokens < 100


def test_calls_that_the_user_declined_in_goose_never_ran(tmp_path):
    path = tmp_path / "s.jsonl"
    declined = "The user has declined to run this tool. DO NOT attempt to call this tool again."
    rows = [HEADER, HI, CALLED, message("user", response([text(declined)])), A]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (dialog,) = read_logs([path]).dialogs
    assert not dialog.turns[0].done.calls


def test_databases_of_agents_are_found_in_folders(tmp_path):
    (tmp_path / "sessions.db").write_bytes(goose_database(goose_row(1, HI), goose_row(2, A)))
    (tmp_path / ".adk").mkdir()
    content = database(events=[adk_row(1, "user", "Hi"), adk_row(2, "shop", "A.")])
    (tmp_path / ".adk" / "session.db").write_bytes(content)
    assert read_logs([tmp_path]).formats == {"google-adk": 1, "goose": 1}


def message_for(role: str, *parts: Any, user: bool = True, agent: bool = True) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {
        "id": None,
        "role": role,
        "created": 1760000000,
        "content": content,
        "metadata": {"userVisible": user, "agentVisible": agent},
    }


def call_for(agent: bool = True) -> dict:
    value = {"name": "developer__shell", "arguments": {"command": "ls"}}
    call = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": value}}
    return message_for("assistant", call, agent=agent)


def result_for(*content: dict, agent: bool = True) -> dict:
    result = {"status": "success", "value": {"content": [*content], "isError": False}}
    return message_for(
        "user", {"type": "toolResponse", "id": "c1", "toolResult": result}, agent=agent
    )


HI_FOR_ALL, A_FOR_ALL = message_for("user", "Hi"), message_for("assistant", "A.")
CALL_SUMMARY = message_for("user", "A call to developer__shell listed a.py.", user=False)

test_sessions_of_goose_in_2026 = variations(
    Variation(
        "a result for the model and the same for the user",
        {
            "s.jsonl": lines(
                HI_FOR_ALL,
                call_for(),
                result_for(
                    {**text("a.py"), "annotations": {"audience": ["assistant"]}},
                    {**text("a.py"), "annotations": {"audience": ["user"], "priority": 0.0}},
                ),
                A_FOR_ALL,
            )
        },
        ONE_TURN,
        results=["a.py"],
    ),
    Variation(
        "an embedded resource",
        {
            "s.jsonl": lines(
                HI_FOR_ALL,
                call_for(),
                result_for(
                    {
                        "type": "resource",
                        "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "x = 1"},
                    }
                ),
                A_FOR_ALL,
            )
        },
        ONE_TURN,
        results=["x = 1"],
    ),
    Variation(
        "a resource without text",
        {
            "s.jsonl": lines(
                HI_FOR_ALL,
                call_for(),
                result_for(
                    text("x"),
                    {"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}},
                ),
                A_FOR_ALL,
            )
        },
        ONE_TURN,
        results=["x"],
        problem="1 of the type 'resource'",
    ),
    Variation(
        "the summary of an old call",
        {
            "s.jsonl": lines(
                HI_FOR_ALL,
                call_for(agent=False),
                result_for(text("a.py"), agent=False),
                A_FOR_ALL,
                CALL_SUMMARY,
                message_for("user", "More?"),
                message_for("assistant", "B."),
            )
        },
        TWO_TURNS,
        calls=["ls"],
        results=["a.py"],
        seen=["A call to developer__shell listed a.py."],
    ),
    Variation(
        "an empty message for the model alone",
        {
            "s.jsonl": lines(
                HI_FOR_ALL,
                call_for(agent=False),
                result_for(text("a.py"), agent=False),
                message_for("user", user=False),
                A_FOR_ALL,
            )
        },
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
)


def test_the_result_of_a_call_that_goose_summarised_left_the_context(tmp_path):
    log = lines(
        HI_FOR_ALL,
        call_for(agent=False),
        result_for(text("a.py"), agent=False),
        A_FOR_ALL,
        CALL_SUMMARY,
        message_for("user", "More?"),
        message_for("assistant", "B."),
    )
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == [
        "Hi",
        "A.",
        "A call to developer__shell listed a.py.",
        "More?",
    ]
