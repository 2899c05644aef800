"""Fifty hand-written transcripts: in every format they score as their labels say."""

import json

import pytest
import yaml
from logged_dialogs import lines_of
from paths import ROOT
from synthetic_run import as_json

from holdfast.drift import load_suite
from holdfast.logs import read_logs, score_logs

DATA = ROOT / "tests" / "data" / "logs"
AGENT = yaml.safe_load((DATA / "agent_transcripts.yaml").read_text())
TYPES = "feat|fix|docs|style|refactor|perf|test|build|ci|chore|revert"
RULES = rf"""
cases:
  - id: shop
    system_prompt: Work on the shop.
    rules:
      - id: no-force-push
        measure: {{name: command_not_run, command: 'git push( \S+)* (--force|-f)(?!\S)'}}
      - id: uv-not-pip
        measure: {{name: command_not_run, command: '(?!python -m )pip\b'}}
      - id: migrations
        measure: {{name: file_not_touched, path: 'migrations/*'}}
      - id: test-before-commit
        measure: {{name: runs_before, first: 'make test(?!-)', then: 'git( -C \S+)? commit'}}
      - id: conventional
        measure: {{name: commit_message, pattern: '^({TYPES})(\(.+\))?!?: \S'}}
      - id: fenced-language
        when: {{reply: '```'}}
        measure: {{regex: '\A((?!```).)*(```\w[^\n]*\n((?!```).)*```((?!```).)*)*\Z', flags: s}}
      - id: price-lookup
        when: {{user: '\b(price|cost)s?\b'}}
        measure: {{name: tool_called, tool: lookup_price}}
      - id: no-emoji
        measure: {{regex: '\A[^\p{{Extended_Pictographic}}]*\Z'}}
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


# The transcripts in four formats: of chat messages, of content blocks, and of typed events


def _steps(turn):
    """An assistant's turn, as texts and as calls of tools."""
    for step in turn["does"]:
        ((kind, value),) = step.items()
        match kind:
            case "say":
                yield value
            case "run":
                yield "Bash", {"command": value}
            case "read":
                yield "Read", {"file_path": value}
            case "edit":
                yield "Edit", {"file_path": value, "old_string": "a", "new_string": "b"}
            case "patch":
                yield "apply_patch", {"input": value}
            case "call":
                yield value["name"], value["arguments"]


def as_openai(transcript):
    messages = []
    for turn in transcript["turns"]:
        messages.append({"role": "user", "content": turn["user"]})
        for step in _steps(turn):
            if isinstance(step, str):
                messages.append({"role": "assistant", "content": step})
                continue
            function = {"name": step[0], "arguments": json.dumps(step[1])}
            call = {"id": "1", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "1", "content": "ok"})
    return [{"messages": messages}]


def as_blocks(transcript):
    """Messages with content blocks, the form of Anthropic's API."""
    for turn in transcript["turns"]:
        yield {"role": "user", "content": turn["user"]}
        for step in _steps(turn):
            if isinstance(step, str):
                yield {"role": "assistant", "content": [{"type": "text", "text": step}]}
                continue
            use = {"type": "tool_use", "id": "t", "name": step[0], "input": step[1]}
            yield {"role": "assistant", "content": [use]}
            result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
            yield {"role": "user", "content": [result]}


def as_anthropic(transcript):
    return [{"system": "", "messages": list(as_blocks(transcript))}]


def as_claude_code(transcript):
    session = {"sessionId": f"s{transcript['id']}", "isSidechain": False}
    events = []
    for number, message in enumerate(as_blocks(transcript)):
        uuid = {"uuid": f"s{transcript['id']}-{number}"}
        parent = {"parentUuid": events[-1]["uuid"] if events else None}
        events.append({"type": message["role"], **session, **uuid, **parent, "message": message})
    return events


def as_codex(transcript):
    items = []
    for turn in transcript["turns"]:
        text = [{"type": "input_text", "text": turn["user"]}]
        items.append({"type": "message", "role": "user", "content": text})
        for step in _steps(turn):
            if isinstance(step, str):
                text = [{"type": "output_text", "text": step}]
                items.append({"type": "message", "role": "assistant", "content": text})
                continue
            name, arguments = step
            if name == "Bash":
                name, arguments = "shell", {"command": ["bash", "-lc", arguments["command"]]}
            call = {"type": "function_call", "name": name, "call_id": "c"}
            items.append({**call, "arguments": json.dumps(arguments)})
            items.append({"type": "function_call_output", "call_id": "c", "output": "ok"})
    return [{"type": "response_item", "payload": item} for item in items]


RENDERED = {"openai": as_openai, "anthropic": as_anthropic}
RENDERED |= {"claude-code": as_claude_code, "codex": as_codex}


@pytest.mark.parametrize("form", RENDERED)
def test_hand_written_transcripts_score_as_their_labels_say(form, tmp_path, suite):
    """50 transcripts whose labels were written before any code read them."""
    assert len(AGENT) == 50
    folder = tmp_path / "logs"
    folder.mkdir()
    for transcript in AGENT:
        path = folder / f"{transcript['id']:02}.jsonl"
        path.write_text(lines_of(RENDERED[form](transcript)))
    logs = read_logs([folder])
    assert logs.formats == {form: 50} and not logs.problems
    run = score_logs(logs, load_suite(str(suite), probed=False), tmp_path / "run")
    wrong = []
    for transcript, record in zip(AGENT, as_json(run), strict=True):
        for number, turn in enumerate(transcript["turns"], start=1):
            probes = [probe for probe in record["probes"] if probe["round"] == number]
            passes = {probe["rule"] for probe in probes if probe["score"] == 1}
            failures = {probe["rule"] for probe in probes if probe["score"] < 1}
            if passes != set(turn.get("keeps") or ()) or failures != set(turn.get("breaks") or ()):
                wrong.append((transcript["id"], number, sorted(passes), sorted(failures)))
    assert not wrong
