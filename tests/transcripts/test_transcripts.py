"""Transcripts of coding agents and exports of chats: who said what, and which branch is active."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agent_sessions import (
    FIRST,
    GEMINI,
    SESSION,
    bash,
    boundary,
    claude,
    codex,
    codex_says,
    gemini,
    reply,
    result,
    summary,
    user,
    write,
)
from code_blocks import ROOT, blocks_of

from holdfast.errors import UnknownName, UsageError
from holdfast.logs import read_logs
from holdfast.transcripts import FORMATS, Event, EventKind, read_transcripts
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.injected import enclosing_element
from holdfast.transcripts.transcript import branched_transcript


def turns_of(dialog):
    """The texts of the user and the assistant in each turn."""
    return [(turn.user, turn.done.text) for turn in dialog.turns]


def read(tmp_path, *values):
    logs = read_logs([write(tmp_path, *values)])
    (dialog,) = logs.dialogs
    return turns_of(dialog), list(logs.problems), dialog


def test_a_summary_after_a_compaction_is_no_message_of_the_user(tmp_path):
    turns, problems, _ = read(
        tmp_path,
        *FIRST,
        boundary("b1", "a1"),
        summary("s1", "b1", "Summary: the user asked about the price."),
        reply("a2", "s1", "I go on."),
        user("u2", "a2", "Bye."),
        reply("a3", "u2", "Bye!"),
    )
    assert turns == [("Rename it.", "Done.\n\nI go on."), ("Bye.", "Bye!")] and not problems


def test_the_context_begins_again_after_each_compaction(tmp_path):
    long = "x" * 4000
    _, _, dialog = read(
        tmp_path,
        user("u1", None, "Hi."),
        reply("a1", "u1", long),
        boundary("b1", "a1"),
        summary("s1", "b1", "y" * 400),
        user("u2", "s1", "Go on."),
        reply("a2", "u2", long),
        boundary("b2", "a2"),
        summary("s2", "b2", "y" * 800),
        user("u3", "s2", "Go on."),
        reply("a3", "u3", "Done."),
    )
    tokens = [turn.tokens for turn in dialog.turns]
    assert tokens == [0, 101, 201]


def test_a_summary_of_an_old_version_has_no_mark(tmp_path):
    text = "This session is being continued from a previous conversation that ran out of context."
    turns, _, dialog = read(
        tmp_path, *FIRST, user("s1", "a1", text), user("u2", "s1", "Bye."), reply("a2", "u2", "Bye")
    )
    assert turns[1] == ("Bye.", "Bye")
    assert dialog.turns[1].tokens == (len(text) + 4) // 4


REWOUND = (
    *FIRST,
    user("u2", "a1", "What is the price?"),
    reply("a2", "u2", "I push it.", bash("t1", "git push --force")),
    result("r2", "a2", "t1"),
    reply("a3", "r2", "Pushed."),
    user("u2b", "a1", "Explain it."),
    reply("a2b", "u2b", "It adds up."),
)


def test_a_rewound_branch_is_left_out_and_named(tmp_path):
    turns, (problem,), dialog = read(tmp_path, *REWOUND)
    assert turns == [("Rename it.", "Done."), ("Explain it.", "It adds up.")]
    assert not any(turn.done.calls or turn.done.earlier for turn in dialog.turns)
    assert "4 messages" in problem and "line 3" in problem


def test_an_edit_of_the_first_message_abandons_what_followed_it(tmp_path):
    edited = (user("u1b", None, "Look at it."), reply("a1b", "u1b", "One file."))
    turns, (problem,), _ = read(tmp_path, *FIRST, *edited)
    assert turns == [("Look at it.", "One file.")] and "2 messages" in problem


def test_the_last_of_several_branches_is_active(tmp_path):
    third = (user("u3", "a2b", "And?"), reply("a3b", "u3", "Ten."))
    fourth = (user("u3b", "a2b", "Thanks."), reply("a4", "u3b", "Welcome."))
    turns, (problem,), _ = read(tmp_path, *REWOUND, *third, *fourth)
    assert [text for text, _ in turns] == ["Rename it.", "Explain it.", "Thanks."]
    assert "6 messages" in problem


def test_another_answer_to_the_same_message_replaces_it(tmp_path):
    other_answer = reply("a1b", "u1", "It is done.", message={"id": "m2"})
    turns, problems, _ = read(tmp_path, *FIRST, other_answer)
    assert turns == [("Rename it.", "It is done.")] and len(problems) == 1


def test_tools_that_are_called_at_once_are_no_abandoned_branches(tmp_path):
    """Each block of a reply is an event, and each result follows its own call."""
    message_id = {"message": {"id": "m1"}}
    turns, problems, dialog = read(
        tmp_path,
        user("u1", None, "Look."),
        reply("a1", "u1", bash("t1", "ls a"), **message_id),
        reply("a2", "a1", bash("t2", "ls b"), **message_id),
        result("r2", "a2", "t2"),
        result("r1", "a1", "t1"),
        reply("a3", "r1", "Two files."),
    )
    assert turns == [("Look.", "Two files.")] and not problems
    commands = [call.arguments["command"] for call in dialog.turns[0].done.calls]
    assert commands == ["ls a", "ls b"]


def test_a_history_that_is_written_again_counts_once(tmp_path):
    next_turn = (user("u2", "a1", "Thanks."), reply("a2", "u2", "Welcome."))
    for events in ((*FIRST, *FIRST, *next_turn), (*FIRST, *next_turn, *FIRST)):
        turns, problems, _ = read(tmp_path, *events)
        assert turns == [("Rename it.", "Done."), ("Thanks.", "Welcome.")] and not problems


def test_a_message_that_was_written_again_with_another_text_is_named(tmp_path):
    turns, (problem,), _ = read(tmp_path, *FIRST, reply("a1", "u1", "Done, all of it."))
    assert turns == [("Rename it.", "Done, all of it.")]
    assert "line 2" in problem and "line 3" in problem


def test_a_message_whose_parent_is_missing_follows_the_one_before_it(tmp_path):
    turns, problems, _ = read(
        tmp_path, *FIRST, '{"uuid": "torn', user("u2", "torn", "Bye."), reply("a2", "u2", "Bye!")
    )
    assert len(turns) == 2
    assert len(problems) == 1 and "line 3:" in problems[0]


def copy_to(events, session):
    return [{**event, "sessionId": session} for event in events]


def test_a_turn_that_a_resumed_session_copied_counts_once(tmp_path):
    next_turn = (user("u2", "a1", "Thanks."), reply("a2", "u2", "Welcome."))
    write(tmp_path, *FIRST, name="logs/one.jsonl")
    write(tmp_path, *copy_to((*FIRST, *next_turn), "s2"), name="logs/two.jsonl")
    logs = read_logs([tmp_path / "logs"])
    (dialog,) = logs.dialogs
    assert "two.jsonl" in dialog.source and len(dialog.turns) == 2
    (problem,) = logs.problems
    assert "one.jsonl" in problem and "two.jsonl" in problem


def test_the_turns_before_a_fork_count_once(tmp_path):
    branch = (user("u2", "a1", "Thanks."), reply("a2", "u2", "Welcome."))
    other_branch = (user("u3", "a1", "And?"), reply("a3", "u3", "No more."))
    write(tmp_path, *FIRST, *branch, name="logs/one.jsonl")
    write(tmp_path, *copy_to((*FIRST, *other_branch), "s2"), name="logs/two.jsonl")
    logs = read_logs([tmp_path / "logs"])
    assert [[turn.number for turn in dialog.turns] for dialog in logs.dialogs] == [[1, 2], [2]]
    assert "1 of its 2 turns" in logs.problems[0]
    assert logs.dialogs[1].turns[0].tokens > 0


NOT_SAID = [
    "<local-command-stdout>The total cost is 3 dollars</local-command-stdout>",
    "<local-command-stderr>no price</local-command-stderr>",
    "<bash-input>price</bash-input>",
    "<bash-stdout>price</bash-stdout><bash-stderr></bash-stderr>",
    "<system-reminder>Mind the price.</system-reminder>",
    "<task-notification>\n<status>price</status>\n</task-notification>",
    "[Request interrupted by user for tool use]",
    "Caveat: The messages below were generated by the user while running local commands. Price.",
]


@pytest.mark.parametrize("text", NOT_SAID)
def test_what_the_program_wrote_was_not_said_by_the_user(text, tmp_path):
    events = (*FIRST, user("m1", "a1", text), user("u2", "m1", "Bye."), reply("a2", "u2", "Bye!"))
    turns, problems, dialog = read(tmp_path, *events)
    assert turns == [("Rename it.", "Done."), ("Bye.", "Bye!")] and not problems
    assert dialog.turns[1].tokens >= len(text) // 4


@pytest.mark.parametrize(
    "fields", [{"isMeta": True}, {"origin": {"kind": "task-notification"}}], ids=str
)
def test_internal_messages_were_not_said_by_the_user(fields, tmp_path):
    events = (*FIRST, user("m1", "a1", "The price.", **fields), reply("a2", "m1", "Noted."))
    assert read(tmp_path, *events)[0] == [("Rename it.", "Done.\n\nNoted.")]


def test_a_reminder_within_a_message_is_left_out_of_it(tmp_path):
    reminder = "<system-reminder>\nMind the price.\n</system-reminder>"
    blocks = [{"type": "text", "text": text} for text in (reminder, "Rename it.")]
    for content in (blocks, f"Rename it.\n{reminder}"):
        turns, _, _ = read(tmp_path, user("u1", None, content), reply("a1", "u1", "Done."))
        assert turns == [("Rename it.", "Done.")]


COMMAND = "<command-message>review</command-message>\n<command-name>/review</command-name>"


def test_the_text_of_a_slash_command_is_what_the_user_asked(tmp_path):
    clear = "<command-name>/clear</command-name>\n<command-args></command-args>"
    text = [{"type": "text", "text": "Say what each file does."}]
    turns, problems, _ = read(
        tmp_path,
        user("m1", None, clear),
        user("m2", "m1", NOT_SAID[0]),
        user("u1", "m2", COMMAND),
        user("u2", "u1", text, isMeta=True),
        reply("a1", "u2", "One file."),
    )
    assert turns == [("Say what each file does.", "One file.")] and not problems


def test_a_slash_command_without_a_text_is_asked_by_its_name(tmp_path):
    command = f"{COMMAND}\n<command-args>the cart</command-args>"
    turns, _, _ = read(tmp_path, user("u1", None, command), reply("a1", "u1", "One file."))
    assert turns == [("/review the cart", "One file.")]


def test_the_arguments_of_a_slash_command_are_asked_too(tmp_path):
    command = f"{COMMAND}\n<command-args>the cart</command-args>"
    for text, prompt in (("Review the cart.", "Review the cart."), ("Review.", "Review. the cart")):
        meta = user("u2", "u1", text, isMeta=True)
        turns, _, _ = read(tmp_path, user("u1", None, command), meta, reply("a1", "u2", "Good."))
        assert turns == [(prompt, "Good.")]


@pytest.mark.parametrize(
    "fields", [{"isApiErrorMessage": True}, {"message": {"model": "<synthetic>"}}], ids=str
)
def test_an_error_of_the_api_is_no_reply(fields, tmp_path):
    error = reply("e1", "u1", "API Error: 529. Try again. Or wait. Then go on.", **fields)
    next_turn = (user("u2", "e1", "Go on."), reply("a1", "u2", "Done."))
    turns, _, _ = read(tmp_path, FIRST[0], error, *next_turn)
    assert turns == [("Rename it.\n\nGo on.", "Done.")]


def test_what_the_user_typed_while_the_assistant_worked_was_said(tmp_path):
    queued = {"type": "queued_command", "prompt": "And the price?", "commandMode": "prompt"}
    event = {"type": "attachment", "attachment": queued, "uuid": "q1", "parentUuid": "a1"}
    turns, _, _ = read(
        tmp_path, *FIRST, {**event, "sessionId": SESSION}, reply("a2", "q1", "It is ten.")
    )
    assert turns == [("Rename it.", "Done."), ("And the price?", "It is ten.")]


def test_a_result_without_a_block_is_that_of_a_tool(tmp_path):
    event = user("r1", "a1", "price", toolUseResult="price")
    turns, _, dialog = read(tmp_path, *FIRST, event, reply("a2", "r1", "Ten."))
    assert turns == [("Rename it.", "Done.\n\nTen.")] and dialog.turns[0].role == "tool"


def test_subagents_are_dialogs_of_their_own(tmp_path):
    """In old versions they are in the file of their session, and have no names."""
    side = {"isSidechain": True}
    path = write(
        tmp_path,
        *FIRST,
        user("x1", None, "Count the files.", **side),
        user("y1", None, "Count the tests.", **side),
        reply("x2", "x1", "One.", **side),
        reply("y2", "y1", "Two.", **side),
        user("u2", "a1", "Bye."),
        reply("a2", "u2", "Bye!"),
    )
    logs = read_logs([path])
    assert [turns_of(dialog) for dialog in logs.dialogs] == [
        [("Rename it.", "Done."), ("Bye.", "Bye!")],
        [("Count the files.", "One.")],
        [("Count the tests.", "Two.")],
    ]
    assert not logs.problems


def test_sessions_that_were_put_into_one_file_are_dialogs_of_their_own(tmp_path):
    second_session = [{**event, "sessionId": "s2", "uuid": f"{event['uuid']}x"} for event in FIRST]
    second_session[1]["parentUuid"] = "u1x"
    logs = read_logs([write(tmp_path, *FIRST, *second_session)])
    assert len(logs.dialogs) == 2 and not logs.problems


def test_events_in_one_list_are_read_as_in_lines(tmp_path):
    events = [boundary("b1", None), summary("s1", "b1", "Summary."), user("u1", "s1", "Hi.")]
    events.append(reply("a1", "u1", "Hello."))
    (path := tmp_path / "a.json").write_text(json.dumps(events))
    (dialog,) = read_logs([path]).dialogs
    assert turns_of(dialog) == [("Hi.", "Hello.")]


def test_the_output_of_a_session_without_a_terminal_is_read(tmp_path):
    """`claude -p --output-format stream-json`: the subagents' messages name the call."""
    user_fields = {"type": "user", "session_id": "s1", "parent_tool_use_id": None}
    assistant_fields = {**user_fields, "type": "assistant"}
    inner = {"role": "assistant", "content": [{"type": "text", "text": "One."}]}
    outer = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    path = write(
        tmp_path,
        {"type": "system", "subtype": "init", "session_id": "s1"},
        {**user_fields, "message": {"role": "user", "content": "Rename it."}},
        {**assistant_fields, "parent_tool_use_id": "t1", "message": inner},
        {**assistant_fields, "message": outer},
        {"type": "result", "subtype": "success", "session_id": "s1"},
    )
    logs = read_logs([path])
    assert [turns_of(d) for d in logs.dialogs] == [[("Rename it.", "Done.")], [("", "One.")]]
    assert not logs.problems


