"""Logs of coding agents and chat programs, version by version: who said it, and what is left out.

Where each schema was read is in tests/data/logs/README.md.
"""

import json
import sqlite3
import sys
import zipfile

import pytest
from agent_sessions import FIRST, boundary, claude, codex, codex_says, reply, summary, user, write
from logged_dialogs import paths_in, replace_at
from paths import ROOT

from holdfast.cli import main
from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.measures.agent_acts.actions import commands_of, edits_of
from holdfast.report.log_formats import formats_list, formats_table
from holdfast.transcripts import FORMATS, EventKind, read_transcripts
from holdfast.transcripts.format_guide import GUIDES

DATA = ROOT / "tests" / "data" / "logs"


def document(folder, value, name="log.json"):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def turns_of(path):
    """The turns and the problems of a file with one dialog."""
    logs = read_logs([path])
    (dialog,) = logs.dialogs
    return [(turn.user, turn.done.text) for turn in dialog.turns], list(logs.problems), dialog


def files_changed(calls):
    return list(dict.fromkeys(edit.path for edit in edits_of(calls) if edit.path))


def text(words):
    return {"type": "text", "text": words}


# Claude Code


@pytest.mark.parametrize("goes_on_from", ["a2", "s1"], ids=["the last kept", "the summary"])
def test_messages_that_a_compaction_kept_follow_its_summary(goes_on_from, tmp_path):
    segment = {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}
    path = write(
        tmp_path,
        user("u1", None, "x" * 4000),
        reply("a1", "u1", "Done."),
        user("u2", "a1", "y" * 400),
        reply("a2", "u2", "Yes."),
        {**boundary("b1", "a2"), "compactMetadata": {"preservedSegment": segment}},
        summary("s1", "b1", "z" * 800),
        user("u3", goes_on_from, "Bye."),
        reply("a3", "u3", "Bye!"),
    )
    turns, problems, dialog = turns_of(path)
    assert [answer_text for _, answer_text in turns] == ["Done.", "Yes.", "Bye!"] and not problems
    tokens = [turn.tokens for turn in dialog.turns]
    assert tokens[1] == 1101 and abs(tokens[2] - (400 + 800) // 4) < 5


def test_a_compaction_without_a_terminal_begins_the_context_again(tmp_path):
    fields = {"session_id": "s1", "parent_tool_use_id": None}
    assistant_message = {"message": {"role": "assistant", "content": [text("x" * 4000)]}}
    path = write(
        tmp_path,
        {"type": "user", **fields, "message": {"role": "user", "content": "Hi."}},
        {"type": "assistant", **fields, **assistant_message},
        {"type": "stream_event", **fields, "event": {"type": "ping"}, "uuid": "p1"},
        {"type": "system", "subtype": "compact_boundary", "session_id": "s1", "uuid": "b1"},
        {"type": "user", **fields, "message": {"role": "user", "content": "Bye."}},
        {"type": "assistant", **fields, "message": {"role": "assistant", "content": "Bye!"}},
        {**fields, "type": "user", "isSynthetic": True, "message": {"content": "The price."}},
    )
    turns, problems, dialog = turns_of(path)
    assert [user for user, _ in turns] == ["Hi.", "Bye."] and not problems
    assert dialog.turns[1].tokens == 1


def test_subagents_in_files_of_their_own_are_dialogs_of_their_own(tmp_path):
    of = {"isSidechain": True, "agentId": "a1"}
    inner = (user("x1", None, "Count.", **of), claude("assistant", "x2", "x1", [text("1")], **of))
    write(tmp_path, *FIRST, name="s1.jsonl")
    write(tmp_path, *inner, name="s1/subagents/agent-a1.jsonl")
    document(tmp_path, {"agentType": "Explore"}, "s1/subagents/agent-a1.meta.json")
    logs = read_logs([tmp_path])
    replies = {dialog.turns[0].user: dialog.turns[0].done.text for dialog in logs.dialogs}
    assert replies == {"Rename it.": "Done.", "Count.": "1"} and not logs.problems


# Cline and Roo Code

ENVIRONMENT = text("<environment_details>\n# Visible files\nprice.md\n</environment_details>")
TASK = {"role": "user", "content": [text("<task>\nList it.\n</task>"), ENVIRONMENT]}
LISTED = (
    "I will look.\n\n<execute_command>\n<command>ls src</command>\n"
    "<requires_approval>false</requires_approval>\n</execute_command>"
)
RESULT = [text("[execute_command for 'ls src'] Result:"), text("Output:\ncart.py"), ENVIRONMENT]
DONE = "<attempt_completion>\n<result>\nOne file.\n</result>\n</attempt_completion>"
FEEDBACK = [
    text("[attempt_completion] Result:"),
    text("The user has feedback:\n<feedback>\nAnd the tests?\n</feedback>"),
    ENVIRONMENT,
]


def agent(words, **fields):
    return {"role": "assistant", "content": [text(words)], **fields}


def human(*blocks, **fields):
    return {"role": "user", "content": list(blocks), **fields}


def test_calls_in_the_text_of_a_cline_task_are_read(tmp_path):
    messages = [TASK, agent(LISTED), human(*RESULT), agent(DONE), human(*FEEDBACK), agent("None.")]
    path = document(tmp_path, messages, "api_conversation_history.json")
    turns, problems, dialog = turns_of(path)
    assert turns == [("List it.", "I will look.\n\nOne file."), ("And the tests?", "None.")]
    assert not problems and read_logs([path]).formats == {"cline": 1}
    calls = dialog.turns[0].done.calls
    assert [call.name for call in calls] == ["execute_command", "attempt_completion"]
    assert [command.words for command in commands_of(calls)] == [("ls", "src")]


def test_native_calls_of_a_roo_code_task_are_read(tmp_path):
    edit = {"path": "cart.py", "diff": "<read_file><path>no/call.py</path></read_file>"}
    call = {"type": "tool_use", "id": "c1", "name": "apply_diff", "input": edit}
    question = {"type": "tool_use", "id": "c2", "name": "ask_followup_question"}
    question["input"] = {"question": "Which one?"}
    answers = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "<user_message>in a file"},
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "content": "<user_message>\nA.\n</user_message>",
        },
    ]
    messages = [
        human(text("<user_message>\nFix it.\n</user_message>"), ENVIRONMENT, ts=1),
        {"type": "reasoning", "role": "assistant", "summary": []},
        {"role": "assistant", "content": [text("I edit."), call, question], "ts": 2},
        human(*answers, ENVIRONMENT, ts=3),
        agent("Done.", ts=4),
    ]
    turns, problems, dialog = turns_of(document(tmp_path, messages))
    assert turns == [("Fix it.", "I edit.\n\nWhich one?"), ("A.", "Done.")] and not problems
    assert files_changed(dialog.turns[0].done.calls) == ["cart.py"]


