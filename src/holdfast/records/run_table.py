"""Makes one tidy table of the records of a run (docs/runs.md).

The columns depend only on the command, so that tables can be concatenated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.records.conversation import DialogRecord, Probe
from holdfast.records.identity import (
    ConversationsIdentity,
    Identity,
    LogsIdentity,
    TasksIdentity,
)
from holdfast.records.samples import HeadScores, TaskSample

Columns = dict[str, list[Any]]
# by column; None where nothing was measured, or the column does not apply
TableRow = dict[str, Any]


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: type  # the type of its values that are not None: str, int or float


@dataclass(frozen=True)
class RecordTable:
    """The columns of a table in their order, and the values of each."""

    columns: tuple[Column, ...]
    values: Columns  # by the name of the column

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, with their values in the order of the columns."""
        return zip(*(self.values[column.name] for column in self.columns), strict=True)


PROBE_COLUMNS = (
    Column("model", str),
    Column("suite", str),
    Column("seed", int),
    Column("method", str),
    Column("conversation", int),
    Column("agent", str),
    Column("category", str),
    Column("user", str),
    Column("user_category", str),
    Column("round", int),
    Column("kind", str),
    Column("rule", str),
    Column("probe", int),
    Column("question", str),
    Column("reply", str),
    Column("score", float),
    Column("reason", str),
    Column("mass", float),
    Column("turn_mass", float),
    Column("stop_reason", str),
    Column("rule_kind", str),
    Column("polarity", str),
    Column("pressure", str),
)
SCORE_COLUMNS = (
    Column("model", str),
    Column("data", str),
    Column("method", str),
    Column("sample", int),
    Column("task", str),
    Column("variant", str),
    Column("target", str),
    Column("reply", str),
    Column("name", str),
    Column("score", float),
)


def probe_table(identity: Identity, dialogs: Sequence[DialogRecord]) -> RecordTable:
    """Makes a table with a row for each answered probe of each round of each dialog."""
    rows = (row for dialog in dialogs for row in _probe_rows(identity, dialog))
    return _table(PROBE_COLUMNS, rows)


def score_table(identity: Identity, samples: Sequence[TaskSample | HeadScores]) -> RecordTable:
    """Makes a table with a row for each score of each sample."""
    rows = (row for sample in samples for row in _score_rows(identity, sample))
    return _table(SCORE_COLUMNS, rows)


def _table(columns: tuple[Column, ...], rows: Iterator[TableRow]) -> RecordTable:
    """The table of some rows."""
    values: Columns = {column.name: [] for column in columns}
    for row in rows:
        for name, column in values.items():
            column.append(row[name])
    return RecordTable(columns, values)


def _probe_rows(identity: Identity, dialog: DialogRecord) -> Iterator[TableRow]:
    """A row of the table for each probe of a dialog."""
    dialog_fields = _dialog_fields(identity, dialog)
    in_place = (
        isinstance(identity, ConversationsIdentity) and identity.settings.probe_at == "in-place"
    )
    masses = {turn.round: turn.mass for turn in dialog.turns if turn.speaker == "agent"}
    pressures = {turn.round: turn.pressure for turn in dialog.turns if turn.speaker == "user"}
    for probe in dialog.answered:
        # a probe in place of the user's message follows the message of the round before
        last_user_round = probe.round - 1 if in_place else probe.round
        yield {
            **dialog_fields,
            "round": probe.round,
            "kind": probe.kind,
            "rule": probe.rule,
            "probe": probe.probe,
            "question": probe.question,
            "reply": probe.reply,
            "score": probe.score if isinstance(probe, Probe) else None,
            "reason": probe.reason,
            "mass": probe.mass,
            "turn_mass": masses.get(probe.round),
            "stop_reason": probe.stop_reason,
            "rule_kind": probe.rule_kind,
            "polarity": probe.polarity,
            "pressure": pressures.get(last_user_round),
        }


def _dialog_fields(identity: Identity, dialog: DialogRecord) -> TableRow:
    """The columns that are the same for all probes of a dialog."""
    suite = None
    seed = None
    if isinstance(identity, ConversationsIdentity):
        suite = identity.suite
        seed = identity.settings.seed
    elif isinstance(identity, LogsIdentity):
        suite = identity.suite
    return {
        "model": identity.model,
        "suite": suite,
        "seed": seed,
        "method": dialog.method,
        "conversation": dialog.conversation,
        "agent": dialog.agent.id,
        "category": dialog.agent.category,
        "user": dialog.user.id,
        "user_category": dialog.user.category,
    }


def _score_rows(identity: Identity, sample: TaskSample | HeadScores) -> Iterator[TableRow]:
    """A row of the table for each score of a sample."""
    sample_fields: TableRow = {
        "model": identity.model,
        "data": identity.data if isinstance(identity, TasksIdentity) else None,
        "method": sample.method,
        "sample": sample.conversation,
        "task": None,
        "variant": None,
        "target": None,
        "reply": None,
    }
    if isinstance(sample, TaskSample):
        sample_fields |= {
            "task": sample.task,
            "variant": sample.variant,
            "target": sample.target,
            "reply": sample.reply,
        }
    for name, score in sample.scores.items():
        yield {**sample_fields, "name": name, "score": score}
