"""`holdfast remind`: what the hooks of coding agents say, and when they say nothing."""

import json

import pytest
from agent_sessions import GEMINI, bash, boundary, claude, codex, reply, result, summary, user
from hook_sessions import (
    BE_BRIEF,
    FORCE_PUSH,
    LOOK_UP_PRICES,
    NO_FORCE_PUSH,
    RULE_TEXTS,
    THREE_SENTENCES,
    Session,
    claude_turn,
    codex_turn,
    gemini_turn,
)

# Rules that a turn broke

# {agent: (event, turns that keep the rules, turns that break two of them)}
TURNS = {
    "claude-code": (
        "UserPromptSubmit",
        [claude_turn(1, "Done.")],
        [claude_turn(2, THREE_SENTENCES, FORCE_PUSH)],
    ),
    "codex": (
        "UserPromptSubmit",
        [[codex("session_meta", id="s")], codex_turn(1, "Done.")],
        [codex_turn(2, THREE_SENTENCES, "git push --force")],
    ),
    "gemini-cli": (
        "BeforeAgent",
        [[GEMINI], gemini_turn(1, "Done.")],
        [gemini_turn(2, THREE_SENTENCES, "git push --force")],
    ),
}


@pytest.mark.parametrize("agent", TURNS)
def test_rules_that_the_last_turn_broke_are_said_once(agent, session):
    event, keeping, breaking = TURNS[agent]
    for values in keeping:
        session.append(*values)
    assert session.hook(event, prompt="go on") == []
    for values in breaking:
        session.append(*values)
    assert session.hook(event, prompt="go on") == [BE_BRIEF, NO_FORCE_PUSH]
    assert session.hook(event, prompt="go on") == []
    assert session.errors == ""


@pytest.mark.parametrize("agent", TURNS)
def test_a_turn_is_judged_where_the_hook_is_called_for_the_first_time(agent, session):
    event, keeping, breaking = TURNS[agent]
    for values in (*keeping, *breaking):
        session.append(*values)
    assert session.hook(event) == [BE_BRIEF, NO_FORCE_PUSH]


def test_a_path_may_begin_with_the_home_folder(session, monkeypatch):
    monkeypatch.setenv("HOME", str(session.log.parent))
    session.append(*claude_turn(1, THREE_SENTENCES))
    session.log = f"~/{session.log.name}"
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


def test_earlier_turns_of_a_session_that_was_not_followed_are_not_judged(session):
    session.append(*claude_turn(1, THREE_SENTENCES, FORCE_PUSH), *claude_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == []


def test_all_turns_since_the_last_call_are_judged(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, THREE_SENTENCES), *claude_turn(3, "Done."))
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


def test_a_rule_applies_to_the_turns_of_its_when(session):
    session.append(user("u1", None, "What is the price?"), reply("a1", "u1", "Ten."))
    assert session.hook("UserPromptSubmit") == [LOOK_UP_PRICES]


def test_a_gemini_session_that_is_one_document_is_read(rules, capsys, monkeypatch):
    session = Session(rules, capsys, monkeypatch, "session.json")
    turns = gemini_turn(1, "Done.")
    session.log.write_text(json.dumps({**GEMINI, "messages": turns}, indent=1))
    assert session.hook("BeforeAgent") == []
    turns += gemini_turn(2, THREE_SENTENCES, "git push --force")
    session.log.write_text(json.dumps({**GEMINI, "lastUpdated": "x", "messages": turns}, indent=1))
    assert session.hook("BeforeAgent") == [BE_BRIEF, NO_FORCE_PUSH]
    assert session.hook("BeforeAgent") == []


def test_the_dialog_of_a_subagent_is_not_that_of_the_session(session):
    session.append(*claude_turn(1, "Done."))
    aside = {"isSidechain": True}
    question = claude("user", "x1", None, "Look.", **aside)
    session.append(question, claude("assistant", "x2", "x1", THREE_SENTENCES, **aside))
    assert session.hook("UserPromptSubmit") == []


# During a turn