def test_the_commands_of_a_call_of_cline_are_commands(tmp_path):
    call = {"type": "tool_use", "id": "c1", "name": "run_commands"}
    call["input"] = {"commands": ["ls a", "cd b && make"]}
    messages = [TASK, {"role": "assistant", "content": [call]}]
    (dialog,) = read_logs([document(tmp_path, messages)]).dialogs
    words = [command.words for command in commands_of(dialog.turns[0].done.calls)]
    assert ("ls", "a") in words and ("make",) in words


def test_a_result_of_a_command_of_several_lines_was_not_said_by_the_user(tmp_path):
    result = text("[execute_command for 'cat <<X\n<task>\nX'] Result:\nCommand executed.")
    messages = [TASK, agent(LISTED), human(result, ENVIRONMENT), agent("One file.")]
    turns, problems, _ = turns_of(document(tmp_path, messages))
    assert turns == [("List it.", "I will look.\n\nOne file.")] and not problems


def test_a_summary_of_roo_code_begins_the_context_again(tmp_path):
    messages = [
        TASK,
        agent("x" * 4000, condenseParent="s1"),
        {"role": "user", "content": [text("y" * 400)], "isSummary": True, "condenseId": "s1"},
        human(text("<user_message>\nGo on.\n</user_message>")),
        agent("Done."),
    ]
    turns, _, dialog = turns_of(document(tmp_path, messages))
    assert [user for user, _ in turns] == ["List it.", "Go on."]
    assert dialog.turns[1].tokens == (400 + len("Go on.")) // 4