META = codex("session_meta", id="s1", instructions="Work on the shop.")
CODEX = (META, codex_says("user", "Explain it."), codex_says("assistant", "It adds up."))


def test_codex_begins_the_context_again_after_a_compaction(tmp_path):
    long = codex_says("assistant", "x" * 4000)
    history = [
        codex_says("user", "Explain it.")["payload"],
        codex_says("user", "y" * 400)["payload"],
    ]
    end = (codex_says("user", "Thanks."), codex_says("assistant", "Welcome."))
    for payload, tokens in (
        ({"message": "short", "replacement_history": history}, 110),
        ({"message": "y" * 400}, 107),
    ):
        compacted = codex("compacted", **payload)
        turns, _, dialog = read(tmp_path, META, CODEX[1], long, compacted, *end)
        assert [text for text, _ in turns] == ["Explain it.", "Thanks."]
        assert abs(dialog.turns[1].tokens - tokens) < 5


CODEX_WROTE = [
    "<turn_aborted>\nThe user interrupted the turn: the price.\n</turn_aborted>",
    '<subagent_notification>\n{"status": "the price list is done"}\n</subagent_notification>',
    "<environment_context>\n  <cwd>/price</cwd>\n</environment_context>",
    "<user_instructions>\nMind the price.\n</user_instructions>",
    "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>\nMind the price.\n</INSTRUCTIONS>",
    "<user_shell_command>\n<command>price</command>\n</user_shell_command>",
    "<skill>\n<name>price</name>\n</skill>",
    "<some_new_element>\nprice\n</some_new_element>",
]


