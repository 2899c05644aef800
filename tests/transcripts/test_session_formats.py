"""Sessions of Gemini CLI's stream, of Goose, and in the databases of libraries, in variations.

Where each schema was read is in tests/data/logs/README.md.
"""

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from log_variations import ONE, TWO, Variation, lines, text, variations

from holdfast.logs import read_logs


def database(**tables: list[dict[str, Any]]) -> bytes:
    """A database with these tables, whose columns are the fields of their first rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.db")
        db = sqlite3.connect(path)
        for name, rows in tables.items():
            columns = [*rows[0]]
            db.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT INTO {name} VALUES ({marks})", [[*r.values()] for r in rows])
        db.commit()
        db.close()
        return path.read_bytes()


# Gemini CLI's stream


def gs(kind: str, **fields: Any) -> dict:
    return {"type": kind, "timestamp": "2026-09-10T10:00:00.000Z", **fields}


def said(role: str, content: str, **fields: Any) -> dict:
    return gs("message", role=role, content=content, **fields)


INIT = gs("init", session_id="s1", model="gemini-3-pro")
ASKED = said("user", "Hi")
ANSWERED = said("assistant", "A.", delta=True)
DONE = gs("result", status="success", stats={"total_tokens": 9})
SHELL = gs("tool_use", tool_name="run_shell_command", tool_id="t1", parameters={"command": "ls"})


def returned(**fields: Any) -> dict:
    return gs("tool_result", tool_id="t1", **fields)


test_the_stream_of_gemini_cli = variations(
    Variation("a turn", {"l.jsonl": lines(INIT, ASKED, ANSWERED, DONE)}, ONE,
              format="gemini-cli-stream"),
    Variation("a reply in parts", {"l.jsonl": lines(
        INIT, ASKED, said("assistant", "A", delta=True), said("assistant", ".", delta=True),
        DONE)}, ONE),
    Variation("whole replies", {"l.jsonl": lines(
        INIT, ASKED, said("assistant", "A."), said("assistant", "B."), DONE)},
        [[("Hi", "A.\n\nB.")]]),
    Variation("a call between parts of a reply", {"l.jsonl": lines(
        INIT, ASKED, said("assistant", "A", delta=True), SHELL,
        returned(status="success", output="a.py"), said("assistant", "B", delta=True), DONE)},
        [[("Hi", "A\n\nB")]], calls=["ls"], results=["a.py"]),
    Variation("a call that failed", {"l.jsonl": lines(INIT, ASKED, SHELL, returned(
        status="error", output="no", error={"type": "shell_execute_error", "message": "no"}),
        ANSWERED, DONE)}, ONE, calls=["ls"], results=["no"]),
    Variation("a warning and an error", {"l.jsonl": lines(
        INIT, ASKED, gs("error", severity="warning", message="Loop detected"), ANSWERED,
        gs("result", status="error", error={"type": "X", "message": "Too many turns"}))}, ONE),
    Variation("two sessions", {"l.jsonl": lines(
        INIT, ASKED, ANSWERED, DONE, {**INIT, "session_id": "s2"}, ASKED, ANSWERED)}, [*ONE, *ONE]),
    Variation("a stream that was cut", {"l.jsonl": lines(INIT, ASKED, ANSWERED, '{"type": "res')},
              ONE, problem="line 4: it is not JSON"),
    Variation("text before the stream", {"l.jsonl": lines(
        "Loaded cached credentials.", INIT, ASKED, ANSWERED)}, ONE,
        problem="line 1: it is not JSON"),
    Variation("a content that is no text", {"l.jsonl": lines(INIT, ASKED, {
        **ANSWERED, "content": None}, ANSWERED)}, ONE, problem="is in no known format"),
)  # fmt: skip


def test_calls_that_gemini_cli_did_not_run_are_marked_in_its_stream(tmp_path):
    errors = [
        {"type": "policy_violation", "message": "Tool execution denied by policy."},
        {"type": "invalid_tool_params", "message": "params must have required property"},
        {"type": "shell_execute_error", "message": "exit code 1"},
    ]
    for number, error in enumerate(errors):
        path = tmp_path / f"{number}.jsonl"
        rows = [INIT, ASKED, SHELL, returned(status="error", error=error), ANSWERED]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dialogs = read_logs([tmp_path]).dialogs
    assert [len(dialog.turns[0].done.calls) for dialog in dialogs] == [0, 0, 1]


# Goose


def goose(role: str, *parts: Any, **fields: Any) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"id": None, "role": role, "created": 1760000000, "content": content, **fields}


def visible(to_user: bool, to_agent: bool) -> dict:
    return {"userVisible": to_user, "agentVisible": to_agent}


def request(command: str, call: str = "c1") -> dict:
    value = {"name": "developer__shell", "arguments": {"command": command}}
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": value}}


def response(value: Any, call: str = "c1") -> dict:
    result = {"status": "success", "value": value}
    return {"type": "toolResponse", "id": call, "toolResult": result}


HEADER = {"working_dir": "/app", "description": "x", "message_count": 2}
HI, A = goose("user", "Hi"), goose("assistant", "A.")
MORE, B = goose("user", "More?"), goose("assistant", "B.")
GONE = {"metadata": visible(True, False)}
CALLED = goose("assistant", request("ls"))
SUMMARY = goose("user", "So far.", metadata=visible(False, True))
GO_ON = goose("assistant", "Your context was compacted. The previous message contains a summary",
              metadata=visible(False, True))  # fmt: skip
NOTICE = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacted"}
COMPACTED = [
    {**HI, **GONE}, {**A, **GONE}, {**MORE, "metadata": visible(False, False)}, SUMMARY, GO_ON,
    goose("user", "More?"), B,
]  # fmt: skip


def export(*messages: dict, **fields: Any) -> dict:
    return {"id": "20260101_1", "working_dir": "/app", "conversation": messages, **fields}


def goose_row(number: int, message: dict, session: str = "20260101_1", **fields: Any) -> dict:
    row = {"id": number, "message_id": f"m{number}", "session_id": session, "role": message["role"]}
    row |= {"content_json": json.dumps(message["content"]), "created_timestamp": 1760000000}
    return {**row, "metadata_json": json.dumps(message.get("metadata", visible(True, True)))}


def goose_database(*rows: dict, kind: str = "user") -> bytes:
    session = {"id": "20260101_1", "name": "x", "working_dir": "/app", "session_type": kind}
    return database(sessions=[session], messages=[*rows], schema_version=[{"version": 12}])


test_sessions_of_goose = variations(
    Variation("lines", {"s.jsonl": lines(HEADER, HI, A)}, ONE, format="goose"),
    Variation("lines without a header", {"s.jsonl": lines(HI, A, MORE, B)}, TWO),
    Variation("an export", {"s.json": export(HI, A)}, ONE, format="goose"),
    Variation("an empty export beside another", {"a.json": export(), "s.json": export(HI, A)}, ONE),
    Variation("a call", {"s.jsonl": lines(HEADER, HI, CALLED, goose(
        "user", response({"content": [text("a.py")], "isError": False})), A)}, ONE, calls=["ls"],
        results=["a.py"]),
    Variation("a result in its older form", {"s.jsonl": lines(HEADER, HI, CALLED, goose(
        "user", response([text("a.py")])), A)}, ONE, calls=["ls"], results=["a.py"]),
    Variation("a result that is an error", {"s.jsonl": lines(HEADER, HI, CALLED, goose("user", {
        "type": "toolResponse", "id": "c1", "toolResult": {"status": "error", "error": "no"}}),
        A)}, ONE, calls=["ls"], results=["no"]),
    Variation("a call with arguments that are not valid", {"s.jsonl": lines(HEADER, HI, goose(
        "assistant", {"type": "toolRequest", "id": "c1", "toolCall": {
            "status": "error", "error": "-32602: x"}}), A)}, ONE, calls=[]),
    Variation("a call without arguments", {"s.jsonl": lines(HEADER, HI, goose("assistant", {
        "type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {
            "name": "todo__read"}}}), A)}, ONE, calls=[""]),
    Variation("thinking and notices", {"s.jsonl": lines(HEADER, HI, goose(
        "assistant", {"type": "thinking", "thinking": "hm.", "signature": ""}, "A.", NOTICE))},
        ONE),
    Variation("an image", {"s.jsonl": lines(HEADER, goose(
        "user", "Hi", {"type": "image", "data": "AA==", "mimeType": "image/png"}), A)}, ONE,
        problem="1 of the type 'image'"),
    Variation("a message without content", {"s.jsonl": lines(HEADER, HI, goose("assistant"), A)},
              ONE),
    Variation("what the program added", {"s.jsonl": lines(HEADER, goose(
        "user", "<info-msg>\nIt is noon.\n</info-msg>"), HI, A)}, ONE,
        seen=["<info-msg>\nIt is noon.\n</info-msg>"]),
    Variation("a compaction", {"s.jsonl": lines(HEADER, *COMPACTED)}, TWO),
    Variation("a compaction that the user asked for", {"s.jsonl": lines(
        HEADER, {**HI, **GONE}, {**A, **GONE}, goose("user", "/compact", **GONE), SUMMARY, GO_ON,
        MORE, B)}, TWO),
    Variation("a compaction while the agent works", {"s.jsonl": lines(
        HEADER, {**HI, **GONE}, {**CALLED, **GONE}, goose("user", response([]), **GONE), SUMMARY,
        GO_ON, HI, A)}, ONE, calls=["ls"]),
    Variation("a subagent", {"s.json": export(HI, A, session_type="sub_agent")}, ONE, subagents=1),
    Variation("a database", {"sessions.db": goose_database(goose_row(1, HI), goose_row(2, A))}, ONE,
              format="goose"),
    Variation("a subagent in a database", {"sessions.db": goose_database(
        goose_row(1, HI), goose_row(2, A), kind="sub_agent")}, ONE, subagents=1),
    Variation("two sessions in a database", {"sessions.db": goose_database(
        goose_row(1, HI), goose_row(2, HI, "20260101_2"), goose_row(3, A),
        goose_row(4, goose("assistant", "C."), "20260101_2"))}, [*ONE, [("Hi", "C.")]]),
    Variation("a compaction in a database", {"sessions.db": goose_database(
        *(goose_row(n, message) for n, message in enumerate(COMPACTED)))}, TWO),
    Variation("a message in a database that is not JSON", {"sessions.db": goose_database(
        goose_row(1, HI), {**goose_row(2, A), "content_json": "["}, goose_row(3, A))}, ONE,
        problem="message 2 is not JSON"),
    Variation("a database and the file that was copied into it", {
        "old.jsonl": lines(HEADER, HI, A),
        "sessions.db": goose_database(goose_row(1, HI), goose_row(2, A))}, ONE,
        problem="its only turn is in"),
)  # fmt: skip


def test_the_context_of_goose_begins_again_after_a_compaction(tmp_path):
    path = tmp_path / "s.jsonl"
    long = goose("user", "x" * 8000, **GONE)
    rows = [HEADER, long, {**A, **GONE}, goose("user", "/compact", **GONE), SUMMARY, GO_ON, MORE, B]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (dialog,) = read_logs([path]).dialogs
    assert dialog.turns[1].tokens < 100


def test_calls_that_the_user_declined_in_goose_never_ran(tmp_path):
    path = tmp_path / "s.jsonl"
    declined = "The user has declined to run this tool. DO NOT attempt to call this tool again."
    rows = [HEADER, HI, CALLED, goose("user", response([text(declined)])), A]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (dialog,) = read_logs([path]).dialogs
    assert not dialog.turns[0].done.calls


# OpenAI's Agents SDK


def item(number: int, value: Any, session: str = "u7") -> dict:
    data = value if isinstance(value, str) else json.dumps(value)
    return {"id": number, "session_id": session, "message_data": data, "created_at": "2026-09-10"}


def output(words: str) -> dict:
    part = {"type": "output_text", "text": words, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def on_branch(number: int, message: int, branch: str) -> dict:
    row = {"id": number, "session_id": "u7", "message_id": message, "branch_id": branch}
    return {**row, "message_type": "user", "sequence_number": number}


QUESTION, REPLY = {"role": "user", "content": "Hi"}, output("A.")
FOLLOW_UP = {"role": "user", "content": "More?"}
OTHER = {"role": "user", "content": "Why?"}

test_databases_of_the_agents_sdk = variations(
    Variation("a session", {"chat.db": database(agent_messages=[
        item(1, QUESTION), item(2, REPLY)])}, ONE, format="openai-agents"),
    Variation("two sessions", {"chat.sqlite": database(agent_messages=[
        item(1, QUESTION), item(2, QUESTION, "u8"), item(3, REPLY), item(4, output("C."), "u8")])},
        [*ONE, [("Hi", "C.")]]),
    Variation("a call", {"chat.db": database(agent_messages=[
        item(1, QUESTION), item(2, {"type": "function_call", "call_id": "c", "name": "shell",
                                    "arguments": '{"command": "ls"}'}),
        item(3, {"type": "function_call_output", "call_id": "c", "output": "a.py"}),
        item(4, REPLY)])}, ONE, calls=["ls"], results=["a.py"]),
    Variation("an item that is not JSON", {"chat.db": database(agent_messages=[
        item(1, QUESTION), item(2, "{"), item(3, REPLY)])}, ONE, problem="item 2 is not JSON"),
    Variation("an item that is encrypted", {"chat.db": database(agent_messages=[
        item(1, QUESTION), item(2, {"__enc__": 1, "v": 1, "payload": "x"}), item(3, REPLY)])}, ONE,
        problem="item 2 is encrypted"),
    Variation("branches", {"chat.db": database(
        agent_messages=[item(1, QUESTION), item(2, REPLY), item(3, OTHER),
                        item(4, output("C.")), item(5, FOLLOW_UP), item(6, output("B."))],
        message_structure=[*(on_branch(n, n, "main") for n in range(1, 5)), on_branch(5, 1, "b"),
                           on_branch(6, 2, "b"), on_branch(7, 5, "b"), on_branch(8, 6, "b")])},
        TWO, problem="left out 2 items of branches that were given up"),
)  # fmt: skip


# Google's ADK


def adk(number: int, author: str, words: str, **fields: Any) -> dict:
    role = "user" if author == "user" else "model"
    event = {"author": author, "content": {"role": role, "parts": [{"text": words}]}, **fields}
    row = {"id": f"e{number}", "app_name": "shop", "user_id": "u", "session_id": "s1"}
    row |= {"invocation_id": f"i{number}", "timestamp": float(number)}
    return {**row, "event_data": json.dumps({"timestamp": float(number), "actions": {}, **event})}


def adk_column_row(number: int, author: str, words: str, **fields: Any) -> dict:
    row = adk(number, author, words)
    event = json.loads(row.pop("event_data"))
    row |= {"author": author, "content": json.dumps(event["content"]), "actions": b"\x80\x04."}
    return {**row, "partial": None, "error_message": None, **fields}


COVERED = {"startTimestamp": 1.0, "endTimestamp": 2.0,
           "compactedContent": {"role": "model", "parts": [{"text": "So far."}]}}  # fmt: skip

test_databases_of_google_adk = variations(
    Variation("a session", {"session.db": database(events=[
        adk(1, "user", "Hi"), adk(2, "shop", "A.")])}, ONE, format="google-adk"),
    Variation("events out of order", {"session.db": database(events=[
        adk(2, "shop", "A."), adk(1, "user", "Hi")])}, ONE),
    Variation("two sessions", {"session.db": database(events=[
        adk(1, "user", "Hi"), {**adk(2, "user", "Hi"), "session_id": "s2"}, adk(3, "shop", "A."),
        {**adk(4, "shop", "C."), "session_id": "s2"}])}, [*ONE, [("Hi", "C.")]]),
    Variation("a summary", {"session.db": database(events=[
        adk(1, "user", "Hi"), adk(2, "shop", "A."),
        adk(3, "shop", "", content=None, actions={"compaction": COVERED}),
        adk(4, "user", "More?"), adk(5, "shop", "B.")])}, TWO),
    Variation("a column for each field", {"session.db": database(events=[
        adk_column_row(1, "user", "Hi"), adk_column_row(2, "shop", "A."),
        adk_column_row(3, "shop", "", content=None, error_message="429")])}, ONE,
        problem="left out the actions of its events"),
    Variation("an event that is not JSON", {"session.db": database(events=[
        adk(1, "user", "Hi"), {**adk(2, "shop", "A."), "event_data": "{"}, adk(3, "shop", "A.")])},
        ONE, problem="event 'e2' is not JSON"),
    Variation("a database of another program", {"session.db": database(events=[{"id": 1}]),
        "s.jsonl": lines(INIT, ASKED, ANSWERED)}, ONE, problem="is a database of none of"),
)  # fmt: skip


def test_databases_of_agents_are_found_in_folders(tmp_path):
    (tmp_path / "sessions.db").write_bytes(goose_database(goose_row(1, HI), goose_row(2, A)))
    (tmp_path / ".adk").mkdir()
    content = database(events=[adk(1, "user", "Hi"), adk(2, "shop", "A.")])
    (tmp_path / ".adk" / "session.db").write_bytes(content)
    assert read_logs([tmp_path]).formats == {"google-adk": 1, "goose": 1}