def test_a_task_tag_in_a_prompt_does_not_make_a_file_clines(tmp_path):
    words = "<task>List it.</task> Be brief."
    turns, _, _ = turns_of(document(tmp_path, [{"role": "user", "content": words}, agent("One.")]))
    assert turns == [(words, "One.")]


def test_several_files_of_a_call_of_roo_code_are_a_call_each(tmp_path):
    files = "".join(f"<file><path>{name}</path></file>" for name in ("a.py", "b.py"))
    messages = [TASK, agent(f"<apply_diff>\n<args>{files}</args>\n</apply_diff>")]
    (dialog,) = read_logs([document(tmp_path, messages)]).dialogs
    assert files_changed(dialog.turns[0].done.calls) == ["a.py", "b.py"]


def test_clines_display_file_is_skipped_beside_its_task_and_refused_alone(tmp_path):
    display = [{"ts": 1, "type": "say", "say": "text", "text": "List it."}]
    document(tmp_path / "tasks/1", [TASK, agent("One.")], "api_conversation_history.json")
    document(tmp_path / "tasks/1", display, "ui_messages.json")
    document(tmp_path / "tasks/1", {"files_in_context": []}, "task_metadata.json")
    assert not read_logs([tmp_path / "tasks"]).problems
    with pytest.raises(UsageError, match="api_conversation_history"):
        read_logs([tmp_path / "tasks/1/ui_messages.json"])


def test_an_unknown_version_of_clines_sessions_is_named_and_read(tmp_path):
    session = json.loads((DATA / "cline.jsonl").read_text())
    turns, (problem,), _ = turns_of(document(tmp_path, {**session, "version": 7}))
    assert len(turns) == 2 and "version 7" in problem


# GitHub Copilot


def request(words, *response, **fields):
    return {"requestId": words, "message": {"text": words}, "response": list(response), **fields}


def chat(*requests, **fields):
    return {
        "version": 3,
        "responderUsername": "GitHub Copilot",
        "requests": list(requests),
        **fields,
    }


def test_an_exported_chat_is_read(tmp_path):
    exported = chat(
        {"requestId": "1", "message": "Hi.", "response": [{"value": "Hello."}]},
        request(
            "Fix it.", {"value": "I edit."}, {"kind": "textEditGroup", "uri": {"path": "/a.py"}}
        ),
    )
    del exported["version"]
    turns, problems, dialog = turns_of(document(tmp_path, exported, "chat.json"))
    assert turns == [("Hi.", "Hello."), ("Fix it.", "I edit.")] and not problems
    assert files_changed(dialog.turns[1].done.calls) == ["/a.py"]