@pytest.mark.parametrize("text", CODEX_WROTE)
def test_what_codex_wrote_was_not_said_by_the_user(text, tmp_path):
    next_turn = (codex_says("user", text), codex_says("assistant", "Noted."))
    turns, problems, _ = read(tmp_path, *CODEX, *next_turn)
    assert turns == [("Explain it.", "It adds up.\n\nNoted.")] and not problems


def test_an_element_that_the_user_typed_was_said(tmp_path):
    text = "<my_page>\nprice\n</my_page>"
    event = codex("event_msg", type="user_message", message=text)
    next_turn = (codex_says("user", text), event, codex_says("assistant", "I see."))
    assert read(tmp_path, *CODEX, *next_turn)[0][1] == (text, "I see.")


def test_codex_takes_back_turns(tmp_path):
    price = (codex_says("user", "The price?"), codex_says("assistant", "Ten."))
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    next_turn = (codex_says("user", "Bye."), codex_says("assistant", "Bye!"))
    turns, (problem,), _ = read(tmp_path, *CODEX, *price, back, *next_turn)
    assert turns == [("Explain it.", "It adds up."), ("Bye.", "Bye!")]
    assert "line 6" in problem and "rewound" in problem


def test_a_torn_line_is_named(tmp_path):
    torn = json.dumps(CODEX[2])[:60]
    turns, (problem,), _ = read(tmp_path, *CODEX[:2], torn, CODEX[2])
    assert turns == [("Explain it.", "It adds up.")] and "line 3:" in problem


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
    turns, (problem,), _ = read(tmp_path, *lines)
    assert turns == [("Hi", "Well.")] and "is not an object" in problem


