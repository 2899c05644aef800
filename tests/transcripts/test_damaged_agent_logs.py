"""Logs of coding agents that are damaged, torn, or have fields of other types."""

import json

import pytest
from agent_files import (
    AIDER_HISTORY,
    CLINE_COMMAND,
    CLINE_COMPLETION,
    CLINE_RESULT,
    CLINE_TASK,
    OPENCODE_TURN,
    cline_says,
    copilot_event,
    cursor_database,
    inspect_archive,
    inspect_sample,
    opencode_session,
    user_says_to_cline,
    vs_code_chat,
    vs_code_request,
)
from agent_sessions import write
from log_variations import text
from logged_dialogs import paths_in, replace_at
from paths import ROOT
from read_dialogs import write_document

from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.transcripts import read_transcripts

DATA = ROOT / "tests" / "data" / "logs"

NAMES = [".aider.chat.history.md", "log.eval", "state.vscdb", "opencode.db", "cursor_a.md"]
DAMAGED = [b"", bytes(4096), b"PK\x03\x04torn", b"\xff\xfe{}", b"[]", b"{}"]


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_named_in_a_sentence(name, content, tmp_path):
    write(tmp_path, {"messages": [{"role": "user", "content": "Hi."}, cline_says("Hello.")]})
    (tmp_path / name).write_bytes(content)
    logs = read_logs([tmp_path])
    *notes, problem = logs.problems
    assert all("was read as Windows-1252" in note for note in notes)
    assert name in problem and "\n" not in problem and len(logs.dialogs) == 1
    with pytest.raises(UsageError) as excinfo:
        read_logs([tmp_path / name])
    assert name in str(excinfo.value)


@pytest.mark.parametrize("size", [30, 200, 1000, 5000])
def test_a_torn_archive_or_database_is_named_in_a_sentence(size, tmp_path):
    database = cursor_database(tmp_path / "state.vscdb", {"composerData:c": {"conversation": []}})
    inspect_archive(tmp_path / "log.eval")
    for path in (database, tmp_path / "log.eval"):
        content = path.read_bytes()
        path.write_bytes(content[: min(size, len(content) - 30)])
        with pytest.raises(UsageError) as excinfo:
            read_logs([path])
        assert path.name in str(excinfo.value)


def test_markdown_and_databases_are_logs_in_a_folder_only_by_their_names(tmp_path):
    write(tmp_path, {"messages": [{"role": "user", "content": "Hi."}, cline_says("Hello.")]})
    write_document(tmp_path, AIDER_HISTORY, "README.md")
    cursor_database(tmp_path / "other.db", {"composerData:c": {}})
    logs = read_logs([tmp_path])
    assert len(logs.dialogs) == 1 and not logs.problems
    assert read_logs([tmp_path / "README.md"]).formats == {"aider": 2}  # given by the user


@pytest.mark.parametrize("lines", [1, 2, 3])
@pytest.mark.parametrize("name", ["cline", "copilot", "copilot_cli", "opencode", "sillytavern"])
def test_a_torn_line_is_named(name, lines, tmp_path):
    all_lines = (DATA / f"{name}.jsonl").read_text().splitlines()
    torn = all_lines[:lines]
    torn[-1] = torn[-1][: len(torn[-1]) // 2]
    (file,) = read_transcripts(write(tmp_path, *torn))
    assert any(f"line {len(torn)}" in sentence for sentence in file.unread)


LOGS = {
    "cline's task": [
        CLINE_TASK,
        cline_says(CLINE_COMMAND, ts=1),
        user_says_to_cline(*CLINE_RESULT, isSummary=False),
        cline_says(CLINE_COMPLETION),
    ],
    "an exported chat": vs_code_chat(
        vs_code_request(
            "Hi.",
            {"kind": "inlineReference", "inlineReference": {"uri": {"path": "/a"}}, "name": "a"},
            {"kind": "workspaceEdit", "edits": [{"newResource": {"path": "/a"}}]},
            {"kind": "toolInvocationSerialized", "toolSpecificData": {"commandLine": {"x": 1}}},
            result={"metadata": {"summaries": [{"text": "s"}]}, "errorDetails": {"message": "m"}},
            shouldBeRemovedOnSend=False,
        )
    ),
    "cursor's composer": {
        "composerData": {"fullConversationHeadersOnly": [{"bubbleId": "b"}]},
        "bubbles": {
            "b": {"type": 2, "text": "x", "toolFormerData": {"name": "n", "rawArgs": "{}"}}
        },
    },
    "cursor's chats": {"tabs": [{"bubbles": [{"type": "user", "text": "Hi."}]}]},
    "cursor's agent": {
        "role": "user",
        "message": {"content": [text("<user_query>a</user_query>")]},
    },
    "an inspect sample": inspect_sample(
        1, output={"choices": [{"stop_reason": "stop"}]}, attachments={}
    ),
    "a reverted session": opencode_session(
        *OPENCODE_TURN, revert={"messageID": "msg_2"}, parentID="ses_0"
    ),
    "a rewind": copilot_event(9, "session.snapshot_rewind", upToEventId="e1"),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_field_of_another_type_is_read_or_named_in_a_sentence(name, tmp_path):
    path = tmp_path / "log.json"
    for path_to_field in paths_in(LOGS[name]):
        for new in (3, True, None, "x", {"a": 1}, [[]], [{}]):
            path.write_text(json.dumps([replace_at(LOGS[name], path_to_field, new)]))
            (file,) = read_transcripts(path)
            assert all(path.name in sentence for sentence in file.unread)