@pytest.mark.parametrize("event", ["PostToolUse", "AfterTool"])
def test_after_a_tool_what_was_done_is_judged_and_not_what_is_said(event, session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(user("u1", None, "The price?"), reply("a1", "u1", THREE_SENTENCES, FORCE_PUSH))
    assert session.hook(event, **call, tool_use_id="t1") == [NO_FORCE_PUSH]
    session.append(result("r1", "a1", "t1"))
    tool_fields = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t2"}
    assert session.hook(event, **tool_fields) == []
    assert session.hook(event, **{**call, "tool_use_id": "t3"}) == [NO_FORCE_PUSH]  # again
    session.append(reply("a2", "r1", bash("t2", "ls"), bash("t3", "git push --force")))
    assert session.hook("UserPromptSubmit") == [LOOK_UP_PRICES, BE_BRIEF]


def test_a_call_counts_once_though_the_log_has_it_later(session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(user("u1", None, "Push."))
    assert session.hook("PostToolUse", **call, tool_use_id="t1") == [NO_FORCE_PUSH]
    session.append(reply("a1", "u1", FORCE_PUSH))
    assert session.hook("PostToolUse", **call, tool_use_id="t1") == []
    assert session.hook("UserPromptSubmit") == []


def test_a_call_of_a_subagent_is_judged_by_itself(session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("PostToolUse", **call, agent_id="x", agent_type="y") == [NO_FORCE_PUSH]
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]


def test_calls_of_earlier_turns_count_for_rules_about_an_order(rules, session):
    rules.write_text(
        "cases: [{id: tests, system_prompt: Test., text: Run the tests before a commit.,"
        " measure: {name: runs_before, first: make test, then: git commit}}]"
    )
    session.append(*claude_turn(1, "Done.", bash("t1", "make test")))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, "Done.", bash("t2", "ls")))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(3, "Done.", bash("t3", "git commit -m x")))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(4, "Done.", bash("t4", "git commit -m y")))
    assert session.hook("UserPromptSubmit") == ["Run the tests before a commit."]


def test_the_question_before_the_users_answer_counts_though_it_is_in_an_earlier_turn(
    rules, session
):
    rules.write_text(
        "cases: [{id: ask, system_prompt: Ask., text: Ask before you push.,"
        " measure: {name: asks_before, command: git push, asking: push}}]"
    )
    session.append(*claude_turn(1, "Shall I push?", bash("t1", "ls")))
    assert session.hook("UserPromptSubmit") == []
    session.append(user("u2", "a1", "Yes."))
    assert session.hook("UserPromptSubmit") == []
    assert session.hook("UserPromptSubmit") == []  # the log has nothing new
    session.append(reply("a2", "u2", bash("t2", "git push")))
    assert session.hook("PostToolUse", tool_name="Read", tool_input={}) == []
    session.append(user("u3", "a2", "Thanks."), reply("a3", "u3", bash("t3", "git push")))
    assert session.hook("UserPromptSubmit") == ["Ask before you push."]


# Orders of the user

ON_MAIN = """
cases:
  - id: shop
    system_prompt: Work on the shop.
    rules:
      - id: main
        text: You must not push to `main` directly.
        measure: {name: command_not_run, command: git push origin main}
        unless: {user: hotfix}
"""
PUSH_MAIN = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}}


def push_turn(number, message, before=None):
    """A turn that pushes to main after a message of the user."""
    before = before or (f"a{number - 1}" if number > 1 else None)
    call = bash(f"t{number}", "git push origin main")
    return user(f"u{number}", before, message), reply(f"a{number}", f"u{number}", call)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Push it to main again, please.", 0),
        ("This is a hotfix.", 0),  # `unless` lifts the rule
        ("Fix the test.", 1),
        ("Don't push to main.", 1),
    ],
)
def test_what_the_user_ordered_is_not_held_against_the_agent(message, said, rules, session):
    rules.write_text(ON_MAIN)
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(2, message))
    broken = ["You must not push to `main` directly."] * said
    assert session.hook("PostToolUse", "--strict", **PUSH_MAIN, tool_use_id="t2") == broken
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(3, message))
    assert session.hook("UserPromptSubmit") == broken


