"""`holdfast remind`: what the hooks of coding agents say, and when they say nothing."""

import io
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_sessions import (
    GEMINI,
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
from fast_set import only_fast
from paths import ROOT

from holdfast.cli import main
from holdfast.coding_agents import hook_command
from holdfast.coding_agents.hook_command import HookCall, hook_call
from holdfast.coding_agents.hook_rules import cached_hook_rules, load_hook_rules
from holdfast.coding_agents.settings_files import AGENTS as AGENTS_BY_NAME
from holdfast.coding_agents.settings_files import hook_settings
from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.registry import REGISTRY
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.session_part import read_session_part

RULES = """
cases:
  - id: shop
    system_prompt: Work on the shop.
    rules:
      - id: price
        text: Look up a price before you say it.
        when: {user: price}
        measure: {name: tool_called, tool: lookup_price}
      - id: short
        text: Answer in at most two sentences.
        measure: {name: at_most_sentences, count: 2}
      - id: push
        text: Never force-push.
        measure: {name: command_not_run, command: 'git push --force'}
"""
ALL = ["Look up a price before you say it.", "Answer in at most two sentences."]
ALL += ["Never force-push."]
LONG = "One. Two. Three."
PUSH = bash("t1", "git push --force")


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


class Session:
    """A session of a coding agent, whose hooks are called."""

    def __init__(self, rules, capsys, monkeypatch, name="session.jsonl"):
        self.rules, self.capsys, self.monkeypatch = rules, capsys, monkeypatch
        self.log = rules.parent / "log" / name
        self.log.parent.mkdir(exist_ok=True)
        self.errors = ""

    def append(self, *values):
        with self.log.open("a") as file:
            file.writelines(json.dumps(value) + "\n" for value in values)

    def call(self, payload, *options, code=0):
        """Calls the hook with a payload; its answer, and the rules in it by their texts."""
        text = payload if isinstance(payload, str) else json.dumps(payload)
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        self.monkeypatch.setattr("sys.stdin", stdin)
        assert main(["remind", "--suite", str(self.rules), *options]) == code
        captured = self.capsys.readouterr()
        self.errors = captured.err
        return json.loads(captured.out) if captured.out else None

    def hook(self, event, *options, code=0, **fields):
        """The rules that are said when an event happens; [] if nothing is printed."""
        payload = {"session_id": "s", "transcript_path": str(self.log), "cwd": "/w", **fields}
        answer = self.call({**payload, "hook_event_name": event}, *options, code=code)
        if answer is None:
            return []
        assert answer.keys() == {"hookSpecificOutput"}
        output = answer["hookSpecificOutput"]
        assert output.keys() == {"hookEventName", "additionalContext"}
        assert output["hookEventName"] == event
        lines = [line for line in output["additionalContext"].splitlines() if line.startswith("- ")]
        return [re.sub(r" \(.*\)$", "", line[2:]) for line in lines]


@pytest.fixture
def session(rules, capsys, monkeypatch):
    return Session(rules, capsys, monkeypatch)


# A turn of each agent in which the rules are kept, and one in which two are broken


def claude_turn(number, text, *blocks):
    before = f"a{number - 1}" if number > 1 else None
    question = user(f"u{number}", before, f"Question {number}?")
    return question, reply(f"a{number}", f"u{number}", text, *blocks)


def codex_turn(number, text, *commands):
    calls = [
        codex(
            "response_item",
            type="function_call",
            name="exec_command",
            call_id=f"c{number}{index}",
            arguments=json.dumps({"cmd": command}),
        )
        for index, command in enumerate(commands)
    ]
    return codex_says("user", f"Question {number}?"), *calls, codex_says("assistant", text)


def gemini_turn(number, text, *commands):
    question = gemini(2 * number, "user", f"Question {number}?")
    calls = [
        {"id": f"g{number}{index}", "name": "run_shell_command", "args": {"command": command}}
        for index, command in enumerate(commands)
    ]
    return question, {**gemini(2 * number + 1, "gemini", text), "toolCalls": calls}


AGENTS = {
    "claude-code": (
        "UserPromptSubmit",
        [claude_turn(1, "Done.")],
        [claude_turn(2, LONG, PUSH)],
    ),
    "codex": (
        "UserPromptSubmit",
        [[codex("session_meta", id="s")], codex_turn(1, "Done.")],
        [codex_turn(2, LONG, "git push --force")],
    ),
    "gemini-cli": (
        "BeforeAgent",
        [[GEMINI], gemini_turn(1, "Done.")],
        [gemini_turn(2, LONG, "git push --force")],
    ),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_rules_that_the_last_turn_broke_are_said_once(agent, session):
    event, keeping, breaking = AGENTS[agent]
    for values in keeping:
        session.append(*values)
    assert session.hook(event, prompt="go on") == []
    for values in breaking:
        session.append(*values)
    assert session.hook(event, prompt="go on") == ALL[1:]
    assert session.hook(event, prompt="go on") == []
    assert session.errors == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_a_turn_is_judged_where_the_hook_is_called_for_the_first_time(agent, session):
    event, keeping, breaking = AGENTS[agent]
    for values in (*keeping, *breaking):
        session.append(*values)
    assert session.hook(event) == ALL[1:]


def test_a_path_may_begin_with_the_home_folder(session, monkeypatch):
    monkeypatch.setenv("HOME", str(session.log.parent))
    session.append(*claude_turn(1, LONG))
    session.log = f"~/{session.log.name}"
    assert session.hook("UserPromptSubmit") == [ALL[1]]


def test_earlier_turns_of_a_session_that_was_not_followed_are_not_judged(session):
    session.append(*claude_turn(1, LONG, PUSH), *claude_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == []


def test_all_turns_since_the_last_call_are_judged(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, LONG), *claude_turn(3, "Done."))
    assert session.hook("UserPromptSubmit") == [ALL[1]]


def test_a_rule_applies_to_the_turns_of_its_when(session):
    session.append(user("u1", None, "What is the price?"), reply("a1", "u1", "Ten."))
    assert session.hook("UserPromptSubmit") == [ALL[0]]


def test_a_gemini_session_that_is_one_document_is_read(rules, capsys, monkeypatch):
    session = Session(rules, capsys, monkeypatch, "session.json")
    turns = gemini_turn(1, "Done.")
    session.log.write_text(json.dumps({**GEMINI, "messages": turns}, indent=1))
    assert session.hook("BeforeAgent") == []
    turns += gemini_turn(2, LONG, "git push --force")
    session.log.write_text(json.dumps({**GEMINI, "lastUpdated": "x", "messages": turns}, indent=1))
    assert session.hook("BeforeAgent") == ALL[1:]
    assert session.hook("BeforeAgent") == []


# During a turn


@pytest.mark.parametrize("event", ["PostToolUse", "AfterTool"])
def test_after_a_tool_what_was_done_is_judged_and_not_what_is_said(event, session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(user("u1", None, "The price?"), reply("a1", "u1", LONG, PUSH))
    assert session.hook(event, **call, tool_use_id="t1") == [ALL[2]]
    session.append(result("r1", "a1", "t1"))
    tool_fields = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t2"}
    assert session.hook(event, **tool_fields) == []
    assert session.hook(event, **{**call, "tool_use_id": "t3"}) == [ALL[2]]  # again
    session.append(reply("a2", "r1", bash("t2", "ls"), bash("t3", "git push --force")))
    assert session.hook("UserPromptSubmit") == ALL[:2]


def test_a_call_counts_once_though_the_log_has_it_later(session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(user("u1", None, "Push."))
    assert session.hook("PostToolUse", **call, tool_use_id="t1") == [ALL[2]]
    session.append(reply("a1", "u1", PUSH))
    assert session.hook("PostToolUse", **call, tool_use_id="t1") == []
    assert session.hook("UserPromptSubmit") == []


def test_a_call_of_a_subagent_is_judged_by_itself(session):
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    session.append(*claude_turn(1, LONG))
    assert session.hook("PostToolUse", **call, agent_id="x", agent_type="y") == [ALL[2]]
    assert session.hook("UserPromptSubmit") == [ALL[1]]


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
    assert session.hook("UserPromptSubmit") == ALL
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
    assert session.hook("SessionStart", source="compact") == ALL
    if not is_written_before:
        session.append(*COMPACTED)
    session.append(reply("a9", "s1", "Yes."))
    assert session.hook("PostToolUse", tool_name="Read", tool_input={}) == []
    assert session.hook("UserPromptSubmit") == []
    session.append(boundary("b2", "a9"), summary("s2", "b2", "Renamed."))
    assert session.hook("UserPromptSubmit") == ALL  # the next compaction


def test_codex_and_gemini_say_the_rules_after_a_compaction(rules, capsys, monkeypatch):
    session = Session(rules, capsys, monkeypatch, "rollout.jsonl")
    session.append(codex("session_meta", id="s"), *codex_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(codex("compacted", message="Renamed."), *codex_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == ALL
    assert session.hook("UserPromptSubmit") == []

    session = Session(rules, capsys, monkeypatch, "gemini.jsonl")
    session.append(GEMINI, *gemini_turn(1, "Done."))
    assert session.hook("BeforeAgent") == []
    assert session.hook("PreCompress", trigger="auto") == []  # the log does not show it
    assert session.hook("BeforeAgent") == ALL
    assert session.hook("BeforeAgent") == []


@pytest.mark.parametrize("source", ["startup", "resume", "clear"])
def test_another_start_of_a_session_says_nothing(session, source):
    session.append(*claude_turn(1, LONG))
    assert session.hook("SessionStart", source=source) == []


def test_a_broken_rule_is_named_once_beside_the_others(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, LONG), boundary("b1", "a2"), summary("s1", "b1", "Renamed."))
    assert session.hook("UserPromptSubmit") == [ALL[1], ALL[0], ALL[2]]


@pytest.mark.parametrize("character", ["x", "é", "語"])
def test_a_long_list_of_rules_is_cut(rules, session, character):
    measure = "{name: at_most_sentences, count: 1}"
    rule_lines = "".join(
        f"      - {{id: r{n}, text: {character * 90}, measure: {measure}}}\n" for n in range(200)
    )
    rules.write_text(f"cases:\n  - id: a\n    system_prompt: Go.\n    rules:\n{rule_lines}")
    session.append(*claude_turn(1, LONG))
    answer = session.call(
        {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    )
    text = answer["hookSpecificOutput"]["additionalContext"]
    shown_count = sum(line.startswith("- ") for line in text.splitlines())
    assert f"{200 - shown_count} more" in text.splitlines()[-1]
    assert 8_000 < len(text.encode()) < 10_000


# The state of a session


def test_a_log_that_was_written_anew_is_read_from_its_start(session):
    session.append(*claude_turn(1, "Done."), *claude_turn(2, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.log.unlink()
    session.append(*claude_turn(1, LONG))  # shorter
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    session.log.unlink()
    session.append(*claude_turn(1, f"{LONG} {'x' * 5000}."), *claude_turn(2, LONG))  # longer
    assert session.hook("UserPromptSubmit") == [ALL[1]]


def test_a_change_of_the_rules_begins_anew(rules, session):
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    rules.write_text(RULES.replace("count: 2", "count: 1"))
    assert session.hook("UserPromptSubmit") == [ALL[1]]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 9}'])
def test_a_state_that_cannot_be_read_is_made_again(session, content, tmp_path):
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    folder = tmp_path / "cache" / "holdfast" / "remind"
    (file,) = [path for path in folder.iterdir() if not path.name.startswith("rules-")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(content)
    assert session.hook("UserPromptSubmit") == [ALL[1]]


def test_states_of_old_sessions_are_deleted(session, tmp_path):
    old = tmp_path / "cache" / "holdfast" / "remind" / "old.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    os.utime(old, (1, 1))
    session.append(*claude_turn(1, LONG))
    session.hook("UserPromptSubmit")
    assert not old.exists() and list(old.parent.iterdir())


def test_without_a_state_the_rules_are_said_all_the_same(session, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    assert "XDG_CACHE_HOME" in session.errors


def test_a_line_that_is_still_being_written_is_left_for_the_next_time(session):
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    line = json.dumps(reply("a2", "a1", LONG))
    with session.log.open("a") as file:
        file.write(line[:-10])
    assert session.hook("UserPromptSubmit") == []
    with session.log.open("a") as file:
        file.write(line[-10:])  # whole now, though without a line break
    assert session.hook("UserPromptSubmit") == [ALL[1]]


@pytest.mark.parametrize(
    ("begin", "rewind"),
    [
        (
            [codex("session_meta", id="s"), *codex_turn(1, "Done."), *codex_turn(2, "Done.")],
            [codex("event_msg", type="thread_rolled_back", num_turns=2), *codex_turn(3, LONG)],
        ),
        (
            [GEMINI, *gemini_turn(1, "Done."), *gemini_turn(2, "Done.")],
            [{"$rewindTo": "2"}, *gemini_turn(3, LONG)],
        ),
        (
            [*claude_turn(1, "Done."), *claude_turn(2, "Done.")],
            [user("u3", "a1", "Else?"), reply("a3", "u3", LONG)],
        ),
    ],
)
def test_a_turn_after_a_rewind_is_judged(session, begin, rewind):
    session.append(*begin)
    assert session.hook("UserPromptSubmit") == []
    session.append(*rewind)
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    assert session.hook("UserPromptSubmit") == []


def bytes_read():
    """The number of bytes that this process has read from anything."""
    counts = Path("/proc/self/io").read_text()
    return int(re.search(r"^rchar: (\d+)$", counts, re.MULTILINE)[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what is read")
def test_of_a_session_of_ten_megabytes_only_the_new_part_is_read(session):
    for number in range(1, 101):
        padding = result(f"r{number}", f"a{number}", f"p{number}")
        padding["toolUseResult"] = {"stdout": "x" * 100_000}
        session.append(*claude_turn(number, "Done."), padding)
    assert session.log.stat().st_size > 10_000_000
    before = bytes_read()
    assert session.hook("UserPromptSubmit") == []
    assert bytes_read() - before > 10_000_000
    session.append(*claude_turn(101, LONG))
    before = bytes_read()
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    assert bytes_read() - before < 300_000


def test_a_part_of_a_session_has_the_events_from_there_on(tmp_path):
    path = write(tmp_path, *claude_turn(1, "Done."), *claude_turn(2, "Yes."))
    whole = read_session_part(path)
    start = whole.offset_of(whole.events[2])
    part = read_session_part(path, start)
    assert part.events == whole.events[2:] and part.end == whole.end == path.stat().st_size
    assert part.offset_of(part.events[0]) == start


def test_the_dialog_of_a_subagent_is_not_that_of_the_session(session):
    session.append(*claude_turn(1, "Done."))
    aside = {"isSidechain": True}
    question = claude("user", "x1", None, "Look.", **aside)
    session.append(question, claude("assistant", "x2", "x1", LONG, **aside))
    assert session.hook("UserPromptSubmit") == []


# Input that cannot be used

NO_PATH = {"hook_event_name": "UserPromptSubmit"}
UNUSABLE = {
    "no JSON": "go on",
    "no object": "[1]",
    "an unknown event": {"hook_event_name": "Stop", "transcript_path": "x"},
    "no event": {"transcript_path": "x"},
    "no path": NO_PATH,
    "an empty path": {**NO_PATH, "transcript_path": ""},
    "a path that is null": {**NO_PATH, "transcript_path": None},
    "too deep": "[" * 100_000,
    "a path with a null byte": {**NO_PATH, "transcript_path": "a\0b"},
    "a path of half a character": {**NO_PATH, "transcript_path": "a\ud800b"},
    "a path that is too long": {**NO_PATH, "transcript_path": "a" * 5000},
    "the home of nobody": {**NO_PATH, "transcript_path": "~nobody-of-this-name/session.jsonl"},
    "a folder": {**NO_PATH, "transcript_path": "/"},
    "a device that never ends": {**NO_PATH, "transcript_path": "/dev/zero"},
}


@pytest.mark.parametrize("payload", UNUSABLE.values(), ids=UNUSABLE)
def test_input_that_cannot_be_used_is_said_and_holds_nobody_up(payload, session):
    assert session.call(payload) is None
    assert session.errors.startswith("holdfast: ") and session.errors.count("\n") == 1
    assert session.call(payload, "--strict", code=2) is None
    assert session.errors.count("\n") == 1


def test_a_pipe_in_place_of_a_transcript_is_not_waited_for(session):
    os.mkfifo(session.log)
    assert session.hook("UserPromptSubmit") == [] and "is not a file" in session.errors


def test_input_may_begin_with_a_byte_order_mark(session):
    """Some shells of Windows write one."""
    session.append(*claude_turn(1, LONG))
    payload = {**NO_PATH, "transcript_path": str(session.log)}
    assert session.call("\ufeff" + json.dumps(payload)) is not None and not session.errors


def test_a_process_without_standard_input_is_no_fault(session, rules, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["remind", "--suite", str(rules)]) == 0
    assert capsys.readouterr().err.startswith("holdfast: The hook's input is not JSON")


@pytest.mark.parametrize("code", [0, 2])
def test_a_fault_of_ours_holds_nobody_up(code, session, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(hook_command, "answer_hook", fail)
    assert session.hook("UserPromptSubmit", *["--strict"] * (code // 2), code=code) == []
    assert "ZeroDivisionError: by accident" in session.errors
    assert session.errors.count("\n") == 1


UNKNOWN = {"chat.jsonl": '{"role": "user", "content": "Hi."}\n', "notes.jsonl": "not JSON\n"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_transcript_of_another_format_is_named(name, session):
    session.log = session.log.with_name(name)
    session.log.write_text(UNKNOWN[name])
    assert session.hook("UserPromptSubmit") == []
    assert name in session.errors and session.errors.count("\n") == 1
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []


def test_a_session_that_has_no_log_yet_has_nothing_to_say(session):
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.log.write_text("")
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.append({"type": "file-history-snapshot", "snapshot": {}})
    assert session.hook("UserPromptSubmit", "--strict") == []


JUDGE = "{judge: Is it polite?, model: default}"
EXAMPLES = "follows: [a, b, c, d], breaks: [e, f, g, h]"
UNSUITED = {
    "a judge": f"[{{id: a, system_prompt: Go., measure: {JUDGE}, {EXAMPLES}}}]",
    "a rule for answers to probes": "[{id: a, system_prompt: Go., probes: [Who?],"
    " measure: {name: contains, words: [Luna]}}]",
    "a measure that loads": "[{id: a, system_prompt: Go., measure: past_tense}]",
    "a part that loads": "[{id: a, system_prompt: Go., measure: {name: every, measures: [sad]}}]",
    "several cases": "[{id: a, system_prompt: Go., measure: one_sentence},"
    " {id: b, system_prompt: Stay., measure: one_sentence}]",
    "no measure": "[{id: a, system_prompt: Go., measure: two_sentence}]",
    "code": "[{id: a, system_prompt: Go., measure: {python: mine.short}}]",
}


@pytest.mark.parametrize("cases", UNSUITED.values(), ids=UNSUITED)
def test_a_suite_that_a_hook_cannot_judge_by_is_refused(cases, rules, session):
    rules.write_text(f"cases: {cases}")
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit") == []
    assert session.errors.startswith("holdfast: ") and session.errors.count("\n") == 1
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []
    with pytest.raises(UsageError):
        load_hook_rules(str(rules))


def test_a_suite_may_use_functions_if_that_is_allowed(rules, session):
    rules.write_text("cases: [{id: a, system_prompt: Go., measure: {python: my_short.short}}]")
    (rules.parent / "my_short.py").write_text("def short(text):\n    return len(text) < 9\n")
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit", "--allow-code") == ["Go."]


def test_a_command_line_that_cannot_be_read_is_no_block(capsys):
    """Agents take the exit code 2, which other commands have, as one."""
    assert main(["remind", "--sute", "rules.yaml"]) == 1
    assert main(["remind"]) == 1
    assert capsys.readouterr().err.count("\n") == 2


def test_a_terminal_is_told_what_the_command_is_for(rules, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["remind", "--suite", str(rules)]) == 1
    assert "--install" in capsys.readouterr().err


# Speed, and text that was made to take long

HOSTILE = "(a|aa)+$"


def test_a_pattern_that_would_run_for_ages_is_stopped_and_the_others_are_judged(rules, session):
    rules.write_text(
        RULES + f"      - {{id: slow, text: Slowly., measure: {{regex: '{HOSTILE}'}}}}\n"
        f"      - {{id: slower, text: Slower., when: {{reply: '{HOSTILE}'}},"
        " measure: {name: at_most_sentences, count: 1}}\n"
    )
    session.append(*claude_turn(1, f"{LONG} {'a' * 5000}b"))
    started = time.process_time()
    assert session.hook("UserPromptSubmit") == [ALL[1]]
    assert time.process_time() - started < 2
    lines = session.errors.splitlines()
    assert len(lines) == 2 and "'slow'" in lines[0] and "'slower'" in lines[1]
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []


def test_the_limit_of_searches_is_not_used_up_by_other_work(rules, session):
    rules.write_text(
        "cases: [{id: tests, system_prompt: Test., text: Run the tests before a commit.,"
        " measure: {name: runs_before, first: make test, then: git commit}}]"
    )
    commands = [bash(f"t{n}", f"cd part_{n} && sed -n 1,{n}p a.py | head") for n in range(2000)]
    session.append(*claude_turn(1, "Done.", *commands))
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.append(*claude_turn(2, "Done.", bash("last", "git commit -m x")))
    assert session.hook("UserPromptSubmit", "--strict") == ["Run the tests before a commit."]


HOSTILE_SCRIPTS = ["(" * 50_000, "a " * 50_000, "$(" * 5000, '"' * 50_001, "\0" * 50_000]
HOSTILE_SCRIPTS += ["a|" * 50_000, "A=aaaaaaaaaa;" + "A=$A$A;" * 40 + "echo $A"]


@pytest.mark.parametrize(
    "script", only_fast(HOSTILE_SCRIPTS, *HOSTILE_SCRIPTS[:5], HOSTILE_SCRIPTS[6])
)
def test_a_script_that_no_shell_could_run_is_judged_at_once(script):
    started = time.process_time()
    measure = build({"name": "command_not_run", "command": "git push"})
    measure.score_turn(AssistantTurn("", (ToolCall("Bash", {"command": script}),)))
    assert time.process_time() - started < 5


def test_searches_have_a_limit_together():
    measure = build({"regex": HOSTILE})
    started = time.process_time()
    with limit_search_time(0.05), pytest.raises(UsageError):
        measure.score("a" * 5000 + "b")
    with limit_search_time(0), pytest.raises(UsageError):
        measure.score("b")
    assert time.process_time() - started < 1
    assert measure.score("b").value == 0  # as before


def test_what_takes_too_long_otherwise_is_given_up(rules, session, monkeypatch):
    monkeypatch.setattr("holdfast.coding_agents.hook_command._MAX_SECONDS", 0.5)
    rules.write_text("cases: [{id: a, system_prompt: Go., measure: {python: my_loop.loop}}]")
    (rules.parent / "my_loop.py").write_text("def loop(text):\n    while True:\n        pass\n")
    session.append(*claude_turn(1, LONG))
    assert session.hook("UserPromptSubmit", "--allow-code") == []
    assert "gave up" in session.errors and "'a'" not in session.errors  # it is no failure of code


LEXICONS = ("py3langid", "wordfreq", "lemminflect", "vaderSentiment", "numpy")


def test_measures_load_lexicons_only_if_they_say_so(tmp_path):
    """Each is scored in a process of its own, on a text that gives all of them work."""
    script = f"""
import os, sys, typing
from holdfast.measures import build
from holdfast.measures.registry import REGISTRY
from holdfast.measures.turns import AssistantTurn, ToolCall
TEXT = "The dogs walked to the shop (les chiens dorment) yesterday, and 3 cats ran!"
for name, entry in REGISTRY.items():
    if entry.of_turn:
        continue
    given = {{
        key: field.examples[0] if field.examples else typing.get_args(field.annotation)[0]
        for key, field in entry.arguments.items() if field.is_required()
    }}
    measure = build({{"name": name, **given}})
    if measure.loads or "{"{"}" in str(given.get("measure", "")):
        continue
    child = os.fork()
    if not child:
        measure.score(TEXT); measure.score(TEXT.upper()); measure.score(TEXT.lower())
        loaded = set({LEXICONS!r}) & set(sys.modules)
        if loaded:
            print(name, *loaded, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    job = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert job.stdout == ""
    assert sum(entry.loads for entry in REGISTRY.values()) > 10


def test_a_hook_imports_nothing_that_takes_long(rules, session):
    """Once its suite was checked, it does without Pydantic and YAML."""
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, LONG, PUSH))
    payload = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    script = "import sys; from holdfast.cli import main; main(); print(*sorted(sys.modules))"
    words = ["-c", script, "remind", "--suite", str(rules)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    piped = {"input": json.dumps(payload), "capture_output": True, "text": True, "env": env}
    job = subprocess.run([sys.executable, *words], **piped)
    answer, imported = job.stdout.splitlines()
    assert ALL[1] in answer and ALL[2] in answer
    imported = set(imported.split())
    assert {"holdfast.coding_agents.reminding", "holdfast.measures", "regex"} <= imported
    heavy = {"torch", "transformers", "numpy", "pandas", "scipy", "matplotlib", "jinja2", "asyncio"}
    heavy |= {"openai", "tqdm", "holdfast.records", "holdfast.methods", "holdfast.report"}
    assert not imported & (heavy | {"pydantic", "yaml"})


def test_a_rule_without_a_text_is_said_in_the_words_of_the_prompt(rules):
    prompt = "Work on the shop. Prices come first. Never push by force."
    without = RULES.replace("Work on the shop.", prompt).replace("text: Never force-push.", "")
    rules.write_text(without)
    assert load_hook_rules(str(rules)).rules[2].text == "Never push by force."


def test_the_rules_of_a_hook_are_kept_until_the_suite_changes(rules, tmp_path):
    cache = tmp_path / "kept"
    first = cached_hook_rules(str(rules), cache)
    (file,) = cache.iterdir()
    second = cached_hook_rules(str(rules), cache)
    assert second == first and second.rules[2].measure.reads_earlier is False
    file.write_text(file.read_text().replace("Never force-push.", "Push gently."))
    assert cached_hook_rules(str(rules), cache).rules[2].text == "Push gently."
    file.write_text("[{}]")
    assert cached_hook_rules(str(rules), cache) == first
    rules.write_text(RULES.replace("count: 2", "count: 1"))
    after_change = cached_hook_rules(str(rules), cache)
    assert after_change.rules[1].measure.arguments["count"] == 1 and len([*cache.iterdir()]) == 2


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("remind --suite a.yaml", HookCall("a.yaml")),
        ("remind --suite a.yaml --strict --allow-code", HookCall("a.yaml", True, True)),
        ("remind --suite a.yaml --strict --strict", None),
        ("remind --suite --strict", None),
        ("remind --suite", None),
        ("remind --suite a.yaml --install", None),
        ("remind --strict --suite a.yaml", None),
        ("logs --suite a.yaml", None),
    ],
)
def test_the_words_that_hooks_call_with_need_no_parser(words, call):
    assert hook_call(words.split()) == call


# The hooks in the settings of agents

FILES = {
    "claude-code": Path(".claude/settings.json"),
    "codex": Path(".codex/hooks.json"),
    "gemini-cli": Path(".gemini/settings.json"),
}
EVENTS = {
    "claude-code": {"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SessionStart"},
    "codex": {"UserPromptSubmit", "PostToolUse", "SessionStart"},
    "gemini-cli": {"BeforeAgent", "AfterTool", "PreCompress"},
}


@pytest.fixture
def project(rules, monkeypatch):
    folder = rules.parent / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("shutil.which", lambda name: None)  # no agent is installed
    return folder


def install(rules, *options, code=0):
    assert main(["remind", "--suite", str(rules), "--install", *options]) == code


def test_of_several_agents_only_the_events_are_shown(rules, project, capsys):
    """Where no agent is used yet, or several are."""
    install(rules)
    output = capsys.readouterr().out
    assert all(name in output and str(FILES[name]) in output for name in FILES)
    assert all(event in output for events in EVENTS.values() for event in events)
    assert "--agent NAME shows the lines, and with --yes adds them." in output
    assert "{" not in output and list(project.iterdir()) == []
    assert output.count("\n") < 8


@pytest.mark.parametrize(
    ("agent", "program"), [("claude-code", "claude"), ("codex", "codex"), ("gemini-cli", "gemini")]
)
@pytest.mark.parametrize("has_folder", [True, False])
def test_the_lines_for_the_agents_that_are_used_are_shown(
    agent, program, has_folder, rules, project, capsys, monkeypatch
):
    if has_folder:
        FILES[agent].parent.mkdir()
    else:
        monkeypatch.setattr(
            "shutil.which", lambda name: f"/bin/{name}" if name == program else None
        )
    install(rules)
    output = capsys.readouterr().out
    assert [name for name in FILES if str(FILES[name]) in output] == [agent]
    others = [name for name in FILES if name != agent]
    assert f"For another agent: --agent {others[0]} or {others[1]}." in output
    assert output.count("\n") < 16


@pytest.mark.parametrize("agent", FILES)
def test_the_hooks_of_an_agent_are_written_once(agent, rules, project, capsys):
    install(rules, "--agent", agent)
    output = capsys.readouterr().out
    install(rules, "--agent", agent, "--yes")
    written_text = FILES[agent].read_text()
    settings = json.loads(written_text)
    assert settings.keys() == {"hooks"} and settings["hooks"].keys() == EVENTS[agent]
    shown_text = output[output.index("{") : output.rindex("}") + 1]
    assert json.loads(shown_text) == settings
    for groups in settings["hooks"].values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert hook["type"] == "command" and str(rules) in hook["command"]
    install(rules, "--agent", agent, "--yes")
    assert FILES[agent].read_text() == written_text


def test_the_written_command_answers_the_hook(rules, project, session):
    install(rules, "--agent", "claude-code", "--yes")
    settings = json.loads(FILES["claude-code"].read_text())
    command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    session.append(*claude_turn(1, LONG))
    payload = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    source = str(ROOT / "src")
    env = {**os.environ, "PYTHONPATH": source}
    piped = {"input": json.dumps(payload), "capture_output": True, "text": True}
    job = subprocess.run(command, shell=True, env=env, **piped)
    assert job.returncode == 0 and ALL[1] in job.stdout


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("on_path", "base", "is_bare"),
    [
        ("env/bin", "usr", False),  # the shell of the agent may not have activated it
        ("other/bin", "usr", False),  # another Holdfast
        ("links", "usr", True),  # a link to this one, as `pipx` and `uv tool` make
        ("env/bin", "env", True),  # installed without a virtual environment
        (None, "usr", False),
    ],
)
def test_the_written_command_is_the_holdfast_that_wrote_it(
    on_path, base, is_bare, rules, project, capsys, monkeypatch, tmp_path
):
    own = program(tmp_path / "env" / "bin" / "holdfast")
    program(tmp_path / "other" / "bin" / "holdfast")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "holdfast").symlink_to(own)
    found = str(tmp_path / on_path / "holdfast") if on_path else None
    monkeypatch.setattr("shutil.which", lambda name: found if name == "holdfast" else None)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(own.parent))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "env"))
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / base))
    install(rules, "--agent", "codex")
    output = capsys.readouterr().out
    first = "holdfast" if is_bare else str(own)
    assert f'"command": "{first} remind --suite {rules}"' in output
    assert ("by its whole path" in output) is not is_bare


BEFORE = """{
    "zebra": 1,
    "model": "größer",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": "date"}]}
        ]
    },
    "numbers": [1.5, 12345678901234567890],
    "apple": {"b": null, "a": []}
}
"""


def test_nothing_else_in_a_settings_file_is_lost_or_moved(rules, project):
    file = FILES["claude-code"]
    file.parent.mkdir()
    file.write_text(BEFORE)
    file.chmod(0o600)
    install(rules, "--agent", "claude-code", "--yes")
    text = file.read_text()
    settings, before = json.loads(text), json.loads(BEFORE)
    assert list(settings) == list(before)
    assert list(settings["hooks"])[:2] == ["Stop", "UserPromptSubmit"]
    prompts = settings["hooks"].pop("UserPromptSubmit")
    assert prompts[0] == before["hooks"].pop("UserPromptSubmit")[0] and len(prompts) == 2
    for event in EVENTS["claude-code"] - {"UserPromptSubmit"}:
        assert len(settings["hooks"].pop(event)) == 1
    assert settings == before
    assert "größer" in text and '\n    "zebra": 1' in text  # the same characters and indentation
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_another_settings_file_can_be_named(rules, project, tmp_path):
    home = tmp_path / "home" / "settings.json"
    install(rules, "--agent", "claude-code", "--settings", str(home), "--yes")
    assert json.loads(home.read_text())["hooks"] and list(project.iterdir()) == []


REFUSED = {
    "a comment": '{"a": 1, // yes\n}',
    "a name twice": '{"a": 1, "a": 2}',
    "a list": "[]",
    "hooks that are none": '{"hooks": []}',
    "an event that is no list": '{"hooks": {"PostToolUse": {}}}',
    "a number that would become another text": '{"a": 1.10}',
    "a number that would become infinite": '{"a": 1e999}',
    "no number": '{"a": NaN}',
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_settings_file_that_is_not_understood_is_left_as_it_is(text, rules, project, capsys):
    file = FILES["claude-code"]
    file.parent.mkdir()
    file.write_text(text)
    install(rules, "--agent", "claude-code", "--yes", code=2)
    assert file.read_text() == text and str(file) in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--install", "--yes"],
        ["--install", "--settings", "x.json"],
        ["--yes"],
        ["--agent", "codex"],
        ["--settings", "x.json"],
    ],
)
def test_options_that_do_not_go_together_are_refused(options, rules, project, capsys):
    assert main(["remind", "--suite", str(rules), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and list(project.iterdir()) == []


def test_a_suite_that_fails_its_examples_is_not_installed(rules, project, capsys):
    rules.write_text(
        "cases: [{id: a, system_prompt: Go., measure: one_sentence, follows: [Yes. It is so.]}]"
    )
    install(rules, "--agent", "codex", "--yes", code=2)
    assert list(project.iterdir()) == []


EXAMPLE = ROOT / "examples" / "remind"
LINES = {
    "claude-code": "claude_code_settings.json",
    "codex": "codex_hooks.json",
    "gemini-cli": "gemini_cli_settings.json",
}


@pytest.mark.parametrize("agent", LINES)
def test_the_example_has_the_lines_that_are_installed(agent):
    command = "holdfast remind --suite /path/to/rules.yaml"
    assert json.loads((EXAMPLE / LINES[agent]).read_text()) == hook_settings(
        AGENTS_BY_NAME[agent], command
    )


def test_the_example_says_what_its_page_promises(rules, capsys, monkeypatch):
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.setattr("sys.stdin", (EXAMPLE / "hook.json").open())
    assert main(["remind", "--suite", "rules.yaml", "--strict"]) == 0
    output = capsys.readouterr().out.strip()
    assert "Never force-push" in output and output in (EXAMPLE / "README.md").read_text()
    assert len(load_hook_rules("rules.yaml", check=True).rules) == 5


@pytest.mark.parametrize(
    ("reply_text", "is_broken"),
    [("```python\nx\n```", False), ("a ```\nx\n``` b", True), ("```c\n``` ```\nx\n```", True)],
)
def test_the_rule_of_the_example_about_code_blocks(reply_text, is_broken, session):
    session.rules = EXAMPLE / "rules.yaml"
    session.append(*claude_turn(1, reply_text))
    assert bool(session.hook("UserPromptSubmit")) == is_broken
