"""A person's labels of a run's turns: which turns to label, their file, and their agreement.

    run -> sample_turns, label_tasks -> LabelTask("shop/greet", "july.jsonl, line 3, turn 2", ...)
    LabelFile(folder).add(task, "breaks") -> a line of labels.jsonl
    run, labels -> agreements -> LabelAgreement("shop/greet", agreement=0.95, ...)

The labels show how far the measures of rules can be trusted. Their lines have the form that
`holdfast suite test --turns` reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.adherence import label_of
from holdfast.analysis.measure_tests import Label
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.drift.cases import Suite
from holdfast.drift.rule_sentences import text_of_rule
from holdfast.errors import RecordsError, cut, reason_of
from holdfast.files import cannot_write
from holdfast.logs.dialogs import LoggedTurn
from holdfast.logs.rereading import LogSource
from holdfast.logs.scored_logs import named_rules
from holdfast.logs.turn_scoring import MAX_TEXT_CHARACTERS
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.measures.turns import ToolCall
from holdfast.records import LogDialog, Run
from holdfast.records.lines import cut_torn_line, write_all
from holdfast.records.log_scores import rule_of

# --- Turns to label

MAX_TURNS = 20  # of each rule


class SampledTurn(NamedTuple):
    """A scored turn and the rule that it was scored by.

    Args:
        dialog: the row of its dialog in the run's records.
        turn: its number in the dialog, from 1.
        rule: the name of the rule, such as "shop/greet".
    """

    dialog: int
    turn: int
    rule: str


@dataclass(frozen=True)
class LabelTask:
    """A scored turn for a person to label.

    Args:
        rule: the name of the rule, such as "shop/greet".
        text: the text of the rule.
        spec: the spec of the rule's measure.
        source: where the turn is, such as "july.jsonl, line 3, turn 2".
        turn: the turn with its full texts.
    """

    rule: str
    text: str
    spec: Any
    source: str
    turn: LoggedTurn


def sample_turns(run: Run, seed: int, max_turns: int = MAX_TURNS) -> list[SampledTurn]:
    """Draws scored turns of each rule: half of them scored as broken and half as kept, if there
    are enough, in an order that does not show which. The same run and seed give the same turns.
    """
    scores = run.log_scores
    columns = (scores.rule, scores.dialog, scores.turn, scores.score)
    rule, dialog, turn, score = (np.asarray(column) for column in columns)
    sample: list[SampledTurn] = []
    for number, scored in enumerate(scores.rules):
        name = label_of(scored)
        draw = np.random.default_rng([seed, *name.encode()])
        broken = draw.permutation(np.flatnonzero((rule == number) & (score < MIN_KEPT_SCORE)))
        kept = draw.permutation(np.flatnonzero((rule == number) & (score >= MIN_KEPT_SCORE)))
        num_broken = _num_broken_to_draw(len(broken), len(kept), max_turns)
        rows = draw.permutation([*broken[:num_broken], *kept[: max_turns - num_broken]])
        sample += [SampledTurn(int(dialog[row]), int(turn[row]), name) for row in rows]
    return sample


def _num_broken_to_draw(num_broken: int, num_kept: int, max_turns: int) -> int:
    """Half of the sample, or more if too few turns are kept to fill the other half.

    Most turns keep most rules, so a sample regardless of the scores would have few broken turns,
    and say little about what a measure takes for a breach.
    """
    wanted = max(max_turns // 2, max_turns - num_kept)
    return min(wanted, num_broken)


def label_tasks(
    run: Run,
    sample: Sequence[SampledTurn],
    suite: Suite,
    logs: LogSource,
) -> list[LabelTask]:
    """Finds the full texts of sampled turns in the logs. A turn that is no longer in the logs, or
    whose texts have changed, is left out.

    Raises:
        UsageError: a file cannot be read.
    """
    rules = {rule.name: rule for rule in named_rules(suite.cases)}
    records = {sampled.dialog: run.dialogs[sampled.dialog] for sampled in sample}
    turns = {
        (row, turn.number): turn
        for row, dialog in logs.dialogs(records).items()
        for turn in dialog.turns
    }
    tasks: list[LabelTask] = []
    for sampled in sample:
        turn = turns.get((sampled.dialog, sampled.turn))
        if turn is None:
            continue
        named_rule = rules[sampled.rule]
        text = text_of_rule(named_rule.case, named_rule.rule)
        source = source_of(records[sampled.dialog], sampled.turn)
        tasks.append(LabelTask(sampled.rule, text, named_rule.rule.measure.spec, source, turn))
    return tasks


def source_of(record: LogDialog, turn: int) -> str:
    """Where a turn is, such as "july.jsonl, line 3, turn 2"."""
    return f"{record.source}, turn {turn}"


# --- The file of labels

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


# --- Labels against scores


@dataclass(frozen=True)
class LabelAgreement:
    """How well the scores of a rule agree with the labels of its turns.

    Args:
        agreement: the share of labelled turns whose score agrees with their label; its interval
            takes the turns as independent.
        broken, kept: the same share of the turns that are scored as broken, and as kept.
        unknown: the number of labels whose turn has no score in the run.
    """

    rule: str
    agreement: Estimate
    broken: Estimate
    kept: Estimate
    unknown: int


@dataclass(frozen=True)
class _LabelledScore:
    """Whether a turn keeps a rule, by its score and by its label."""

    scored_kept: bool
    labelled_kept: bool

    @property
    def agrees(self) -> bool:
        return self.scored_kept == self.labelled_kept


def agreements(run: Run, labels: LabelFile) -> list[LabelAgreement]:
    """Compares the scores of each rule with the labels of its turns."""
    label_by_key = dict(labels.items())
    is_kept = _scores_of_labelled(run, labels)
    by_rule: list[LabelAgreement] = []
    for rule in dict.fromkeys(key.rule for key in label_by_key):
        keys = [key for key in label_by_key if key.rule == rule]
        turns = [
            _LabelledScore(is_kept[key], labelled_kept=label_by_key[key] == "follows")
            for key in keys
            if key in is_kept
        ]
        by_rule.append(
            LabelAgreement(
                rule,
                agreement=_share_that_agrees(turns),
                broken=_share_that_agrees(turn for turn in turns if not turn.scored_kept),
                kept=_share_that_agrees(turn for turn in turns if turn.scored_kept),
                unknown=len(keys) - len(turns),
            )
        )
    return by_rule


def _scores_of_labelled(run: Run, labels: LabelFile) -> dict[LabelKey, bool]:
    """Whether each labelled turn that has a score keeps its rule by that score."""
    labelled = {key for key, _ in labels.items()}
    is_kept: dict[LabelKey, bool] = {}
    for record in run.dialogs:
        for probe in record.probes:
            rule = label_of(rule_of(record, probe))
            key = LabelKey(rule, source_of(record, probe.round), probe.question, probe.reply)
            if key in labelled:
                is_kept[key] = probe.score >= MIN_KEPT_SCORE
    return is_kept


def _share_that_agrees(turns: Iterable[_LabelledScore]) -> Estimate:
    return estimate(np.array([turn.agrees for turn in turns], dtype=float), SCORES)