def test_gemini_cli_takes_back_messages(tmp_path):
    opening = (GEMINI, gemini(1, "user", "Hi."), gemini(2, "gemini", "Hello."))
    price = (gemini(3, "user", "The price?"), gemini(4, "gemini", "Ten."), {"$rewindTo": "3"})
    end = (gemini(5, "user", "Bye."), gemini(6, "gemini", "Bye!"))
    turns, (problem,), _ = read(tmp_path, *opening, *price, *end)
    assert turns == [("Hi.", "Hello."), ("Bye.", "Bye!")]
    assert "line 6" in problem and "Gemini CLI" in problem and "$rewindTo" in problem


def test_gemini_cli_compresses_the_dialog(tmp_path):
    opening = (GEMINI, gemini(1, "user", "Hi."), gemini(2, "gemini", "x" * 4000))
    replaced = {"$set": {"messages": [gemini(9, "user", "Summary.")]}}
    end = (gemini(5, "user", "Bye."), gemini(6, "gemini", "Bye!"))
    turns, problems, dialog = read(tmp_path, *opening, replaced, *end)
    assert [user_text for user_text, _ in turns] == ["Hi.", "Bye."] and not problems
    assert dialog.turns[1].tokens < 10


def chatgpt(current):
    def node(name, parent, role, text):
        content = {"content_type": "text", "parts": [text]}
        message = {"author": {"role": role}, "content": content, "metadata": {}}
        return {"id": name, "parent": parent, "message": message}

    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("u1", "root", "user", "A slogan."),
        node("a1", "u1", "assistant", "One. Two."),
        node("a2", "u1", "assistant", "Buy now."),
    ]
    return {"current_node": current, "mapping": {item["id"]: item for item in nodes}}


def test_the_branch_that_an_export_shows_is_read(tmp_path):
    turns, (problem,), _ = read(tmp_path, chatgpt("a1"))
    assert turns == [("A slogan.", "One. Two.")] and "1 message of abandoned" in problem


def test_a_nested_export_of_librechat_is_refused_by_name(tmp_path):
    nested = {"messageId": "m1", "isCreatedByUser": True, "text": "Hi.", "children": []}
    path = write(tmp_path, {"conversationId": "c", "recursive": True, "messages": [nested]})
    with pytest.raises(UsageError, match="LibreChat"):
        read_logs([path])


SYSTEM = {"role": "system", "content": "Be brief."}
HI, HELLO = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}


def test_the_answer_beside_the_messages_is_a_turn(tmp_path):
    response = {"choices": [{"message": {"role": "assistant", "content": "Ten."}}]}
    messages = [HI, HELLO, {"role": "user", "content": "The price?"}]
    for fields in ({"response": response}, {"response": json.dumps(response)}, response):
        turns, problems, _ = read(tmp_path, {"messages": messages, **fields})
        assert turns == [("Hi.", "Hello."), ("The price?", "Ten.")] and not problems
    turns, _, _ = read(tmp_path, {"request": {"messages": messages}, "response": response})
    assert turns[1] == ("The price?", "Ten.")


def test_an_answer_that_the_messages_repeat_counts_once(tmp_path):
    response = {"choices": [{"message": HELLO}]}
    turns, _, _ = read(tmp_path, {"messages": [HI, HELLO], "response": response})
    assert turns == [("Hi.", "Hello.")]


def test_a_failed_call_is_named(tmp_path):
    failed = {"call_type": "acompletion", "status": "failure", "messages": [HI], "response": {}}
    _, (problem,), _ = read(tmp_path, failed, {"messages": [HI, HELLO]})
    assert "line 1" in problem and "no response" in problem


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"run_type": "chain", "id": "1", "inputs": {}, "outputs": {}}, "LangSmith"),
        ({"type": "SPAN", "traceId": "t"}, "GENERATION"),
        ({"context": {}, "attributes": {"openinference.span.kind": "TOOL"}}, "OpenInference"),
        ({"context": {}, "attributes": {"gen_ai.operation.name": "execute_tool"}}, "gen_ai"),
        ({"context": {}, "attributes": {"gen_ai.operation.name": "chat"}}, "line 1.*gen_ai"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}, "OTLP"),
    ],
)
def test_a_trace_without_a_call_of_a_model_says_so(value, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        read_logs([write(tmp_path, value)])


def test_one_value_that_is_no_call_is_named_in_the_singular(tmp_path):
    with pytest.raises(UsageError, match="its only value is not an OTLP batch with a model call"):
        read_logs([write(tmp_path, {"resourceSpans": []})])
    with pytest.raises(UsageError, match="none of its 2 values is an OTLP batch"):
        read_logs([write(tmp_path, {"resourceSpans": []}, {"resourceLogs": []})])


def test_spans_of_two_instrumentations_in_one_file_are_read(tmp_path):
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Hi."}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}]
    gen_ai = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps(answer),
    }
    older = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hi.",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Hello.",
    }
    inference = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hello.",
    }
    spans = [
        {"context": {"trace_id": str(number)}, "attributes": attributes}
        for number, attributes in enumerate((gen_ai, older, inference))
    ]
    logs = read_logs([write(tmp_path, *spans)])
    assert [turns_of(dialog) for dialog in logs.dialogs] == [[("Hi.", "Hello.")]] * 3
    assert logs.formats == {"otel": 2, "phoenix": 1}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ({"role": "human"}, {"role": "ai"}),
        ({"role": "HumanMessage"}, {"role": "AIMessageChunk"}),
        ({"type": "human"}, {"type": "ai", "tool_calls": []}),
        ({"role": "User"}, {"role": "CHATBOT"}),
    ],
)
def test_the_roles_of_other_libraries_are_known(question, answer, tmp_path):
    messages = [{**question, "content": "Hi."}, {**answer, "content": "Hello."}]
    for value in ({"messages": messages}, messages):
        assert read(tmp_path, value)[0] == [("Hi.", "Hello.")]


