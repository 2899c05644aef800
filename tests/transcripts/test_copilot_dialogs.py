"""Chats of GitHub Copilot in VS Code, and sessions of Copilot CLI."""

from agent_files import (
    OPENCODE_TURN,
    copilot_event,
    opencode_message,
    opencode_session,
    vs_code_chat,
    vs_code_request,
)
from agent_sessions import write
from read_dialogs import files_changed, read_file, write_document

from holdfast.logs import read_logs
from holdfast.measures.agent_acts.actions import commands_of
from holdfast.transcripts import EventKind, read_transcripts

# Chats of VS Code


def test_an_exported_chat_is_read(tmp_path):
    exported = vs_code_chat(
        {"requestId": "1", "message": "Hi.", "response": [{"value": "Hello."}]},
        vs_code_request(
            "Fix it.", {"value": "I edit."}, {"kind": "textEditGroup", "uri": {"path": "/a.py"}}
        ),
    )
    del exported["version"]
    turns, problems, dialog = read_file(write_document(tmp_path, exported, "chat.json"))
    assert turns == [("Hi.", "Hello."), ("Fix it.", "I edit.")] and not problems
    assert files_changed(dialog.turns[1].done.calls) == ["/a.py"]


def test_a_command_that_vs_code_only_shows_is_a_call(tmp_path):
    call = {"kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "isComplete": True}
    old = {**call, "toolSpecificData": {"kind": "terminal", "command": "ls a"}}
    edited = {"original": "ls b", "userEdited": "ls c"}
    new = {**call, "toolSpecificData": {"kind": "terminal", "commandLine": edited}}
    (dialog,) = read_logs(
        [write_document(tmp_path, vs_code_chat(vs_code_request("Look.", old, new)))]
    ).dialogs
    words = [command.words for command in commands_of(dialog.turns[0].done.calls)]
    assert words == [("ls", "a"), ("ls", "c")] and dialog.turns[0].role == "tool"


def test_a_request_that_a_checkpoint_took_back_is_left_out_and_named(tmp_path):
    back = vs_code_request(
        "Undo it.", {"value": "Undone."}, shouldBeRemovedOnSend={"requestId": "2"}
    )
    chat = vs_code_chat(
        vs_code_request("Hi.", {"value": "Hello."}),
        back,
        vs_code_request("Bye.", {"value": "Bye!"}),
    )
    turns, (problem,), _ = read_file(write_document(tmp_path, chat))
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and "1 request" in problem
    (file,) = read_transcripts(tmp_path / "log.json")
    assert "Undone." in [event.text for event in file.transcripts[0].events]


def test_a_cancelled_request_and_an_error_are_no_replies(tmp_path):
    chat = vs_code_chat(
        vs_code_request("One.", modelState={"value": 2}),
        vs_code_request("Two.", result={"errorDetails": {"message": "Rate limit."}}),
        vs_code_request("Three.", {"value": "3"}),
    )
    (file,) = read_transcripts(write_document(tmp_path, chat))
    kinds = [event.kind for event in file.transcripts[0].path]
    assert EventKind.INTERRUPTION in kinds and EventKind.ERROR in kinds
    assert read_file(file.path)[0] == [("One.\n\nTwo.\n\nThree.", "3")]


def test_parts_and_versions_of_vs_code_that_are_not_known_are_named(tmp_path):
    chat = vs_code_chat(
        vs_code_request("Hi.", {"value": "Hello."}, {"kind": "hologram"}), version=9
    )
    turns, problems, _ = read_file(write_document(tmp_path, chat))
    assert turns == [("Hi.", "Hello.")]
    assert any("version 9" in problem for problem in problems)
    assert any("'hologram'" in problem for problem in problems)


def test_a_log_of_changes_is_replayed(tmp_path):
    first, second = (
        vs_code_request("Hi.", {"value": "Hel"}),
        vs_code_request("Undo it.", {"value": "Undone."}),
    )
    path = write(
        tmp_path,
        {"kind": 0, "v": vs_code_chat(first, second)},
        {"kind": 1, "k": ["requests", 0, "response", 0, "value"], "v": "Hello."},
        {"kind": 2, "k": ["requests"], "v": [vs_code_request("Bye.", {"value": "Bye!"})], "i": 1},
        {"kind": 3, "k": ["customTitle"]},
    )
    turns, problems, _ = read_file(path)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and not problems


def test_a_change_that_fits_no_state_and_a_torn_line_are_named(tmp_path):
    change = {"kind": 2, "k": ["requests", 5, "response"], "v": [{"value": "?"}]}
    path = write(
        tmp_path,
        {"kind": 0, "v": vs_code_chat(vs_code_request("Hi.", {"value": "Yes."}))},
        change,
        '{"kin',
    )
    turns, problems, _ = read_file(path)
    assert turns == [("Hi.", "Yes.")]
    assert sorted(problem.partition(", line ")[2][0] for problem in problems) == ["2", "3"]


# Sessions of Copilot CLI


COPILOT_START = (
    copilot_event(0, "session.start", sessionId="s1", version=1),
    copilot_event(1, "user.message", content="Hi.", transformedContent="<date/>Hi."),
    copilot_event(2, "assistant.message", content="Hello."),
)


def test_what_copilot_cli_put_before_the_model_was_not_said_by_the_user(tmp_path):
    path = write(
        tmp_path,
        *COPILOT_START,
        copilot_event(3, "user.message", content="The price.", source="skill-pdf"),
        copilot_event(4, "user.message", content="Go on.", isAutopilotContinuation=True),
        copilot_event(5, "system.notification", content="A shell ended."),
        copilot_event(6, "assistant.message", content="I go on."),
    )
    turns, problems, _ = read_file(path)
    assert turns == [("Hi.", "Hello.\n\nI go on.")] and not problems


def test_a_subagent_of_copilot_cli_is_a_dialog_of_its_own(tmp_path):
    inner = copilot_event(4, "assistant.message", agent="a1", content="One file.")
    logs = read_logs([write(tmp_path, *COPILOT_START, inner)])
    assert [dialog.turns[0].done.text for dialog in logs.dialogs] == ["Hello.", "One file."]
    (file,) = read_transcripts(tmp_path / "log.jsonl")
    assert [transcript.is_of_subagent for transcript in file.transcripts] == [False, True]


def test_copilot_cli_takes_back_events_and_compacts(tmp_path):
    path = write(
        tmp_path,
        *COPILOT_START,
        copilot_event(3, "user.message", content="Undo it."),
        copilot_event(4, "assistant.message", content="Undone."),
        copilot_event(5, "session.snapshot_rewind", upToEventId="e3", eventsRemoved=2),
        copilot_event(6, "session.compaction_complete", success=True, summaryContent="y" * 400),
        copilot_event(7, "user.message", content="Bye."),
        copilot_event(8, "assistant.message", content="Bye!"),
        copilot_event(9, "quantum.leap", content="?"),
    )
    turns, problems, dialog = read_file(path)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")] and dialog.turns[1].tokens == 101
    assert any("line 6" in problem for problem in problems)
    assert any("'quantum.leap'" in problem for problem in problems)


def test_files_that_copilot_and_opencode_edit_are_changed(tmp_path):
    call = {"id": "c1", "name": "create_file", "arguments": '{"filePath": "/a.py"}'}
    result = {"metadata": {"toolCallRounds": [{"toolCalls": [call]}], "toolCallResults": {}}}
    state = {"status": "completed", "input": {"filePath": "/b.py"}, "output": ""}
    part = {"type": "tool", "callID": "c1", "tool": "edit", "state": state}
    chats = [
        vs_code_chat(vs_code_request("Go.", result=result)),
        opencode_session(*OPENCODE_TURN, opencode_message(3, "assistant", part)),
    ]
    paths = [
        files_changed(read_logs([write_document(tmp_path, value)]).dialogs[0].turns[0].done.calls)
        for value in chats
    ]
    assert paths == [["/a.py"], ["/b.py"]]