def test_a_command_that_vs_code_only_shows_is_a_call(tmp_path):
    call = {"kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "isComplete": True}
    old = {**call, "toolSpecificData": {"kind": "terminal", "command": "ls a"}}
    edited = {"original": "ls b", "userEdited": "ls c"}
    new = {**call, "toolSpecificData": {"kind": "terminal", "commandLine": edited}}
    (dialog,) = read_logs([document(tmp_path, chat(request("Look.", old, new)))]).dialogs
    words = [command.words for command in commands_of(dialog.turns[0].done.calls)]
    assert words == [("ls", "a"), ("ls", "c")] and dialog.turns[0].role == "tool"


def test_a_request_that_a_checkpoint_took_back_is_left_out_and_named(tmp_path):
    back = request("Undo it.", {"value": "Undone."}, shouldBeRemovedOnSend={"requestId": "2"})
    session = chat(request("Hi.", {"value": "Hello."}), back, request("Bye.", {"value": "Bye!"}))
    turns, (problem,), _ = turns_of(document(tmp_path, session))
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and "1 request" in problem
    (file,) = read_transcripts(tmp_path / "log.json")
    assert "Undone." in [event.text for event in file.transcripts[0].events]


def test_a_cancelled_request_and_an_error_are_no_replies(tmp_path):
    session = chat(
        request("One.", modelState={"value": 2}),
        request("Two.", result={"errorDetails": {"message": "Rate limit."}}),
        request("Three.", {"value": "3"}),
    )
    (file,) = read_transcripts(document(tmp_path, session))
    kinds = [event.kind for event in file.transcripts[0].path]
    assert EventKind.INTERRUPTION in kinds and EventKind.ERROR in kinds
    assert turns_of(file.path)[0] == [("One.\n\nTwo.\n\nThree.", "3")]


def test_parts_and_versions_of_vs_code_that_are_not_known_are_named(tmp_path):
    session = chat(request("Hi.", {"value": "Hello."}, {"kind": "hologram"}), version=9)
    turns, problems, _ = turns_of(document(tmp_path, session))
    assert turns == [("Hi.", "Hello.")]
    assert any("version 9" in problem for problem in problems)
    assert any("'hologram'" in problem for problem in problems)


def test_a_log_of_changes_is_replayed(tmp_path):
    first, second = request("Hi.", {"value": "Hel"}), request("Undo it.", {"value": "Undone."})
    path = write(
        tmp_path,
        {"kind": 0, "v": chat(first, second)},
        {"kind": 1, "k": ["requests", 0, "response", 0, "value"], "v": "Hello."},
        {"kind": 2, "k": ["requests"], "v": [request("Bye.", {"value": "Bye!"})], "i": 1},
        {"kind": 3, "k": ["customTitle"]},
    )
    turns, problems, _ = turns_of(path)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and not problems


def test_a_change_that_fits_no_state_and_a_torn_line_are_named(tmp_path):
    change = {"kind": 2, "k": ["requests", 5, "response"], "v": [{"value": "?"}]}
    path = write(
        tmp_path, {"kind": 0, "v": chat(request("Hi.", {"value": "Yes."}))}, change, '{"kin'
    )
    turns, problems, _ = turns_of(path)
    assert turns == [("Hi.", "Yes.")]
    assert sorted(problem.partition(", line ")[2][0] for problem in problems) == ["2", "3"]


def event(number, kind, agent=None, **data):
    of = {"agentId": agent} if agent else {}
    return {
        "type": kind,
        "id": f"e{number}",
        "parentId": None,
        "timestamp": "t",
        "data": data,
        **of,
    }


BEGUN = (
    event(0, "session.start", sessionId="s1", version=1),
    event(1, "user.message", content="Hi.", transformedContent="<date/>Hi."),
    event(2, "assistant.message", content="Hello."),
)


def test_what_copilot_cli_put_before_the_model_was_not_said_by_the_user(tmp_path):
    path = write(
        tmp_path,
        *BEGUN,
        event(3, "user.message", content="The price.", source="skill-pdf"),
        event(4, "user.message", content="Go on.", isAutopilotContinuation=True),
        event(5, "system.notification", content="A shell ended."),
        event(6, "assistant.message", content="I go on."),
    )
    turns, problems, _ = turns_of(path)
    assert turns == [("Hi.", "Hello.\n\nI go on.")] and not problems


def test_a_subagent_of_copilot_cli_is_a_dialog_of_its_own(tmp_path):
    inner = event(4, "assistant.message", agent="a1", content="One file.")
    logs = read_logs([write(tmp_path, *BEGUN, inner)])
    assert [dialog.turns[0].done.text for dialog in logs.dialogs] == ["Hello.", "One file."]
    (file,) = read_transcripts(tmp_path / "log.jsonl")
    assert [transcript.is_of_subagent for transcript in file.transcripts] == [False, True]


def test_copilot_cli_takes_back_events_and_compacts(tmp_path):
    path = write(
        tmp_path,
        *BEGUN,
        event(3, "user.message", content="Undo it."),
        event(4, "assistant.message", content="Undone."),
        event(5, "session.snapshot_rewind", upToEventId="e3", eventsRemoved=2),
        event(6, "session.compaction_complete", success=True, summaryContent="y" * 400),
        event(7, "user.message", content="Bye."),
        event(8, "assistant.message", content="Bye!"),
        event(9, "quantum.leap", content="?"),
    )
    turns, problems, dialog = turns_of(path)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and dialog.turns[1].tokens == 101
    assert any("line 6" in problem for problem in problems)
    assert any("'quantum.leap'" in problem for problem in problems)


def test_files_that_copilot_and_opencode_edit_are_changed(tmp_path):
    call = {"id": "c1", "name": "create_file", "arguments": '{"filePath": "/a.py"}'}
    result = {"metadata": {"toolCallRounds": [{"toolCalls": [call]}], "toolCallResults": {}}}
    state = {"status": "completed", "input": {"filePath": "/b.py"}, "output": ""}
    part = {"type": "tool", "callID": "c1", "tool": "edit", "state": state}
    chats = [chat(request("Go.", result=result)), session(*ASKED, message(3, "assistant", part))]
    paths = [
        files_changed(read_logs([document(tmp_path, value)]).dialogs[0].turns[0].done.calls)
        for value in chats
    ]
    assert paths == [["/a.py"], ["/b.py"]]


# opencode


def message(number, role, *parts, **info):
    names = {"id": f"msg_{number}", "sessionID": "ses_1", "role": role}
    return {"info": {**names, **info}, "parts": list(parts)}


def session(*messages, **info):
    return {"info": {"id": "ses_1", **info}, "messages": list(messages)}


ASKED = (message(1, "user", text("Hi.")), message(2, "assistant", text("Hello.")))


def test_messages_that_were_reverted_are_left_out_and_named(tmp_path):
    back = (message(3, "user", text("Undo it.")), message(4, "assistant", text("Undone.")))
    exported = session(*ASKED, *back, revert={"messageID": "msg_3"})
    turns, (problem,), _ = turns_of(document(tmp_path, exported))
    assert turns == [("Hi.", "Hello.")] and "2 messages" in problem


def test_opencode_summaries_cut_replies_and_errors_are_told_apart(tmp_path):
    exported = session(
        *ASKED,
        message(3, "user", {**text("The price."), "synthetic": True}, {"type": "compaction"}),
        message(4, "assistant", text("Summary."), summary=True),
        message(5, "user", text("Go on.")),
        message(6, "assistant", text("Cut"), finish="length"),
        message(7, "user", text("And?")),
        message(8, "assistant", error={"name": "APIError", "data": {"message": "Overloaded."}}),
        message(9, "assistant", text("Ten."), {"type": "hologram"}),
    )
    turns, (problem,), dialog = turns_of(document(tmp_path, exported))
    assert turns == [("Hi.", "Hello."), ("Go on.", "Cut"), ("And?", "Ten.")]
    assert [turn.done.is_cut for turn in dialog.turns] == [False, True, False]
    assert "'hologram'" in problem


def write_storage(root, old=False):
    """The fixture's session in the files of `storage/`."""
    whole = json.loads((DATA / "opencode.jsonl").read_text())
    info = "info/ses_1.json" if old else "session/project-1/ses_1.json"
    document(root, whole["info"], info)
    for item in whole["messages"]:
        name = item["info"]["id"]
        document(root, item["info"], f"message/ses_1/{name}.json")
        for part in item["parts"]:
            parts = f"part/ses_1/{name}" if old else f"part/{name}"
            document(root, part, f"{parts}/{part['id']}.json")
    document(root, [], "todo/ses_1.json")
    return root


def test_the_folder_and_the_database_of_opencode_tell_what_its_export_tells(tmp_path):
    expected = turns_of(DATA / "opencode.jsonl")[0]
    for root in (
        write_storage(tmp_path / "new/storage"),
        write_storage(tmp_path / "old/session", old=True),
    ):
        turns, problems, dialog = turns_of(root)
        assert turns == expected and not problems and len(dialog.turns[0].done.calls) == 1
        assert turns_of(root / "message/ses_1")[0] == expected
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
    turns, problems, dialog = turns_of(tmp_path / "opencode.db")
    assert turns == expected and not problems and len(dialog.turns[0].done.calls) == 1


def test_a_file_of_opencodes_folder_by_itself_is_named_with_the_cure(tmp_path):
    part = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", **text("Hi.")}
    with pytest.raises(UsageError, match="opencode export"):
        read_logs([document(tmp_path, part)])


def test_a_damaged_file_of_opencodes_folder_is_named_and_the_rest_read(tmp_path):
    root = write_storage(tmp_path / "storage")
    (root / "part/msg_5/prt_51.json").write_text('{"id": "prt')
    logs = read_logs([root])
    (problem,) = logs.problems
    assert "prt_51.json" in problem and len(logs.dialogs) == 1


# aider

HISTORY = """
# aider chat started at 2026-09-14 10:00:00

> Aider v0.86.1  

#### /add cart.py  
#### Rename the cart.  
#### Twice.  

I rename it:

```
# a comment
> a quotation
```

> Applied edit to cart.py  
> Commit 1a2b3c4 refactor: rename the cart  

#### /ask Why?  

Because.

> Add file to the chat? (Y)es/(N)o [Yes]: y  
> ^C KeyboardInterrupt  

# aider chat started at 2026-09-15 10:00:00

#### Hi.  

Hello.
"""


def test_aiders_history_file_is_split_into_dialogs(tmp_path):
    logs = read_logs([document(tmp_path, HISTORY, ".aider.chat.history.md")])
    first, second = logs.dialogs
    assert not logs.problems and logs.formats == {"aider": 2}
    code = "I rename it:\n\n```\n# a comment\n> a quotation\n```"
    users = ["/add cart.py\nRename the cart.\nTwice.", "Why?"]
    assert [turn.done.text for turn in first.turns] == [code, "Because."]
    assert first.turns[1].user == users[1]
    assert files_changed(first.turns[0].done.calls) == ["cart.py"]
    assert [(turn.user, turn.done.text) for turn in second.turns] == [("Hi.", "Hello.")]


# Cursor


def test_cursors_markdown_export_is_read(tmp_path):
    rule = "One.\n\n---\n\nTwo, **User** and all."
    exported = (
        "# Title\n_Exported on 5/15/2025 at 17:47:04 PDT from Cursor (0.50.4)_\n\n---\n\n"
        f"**User**\n\nHi.\n\n---\n\n**Cursor**\n\n{rule}\n\n---\n\n**User**\n\nBye.\n\n---\n\n"
        "**Cursor**\n\nBye!\n\n"
    )
    turns, problems, _ = turns_of(document(tmp_path, exported, "cursor_title.md"))
    assert turns == [("Hi.", rule), ("Bye.", "Bye!")] and not problems


def test_cursors_agent_transcript_is_read(tmp_path):
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    prompt = "<timestamp>t</timestamp>\n<user_query>\nHi.\n</user_query>"
    path = write(
        tmp_path,
        {"role": "user", "message": {"content": [text(prompt)]}},
        {"role": "assistant", "message": {"content": [text("Hello."), call]}},
        {"type": "turn_ended", "status": "success"},
    )
    turns, problems, dialog = turns_of(path)
    assert turns == [("Hi.", "Hello.")] and not problems
    assert [command.words for command in commands_of(dialog.turns[0].done.calls)] == [("ls",)]


def cursor_database(path, rows):
    with sqlite3.connect(path) as database:
        for table in ("ItemTable", "cursorDiskKV"):
            database.execute(f"CREATE TABLE {table} (key TEXT, value BLOB)")
        for key, value in rows.items():
            table = "cursorDiskKV" if ":" in key else "ItemTable"
            value = value if isinstance(value, str) else json.dumps(value)
            database.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, value.encode()))
    database.close()
    return path