def test_messages_of_a_developer_are_the_system_prompt(tmp_path):
    _, _, dialog = read(tmp_path, {"messages": [{**SYSTEM, "role": "developer"}, HI, HELLO]})
    assert dialog.system == "Be brief."


@pytest.mark.parametrize("content", [None, "", [{"type": "refusal", "refusal": "I cannot help."}]])
def test_a_refusal_is_the_text_of_a_message_without_one(content):
    message = {"role": "assistant", "content": content, "refusal": "I cannot help."}
    assert read_messages([message]) == [Event(EventKind.MESSAGE, "I cannot help.", "assistant")]


def test_a_refusal_does_not_replace_a_text():
    answered = {"role": "assistant", "content": "Hello.", "refusal": None}
    assert read_messages([answered]) == [Event(EventKind.MESSAGE, "Hello.", "assistant")]


def test_a_result_that_names_its_tool_is_one_result():
    part = {"type": "tool-result", "toolCallId": "1", "toolName": "bash", "output": "cart.py"}
    (event,) = read_messages([{"role": "tool", "content": [part]}])
    assert event == Event(EventKind.TOOL_RESULT, "cart.py") and event.call_id == "1"


def test_reasoning_alone_is_no_text_of_a_reply():
    thinking = {"role": "model", "parts": [{"text": "The user says hi.", "thought": True}]}
    assert read_messages([thinking]) == [Event(EventKind.MESSAGE, "", "assistant")]


def test_files_that_are_compressed_in_other_ways_are_named(tmp_path):
    write(tmp_path, {"messages": [HI, HELLO]}, name="logs/a.jsonl")
    for name in ("b.jsonl.lz4", "c.tar.zst"):
        (tmp_path / "logs" / name).write_bytes(b"\x28")
        with pytest.raises(UsageError) as excinfo:
            read_transcripts(tmp_path / "logs" / name)
        assert excinfo.value.value == str(tmp_path / "logs" / name)
    (first, second) = read_logs([tmp_path / "logs"]).problems
    assert "b.jsonl.lz4" in first and "c.tar.zst" in second


GOOD = {"messages": [HI, HELLO]}
DEEP = b'{"attributes": {"gen_ai": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}}"  # but valid JSON
PACKED = gzip.compress(json.dumps(GOOD).encode() * 50, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cut.jsonl.gz", PACKED[:-20], "unpacked"),
        ("head.jsonl.gz", PACKED[:5], "unpacked"),
        ("damaged.jsonl.gz", PACKED[:30] + b"\0\0\0\0" + PACKED[34:], "unpacked"),
        ("tail.json.gz", PACKED + b"{}", "unpacked"),
        ("plain.jsonl.gz", json.dumps(GOOD).encode(), "unpacked"),
        ("empty.jsonl.gz", b"", "empty"),
        ("cut.jsonl.zst", b"\x28\xb5\x2f\xfd", "unpacked"),
        ("damaged.jsonl.zst", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff", "unpacked"),
        ("cut.jsonl.xz", b"\xfd7zXZ", "unpacked"),
        ("damaged.jsonl.bz2", b"BZh", "unpacked"),
        ("cut.jsonl.br", b"\x8b", "compressed"),
        ("undefined.jsonl", b'{"messages": "caf\x81"}', "UTF-8"),
        ("wide_unmarked.jsonl", json.dumps(GOOD).encode("utf-16-le"), "JSON"),
        ("empty.jsonl", b"", "empty"),
        ("blank.json", b"\n \n", "empty"),
        ("zeros.jsonl", bytes(4096), "JSON"),
        ("zeros.json", bytes(4096), "JSON"),
        ("brackets.jsonl", b"[" * 100_000, "JSON"),
        ("deep.jsonl", DEEP, "deeply"),
        ("digits.jsonl", b"9" * 5000, "JSON"),
        ("unknown.jsonl", json.dumps("x" * 10**6).encode(), "no known format"),
        ("cursor_notes.md", b"# Rules\n", "its Markdown is in no known format"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_a_file_of_a_folder_that_cannot_be_read_is_named_and_the_rest_is_read(
    name, content, reason, tmp_path
):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/z.jsonl")
    (tmp_path / "logs" / name).write_bytes(content)
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 2
    (problem,) = logs.problems
    assert name in problem and reason in problem and len(problem) < 400
    with pytest.raises(UsageError) as excinfo:
        read_logs([tmp_path / "logs" / name])
    assert name in str(excinfo.value)


def test_what_is_no_file_is_named_unless_it_is_a_folder_of_logs(tmp_path):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/folder.jsonl/b.jsonl")
    os.mkfifo(tmp_path / "logs" / "pipe.jsonl")
    (tmp_path / "logs" / "broken.jsonl").symlink_to(tmp_path / "nowhere")
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 2
    pipe, dead_link = logs.problems
    assert "pipe.jsonl" in pipe and "broken.jsonl" in dead_link


def test_files_and_folders_that_may_not_be_opened_are_named(tmp_path, monkeypatch):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/locked.jsonl")
    write(tmp_path, GOOD, name="logs/private/b.jsonl")

    def refusing(function, name):  # as permissions do, which do not bind an administrator
        def check_path(path, *arguments, **options):
            if Path(path).name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **options)

        return check_path

    monkeypatch.setattr(Path, "open", refusing(Path.open, "locked.jsonl"))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "private"))
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 1
    private, locked = sorted(logs.problems, key=lambda problem: "locked" in problem)
    assert "private" in private and "locked.jsonl" in locked
    assert all("Permission denied" in problem for problem in logs.problems)


