"""Who said it in a session of Claude Code, and which of its branches and copies count."""

import json

import pytest
from agent_sessions import (
    FIRST,
    SESSION,
    bash,
    boundary,
    claude,
    reply,
    result,
    summary,
    user,
    write,
)
from log_variations import file_text, lines, text
from read_dialogs import dialog_in, read_file, read_lines, turns_of, write_document

from holdfast.logs import read_logs
from holdfast.transcripts import EventKind

# Compactions


def test_a_summary_after_a_compaction_is_no_message_of_the_user(tmp_path):
    turns, problems, _ = read_lines(
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
    _, _, dialog = read_lines(
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
    turns, _, dialog = read_lines(
        tmp_path, *FIRST, user("s1", "a1", text), user("u2", "s1", "Bye."), reply("a2", "u2", "Bye")
    )
    assert turns[1] == ("Bye.", "Bye")
    assert dialog.turns[1].tokens == (len(text) + 4) // 4


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
    turns, problems, dialog = read_file(path)
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
    turns, problems, dialog = read_file(path)
    assert [user for user, _ in turns] == ["Hi.", "Bye."] and not problems
    assert dialog.turns[1].tokens == 1


# Branches and copies


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
    turns, (problem,), dialog = read_lines(tmp_path, *REWOUND)
    assert turns == [("Rename it.", "Done."), ("Explain it.", "It adds up.")]
    assert not any(turn.done.calls or turn.done.earlier for turn in dialog.turns)
    assert "4 messages" in problem and "line 3" in problem


def test_an_edit_of_the_first_message_abandons_what_followed_it(tmp_path):
    edited = (user("u1b", None, "Look at it."), reply("a1b", "u1b", "One file."))
    turns, (problem,), _ = read_lines(tmp_path, *FIRST, *edited)
    assert turns == [("Look at it.", "One file.")] and "2 messages" in problem


def test_the_last_of_several_branches_is_active(tmp_path):
    third = (user("u3", "a2b", "And?"), reply("a3b", "u3", "Ten."))
    fourth = (user("u3b", "a2b", "Thanks."), reply("a4", "u3b", "Welcome."))
    turns, (problem,), _ = read_lines(tmp_path, *REWOUND, *third, *fourth)
    assert [text for text, _ in turns] == ["Rename it.", "Explain it.", "Thanks."]
    assert "6 messages" in problem


def test_another_answer_to_the_same_message_replaces_it(tmp_path):
    other_answer = reply("a1b", "u1", "It is done.", message={"id": "m2"})
    turns, problems, _ = read_lines(tmp_path, *FIRST, other_answer)
    assert turns == [("Rename it.", "It is done.")] and len(problems) == 1


def test_tools_that_are_called_at_once_are_no_abandoned_branches(tmp_path):
    """Each block of a reply is an event, and each result follows its own call."""
    message_id = {"message": {"id": "m1"}}
    turns, problems, dialog = read_lines(
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
        turns, problems, _ = read_lines(tmp_path, *events)
        assert turns == [("Rename it.", "Done."), ("Thanks.", "Welcome.")] and not problems


def test_a_message_that_was_written_again_with_another_text_is_named(tmp_path):
    turns, (problem,), _ = read_lines(tmp_path, *FIRST, reply("a1", "u1", "Done, all of it."))
    assert turns == [("Rename it.", "Done, all of it.")]
    assert "line 2" in problem and "line 3" in problem


def test_a_message_whose_parent_is_missing_follows_the_one_before_it(tmp_path):
    turns, problems, _ = read_lines(
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


# What the user said, and what the program wrote


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
    turns, problems, dialog = read_lines(tmp_path, *events)
    assert turns == [("Rename it.", "Done."), ("Bye.", "Bye!")] and not problems
    assert dialog.turns[1].tokens >= len(text) // 4


@pytest.mark.parametrize(
    "fields", [{"isMeta": True}, {"origin": {"kind": "task-notification"}}], ids=str
)
def test_internal_messages_were_not_said_by_the_user(fields, tmp_path):
    events = (*FIRST, user("m1", "a1", "The price.", **fields), reply("a2", "m1", "Noted."))
    assert read_lines(tmp_path, *events)[0] == [("Rename it.", "Done.\n\nNoted.")]


def test_a_reminder_within_a_message_is_left_out_of_it(tmp_path):
    reminder = "<system-reminder>\nMind the price.\n</system-reminder>"
    blocks = [{"type": "text", "text": text} for text in (reminder, "Rename it.")]
    for content in (blocks, f"Rename it.\n{reminder}"):
        turns, _, _ = read_lines(tmp_path, user("u1", None, content), reply("a1", "u1", "Done."))
        assert turns == [("Rename it.", "Done.")]


COMMAND = "<command-message>review</command-message>\n<command-name>/review</command-name>"


def test_the_text_of_a_slash_command_is_what_the_user_asked(tmp_path):
    clear = "<command-name>/clear</command-name>\n<command-args></command-args>"
    instructions = [text("Say what each file does.")]
    turns, problems, _ = read_lines(
        tmp_path,
        user("m1", None, clear),
        user("m2", "m1", NOT_SAID[0]),
        user("u1", "m2", COMMAND),
        user("u2", "u1", instructions, isMeta=True),
        reply("a1", "u2", "One file."),
    )
    assert turns == [("Say what each file does.", "One file.")] and not problems


def test_a_slash_command_without_a_text_is_asked_by_its_name(tmp_path):
    command = f"{COMMAND}\n<command-args>the cart</command-args>"
    turns, _, _ = read_lines(tmp_path, user("u1", None, command), reply("a1", "u1", "One file."))
    assert turns == [("/review the cart", "One file.")]


def test_the_arguments_of_a_slash_command_are_asked_too(tmp_path):
    command = f"{COMMAND}\n<command-args>the cart</command-args>"
    for words, prompt in (
        ("Review the cart.", "Review the cart."),
        ("Review.", "Review. the cart"),
    ):
        meta = user("u2", "u1", words, isMeta=True)
        turns, _, _ = read_lines(
            tmp_path, user("u1", None, command), meta, reply("a1", "u2", "Good.")
        )
        assert turns == [(prompt, "Good.")]


@pytest.mark.parametrize(
    "fields", [{"isApiErrorMessage": True}, {"message": {"model": "<synthetic>"}}], ids=str
)
def test_an_error_of_the_api_is_no_reply(fields, tmp_path):
    error = reply("e1", "u1", "API Error: 529. Try again. Or wait. Then go on.", **fields)
    next_turn = (user("u2", "e1", "Go on."), reply("a1", "u2", "Done."))
    turns, _, _ = read_lines(tmp_path, FIRST[0], error, *next_turn)
    assert turns == [("Rename it.\n\nGo on.", "Done.")]


def test_what_the_user_typed_while_the_assistant_worked_was_said(tmp_path):
    queued = {"type": "queued_command", "prompt": "And the price?", "commandMode": "prompt"}
    event = {"type": "attachment", "attachment": queued, "uuid": "q1", "parentUuid": "a1"}
    turns, _, _ = read_lines(
        tmp_path, *FIRST, {**event, "sessionId": SESSION}, reply("a2", "q1", "It is ten.")
    )
    assert turns == [("Rename it.", "Done."), ("And the price?", "It is ten.")]


def test_a_result_without_a_block_is_that_of_a_tool(tmp_path):
    event = user("r1", "a1", "price", toolUseResult="price")
    turns, _, dialog = read_lines(tmp_path, *FIRST, event, reply("a2", "r1", "Ten."))
    assert turns == [("Rename it.", "Done.\n\nTen.")] and dialog.turns[0].role == "tool"


def test_a_message_of_another_session_is_not_the_users(tmp_path):
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "The build is done."}
    events = [
        user("u1", None, "Hi"),
        claude("attachment", "q1", "u1", None, attachment={**queued, "origin": "peer"}),
        reply("a1", "q1", {"type": "text", "text": "Hello."}),
        user("u2", "a1", '<cross-session-message from="x">Done.</cross-session-message>'),
        user("u3", "u2", "Peer?", origin="peer"),
        reply("a2", "u3", {"type": "text", "text": "Well."}),
    ]
    (dialog,) = read_logs([write(tmp_path, *events)]).dialogs
    assert [turn.user for turn in dialog.turns] == ["Hi"]


# Subagents and several sessions in a file


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


def test_subagents_in_files_of_their_own_are_dialogs_of_their_own(tmp_path):
    of = {"isSidechain": True, "agentId": "a1"}
    inner = (user("x1", None, "Count.", **of), claude("assistant", "x2", "x1", [text("1")], **of))
    write(tmp_path, *FIRST, name="s1.jsonl")
    write(tmp_path, *inner, name="s1/subagents/agent-a1.jsonl")
    write_document(tmp_path, {"agentType": "Explore"}, "s1/subagents/agent-a1.meta.json")
    logs = read_logs([tmp_path])
    replies = {dialog.turns[0].user: dialog.turns[0].done.text for dialog in logs.dialogs}
    assert replies == {"Rename it.": "Done.", "Count.": "1"} and not logs.problems


# What was put before the model


def attached(**attachment) -> dict:
    event = claude("attachment", "x1", "u1", [])
    del event["message"]
    return {**event, "attachment": attachment}


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "hook_additional_context", "content": ["Answer in German."]},
        {"type": "hook_success", "hookEvent": "SessionStart", "content": "Answer in German."},
        {"type": "nested_memory", "path": "a", "content": {"content": "Answer in German."}},
        {"type": "file", "content": {"type": "text", "file": {"content": "Answer in German."}}},
        {"type": "invoked_skills", "skills": [{"name": "a", "content": "Answer in German."}]},
        {"type": "relevant_memories", "memories": [{"content": "Answer in German."}]},
        {"type": "edited_text_file", "filename": "a", "snippet": "Answer in German."},
        {"type": "mcp_resource", "content": {"contents": [{"text": "Answer in German."}]}},
        {"type": "teammate_mailbox", "content": [{"text": "Answer in German."}]},
    ],
    ids=lambda attachment: attachment["type"],
)
def test_an_attachment_was_put_before_the_model_and_was_not_said(attachment, tmp_path):
    log = lines(user("u1", None, "Hi"), attached(**attachment), reply("a1", "x1", text("A.")))
    dialog = dialog_in(tmp_path, "s.jsonl", log)
    assert turns_of(dialog) == [("Hi", "A.")]
    (event,) = [e for e in dialog.transcript.path if e.kind is EventKind.REMINDER]
    assert event.text == "Answer in German."


