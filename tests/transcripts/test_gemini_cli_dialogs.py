"""Sessions of Gemini CLI: arguments of calls, messages that were taken back, and saved chats."""

import pytest
from agent_sessions import GEMINI, gemini, write
from read_dialogs import dialog_in, read_lines, turns_of

from holdfast.logs import read_logs


@pytest.mark.parametrize("arguments", ["{'command': 'ls'}", '{"command": "ls"}'])
def test_gemini_cli_may_have_the_arguments_of_a_call_as_text(arguments, tmp_path):
    call = {"id": "c", "name": "run_shell_command", "args": arguments, "status": "success"}
    reply = {**gemini(2, "gemini", "Done."), "toolCalls": [call]}
    (dialog,) = read_logs([write(tmp_path, GEMINI, gemini(1, "user", "Hi"), reply)]).dialogs
    assert [dict(call.arguments) for call in dialog.turns[0].done.calls] == [{"command": "ls"}]


@pytest.mark.parametrize("arguments", ["{[]: 1}", "ls", "{" * 5000])
def test_other_text_in_place_of_arguments_costs_only_its_reply(arguments, tmp_path):
    call = {"id": "c", "name": "run_shell_command", "args": arguments, "status": "success"}
    reply = {**gemini(2, "gemini", "Done."), "toolCalls": [call]}
    lines = (GEMINI, gemini(1, "user", "Hi"), reply, gemini(3, "gemini", "Well."))
    turns, (problem,), _ = read_lines(tmp_path, *lines)
    assert turns == [("Hi", "Well.")] and "is not an object" in problem


def test_gemini_cli_takes_back_messages(tmp_path):
    opening = (GEMINI, gemini(1, "user", "Hi."), gemini(2, "gemini", "Hello."))
    price = (gemini(3, "user", "The price?"), gemini(4, "gemini", "Ten."), {"$rewindTo": "3"})
    end = (gemini(5, "user", "Bye."), gemini(6, "gemini", "Bye!"))
    turns, (problem,), _ = read_lines(tmp_path, *opening, *price, *end)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")]
    assert "line 6" in problem and "Gemini CLI" in problem and "$rewindTo" in problem


def test_gemini_cli_compresses_the_dialog(tmp_path):
    opening = (GEMINI, gemini(1, "user", "Hi."), gemini(2, "gemini", "x" * 4000))
    replaced = {"$set": {"messages": [gemini(9, "user", "Summary.")]}}
    end = (gemini(5, "user", "Bye."), gemini(6, "gemini", "Bye!"))
    turns, problems, dialog = read_lines(tmp_path, *opening, replaced, *end)
    assert [user_text for user_text, _ in turns] == ["Hi.", "Bye."] and not problems
    assert dialog.turns[1].tokens < 10


SET_UP = "This is the Gemini CLI. We are setting up the context for our chat.\nThe price list is"


@pytest.mark.parametrize("wrap", [list, lambda messages: {"history": messages}])
def test_a_saved_chat_of_gemini_cli_begins_with_what_the_program_said(wrap, tmp_path):
    words = [SET_UP, "Got it. Thanks for the context!", "Hi", "A."]
    roles = ("user", "model")
    messages = [{"role": roles[n % 2], "parts": [{"text": w}]} for n, w in enumerate(words)]
    dialog = dialog_in(tmp_path, "checkpoint-a.json", wrap(messages))
    assert turns_of(dialog) == [("Hi", "A.")]
    assert dialog.transcript.format == "gemini-cli"


@pytest.mark.parametrize("display", [{}, {"displayContent": [{"text": "See @a"}]}])
def test_the_text_of_a_file_that_was_named_in_gemini_cli_was_not_said(display, tmp_path):
    parts = [{"text": "See @a"}, {"text": "\n--- Content from referenced files ---\nprice"}]
    message = {"id": "1", "timestamp": "t", "type": "user", "content": parts, **display}
    answer = {"id": "2", "timestamp": "t", "type": "gemini", "content": "A."}
    session = {"sessionId": "s", "projectHash": "h", "messages": [message, answer]}
    assert turns_of(dialog_in(tmp_path, "session-1.json", session)) == [("See @a", "A.")]
