"""Writes the dialogs of `tests/data/causes/labelled.yaml` in the formats of logs.

A dialog is a list of events, each with a kind and a value:

    - system: You are Tony. Sign as Tony.    # the system prompt
    - user: What do you have?
    - say: Pizza.                            # a message of the assistant
    - breaks: {signs: present}               # labels of the turn: its broken rules, and why

Agents also `run` a command, and `edit` or `read` a file; `agents` is their rules file. A dialog is
changed by `compact` (with the summary), `drop` (of the first messages, with their number), `resume`
and `session`. Each format is written from its published schema, which the README beside the file
lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from holdfast.drift import load_suite
from holdfast.drift.cases import Case

FILE = Path(__file__).parent.parent / "tests" / "data" / "causes" / "labelled.yaml"
BLIND = FILE.with_name("blind.yaml")
FRESH = FILE.with_name("fresh.yaml")
TIME = "2026-09-14T10:00:00.000Z"


@dataclass(frozen=True)
class LabelledBreach:
    """A broken rule, and the cause of it.

    Args:
        dialog: the id of the dialog in the labelled file.
        record: the number of the dialog as it is read from the log, from 0; `session` and `drop`
            begin another.
        turn: the number of the turn in that record, from 1.
    """

    dialog: str
    record: int
    turn: int
    rule: str
    cause: str


def load(file: Path = FILE) -> dict[str, Any]:
    """The suites and the dialogs of a labelled file; by default the first two sets."""
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))


def load_blind() -> dict[str, Any]:
    """The third set: dialogs by hand, and dialogs of a real model under the suite `bots`."""
    loaded = load(BLIND)
    cases = {case.id: case for case in load_suite("bots").cases}
    for dialog in loaded["dialogs"]:
        if dialog["half"] == "real":
            loaded["suites"][dialog["suite"]] = suite_of(cases[dialog["suite"]])
    return loaded


def load_fresh() -> dict[str, Any]:
    """The fourth set, by hand."""
    return load(FRESH)


def suite_of(case: Case) -> dict[str, Any]:
    """A case as a suite file has it, without probes."""
    rules = []
    for rule in case.rules:
        when = {name: value for name, value in asdict(rule.when).items() if value}
        fields = {"id": rule.id, "text": rule.text, "measure": rule.measure.spec}
        fields |= {"recalled": rule.recalled.spec} if rule.recalled else {}
        rules.append({**fields, **({"when": when} if when else {})})
    spec = {"system_prompt": case.system_prompt, "rules": rules}
    return dict(json.loads(json.dumps(spec, default=dict)))


def suite_file(suite: dict[str, Any], name: str) -> str:
    """A suite of one case, as YAML."""
    return yaml.safe_dump({"cases": [{"id": name, **suite}]}, allow_unicode=True)


def labels(dialog: dict[str, Any]) -> Iterator[LabelledBreach]:
    """The labelled breaches of a dialog."""
    record = 0
    turn = 0
    after_user = False  # whether the event before is a message of the user
    for event in dialog["events"]:
        ((kind, value),) = event.items()
        if kind == "user":
            is_by_user = "<system-reminder>" not in value
            if is_by_user and not after_user:  # messages that follow each other are one turn
                turn += 1
            after_user = is_by_user
        elif kind in ("say", "run", "edit", "read"):
            after_user = False
        elif kind == "session":
            record += 1
            turn = 0
        elif kind == "drop":  # half of the dropped messages are the user's
            record += 1
            turn -= value // 2
        elif kind == "breaks":
            for rule, cause in value.items():
                yield LabelledBreach(dialog["id"], record, turn, rule, cause)


def write(dialog: dict[str, Any], folder: Path) -> Path:
    """Writes a dialog in its format."""
    values = FORMATS[dialog["format"]](dialog)
    path = folder / f"{dialog['id']}.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def events_of(dialog: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The kind and the value of each event, without the labels."""
    for event in dialog["events"]:
        ((kind, value),) = event.items()
        if kind != "breaks":
            yield kind, value


class ToolCall(NamedTuple):
    """A tool call of a coding agent."""

    name: str
    arguments: dict[str, Any]
    result: str


def call_of(kind: str, value: Any) -> ToolCall:
    """The tool call of an event: `run` of a command, `edit` or `read` of a file."""
    if kind == "run":
        return ToolCall("Bash", {"command": value}, "ok")
    if kind == "edit":
        arguments = {"file_path": value, "old_string": "a", "new_string": "b"}
        return ToolCall("Edit", arguments, "ok")
    return ToolCall("Read", {"file_path": value["path"]}, value["text"])


def as_openai(dialog: dict[str, Any]) -> list[Any]:
    """One chat, with its tool calls and their results."""
    messages: list[Any] = []
    for number, (kind, value) in enumerate(events_of(dialog)):
        if kind in ("system", "user"):
            messages.append({"role": kind, "content": value})
        elif kind == "say":
            messages.append({"role": "assistant", "content": value})
        else:
            name, arguments, result = call_of(kind, value)
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    return [{"messages": messages}]


def as_anthropic(dialog: dict[str, Any]) -> list[Any]:
    """One request of Anthropic's API, without tools."""
    system = "".join(value for kind, value in events_of(dialog) if kind == "system")
    messages = [
        {"role": "user" if kind == "user" else "assistant", "content": value}
        for kind, value in events_of(dialog)
        if kind in ("user", "say")
    ]
    return [{"system": system, "messages": messages}]