def test_a_line_of_50_megabytes_is_read(tmp_path):
    long = {"messages": [HI, {**HELLO, "content": "x" * 50_000_000}]}
    (file,) = read_transcripts(write(tmp_path, GOOD, long, GOOD))
    lengths = [len(transcript.path[-1].text) for transcript in file.transcripts]
    assert lengths == [6, 50_000_000, 6] and not file.unread


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.gz", "a.json.gz", "a.jsonl"])
def test_gzipped_logs_are_read(name, tmp_path):
    chats = [{"messages": [HI, HELLO]}, {"messages": [HI, {**HELLO, "content": "Again."}]}]
    text = json.dumps(chats, indent=1) if name == "a.json.gz" else "\n".join(map(json.dumps, chats))
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path, tmp_path / name):
        (file,) = read_transcripts(path)
        replies = [transcript.path[-1].text for transcript in file.transcripts]
        assert (replies, file.unread) == (["Hello.", "Again."], ())


def test_a_document_that_is_cut_off_is_one_problem_with_its_place(tmp_path):
    text = json.dumps([{"messages": [HI, HELLO]}] * 20, indent=2)
    lines = text.split("\n")[:-3]
    (file,) = read_transcripts(write(tmp_path, *lines, name="a.json"))
    (sentence,) = file.unread
    assert f"line {len(lines) + 1}" in sentence and not file.transcripts


def test_lines_in_a_file_named_json_are_read_without_those_that_are_cut_off(tmp_path):
    chat = {"messages": [HI, HELLO]}
    (file,) = read_transcripts(write(tmp_path, "", chat, "{", chat, name="a.json"))
    assert len(file.transcripts) == 2
    assert len(file.unread) == 1 and "line 3" in file.unread[0]


def test_an_empty_document_is_one_problem(tmp_path):
    (file,) = read_transcripts(write(tmp_path, "", name="a.json"))
    assert len(file.unread) == 1


def test_a_bad_format_or_path_is_refused_before_anything_is_read(tmp_path):
    file = write(tmp_path, {"messages": [HI, HELLO]})
    with pytest.raises(UnknownName) as excinfo:
        read_transcripts(file, "opena")
    assert excinfo.value.suggestion == "openai"
    (tmp_path / "empty").mkdir()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "a.jsonl.lz4").write_bytes(b"\x28")
    for name in ("nowhere.jsonl", "empty", "packed"):
        with pytest.raises(UsageError) as excinfo:
            read_transcripts([file, tmp_path / name])
        assert (excinfo.value.option, excinfo.value.value) == ("paths", str(tmp_path / name))


def test_reasoning_in_a_reply_is_kept_apart_from_it(tmp_path):
    thought = {"role": "assistant", "content": "<think>\nFirst. Then.\n</think>\n\nIt adds up."}
    turns, _, dialog = read(tmp_path, {"messages": [HI, thought]})
    assert turns == [("Hi.", "It adds up.")]
    assert dialog.turns[0].reasoning == "First. Then."


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look"}}]}
USED = {"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": {}}]}


@pytest.mark.parametrize(
    ("value", "form", "detected"),
    [
        ({"messages": [SYSTEM, HI, HELLO]}, "anthropic", "openai"),
        ({"messages": [HI, CALLED]}, "anthropic", "openai"),
        ({"messages": [HI, USED]}, "openai", "anthropic"),
        ({"system": "Be brief.", "messages": [HI, HELLO]}, "openai", "anthropic"),
        ({"messages": [HI, HELLO]}, "sharegpt", "openai"),
        ({"messages": [HI, HELLO]}, "claude-code", "openai"),
        (CODEX[1], "claude-code", "codex"),
        (FIRST[0], "codex", "claude-code"),
        (FIRST[0], "langfuse", "claude-code"),
    ],
)
def test_a_file_of_another_format_than_the_named_one_is_refused(value, form, detected, tmp_path):
    with pytest.raises(UsageError, match=f"line 1 .* {detected}, not {form}"):
        read_logs([write(tmp_path, value)], form)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_messages_that_two_formats_share_are_read_in_either(form, tmp_path):
    (dialog,) = read_logs([write(tmp_path, {"messages": [HI, HELLO]})], form).dialogs
    assert turns_of(dialog) == [("Hi.", "Hello.")]


@pytest.mark.parametrize("form", FORMATS)
def test_a_value_in_no_format_does_not_end_the_reading_in_the_named_one(form, tmp_path):
    values = [None, True, 5, '"a"', [], [1], {}, {"a": 1}, {"turns": 1}]
    (file,) = read_transcripts(write(tmp_path, *values), form)
    assert file.unread and not any(transcript.path for transcript in file.transcripts)


CONTRIBUTING = ROOT / "docs" / "contributing.md"
(TICKETS,) = (block for block in blocks_of(CONTRIBUTING, "python") if "FORMAT =" in block.text)