def test_an_order_holds_for_its_turn_unless_the_user_says_that_it_lasts(rules, session):
    rules.write_text(ON_MAIN)
    session.append(*push_turn(1, "Push it to main."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(2, "Fix the test."))
    assert session.hook("UserPromptSubmit") == ["You must not push to `main` directly."]
    session.append(*push_turn(3, "From now on, always push to main."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(4, "Fix the test."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(5, "Fix the other test."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*push_turn(6, "From now on, follow the rules again. Don't push to main."))
    assert session.hook("UserPromptSubmit") == ["You must not push to `main` directly."]
    session.append(*push_turn(7, "Fix the last test."))
    assert session.hook("UserPromptSubmit") == ["You must not push to `main` directly."]


def test_an_order_that_lasts_ends_with_the_context(rules, session):
    rules.write_text(ON_MAIN)
    session.append(*push_turn(1, "From now on, always push to main."))
    assert session.hook("UserPromptSubmit") == []
    session.append(boundary("b1", "a1"), summary("s1", "b1", "The cart was renamed."))
    assert session.hook("UserPromptSubmit") == ["You must not push to `main` directly."]  # all
    session.append(*push_turn(2, "Fix the test.", before="s1"))
    assert session.hook("UserPromptSubmit") == ["You must not push to `main` directly."]


def test_a_yes_to_an_offer_of_an_earlier_turn_is_an_order(rules, session):
    rules.write_text(ON_MAIN)
    session.append(*claude_turn(1, "Shall I push it to main?"))
    assert session.hook("UserPromptSubmit") == []
    session.append(user("u2", "a1", "Yes."))
    assert session.hook("UserPromptSubmit") == []
    session.append(reply("a2", "u2", bash("t2", "git push origin main")))
    assert session.hook("PostToolUse", **PUSH_MAIN, tool_use_id="t2") == []
    assert session.hook("UserPromptSubmit") == []


# Compactions

COMPACTED = (boundary("b1", "a1"), summary("s1", "b1", "The cart was renamed."))


def test_after_a_compaction_all_rules_are_said_once(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*COMPACTED)
    assert session.hook("UserPromptSubmit") == RULE_TEXTS
    session.append(reply("a9", "s1", "Yes."))
    assert session.hook("UserPromptSubmit") == []


@pytest.mark.parametrize("calls_before", [True, False])
@pytest.mark.parametrize("is_written_before", [True, False])
def test_the_start_after_a_compaction_says_the_rules(session, is_written_before, calls_before):
    """It does not matter whether the log shows the compaction by then."""
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    if calls_before:  # as settings of earlier versions do
        assert session.hook("PreCompact", trigger="auto") == []
    if is_written_before:
        session.append(*COMPACTED)
    assert session.hook("SessionStart", source="compact") == RULE_TEXTS
    if not is_written_before:
        session.append(*COMPACTED)
    session.append(reply("a9", "s1", "Yes."))
    assert session.hook("PostToolUse", tool_name="Read", tool_input={}) == []
    assert session.hook("UserPromptSubmit") == []
    session.append(boundary("b2", "a9"), summary("s2", "b2", "Renamed."))
    assert session.hook("UserPromptSubmit") == RULE_TEXTS  # the next compaction


def test_codex_and_gemini_say_the_rules_after_a_compaction(rules, capsys, monkeypatch):
    session = Session(rules, capsys, monkeypatch, "rollout.jsonl")
    session.append(codex("session_meta", id="s"), *codex_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(codex("compacted", message="Renamed."), *codex_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == RULE_TEXTS
    assert session.hook("UserPromptSubmit") == []

    session = Session(rules, capsys, monkeypatch, "gemini.jsonl")
    session.append(GEMINI, *gemini_turn(1, "Done."))
    assert session.hook("BeforeAgent") == []
    assert session.hook("PreCompress", trigger="auto") == []  # the log does not show it
    assert session.hook("BeforeAgent") == RULE_TEXTS
    assert session.hook("BeforeAgent") == []


@pytest.mark.parametrize("source", ["startup", "resume", "clear"])
def test_another_start_of_a_session_says_nothing(session, source):
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("SessionStart", source=source) == []


def test_a_broken_rule_is_named_once_beside_the_others(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(
        *claude_turn(2, THREE_SENTENCES), boundary("b1", "a2"), summary("s1", "b1", "Renamed.")
    )
    assert session.hook("UserPromptSubmit") == [BE_BRIEF, LOOK_UP_PRICES, NO_FORCE_PUSH]


@pytest.mark.parametrize("character", ["x", "é", "語"])
def test_a_long_list_of_rules_is_cut(rules, session, character):
    measure = "{name: at_most_sentences, count: 1}"
    rule_lines = "".join(
        f"      - {{id: r{n}, text: {character * 90}, measure: {measure}}}\n" for n in range(200)
    )
    rules.write_text(f"cases:\n  - id: a\n    system_prompt: Go.\n    rules:\n{rule_lines}")
    session.append(*claude_turn(1, THREE_SENTENCES))
    answer = session.call(
        {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    )
    text = answer["hookSpecificOutput"]["additionalContext"]
    shown_count = sum(line.startswith("- ") for line in text.splitlines())
    assert f"{200 - shown_count} more" in text.splitlines()[-1]
    assert 8_000 < len(text.encode()) < 10_000
