"""Tasks of Cline and Roo Code: calls in the text, native calls, and summaries."""

import json

import pytest
from agent_files import (
    CLINE_COMMAND,
    CLINE_COMPLETION,
    CLINE_ENVIRONMENT,
    CLINE_FEEDBACK,
    CLINE_RESULT,
    CLINE_TASK,
    cline_says,
    user_says_to_cline,
)
from log_variations import text
from paths import ROOT
from read_dialogs import files_changed, read_file, write_document

from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.measures.agent_acts.actions import commands_of

DATA = ROOT / "tests" / "data" / "logs"


def test_calls_in_the_text_of_a_cline_task_are_read(tmp_path):
    messages = [
        CLINE_TASK,
        cline_says(CLINE_COMMAND),
        user_says_to_cline(*CLINE_RESULT),
        cline_says(CLINE_COMPLETION),
        user_says_to_cline(*CLINE_FEEDBACK),
        cline_says("None."),
    ]
    path = write_document(tmp_path, messages, "api_conversation_history.json")
    turns, problems, dialog = read_file(path)
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
        user_says_to_cline(
            text("<user_message>\nFix it.\n</user_message>"), CLINE_ENVIRONMENT, ts=1
        ),
        {"type": "reasoning", "role": "assistant", "summary": []},
        {"role": "assistant", "content": [text("I edit."), call, question], "ts": 2},
        user_says_to_cline(*answers, CLINE_ENVIRONMENT, ts=3),
        cline_says("Done.", ts=4),
    ]
    turns, problems, dialog = read_file(write_document(tmp_path, messages))
    assert turns == [("Fix it.", "I edit.\n\nWhich one?"), ("A.", "Done.")] and not problems
    assert files_changed(dialog.turns[0].done.calls) == ["cart.py"]


def test_the_commands_of_a_call_of_cline_are_commands(tmp_path):
    call = {"type": "tool_use", "id": "c1", "name": "run_commands"}
    call["input"] = {"commands": ["ls a", "cd b && make"]}
    messages = [CLINE_TASK, {"role": "assistant", "content": [call]}]
    (dialog,) = read_logs([write_document(tmp_path, messages)]).dialogs
    words = [command.words for command in commands_of(dialog.turns[0].done.calls)]
    assert ("ls", "a") in words and ("make",) in words


def test_a_result_of_a_command_of_several_lines_was_not_said_by_the_user(tmp_path):
    result = text("[execute_command for 'cat <<X\n<task>\nX'] Result:\nCommand executed.")
    messages = [
        CLINE_TASK,
        cline_says(CLINE_COMMAND),
        user_says_to_cline(result, CLINE_ENVIRONMENT),
        cline_says("One file."),
    ]
    turns, problems, _ = read_file(write_document(tmp_path, messages))
    assert turns == [("List it.", "I will look.\n\nOne file.")] and not problems


def test_a_summary_of_roo_code_begins_the_context_again(tmp_path):
    messages = [
        CLINE_TASK,
        cline_says("x" * 4000, condenseParent="s1"),
        {"role": "user", "content": [text("y" * 400)], "isSummary": True, "condenseId": "s1"},
        user_says_to_cline(text("<user_message>\nGo on.\n</user_message>")),
        cline_says("Done."),
    ]
    turns, _, dialog = read_file(write_document(tmp_path, messages))
    assert [user for user, _ in turns] == ["List it.", "Go on."]
    assert dialog.turns[1].tokens == (400 + len("Go on.")) // 4


def test_a_task_tag_in_a_prompt_does_not_make_a_file_clines(tmp_path):
    words = "<task>List it.</task> Be brief."
    turns, _, _ = read_file(
        write_document(tmp_path, [{"role": "user", "content": words}, cline_says("One.")])
    )
    assert turns == [(words, "One.")]


def test_several_files_of_a_call_of_roo_code_are_a_call_each(tmp_path):
    files = "".join(f"<file><path>{name}</path></file>" for name in ("a.py", "b.py"))
    messages = [CLINE_TASK, cline_says(f"<apply_diff>\n<args>{files}</args>\n</apply_diff>")]
    (dialog,) = read_logs([write_document(tmp_path, messages)]).dialogs
    assert files_changed(dialog.turns[0].done.calls) == ["a.py", "b.py"]


def test_clines_display_file_is_skipped_beside_its_task_and_refused_alone(tmp_path):
    display = [{"ts": 1, "type": "say", "say": "text", "text": "List it."}]
    write_document(
        tmp_path / "tasks/1", [CLINE_TASK, cline_says("One.")], "api_conversation_history.json"
    )
    write_document(tmp_path / "tasks/1", display, "ui_messages.json")
    write_document(tmp_path / "tasks/1", {"files_in_context": []}, "task_metadata.json")
    assert not read_logs([tmp_path / "tasks"]).problems
    with pytest.raises(UsageError, match="api_conversation_history"):
        read_logs([tmp_path / "tasks/1/ui_messages.json"])


def test_an_unknown_version_of_clines_sessions_is_named_and_read(tmp_path):
    session = json.loads((DATA / "cline.jsonl").read_text())
    turns, (problem,), _ = read_file(write_document(tmp_path, {**session, "version": 7}))
    assert len(turns) == 2 and "version 7" in problem
