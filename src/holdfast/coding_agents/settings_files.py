"""Adds hooks to the settings of coding agents.

The settings of all three agents are a JSON file with a list of hooks for each event under `hooks`.
"""

import json
import os
import re
import shutil
import stat
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, reason_of
from holdfast.files import read_text, write_whole


@dataclass(frozen=True)
class CodingAgent:
    """A coding agent that has hooks.

    Args:
        program: the name by which the agent is started.
        settings: the path of the settings in the folder of a project, or of the user.
        events: the events for which the hook is called, each with a matcher; "" matches everything.
        timeout: the time limit of the hook, in the unit that the agent uses.
    """

    name: str
    program: str
    settings: Path
    events: Mapping[str, str]
    timeout: int

    @property
    def is_used_here(self) -> bool:
        """Whether the agent is installed, or the project in this folder has settings for it."""
        return shutil.which(self.program) is not None or self.settings.parent.is_dir()


_CODEX_EVENTS = {
    "UserPromptSubmit": "",
    "PostToolUse": "",  # also after a tool has failed, for which Claude Code has another event
    "SessionStart": "compact",  # the log shows compactions too
}
_CLAUDE_CODE_EVENTS = {**_CODEX_EVENTS, "PostToolUseFailure": ""}
# after a compaction, which its log does not show, the next message says the rules
_GEMINI_CLI_EVENTS = {"BeforeAgent": "", "AfterTool": "", "PreCompress": ""}
AGENTS = {
    agent.name: agent
    for agent in (
        CodingAgent("claude-code", "claude", Path(".claude/settings.json"), _CLAUDE_CODE_EVENTS, 5),
        CodingAgent("codex", "codex", Path(".codex/hooks.json"), _CODEX_EVENTS, 5),
        CodingAgent(
            "gemini-cli", "gemini", Path(".gemini/settings.json"), _GEMINI_CLI_EVENTS, 5000
        ),
    )
}


def start_command() -> list[str]:
    """The words that start this Holdfast from any folder and any shell.

    That is `holdfast` only if the one on the PATH is this one, and stands outside its virtual
    environment, which the shell of an agent may not have activated.
    """
    name = "holdfast.exe" if sys.platform == "win32" else "holdfast"
    own = Path(sysconfig.get_path("scripts")) / name
    if not own.is_file():
        return [sys.executable, "-m", "holdfast"]
    found = shutil.which("holdfast")
    if found is not None and os.path.samefile(found, own):
        is_in_environment = sys.prefix != sys.base_prefix and Path(found).is_relative_to(sys.prefix)
        if not is_in_environment:
            return ["holdfast"]
    return [str(own)]


def hook_settings(agent: CodingAgent, command: str) -> dict[str, Any]:
    """Settings that have only the hooks with this command."""
    hook = {"type": "command", "command": command, "timeout": agent.timeout}
    groups: dict[str, list[dict[str, Any]]] = {}
    for event, matcher in agent.events.items():
        group: dict[str, Any] = {"hooks": [hook]}
        if matcher:
            group = {"matcher": matcher, **group}
        groups[event] = [group]
    return {"hooks": groups}


def format_settings(settings: Mapping[str, Any]) -> str:
    """Writes settings as JSON with a line for each event."""
    lines = [
        f"    {json.dumps(event)}: {json.dumps(groups)}"
        for event, groups in settings["hooks"].items()
    ]
    return "\n".join(['{\n  "hooks": {', ",\n".join(lines), "  }\n}"])


def install(agent: CodingAgent, command: str, file: Path) -> list[str]:
    """Adds the hooks to a settings file, and returns the events that did not have them yet.

    Everything else in the file stays as it is, in its order.

    Raises:
        UsageError: the file cannot be read or parsed, or has something else in the place of hooks.
        RecordsError: the file cannot be written; it is not changed then.
    """
    text = read_text(file) if file.exists() else ""
    settings = _parse(file, text) if text.strip() else {}
    hooks = settings.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise _no_place_for_hooks(file, "'hooks' is not an object")
    new_events: list[str] = []
    for event, new_groups in hook_settings(agent, command)["hooks"].items():
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise _no_place_for_hooks(file, f"'hooks.{event}' is not a list")
        if not any(command in _commands(group) for group in groups):
            groups += new_groups
            new_events.append(event)
    if new_events:
        _write(file, settings, text)
    return new_events


def _commands(group: Any) -> list[Any]:
    """The commands of a group of hooks, which is an entry in the list of an event."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [hook.get("command") for hook in hooks or () if isinstance(hook, dict)]


def _parse(file: Path, text: str) -> dict[str, Any]:
    """Parses settings, and refuses what would not be written back as it is."""

    def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("an object has the same name twice")
        return dict(pairs)

    def exact_number(number: str) -> float:
        if repr(float(number)) != number:
            raise ValueError(f"the number {number} would not be written back as it is")
        return float(number)

    def refuse_constant(constant: str) -> float:
        raise ValueError(f"{constant} is not a number")

    try:
        settings = json.loads(
            text,
            object_pairs_hook=unique_fields,
            parse_float=exact_number,
            parse_constant=refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{file} is not plain JSON ({reason_of(error)}), and is left as it is; add the lines"
            " that `holdfast remind --install` shows yourself.",
            option="settings",
            value=file,
        ) from error
    if not isinstance(settings, dict):
        raise _no_place_for_hooks(file, "it is not an object")
    return settings


def _no_place_for_hooks(file: Path, fault: str) -> UsageError:
    return UsageError(
        f"{file} has no place for hooks ({fault}), and is left as it is; correct it first.",
        option="settings",
        value=file,
    )


def _write(file: Path, settings: dict[str, Any], before: str) -> None:
    """Writes the settings, with the indentation, line breaks and permissions of the old file."""
    indent = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    text = json.dumps(settings, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
    try:
        content = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can only write as an escape
        content = json.dumps(settings, indent=2).encode() + b"\n"
    write_whole(file, content, "another file with --settings")
    if mode is not None:
        file.chmod(mode)