def test_cursors_database_gives_a_dialog_per_chat(tmp_path):
    tool = {"name": "run_terminal_cmd", "rawArgs": '{"command": "ls"}', "result": '{"output": "a"}'}
    tabs = [{"bubbles": [{"type": "user", "text": "Old?"}, {"type": "ai", "rawText": "Old."}]}]
    headers = [{"bubbleId": name, "type": 1} for name in ("b1", "b2", "b3", "gone")]
    path = cursor_database(
        tmp_path / "state.vscdb",
        {
            "workbench.panel.aichat.view.aichat.chatdata": {"tabs": tabs},
            "composerData:c1": {"fullConversationHeadersOnly": headers},
            "bubbleId:c1:b1": {"type": 1, "text": "Look."},
            "bubbleId:c1:b2": {"type": 2, "text": "", "toolFormerData": tool},
            "bubbleId:c1:b3": {"type": 2, "text": "One file."},
            "bubbleId:c1:b4": {"type": 2, "text": "Taken back."},
            "bubbleId:c11:b1": {"type": 1, "text": "Of another."},
            "composerData:c2": '{"torn',
        },
    )
    logs = read_logs([tmp_path])
    texts = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert texts == [[("Old?", "Old.")], [("Look.", "One file.")]]
    assert commands_of(logs.dialogs[1].turns[0].done.calls)[0].words == ("ls",)
    assert len(logs.problems) == 3 and all(path.name in problem for problem in logs.problems)
    assert any("composer c2" in problem for problem in logs.problems)


