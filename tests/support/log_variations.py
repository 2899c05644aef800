"""Variations of logs, as published versions of the tools write them, and what is read of each.

HI and A are the first question and its answer in the format of a test file, MORE and B the second.

A variation is a row: its name, its files, what was said in each dialog, and where it matters the
calls, the system prompt, what was put before the model, and what is reported as not read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.logs.context import Contexts
from holdfast.transcripts import EventKind

Said = list[tuple[str, str]]


@dataclass(frozen=True)
class Variation:
    """A variation of a log.

    Args:
        files: the values of each file: a list is written as lines, other JSON as a document, text
            as it is.
        said: in each dialog: the user's message and the reply of each turn.
        calls: the texts of all commands and arguments, in order; as all below that may be None,
            not compared if it is.
        system: the system prompt of every dialog.
        seen: the texts that a program put before the model.
        results: the results of the calls.
        problem: a part of the only problem; "" if there has to be none.
        refused: a part of the refusal, if nothing can be read.
        format: the format that is recognised, if it matters.
        is_cut: whether a reply was cut at the token limit.
        subagents: how many dialogs are those of subagents, if it matters.
        tokens: the tokens of each turn.
    """

    name: str
    files: Mapping[str, Any]
    said: list[Said] = field(default_factory=list)
    calls: Sequence[str] | None = None
    system: str | None = None
    seen: Sequence[str] | None = None
    results: Sequence[str] | None = None
    problem: str = ""
    refused: str = ""
    format: str = ""
    is_cut: bool = False
    subagents: int = 0
    tokens: Sequence[int] | None = None


def write_files(files: Mapping[str, Any], folder: Path) -> list[Path]:
    paths = [folder / name for name in files]
    for path, content in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(file_text(content), encoding="utf-8", newline="")
    return paths


def check(variation: Variation, folder: Path) -> None:
    """The files are read as the variation says."""
    paths = write_files(variation.files, folder)
    if variation.refused:
        with pytest.raises(UsageError) as excinfo:
            read_logs(paths)
        assert variation.refused in str(excinfo.value)
        return
    logs = read_logs(paths)
    texts = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert texts == variation.said
    events = [event for dialog in logs.dialogs for event in dialog.transcript.path]
    if variation.calls is not None:
        calls = [call for d in logs.dialogs for turn in d.turns for call in turn.done.calls]
        assert [" ".join(map(str, call.arguments.values())) for call in calls] == variation.calls
    if variation.system is not None:
        assert [dialog.system for dialog in logs.dialogs] == [variation.system] * len(texts)
    if variation.seen is not None:
        assert [e.text for e in events if e.kind is EventKind.REMINDER] == variation.seen
    if variation.results is not None:
        assert [e.text for e in events if e.kind is EventKind.TOOL_RESULT] == variation.results
    if variation.format:
        assert [*logs.formats] == [variation.format]
    if variation.tokens is not None:
        assert [turn.tokens for d in logs.dialogs for turn in d.turns] == variation.tokens
    if variation.subagents:
        of_subagent = [dialog.transcript.is_of_subagent for dialog in logs.dialogs]
        assert sum(of_subagent) == variation.subagents
    assert variation.is_cut is any(turn.done.is_cut for d in logs.dialogs for turn in d.turns)
    if variation.problem:
        assert len(logs.problems) == 1 and variation.problem in logs.problems[0], logs.problems
    else:
        assert not logs.problems


class Lines(list):
    """Values that are written one a line."""


def lines(*values: Any) -> Lines:
    return Lines(values)


def context_before_last_reply(folder: Path, name: str, content: Any) -> list[str]:
    """The texts that were in the model's context when it wrote the last reply of a log."""
    path = folder / name
    path.write_text(file_text(content))
    (dialog,) = read_logs([path]).dialogs
    events = dialog.transcript.path
    last = max(n for n, event in enumerate(events) if event.is_by_assistant)
    return [event.text for event in Contexts(events).before(last).events if event.text]


def file_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Lines):
        return "".join(
            (value if isinstance(value, str) else json.dumps(value)) + "\n" for value in content
        )
    return json.dumps(content)


def variations(*rows: Variation) -> Any:
    """A test of these variations."""
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)

    @pytest.mark.parametrize("row", rows, ids=names)
    def test(row: Variation, tmp_path: Path) -> None:
        check(row, tmp_path)

    return test


HI = {"role": "user", "content": "Hi"}
A = {"role": "assistant", "content": "A."}
BRIEF = {"role": "system", "content": "Be brief."}
ONE_TURN = [[("Hi", "A.")]]
TWO_TURNS = [[("Hi", "A."), ("More?", "B.")]]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def text(words: str) -> dict:
    return {"type": "text", "text": words}
