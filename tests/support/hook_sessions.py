"""A session of a coding agent whose hooks are called, and turns of each agent."""

import io
import json
import re

from agent_sessions import bash, codex, codex_says, gemini, reply, user

from holdfast.cli import main

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

LOOK_UP_PRICES = "Look up a price before you say it."
BE_BRIEF = "Answer in at most two sentences."
NO_FORCE_PUSH = "Never force-push."
RULE_TEXTS = [LOOK_UP_PRICES, BE_BRIEF, NO_FORCE_PUSH]
THREE_SENTENCES = "One. Two. Three."
FORCE_PUSH = bash("t1", "git push --force")


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


def claude_turn(number, text, *blocks):
    """A question, and a reply of Claude Code with a text and tool calls."""
    before = f"a{number - 1}" if number > 1 else None
    question = user(f"u{number}", before, f"Question {number}?")
    return question, reply(f"a{number}", f"u{number}", text, *blocks)


def codex_turn(number, text, *commands):
    """A question, shell commands that Codex runs, and its reply."""
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
    """A question, and a reply of Gemini CLI with a text and shell commands."""
    question = gemini(2 * number, "user", f"Question {number}?")
    calls = [
        {"id": f"g{number}{index}", "name": "run_shell_command", "args": {"command": command}}
        for index, command in enumerate(commands)
    ]
    return question, {**gemini(2 * number + 1, "gemini", text), "toolCalls": calls}