# Inspect AI


def sample(number, epoch=1, **fields):
    assistant_messages = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": f"Hello {number}."},
    ]
    return {"id": number, "epoch": epoch, "input": "Hi.", "messages": assistant_messages, **fields}


HEADER = {"version": 2, "status": "success", "eval": {"task": "shop"}}


def compress(content):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor().compress(content)


def archive(path, zstandard=False):
    """An `.eval` file; with zstandard, as Inspect packs its members."""
    members = {"header.json": HEADER, "samples/1_epoch_1.json": sample(1)}
    members |= {"samples/1_epoch_2.json": sample(1, 2), "summaries.json": []}
    with zipfile.ZipFile(path, "w") as file:
        for name, value in members.items():
            content = json.dumps(value).encode()
            file.writestr(name, compress(content) if zstandard else content)
    if zstandard:  # the method in the headers of the members
        content = path.read_bytes()
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            parts = content.split(mark)
            at = place - len(mark)
            parts[1:] = [part[:at] + b"\x5d\x00" + part[at + 2 :] for part in parts[1:]]
            content = mark.join(parts)
        path.write_bytes(content)
    return path


@pytest.mark.parametrize("zstandard", [False, True])
def test_the_samples_of_an_archive_are_dialogs(zstandard, tmp_path):
    archive(tmp_path / "log.eval", zstandard)
    logs = read_logs([tmp_path])
    assert logs.formats == {"inspect": 2} and not logs.problems
    assert [dialog.turns[0].done.text for dialog in logs.dialogs] == ["Hello 1."] * 2