def test_the_file_of_the_page_on_contributing_is_imported_where_it_says(tmp_path):
    """In a copy of the package: a reader is imported while the package itself still is."""
    package = tmp_path / "holdfast"
    shutil.copytree(
        ROOT / "src" / "holdfast", package, ignore=shutil.ignore_patterns("assets", "__pycache__")
    )
    (package / "assets").symlink_to(ROOT / "src" / "holdfast" / "assets")
    (package / "transcripts" / "readers" / "tickets.py").write_text(TICKETS.text)
    table = package / "transcripts" / "formats.py"
    text = table.read_text().replace("    run_records,\n", "    run_records,\n    tickets,\n")
    table.write_text(text.replace("run_records.FORMAT,", "run_records.FORMAT, tickets.FORMAT,"))
    script = "from holdfast.transcripts import FORMATS; print(FORMATS['tickets'].name)"
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path)}, check=True)


def test_a_format_is_added_as_the_page_on_contributing_says(tmp_path, monkeypatch):
    (ticket,) = blocks_of(CONTRIBUTING, "json")
    names = {}
    exec(TICKETS.text, names)
    monkeypatch.setitem(FORMATS, "tickets", names["FORMAT"])
    wrong = json.dumps({"ticket": 8, "entries": [{"by": "cat", "text": "Meow."}]})
    for damaged in (3, [3], {"by": 3}, [{"by": [], "text": 3}], [{"text": "Meow."}]):
        (file,) = read_transcripts(write(tmp_path, {"ticket": 9, "entries": damaged}))
        assert not file.transcripts and len(file.unread) == 1
    for value in (None, 5, [1], {"a": 1}):
        (file,) = read_transcripts(write(tmp_path, value), "tickets")
        assert not file.transcripts and len(file.unread) == 1
    (file,) = read_transcripts(write(tmp_path, ticket.text.strip(), wrong))
    (transcript,) = file.transcripts
    assert transcript.format == "tickets"
    assert [event.kind for event in transcript.path] == [
        EventKind.MESSAGE,
        EventKind.REMINDER,
        EventKind.MESSAGE,
    ]
    assert len(file.unread) == 1 and "line 2" in file.unread[0] and "'cat'" in file.unread[0]
    (dialog,) = read_logs(file.path).dialogs
    assert turns_of(dialog) == [("Where is my bike?", "On its way.")]


def texts(events):
    return [event.text for event in events]


def test_a_transcript_is_a_tree_of_which_one_path_is_active(tmp_path):
    (file,) = read_transcripts(
        write(
            tmp_path,
            *FIRST,
            user("u2", "a1", "Undo it."),
            reply("a2", "u2", "Undone."),
            user("u3", "a1", "Bye."),
            reply("a3", "u3", "Bye!"),
        )
    )
    (tree,) = file.transcripts
    assert texts(tree.path) == ["Rename it.", "Done.", "Bye.", "Bye!"]
    assert texts(tree.events) == ["Rename it.", "Done.", "Bye.", "Bye!", "Undo it.", "Undone."]
    fork = tree.events.index(tree.path[1])
    assert [n for n, parent in enumerate(tree.parents) if parent == fork] == [2, 4]
    assert len(file.unread) == 1 and "abandoned" in file.unread[0]


def test_what_a_program_wrote_is_an_event_of_its_own_kind(tmp_path):
    error = reply("e1", "u2", "API Error: 529", isApiErrorMessage=True)
    (file,) = read_transcripts(
        write(
            tmp_path,
            *FIRST,
            user("u2", "a1", "<system-reminder>Be brief.</system-reminder>"),
            error,
            user("u3", "e1", "[Request interrupted by user]"),
            reply("a3", "u3", "I go on.", bash("c1")),
            result("r1", "a3", "c1"),
            boundary("b1", "r1"),
            summary("s1", "b1", "Summary."),
        )
    )
    (transcript,) = file.transcripts
    kinds = [
        EventKind.MESSAGE,
        EventKind.MESSAGE,
        EventKind.REMINDER,
        EventKind.ERROR,
        EventKind.INTERRUPTION,
    ]
    kinds += [
        EventKind.MESSAGE,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RESULT,
        EventKind.COMPACTION,
        EventKind.COMPACTION,
    ]
    assert [event.kind for event in transcript.path] == kinds and not file.unread


def test_turns_that_were_taken_back_stay_in_the_tree(tmp_path):
    rollout = [
        codex("session_meta", id="s"),
        codex_says("user", "One."),
        codex_says("assistant", "1"),
        codex_says("user", "Two."),
        codex_says("assistant", "2"),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
        codex_says("user", "Three."),
        codex_says("assistant", "3"),
    ]
    (file,) = read_transcripts(write(tmp_path, *rollout))
    (transcript,) = file.transcripts
    assert texts(transcript.path) == ["One.", "1", "Three.", "3"]
    assert texts(transcript.events) == ["One.", "1", "Two.", "2", "Three.", "3"]

    session = [
        {"sessionId": "s", "projectHash": "p"},
        {"id": "1", "timestamp": "t", "type": "user", "content": "One."},
        {"id": "2", "timestamp": "t", "type": "gemini", "content": "1"},
        {"id": "3", "timestamp": "t", "type": "user", "content": "Two."},
        {"id": "4", "timestamp": "t", "type": "gemini", "content": "2"},
        {"$rewindTo": "3"},
        {"id": "3", "timestamp": "t", "type": "user", "content": "Three."},
        {"id": "4", "timestamp": "t", "type": "gemini", "content": "3"},
    ]
    (file,) = read_transcripts(write(tmp_path, *session, name="session.jsonl"))
    (transcript,) = file.transcripts
    assert texts(transcript.path) == ["One.", "1", "Three.", "3"]
    assert sorted(texts(transcript.events)) == ["1", "2", "3", "One.", "Three.", "Two."]


