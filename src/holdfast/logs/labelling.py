"""Scored turns that a person labels, which shows how far the measures of rules can be trusted.

A label is a line of `labels.jsonl` in the run's folder, in the form that `holdfast suite test
--turns` reads. The texts come from the logs, as records have them cut short.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast.analysis.adherence import label_of
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.drift.cases import Suite
from holdfast.drift.rule_texts import text_of
from holdfast.errors import RecordsError, cut, reason_of
from holdfast.files import cannot_write
from holdfast.logs.dialogs import LoggedTurn
from holdfast.logs.rereading import LogSource
from holdfast.logs.scored_logs import named_rules
from holdfast.logs.turn_scoring import MAX_TEXT_CHARACTERS
from holdfast.measures.scores import FOLLOWED
from holdfast.measures.turns import ToolCall
from holdfast.records import LogDialog, Run
from holdfast.records.lines import cut_torn_line, write_all
from holdfast.records.log_scores import rule_of

LABELS = "labels.jsonl"
MAX_TURNS = 20  # of each rule; half of them broken, if so many are broken

Label = Literal["follows", "breaks"]


class LabelKey(NamedTuple):
    """Identifies the label of a turn. The source does not, as dialogs of a session share theirs."""

    rule: str  # as `Adherence.rule`
    source: str  # as `LabelTask.source`
    user: str  # cut short, as in a record
    reply: str


class ScoredPlace(NamedTuple):
    """Where a score is: the row of its dialog in the run's records, the turn and the rule."""

    dialog: int
    turn: int
    rule: str  # as `Adherence.rule`


@dataclass(frozen=True)
class LabelTask:
    """A scored turn for a person to label.

    Args:
        text: the text of the rule.
        spec: the spec of the rule's measure.
        source: where the turn is, as in "july.jsonl, line 3, turn 2".
    """

    rule: str
    text: str
    spec: Any
    source: str
    turn: LoggedTurn

    @property
    def key(self) -> LabelKey:
        return _key(self.rule, self.source, self.turn.user, self.turn.done.text)


def _key(rule: str, source: str, user: str, reply: str) -> LabelKey:
    return LabelKey(rule, source, cut(user, MAX_TEXT_CHARACTERS), cut(reply, MAX_TEXT_CHARACTERS))


@dataclass(frozen=True)
class Agreement:
    """How well the scores of a rule agree with the labels of its turns.

    Args:
        agreement: the share of labelled turns that are scored as labelled; its interval takes the
            turns as independent.
        broken, kept: the same share of the turns that are scored as broken, and as kept.
        unknown: the number of labels whose turn has no score in the run.
    """

    rule: str
    agreement: Estimate
    broken: Estimate
    kept: Estimate
    unknown: int


