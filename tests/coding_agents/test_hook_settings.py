"""`holdfast remind --install`: the hooks in the settings files of agents, and the example."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from hook_sessions import (
    BE_BRIEF,
    THREE_SENTENCES,
    claude_turn,
)
from paths import ROOT

from holdfast.cli import main
from holdfast.coding_agents.hook_rules import load_hook_rules
from holdfast.coding_agents.settings_files import AGENTS as AGENTS_BY_NAME
from holdfast.coding_agents.settings_files import hook_settings

SETTINGS_FILES = {
    "claude-code": Path(".claude/settings.json"),
    "codex": Path(".codex/hooks.json"),
    "gemini-cli": Path(".gemini/settings.json"),
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


# Lines that are shown


def test_of_several_agents_only_the_events_are_shown(rules, project, capsys):
    """Where no agent is used yet, or several are."""
    install(rules)
    output = capsys.readouterr().out
    assert all(name in output and str(SETTINGS_FILES[name]) in output for name in SETTINGS_FILES)
    assert all(event in output for events in EVENTS.values() for event in events)
    assert "--agent NAME shows the lines, and with --yes adds them." in output
    assert "{" not in output and list(project.iterdir()) == []
    assert output.count("\n") < 8


@pytest.mark.parametrize(
    ("agent", "executable"),
    [("claude-code", "claude"), ("codex", "codex"), ("gemini-cli", "gemini")],
)
@pytest.mark.parametrize("has_folder", [True, False])
def test_the_lines_for_the_agents_that_are_used_are_shown(
    agent, executable, has_folder, rules, project, capsys, monkeypatch
):
    if has_folder:
        SETTINGS_FILES[agent].parent.mkdir()
    else:
        monkeypatch.setattr(
            "shutil.which", lambda name: f"/bin/{name}" if name == executable else None
        )
    install(rules)
    output = capsys.readouterr().out
    assert [name for name in SETTINGS_FILES if str(SETTINGS_FILES[name]) in output] == [agent]
    others = [name for name in SETTINGS_FILES if name != agent]
    assert f"For another agent: --agent {others[0]} or {others[1]}." in output
    assert output.count("\n") < 16


# Lines that are written

EVENTS = {
    "claude-code": {"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SessionStart"},
    "codex": {"UserPromptSubmit", "PostToolUse", "SessionStart"},
    "gemini-cli": {"BeforeAgent", "AfterTool", "PreCompress"},
}


@pytest.mark.parametrize("agent", SETTINGS_FILES)
def test_the_hooks_of_an_agent_are_written_once(agent, rules, project, capsys):
    install(rules, "--agent", agent)
    output = capsys.readouterr().out
    install(rules, "--agent", agent, "--yes")
    written_text = SETTINGS_FILES[agent].read_text()
    settings = json.loads(written_text)
    assert settings.keys() == {"hooks"} and settings["hooks"].keys() == EVENTS[agent]
    shown_text = output[output.index("{") : output.rindex("}") + 1]
    assert json.loads(shown_text) == settings
    for groups in settings["hooks"].values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert hook["type"] == "command" and str(rules) in hook["command"]
    install(rules, "--agent", agent, "--yes")
    assert SETTINGS_FILES[agent].read_text() == written_text


def test_the_written_command_answers_the_hook(rules, project, session):
    install(rules, "--agent", "claude-code", "--yes")
    settings = json.loads(SETTINGS_FILES["claude-code"].read_text())
    command = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    session.append(*claude_turn(1, THREE_SENTENCES))
    payload = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    source = str(ROOT / "src")
    env = {**os.environ, "PYTHONPATH": source}
    piped = {"input": json.dumps(payload), "capture_output": True, "text": True}
    job = subprocess.run(command, shell=True, env=env, **piped)
    assert job.returncode == 0 and BE_BRIEF in job.stdout


def write_program(path):
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
    own = write_program(tmp_path / "env" / "bin" / "holdfast")
    write_program(tmp_path / "other" / "bin" / "holdfast")
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


SETTINGS_BEFORE = """{
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
    file = SETTINGS_FILES["claude-code"]
    file.parent.mkdir()
    file.write_text(SETTINGS_BEFORE)
    file.chmod(0o600)
    install(rules, "--agent", "claude-code", "--yes")
    text = file.read_text()
    settings, before = json.loads(text), json.loads(SETTINGS_BEFORE)
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


# Refusals

UNREADABLE_SETTINGS = {
    "a comment": '{"a": 1, // yes\n}',
    "a name twice": '{"a": 1, "a": 2}',
    "a list": "[]",
    "hooks that are none": '{"hooks": []}',
    "an event that is no list": '{"hooks": {"PostToolUse": {}}}',
    "a number that would become another text": '{"a": 1.10}',
    "a number that would become infinite": '{"a": 1e999}',
    "no number": '{"a": NaN}',
}


@pytest.mark.parametrize("text", UNREADABLE_SETTINGS.values(), ids=UNREADABLE_SETTINGS)
def test_a_settings_file_that_is_not_understood_is_left_as_it_is(text, rules, project, capsys):
    file = SETTINGS_FILES["claude-code"]
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


# The example in the repository

EXAMPLE = ROOT / "examples" / "remind"
EXAMPLE_FILES = {
    "claude-code": "claude_code_settings.json",
    "codex": "codex_hooks.json",
    "gemini-cli": "gemini_cli_settings.json",
}


@pytest.mark.parametrize("agent", EXAMPLE_FILES)
def test_the_example_has_the_lines_that_are_installed(agent):
    command = "holdfast remind --suite /path/to/rules.yaml"
    assert json.loads((EXAMPLE / EXAMPLE_FILES[agent]).read_text()) == hook_settings(
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
