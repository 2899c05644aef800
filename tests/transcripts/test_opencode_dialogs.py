"""Sessions of opencode: exports, the folder `storage/`, and its database."""

import json
import sqlite3

import pytest
from agent_files import OPENCODE_TURN, opencode_message, opencode_session
from log_variations import text
from paths import ROOT
from read_dialogs import read_file, write_document

from holdfast.errors import UsageError
from holdfast.logs import read_logs

DATA = ROOT / "tests" / "data" / "logs"


def test_messages_that_were_reverted_are_left_out_and_named(tmp_path):
    back = (
        opencode_message(3, "user", text("Undo it.")),
        opencode_message(4, "assistant", text("Undone.")),
    )
    exported = opencode_session(*OPENCODE_TURN, *back, revert={"messageID": "msg_3"})
    turns, (problem,), _ = read_file(write_document(tmp_path, exported))
    assert turns == [("Hi.", "Hello.")] and "2 messages" in problem


def test_opencode_summaries_cut_replies_and_errors_are_told_apart(tmp_path):
    exported = opencode_session(
        *OPENCODE_TURN,
        opencode_message(
            3, "user", {**text("The price."), "synthetic": True}, {"type": "compaction"}
        ),
        opencode_message(4, "assistant", text("Summary."), summary=True),
        opencode_message(5, "user", text("Go on.")),
        opencode_message(6, "assistant", text("Cut"), finish="length"),
        opencode_message(7, "user", text("And?")),
        opencode_message(
            8, "assistant", error={"name": "APIError", "data": {"message": "Overloaded."}}
        ),
        opencode_message(9, "assistant", text("Ten."), {"type": "hologram"}),
    )
    turns, (problem,), dialog = read_file(write_document(tmp_path, exported))
    assert turns == [("Hi.", "Hello."), ("Go on.", "Cut"), ("And?", "Ten.")]
    assert [turn.done.is_cut for turn in dialog.turns] == [False, True, False]
    assert "'hologram'" in problem


def write_storage(root, old=False):
    """The fixture's session in the files of `storage/`."""
    whole = json.loads((DATA / "opencode.jsonl").read_text())
    info = "info/ses_1.json" if old else "session/project-1/ses_1.json"
    write_document(root, whole["info"], info)
    for item in whole["messages"]:
        name = item["info"]["id"]
        write_document(root, item["info"], f"message/ses_1/{name}.json")
        for part in item["parts"]:
            parts = f"part/ses_1/{name}" if old else f"part/{name}"
            write_document(root, part, f"{parts}/{part['id']}.json")
    write_document(root, [], "todo/ses_1.json")
    return root


def test_the_folder_and_the_database_of_opencode_tell_what_its_export_tells(tmp_path):
    expected = read_file(DATA / "opencode.jsonl")[0]
    for root in (
        write_storage(tmp_path / "new/storage"),
        write_storage(tmp_path / "old/session", old=True),
    ):
        turns, problems, dialog = read_file(root)
        assert turns == expected and not problems and len(dialog.turns[0].done.calls) == 1
        assert read_file(root / "message/ses_1")[0] == expected
    whole = json.loads((DATA / "opencode.jsonl").read_text())
    with sqlite3.connect(tmp_path / "opencode.db") as database:
        database.execute("CREATE TABLE session (id, parent_id, revert)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("CREATE TABLE part (id, message_id, session_id, data)")
        database.execute("INSERT INTO session VALUES ('ses_1', NULL, NULL)")
        for number, item in enumerate(whole["messages"]):
            name, data = item["info"]["id"], json.dumps(item["info"])
            database.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", (name, number, data))
            for part in item["parts"]:
                row = (part["id"], name, json.dumps(part))
                database.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?)", row)
    database.close()
    turns, problems, dialog = read_file(tmp_path / "opencode.db")
    assert turns == expected and not problems and len(dialog.turns[0].done.calls) == 1


def test_a_file_of_opencodes_folder_by_itself_is_named_with_the_cure(tmp_path):
    part = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", **text("Hi.")}
    with pytest.raises(UsageError, match="opencode export"):
        read_logs([write_document(tmp_path, part)])


def test_a_damaged_file_of_opencodes_folder_is_named_and_the_rest_read(tmp_path):
    root = write_storage(tmp_path / "storage")
    (root / "part/msg_5/prt_51.json").write_text('{"id": "prt')
    logs = read_logs([root])
    (problem,) = logs.problems
    assert "prt_51.json" in problem and len(logs.dialogs) == 1