def test_a_sample_that_was_cut_or_failed_says_so(tmp_path):
    cut = sample(1, output={"choices": [{"stop_reason": "max_tokens"}]})
    failed = sample(2, error={"message": "The tool crashed."})
    log = {**HEADER, "version": 9, "samples": [cut, failed]}
    logs = read_logs([document(tmp_path, log)])
    assert [dialog.turns[0].done.is_cut for dialog in logs.dialogs] == [True, False]
    assert any("version 9" in problem for problem in logs.problems)
    assert any("sample 2" in problem for problem in logs.problems)


# SillyTavern


def test_only_the_selected_version_of_a_message_is_read(tmp_path):
    def line(words, is_user=False, **fields):
        return {"name": "x", "is_user": is_user, "is_system": False, "mes": words, **fields}

    path = write(
        tmp_path,
        {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"},
        line("Welcome."),
        line("Hi.", is_user=True),
        line("Two.", swipe_id=1, swipes=["One.", "Two.", "Three."]),
        line("Hidden later.", is_system=True),
        line("Rain falls.", extra={"type": "narrator"}),
        {**line("A notice.", extra={"type": "comment"}), "is_system": True},
        line("Bye.", is_user=True),
        line("Bye!"),
    )
    turns, (problem,), _ = turns_of(path)
    assert turns == [("", "Welcome."), ("Hi.", "Two.\n\nHidden later."), ("Bye.", "Bye!")]
    assert "2 other versions" in problem
    (file,) = read_transcripts(path)
    assert {"One.", "Three."} <= {event.text for event in file.transcripts[0].events}


# compressed rollouts


def test_a_rollout_that_is_compressed_by_zstandard_is_read(tmp_path):
    rollout = write(tmp_path, codex("session_meta", id="s"), codex_says("user", "Hi."))
    first = compress(rollout.read_bytes())
    second = compress(json.dumps(codex_says("assistant", "Hello.")).encode())
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(first + second)  # two frames
    assert turns_of(path)[0] == [("Hi.", "Hello.")]


def test_a_log_that_is_named_is_read_whatever_its_name_before_the_suffix_of_zstandard(tmp_path):
    rollout = write(tmp_path, codex_says("user", "Hi."), codex_says("assistant", "Hello."))
    path = tmp_path / "july.zst"
    path.write_bytes(compress(rollout.read_bytes()))
    assert turns_of(path)[0] == [("Hi.", "Hello.")]


def test_without_the_package_for_it_a_compressed_rollout_is_named_with_the_cure(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    write(tmp_path, codex_says("user", "Hi."), codex_says("assistant", "Hello."))
    (tmp_path / "rollout-1.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (problem,) = read_logs([tmp_path]).problems
    assert "rollout-1.jsonl.zst" in problem and "holdfast-llm[zstd]" in problem


# files of any kind

NAMES = [".aider.chat.history.md", "log.eval", "state.vscdb", "opencode.db", "cursor_a.md"]
DAMAGED = [b"", bytes(4096), b"PK\x03\x04torn", b"\xff\xfe{}", b"[]", b"{}"]


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_named_in_a_sentence(name, content, tmp_path):
    write(tmp_path, {"messages": [{"role": "user", "content": "Hi."}, agent("Hello.")]})
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
    archive(tmp_path / "log.eval")
    for path in (database, tmp_path / "log.eval"):
        content = path.read_bytes()
        path.write_bytes(content[: min(size, len(content) - 30)])
        with pytest.raises(UsageError) as excinfo:
            read_logs([path])
        assert path.name in str(excinfo.value)


def test_markdown_and_databases_are_logs_in_a_folder_only_by_their_names(tmp_path):
    write(tmp_path, {"messages": [{"role": "user", "content": "Hi."}, agent("Hello.")]})
    document(tmp_path, HISTORY, "README.md")
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


VARIANTS = {
    "cline's task": [TASK, agent(LISTED, ts=1), human(*RESULT, isSummary=False), agent(DONE)],
    "an exported chat": chat(
        request(
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
    "an inspect sample": sample(1, output={"choices": [{"stop_reason": "stop"}]}, attachments={}),
    "a reverted session": session(*ASKED, revert={"messageID": "msg_2"}, parentID="ses_0"),
    "a rewind": event(9, "session.snapshot_rewind", upToEventId="e1"),
}


def test_a_sample_that_is_nested_too_deeply_is_named(tmp_path):
    deep = json.dumps(sample(1, store="DEEP")).replace('"DEEP"', "[" * 900 + "]" * 900)
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as file:
        file.writestr("samples/1_epoch_1.json", deep)
    (file,) = read_transcripts(tmp_path)
    assert len(file.transcripts) + len(file.unread) == 1


@pytest.mark.parametrize("name", VARIANTS)
def test_a_field_of_another_type_is_read_or_named_in_a_sentence(name, tmp_path):
    path = tmp_path / "log.json"
    for path_to_field in paths_in(VARIANTS[name]):
        for new in (3, True, None, "x", {"a": 1}, [[]], [{}]):
            path.write_text(json.dumps([replace_at(VARIANTS[name], path_to_field, new)]))
            (file,) = read_transcripts(path)
            assert all(path.name in sentence for sentence in file.unread)


# the list of formats


def test_every_format_is_in_the_guide():
    missing = FORMATS.keys() - GUIDES.keys()
    assert not missing, f"describe {missing} in transcripts/format_guide.py"
    assert not GUIDES.keys() - FORMATS.keys()


def test_the_page_on_logs_has_the_table():
    page = (DATA.parents[2] / "docs" / "logs.md").read_text()
    assert f"<!-- log_formats -->\n{formats_table()}\n<!-- /log_formats -->" in page


def test_the_formats_are_listed_without_a_suite(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["logs", "--list-formats"])
    assert not ended.value.code
    output = capsys.readouterr().out
    assert output.strip() == formats_list()
    assert all(f"\n{name}\n" in f"\n{output}" for name in FORMATS)
    for row in (
        "Linux: ~/.config/Cursor/User/globalStorage/state.vscdb",
        "macOS: ~/Library/Application Support/Cursor/User/globalStorage/state.vscdb",
        r"Windows: %APPDATA%\Cursor\User\globalStorage\state.vscdb",
        r"Windows: %USERPROFILE%\.claude\projects\*\*.jsonl",
    ):
        assert row in output