def test_branches_hang_from_the_nearest_entry_that_has_events():
    nodes = {
        name: [Event(EventKind.MESSAGE, name, "user")] if name else []
        for name in ("root", "", "left", "right", "lost")
    }
    parents = {"root": None, "": "root", "left": "", "right": "", "lost": "nobody"}
    tree = branched_transcript("here", nodes, parents, ["root", "", "right"])
    assert texts(tree.path) == ["root", "right"]
    by_text = {event.text: parent for event, parent in zip(tree.events, tree.parents, strict=True)}
    assert tree.events[by_text["left"]].text == "root" and by_text["lost"] is None


def test_a_result_of_an_atif_step_belongs_to_the_call_that_it_names(tmp_path):
    calls = [{"tool_call_id": name, "function_name": "shell", "arguments": {}} for name in "ab"]
    results = [{"source_call_id": name, "content": f"of {name}"} for name in "ba"]
    step = {"source": "agent", "message": "I look.", "tool_calls": calls}
    steps = [{"source": "user", "message": "Look."}, {**step, "observation": {"results": results}}]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"schema_version": "ATIF-v1.4", "steps": steps}))
    (file,) = read_transcripts(log)
    (transcript,) = file.transcripts
    call_results = [(event.call_id, event.text) for event in transcript.path if event.call_id]
    assert call_results == [("b", "of b"), ("a", "of a")]


def test_subagents_of_an_atif_trajectory_are_dialogs_of_their_own(tmp_path):
    helper = {"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "message": "Found."}]}
    steps = [{"source": "user", "message": "Look."}, {"source": "agent", "message": "I look."}]
    malformed = {"schema_version": "ATIF-v1.7", "steps": [{"source": "cat"}]}
    log = tmp_path / "log.json"
    log.write_text(
        json.dumps({**helper, "steps": steps, "subagent_trajectories": [helper, malformed]})
    )
    (file,) = read_transcripts(log)
    assert [texts(transcript.path) for transcript in file.transcripts] == [
        ["Look.", "I look."],
        ["Found."],
    ]
    assert [transcript.is_of_subagent for transcript in file.transcripts] == [False, True]
    (unread,) = file.unread
    assert "subagent 2" in unread and "cat" in unread


def test_a_late_system_step_of_an_atif_trajectory_is_no_prompt(tmp_path):
    sources = (
        ("system", "Be brief."),
        ("user", "Look."),
        ("system", "Compacted."),
        ("agent", "Ok."),
    )
    steps = [{"source": source, "message": message} for source, message in sources]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}))
    ((transcript,),) = (file.transcripts for file in read_transcripts(log))
    assert [event.text for event in transcript.path if event.is_prompt] == ["Be brief."]
    assert [event.kind for event in transcript.path][2] is EventKind.REMINDER


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<environment_context>\n<cwd>/a</cwd>\n</environment_context>\n", "environment_context"),
        ("<b>Rome</b> is not <b>Paris</b>", ""),
        ("<b>Rome</b>, then", ""),
    ],
)
def test_a_text_is_in_one_element_only_if_that_element_ends_with_it(text, name):
    assert enclosing_element(text) == name


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        ('{"type": "user", "message": {"content": "größ'.encode()[:-1], "line 3: it is not UTF-8"),
        (b'{"type": "user", "content": "caf\x81"}\n', "line 3: it is not UTF-8"),
        (b"\0" * 4096, "line 3: it is not JSON"),
    ],
)
def test_a_line_that_is_no_text_costs_only_itself(end, problem, tmp_path):
    """A program writes to its log while it is read, or the computer stops as it does."""
    path = write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")))
    path.write_bytes(path.read_bytes() + end)
    logs = read_logs([path])
    assert [len(dialog.turns) for dialog in logs.dialogs] == [1]
    assert [problem in sentence for sentence in logs.problems] == [True]


def test_a_message_of_another_session_is_not_the_users(tmp_path):
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "The build is done."}
    lines = [
        user("u1", None, "Hi"),
        claude("attachment", "q1", "u1", None, attachment={**queued, "origin": "peer"}),
        reply("a1", "q1", {"type": "text", "text": "Hello."}),
        user("u2", "a1", '<cross-session-message from="x">Done.</cross-session-message>'),
        user("u3", "u2", "Peer?", origin="peer"),
        reply("a2", "u3", {"type": "text", "text": "Well."}),
    ]
    (dialog,) = read_logs([write(tmp_path, *lines)]).dialogs
    assert [turn.user for turn in dialog.turns] == ["Hi"]


def test_what_programs_keep_beside_their_sessions_is_no_log(tmp_path):
    write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")), name="c/s.jsonl")
    files = {"c/s/custom-title.json": {"customTitle": "x"}, "c/s/tool-results/a.json": [{"a": 1}]}
    hello, answer = gemini(1, "user", "Hi"), gemini(2, "gemini", "Hello.")
    write(tmp_path, GEMINI, hello, answer, name="g/chats/session-1.jsonl")
    typed = {"sessionId": "s", "messageId": 0, "type": "user", "message": "Hi", "timestamp": "t"}
    for name, value in {**files, "g/logs.json": [typed]}.items():
        write(tmp_path, value, name=name)
    logs = read_logs([tmp_path])
    assert len(logs.dialogs) == 2 and not logs.problems
    with pytest.raises(UsageError, match="no known format"):
        read_logs([tmp_path / "g" / "logs.json"])


@pytest.mark.parametrize(
    "torn", ["{0}{1}", "{0}" + "\0" * 64 + "\n{1}", "{0}\n" + "\0" * 64 + "{1}"]
)
def test_events_on_one_line_or_beside_zeros_are_read(torn, tmp_path):
    """Two programs write at once, or the computer stops while one does."""
    path = write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")))
    first, second = path.read_text().splitlines()
    path.write_text(torn.format(first, second) + "\n")
    logs = read_logs([path])
    assert [turn.user for dialog in logs.dialogs for turn in dialog.turns] == ["Hi"]
    assert not logs.problems
