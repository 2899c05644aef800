"""How a file is written changes nothing of what is read from it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from holdfast.logs import read_logs

FIXTURES = sorted((ROOT / "tests" / "data" / "logs").glob("*.jsonl"))


def as_read(path: Path) -> tuple[list, int]:
    """The texts in the dialogs of a file, and the number of its problems."""
    logs = read_logs([path])
    turns = [[(turn.user, turn.done) for turn in dialog.turns] for dialog in logs.dialogs]
    return turns, len(logs.problems)


def rewritten(content: str, change: Callable[[Any], Any]) -> bytes:
    values = map(json.loads, content.splitlines())
    return "".join(json.dumps(change(value)) + "\n" for value in values).encode()


def in_reverse(value: Any) -> Any:
    """A value with the fields of all its objects in the opposite order."""
    if isinstance(value, dict):
        return {name: in_reverse(field) for name, field in reversed(value.items())}
    return [*map(in_reverse, value)] if isinstance(value, list) else value


def with_new_fields(value: Any) -> Any:
    """A value with fields that its program has yet to invent."""
    new = {"schemaVersion": 9, "labels": None, "traits": {"mood": "fine"}}
    return {**new, **value} if isinstance(value, dict) else value


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_how_a_file_is_written_changes_nothing(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    expected = as_read(fixture)
    forms = {
        "mark.jsonl": ("\ufeff" + content).encode(),
        "windows.jsonl": content.replace("\n", "\r\n").encode(),
        "open.jsonl": content.rstrip("\n").encode(),
        "spaced.jsonl": ("\n\n" + content.replace("\n", "\n \n")).encode(),
        "wide.jsonl": content.encode("utf-16"),
        "escaped.jsonl": rewritten(content, lambda value: value),
        "reversed.jsonl": rewritten(content, in_reverse),
        "later_version.jsonl": rewritten(content, with_new_fields),
        "packed.jsonl.gz": gzip.compress(content.encode()),
    }
    for name, form in forms.items():
        (tmp_path / name).write_bytes(form)
        assert as_read(tmp_path / name) == expected, name


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_a_last_line_that_was_cut_is_named(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    turns, problems = as_read(fixture)
    path = tmp_path / "cut.jsonl"
    path.write_text(content + content.splitlines()[-1][:-9], encoding="utf-8")
    assert as_read(path) == (turns, problems + 1)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_a_line_of_no_format_is_named(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    turns, problems = as_read(fixture)
    path = tmp_path / "other.jsonl"
    path.write_text(content + '{"weather": "fine"}\n', encoding="utf-8")
    assert as_read(path) == (turns, problems + 1)
