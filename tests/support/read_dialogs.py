"""Dialogs as logs are read, in the form in which tests compare them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_sessions import write
from log_variations import file_text

from holdfast.logs import read_logs
from holdfast.logs.dialogs import LoggedDialog
from holdfast.measures.agent_acts.actions import edits_of
from holdfast.measures.turns import ToolCall

Turns = list[tuple[str, str]]


def turns_of(dialog: LoggedDialog) -> Turns:
    """The texts of the user and the assistant in each turn."""
    return [(turn.user, turn.done.text) for turn in dialog.turns]


def calls_of(dialog: LoggedDialog) -> list[tuple[str, dict]]:
    """The names and arguments of all tool calls."""
    return [(call.name, dict(call.arguments)) for turn in dialog.turns for call in turn.done.calls]


def files_changed(calls: Sequence[ToolCall]) -> list[str]:
    return list(dict.fromkeys(edit.path for edit in edits_of(calls) if edit.path))


def write_document(folder: Path, value: Any, name: str = "log.json") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def dialog_in(folder: Path, name: str, content: Any) -> LoggedDialog:
    """The only dialog of a file with this content."""
    path = folder / name
    path.write_text(file_text(content))
    (dialog,) = read_logs([path]).dialogs
    return dialog


def read_file(path: Path) -> tuple[Turns, list[str], LoggedDialog]:
    """The turns and the problems of a file with one dialog, and the dialog."""
    logs = read_logs([path])
    (dialog,) = logs.dialogs
    return turns_of(dialog), list(logs.problems), dialog


def read_lines(folder: Path, *values: Any) -> tuple[Turns, list[str], LoggedDialog]:
    """The same of a log with these lines."""
    return read_file(write(folder, *values))
