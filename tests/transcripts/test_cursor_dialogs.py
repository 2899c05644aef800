"""Cursor's exports, transcripts of its agent, and databases."""

from agent_files import cursor_database
from agent_sessions import write
from log_variations import text
from read_dialogs import read_file, write_document

from holdfast.logs import read_logs
from holdfast.measures.agent_acts.actions import commands_of


def test_cursors_markdown_export_is_read(tmp_path):
    rule = "One.\n\n---\n\nTwo, **User** and all."
    exported = (
        "# Title\n_Exported on 5/15/2025 at 17:47:04 PDT from Cursor (0.50.4)_\n\n---\n\n"
        f"**User**\n\nHi.\n\n---\n\n**Cursor**\n\n{rule}\n\n---\n\n**User**\n\nBye.\n\n---\n\n"
        "**Cursor**\n\nBye!\n\n"
    )
    turns, problems, _ = read_file(write_document(tmp_path, exported, "cursor_title.md"))
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
    turns, problems, dialog = read_file(path)
    assert turns == [("Hi.", "Hello.")] and not problems
    assert [command.words for command in commands_of(dialog.turns[0].done.calls)] == [("ls",)]


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