def test_a_file_of_which_the_log_has_only_the_name_is_named_as_left_out(tmp_path):
    path = tmp_path / "s.jsonl"
    pdf = attached(type="pdf_reference", filename="a.pdf", pageCount=3)
    log = lines(user("u1", None, "Hi"), pdf, reply("a1", "x1", text("A.")))
    path.write_text(file_text(log))
    (problem,) = read_logs([path]).problems
    assert "1 of the type 'pdf_reference'" in problem


def test_what_a_hook_printed_for_the_user_is_not_in_the_context(tmp_path):
    hook = attached(type="hook_success", hookEvent="PostToolUse", content="formatted")
    log = lines(user("u1", None, "Hi"), hook, reply("a1", "x1", text("A.")))
    dialog = dialog_in(tmp_path, "s.jsonl", log)
    assert not [e for e in dialog.transcript.path if e.kind is EventKind.REMINDER]


@pytest.mark.parametrize(
    ("attachment", "prompt"),
    [
        ({"type": "prompt_snapshot", "systemPrompt": ["You code.", "Be brief."]},
         "You code.\n\nBe brief."),
        ({"type": "instructions", "files": [{"path": "CLAUDE.md", "content": "Be brief."}]},
         "Be brief."),
    ],
)  # fmt: skip
def test_a_snapshot_of_the_prompt_is_the_system_prompt(attachment, prompt, tmp_path):
    log = lines(user("u1", None, "Hi"), attached(**attachment), reply("a1", "x1", text("A.")))
    assert dialog_in(tmp_path, "s.jsonl", log).system == prompt


def test_a_queued_message_with_an_image_was_said(tmp_path):
    queued = attached(type="queued_command", prompt=[text("Also the price?"), {"type": "image"}])
    log = lines(
        user("u1", None, "Hi"),
        {**reply("a0", "u1", text("Working.")), "uuid": "a0"},
        {**queued, "parentUuid": "a0"},
        reply("a1", "x1", text("Yes.")),
    )
    assert turns_of(dialog_in(tmp_path, "s.jsonl", log)) == [
        ("Hi", "Working."),
        ("Also the price?", "Yes."),
    ]


def test_a_message_of_a_teammate_was_not_said_by_the_user(tmp_path):
    words = '<teammate-message teammate_id="b">\nthe cost?\n</teammate-message>'
    log = lines(
        user("u1", None, "Hi"),
        reply("a1", "u1", text("A.")),
        user("u2", "a1", words),
        reply("a2", "u2", text("B.")),
    )
    assert turns_of(dialog_in(tmp_path, "s.jsonl", log)) == [("Hi", "A.\n\nB.")]
