"""The file of a person's labels in a run's folder, `labels.jsonl`.

A line, shortened, in the form that `holdfast suite test --turns` reads:

    {"rule": "shop/greet", "label": "breaks", "source": "july.jsonl, line 3, turn 1", ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.analysis.measure_tests import Label
from holdfast.errors import RecordsError, cut, reason_of
from holdfast.files import cannot_write
from holdfast.logs.label_sampling import LabelTask
from holdfast.logs.turn_scoring import MAX_TEXT_CHARACTERS
from holdfast.measures.turns import ToolCall
from holdfast.records.lines import cut_torn_line, write_all

LABELS = "labels.jsonl"


class LabelKey(NamedTuple):
    """Identifies the turn that a label is about, and the rule.

    The source alone does not, as the dialogs of a session may share theirs.

    Args:
        rule: the name of the rule, such as "shop/greet".
        source: where the turn is, such as "july.jsonl, line 3, turn 2".
        user, reply: the texts of the turn, cut to the length that a record keeps.
    """

    rule: str
    source: str
    user: str
    reply: str

    @classmethod
    def of_texts(cls, rule: str, source: str, user: str, reply: str) -> LabelKey:
        """Makes the key of a turn from its full texts."""
        user, reply = cut(user, MAX_TEXT_CHARACTERS), cut(reply, MAX_TEXT_CHARACTERS)
        return cls(rule, source, user, reply)

    @classmethod
    def of_task(cls, task: LabelTask) -> LabelKey:
        return cls.of_texts(task.rule, task.source, task.turn.user, task.turn.done.text)


class LabelFile:
    """The file of labels in a run's folder. A later label of a turn replaces an earlier one.

    Raises:
        RecordsError: a line of the file is not a label.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LABELS
        self._labels: dict[LabelKey, Label] = {}
        cut_torn_line(self._path)
        content = self._path.read_bytes() if self._path.exists() else b""
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                key, label = _read_label(line)
                self._labels[key] = label
            except (ValueError, KeyError, TypeError) as error:
                raise RecordsError(
                    f"Line {number} of {self._path} is not a label ({reason_of(error)}); remove "
                    "it, or choose another folder with --out.",
                    option=str(self._path),
                    value=number,
                ) from None

    @property
    def path(self) -> Path:
        return self._path

    def __contains__(self, task: LabelTask) -> bool:
        return LabelKey.of_task(task) in self._labels

    def items(self) -> Iterator[tuple[LabelKey, Label]]:
        """The labels with their keys."""
        yield from self._labels.items()

    def add(self, task: LabelTask, label: Label) -> None:
        """Writes the label of a turn to the end of the file."""
        line = json.dumps(line_of(task, label)) + "\n"
        try:
            with open(self._path, "ab", buffering=0) as file:
                write_all(file.fileno(), line.encode())
        except OSError as error:
            raise cannot_write(self._path, error, "another folder with --out") from error
        self._labels[LabelKey.of_task(task)] = label


def _read_label(line: bytes) -> tuple[LabelKey, Label]:
    """Reads a line of the file; raises a ValueError, KeyError or TypeError if it is not a label."""
    fields = json.loads(line)
    label = fields["label"]
    if label not in ("follows", "breaks"):
        raise ValueError(f"its label is {label!r}")
    key = LabelKey.of_texts(
        fields["rule"], fields["source"], fields.get("user", ""), fields.get("reply", "")
    )
    return key, label


def line_of(task: LabelTask, label: Label) -> dict[str, Any]:
    """A label as a line of `labels.jsonl`; empty fields are left out."""
    done = task.turn.done
    fields = {
        "reply": done.text,
        "calls": [*map(_fields_of_call, done.calls)],
        "earlier": [*map(_fields_of_call, done.earlier)],
        "user": task.turn.user,
        "previous": done.previous,
    }
    filled = {name: value for name, value in fields.items() if value}
    return {"rule": task.rule, "label": label, "source": task.source, **filled}


def _fields_of_call(call: ToolCall) -> dict[str, Any]:
    answers = {answer.question: answer.text for answer in call.answers}
    fields = {"tool": call.name, "arguments": dict(call.arguments)}
    return {**fields, "answers": answers} if answers else fields