def as_litellm(dialog: dict[str, Any]) -> list[Any]:
    """A call for the dialog up to each `drop`, and one for its end."""
    calls: list[Any] = []
    system: list[Any] = []
    messages: list[Any] = []

    def add_call() -> None:
        answer = {"choices": [{"message": messages[-1], "finish_reason": "stop"}]}
        request = {"messages": [*system, *messages[:-1]], "response": answer}
        calls.append({"id": f"c{len(calls)}", "call_type": "acompletion", **request})

    for kind, value in events_of(dialog):
        if kind == "system":
            system.append({"role": "system", "content": value})
        elif kind == "drop":
            add_call()
            del messages[:value]
        else:
            role = "user" if kind == "user" else "assistant"
            messages.append({"role": role, "content": value})
    add_call()
    return calls


@dataclass
class ClaudeCodeWriter:
    """Writes a transcript of Claude Code, whose lines name the line before them.

    Args:
        name: of the dialog, from which the ids of its lines are made.
        parent: the id of the line before.
    """

    name: str
    session: int = 0
    lines: list[Any] = field(default_factory=list)
    parent: str | None = None

    def add(self, kind: str, **fields: Any) -> None:
        """Adds a line after the one before it."""
        uuid = f"{self.name}-{len(self.lines)}"
        line = {"parentUuid": self.parent, "isSidechain": False, "type": kind, "uuid": uuid}
        session = {"sessionId": f"{self.name}-{self.session}", "version": "2.0.60"}
        self.lines.append({**line, **session, "timestamp": TIME, **fields})
        self.parent = uuid

    def add_message(self, role: str, content: Any, **fields: Any) -> None:
        """Adds a message."""
        self.add(role, message={"role": role, "content": content}, **fields)


def as_claude_code(dialog: dict[str, Any]) -> list[Any]:
    """A transcript of Claude Code; after a compaction or in a new session, no line is before."""
    log = ClaudeCodeWriter(dialog["id"])
    for kind, value in events_of(dialog):
        if kind == "user":
            log.add_message("user", value)
        elif kind == "say":
            log.add_message("assistant", [{"type": "text", "text": value}])
        elif kind == "compact":
            before = log.parent
            log.parent = None
            log.add("system", subtype="compact_boundary", logicalParentUuid=before)
            log.add_message("user", value, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        elif kind == "resume":
            log.session += 1
        elif kind == "session":
            log.session += 1
            log.parent = None
        else:
            name, arguments, result = call_of(kind, value)
            id = f"toolu_{len(log.lines)}"
            use = {"type": "tool_use", "id": id, "name": name, "input": arguments}
            log.add_message("assistant", [use])
            answer = {"type": "tool_result", "tool_use_id": id, "content": result}
            log.add_message("user", [answer], toolUseResult={"stdout": result})
    return log.lines


def as_codex(dialog: dict[str, Any]) -> list[Any]:
    """A rollout of Codex."""
    lines: list[Any] = []

    def add(kind: str, **payload: Any) -> None:
        lines.append({"timestamp": TIME, "type": kind, "payload": payload})

    def message(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    events = list(events_of(dialog))
    prompt = next((value for kind, value in events if kind == "system"), None)
    base = {"base_instructions": {"text": prompt}} if prompt else {}
    add("session_meta", id=dialog["id"], cli_version="0.61.0", **base)
    for number, (kind, value) in enumerate(events):
        if kind == "agents":
            text = f"<INSTRUCTIONS>\n{value}</INSTRUCTIONS>"
            text = f"# AGENTS.md instructions for /home/ada\n\n{text}"
            add("response_item", **message("user", text))
        elif kind in ("user", "say"):
            add("response_item", **message("user" if kind == "user" else "assistant", value))
        elif kind == "compact":
            add("compacted", message=value, replacement_history=[message("user", value)])
        elif kind in ("run", "edit", "read"):
            name, arguments, result = call_of(kind, value)
            if name == "Bash":
                name = "shell"
                arguments = {"command": ["bash", "-lc", arguments["command"]]}
            call = {"name": name, "call_id": f"call_{number}", "arguments": json.dumps(arguments)}
            add("response_item", type="function_call", **call)
            answer = {"call_id": f"call_{number}", "output": result}
            add("response_item", type="function_call_output", **answer)
    return lines


def as_gemini_cli(dialog: dict[str, Any]) -> list[Any]:
    """The sessions of Gemini CLI."""
    lines: list[Any] = []

    def begin(number: int) -> None:
        session = {"sessionId": f"{dialog['id']}-{number}", "projectHash": "0", "kind": "main"}
        lines.append({**session, "startTime": TIME, "lastUpdated": TIME})

    def add(kind: str, content: Any, **fields: Any) -> None:
        line = {"id": str(len(lines)), "timestamp": TIME, "type": kind, "content": content}
        lines.append({**line, **fields})

    begin(0)
    for kind, value in events_of(dialog):
        if kind == "user":
            add("user", [{"text": value}])
        elif kind == "say":
            add("gemini", value, model="gemini-3-pro")
        elif kind == "session":
            begin(len(lines))
        else:
            name, arguments, result = call_of(kind, value)
            id = f"call-{len(lines)}"
            response = {"id": id, "name": name, "response": {"output": result}}
            call = {"id": id, "name": name, "args": arguments, "status": "success"}
            call["result"] = [{"functionResponse": response}]
            add("gemini", "", toolCalls=[call])
    return lines


FORMATS = {
    "openai": as_openai,
    "anthropic": as_anthropic,
    "litellm": as_litellm,
    "claude-code": as_claude_code,
    "codex": as_codex,
    "gemini-cli": as_gemini_cli,
}
