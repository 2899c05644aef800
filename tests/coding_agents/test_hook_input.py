"""Input that a hook cannot use is reported in a sentence, and holds nobody up."""

import json
import os

import pytest
from hook_sessions import THREE_SENTENCES, claude_turn

from holdfast.cli import main
from holdfast.coding_agents import hook_command
from holdfast.coding_agents.hook_command import HookCall, hook_call
from holdfast.coding_agents.hook_rules import load_hook_rules
from holdfast.errors import UsageError

# The payload

WITHOUT_PATH = {"hook_event_name": "UserPromptSubmit"}
UNUSABLE_PAYLOADS = {
    "no JSON": "go on",
    "no object": "[1]",
    "an unknown event": {"hook_event_name": "Stop", "transcript_path": "x"},
    "no event": {"transcript_path": "x"},
    "no path": WITHOUT_PATH,
    "an empty path": {**WITHOUT_PATH, "transcript_path": ""},
    "a path that is null": {**WITHOUT_PATH, "transcript_path": None},
    "too deep": "[" * 100_000,
    "a path with a null byte": {**WITHOUT_PATH, "transcript_path": "a\0b"},
    "a path of half a character": {**WITHOUT_PATH, "transcript_path": "a\ud800b"},
    "a path that is too long": {**WITHOUT_PATH, "transcript_path": "a" * 5000},
    "the home of nobody": {**WITHOUT_PATH, "transcript_path": "~nobody-of-this-name/session.jsonl"},
    "a folder": {**WITHOUT_PATH, "transcript_path": "/"},
    "a device that never ends": {**WITHOUT_PATH, "transcript_path": "/dev/zero"},
}


@pytest.mark.parametrize("payload", UNUSABLE_PAYLOADS.values(), ids=UNUSABLE_PAYLOADS)
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
    session.append(*claude_turn(1, THREE_SENTENCES))
    payload = {**WITHOUT_PATH, "transcript_path": str(session.log)}
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


# The transcript

OTHER_FORMATS = {"chat.jsonl": '{"role": "user", "content": "Hi."}\n', "notes.jsonl": "not JSON\n"}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_a_transcript_of_another_format_is_named(name, session):
    session.log = session.log.with_name(name)
    session.log.write_text(OTHER_FORMATS[name])
    assert session.hook("UserPromptSubmit") == []
    assert name in session.errors and session.errors.count("\n") == 1
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []


def test_a_session_that_has_no_log_yet_has_nothing_to_say(session):
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.log.write_text("")
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.append({"type": "file-history-snapshot", "snapshot": {}})
    assert session.hook("UserPromptSubmit", "--strict") == []


# The suite

JUDGE = "{judge: Is it polite?, model: default}"
EXAMPLES = "follows: [a, b, c, d], breaks: [e, f, g, h]"
UNUSABLE_SUITES = {
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


@pytest.mark.parametrize("cases", UNUSABLE_SUITES.values(), ids=UNUSABLE_SUITES)
def test_a_suite_that_a_hook_cannot_judge_by_is_refused(cases, rules, session):
    rules.write_text(f"cases: {cases}")
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit") == []
    assert session.errors.startswith("holdfast: ") and session.errors.count("\n") == 1
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []
    with pytest.raises(UsageError):
        load_hook_rules(str(rules))


def test_a_suite_may_use_functions_if_that_is_allowed(rules, session):
    rules.write_text("cases: [{id: a, system_prompt: Go., measure: {python: my_short.short}}]")
    (rules.parent / "my_short.py").write_text("def short(text):\n    return len(text) < 9\n")
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit", "--allow-code") == ["Go."]


# The command line


def test_a_command_line_that_cannot_be_read_is_no_block(capsys):
    """Agents take the exit code 2, which other commands have, as one."""
    assert main(["remind", "--sute", "rules.yaml"]) == 1
    assert main(["remind"]) == 1
    assert capsys.readouterr().err.count("\n") == 2


def test_a_terminal_is_told_what_the_command_is_for(rules, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["remind", "--suite", str(rules)]) == 1
    assert "--install" in capsys.readouterr().err


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