def sample_turns(run: Run, seed: int, max_turns: int = MAX_TURNS) -> list[ScoredPlace]:
    """Draws scored turns of each rule, half of them broken and half kept if there are enough, in an
    order that does not show which are broken. The same run and seed give the same turns.
    """
    scores = run.log_scores
    columns = (scores.rule, scores.dialog, scores.turn, scores.score)
    rule, dialog, turn, score = (np.asarray(column) for column in columns)
    places: list[ScoredPlace] = []
    for number, scored in enumerate(scores.rules):
        name = label_of(scored)
        draw = np.random.default_rng([seed, *name.encode()])
        is_of_rule = rule == number
        broken = draw.permutation(np.flatnonzero(is_of_rule & (score < FOLLOWED)))
        followed = draw.permutation(np.flatnonzero(is_of_rule & (score >= FOLLOWED)))
        count = min(len(broken), max(max_turns // 2, max_turns - len(followed)))
        rows = draw.permutation([*broken[:count], *followed[: max_turns - count]])
        places += [ScoredPlace(int(dialog[row]), int(turn[row]), name) for row in rows]
    return places


def label_tasks(
    run: Run,
    places: Sequence[ScoredPlace],
    suite: Suite,
    logs: LogSource,
) -> list[LabelTask]:
    """The turns at these places with their full texts from the logs; a turn that the logs no longer
    have, or have otherwise, is left out.

    Raises:
        UsageError: a file cannot be read.
    """
    rules = {rule.name: rule for rule in named_rules(suite.cases)}
    records = {row: run.dialogs[row] for row in {place.dialog for place in places}}
    turns = {
        (row, turn.number): turn
        for row, dialog in logs.dialogs(records).items()
        for turn in dialog.turns
    }
    tasks: list[LabelTask] = []
    for place in places:
        turn = turns.get((place.dialog, place.turn))
        if turn is None:
            continue
        named_rule = rules[place.rule]
        source = source_of(records[place.dialog], place.turn)
        text = text_of(named_rule.case, named_rule.rule)
        tasks.append(LabelTask(place.rule, text, named_rule.rule.measure.spec, source, turn))
    return tasks


def source_of(record: LogDialog, turn: int) -> str:
    """Where a turn is, as its label has it."""
    return f"{record.source}, turn {turn}"


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
                fields = json.loads(line)
                if fields["label"] not in ("follows", "breaks"):
                    raise ValueError(f"its label is {fields['label']!r}")
                texts = (fields.get("user", ""), fields.get("reply", ""))
                self._labels[_key(fields["rule"], fields["source"], *texts)] = fields["label"]
            except (ValueError, KeyError, TypeError) as error:
                raise RecordsError(
                    f"Line {number} of {self._path} is not a label ({reason_of(error)}); remove it,"
                    " or choose another folder with --out.",
                    option=str(self._path),
                    value=number,
                ) from None

    @property
    def path(self) -> Path:
        return self._path

    def __contains__(self, task: LabelTask) -> bool:
        return task.key in self._labels

    def items(self) -> Iterator[tuple[LabelKey, Label]]:
        """The labels, by what identifies their turns."""
        yield from self._labels.items()

    def add(self, task: LabelTask, label: Label) -> None:
        """Writes the label of a turn to the end of the file."""
        line = json.dumps(line_of(task, label)) + "\n"
        try:
            with open(self._path, "ab", buffering=0) as file:
                write_all(file.fileno(), line.encode())
        except OSError as error:
            raise cannot_write(self._path, error, "another folder with --out") from error
        self._labels[task.key] = label


def line_of(task: LabelTask, label: Label) -> dict[str, Any]:
    """A label as a line of `labels.jsonl`; empty fields are left out."""
    done = task.turn.done
    fields = {
        "reply": done.text,
        "calls": [*map(_call, done.calls)],
        "earlier": [*map(_call, done.earlier)],
        "user": task.turn.user,
        "previous": done.previous,
    }
    filled = {name: value for name, value in fields.items() if value}
    return {"rule": task.rule, "label": label, "source": task.source, **filled}


def _call(call: ToolCall) -> dict[str, Any]:
    answers = {answer.question: answer.text for answer in call.answers}
    fields = {"tool": call.name, "arguments": dict(call.arguments)}
    return {**fields, "answers": answers} if answers else fields


def agreements(run: Run, labels: LabelFile) -> list[Agreement]:
    """Compares the scores of each rule with the labels of its turns."""
    label_by_key = dict(labels.items())
    kept_by_key: dict[LabelKey, bool] = {}  # whether the turn is scored as kept
    for record in run.dialogs:
        for probe in record.probes:
            rule = label_of(rule_of(record, probe))
            source = source_of(record, probe.round)
            key = LabelKey(rule, source, probe.question, probe.reply)
            if key in label_by_key:
                kept_by_key[key] = probe.score >= FOLLOWED
    rows: list[Agreement] = []
    for rule in dict.fromkeys(key.rule for key in label_by_key):
        keys = [key for key in label_by_key if key.rule == rule]
        agree = {
            key: kept_by_key[key] == (label_by_key[key] == "follows")
            for key in keys
            if key in kept_by_key
        }
        rows.append(
            Agreement(
                rule,
                agreement=_share(agree.values()),
                broken=_share(agree[key] for key in agree if not kept_by_key[key]),
                kept=_share(agree[key] for key in agree if kept_by_key[key]),
                unknown=len(keys) - len(agree),
            )
        )
    return rows


def _share(marks: Iterable[bool]) -> Estimate:
    """The share of true marks, with its interval."""
    return estimate(np.array([*marks], dtype=float), SCORES)
