"""A run as it is read: its manifest, its records, and these as one tidy table (docs/runs.md).

The columns of the table depend only on the command, so that tables can be concatenated.
"""

import csv
import importlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from holdfast.common.files import write_whole
from holdfast.errors import RecordsError, UsageError
from holdfast.records.belonging import Record
from holdfast.records.conversation import CapabilityConversation, Conversation, LogDialog
from holdfast.records.earlier import SCHEMA
from holdfast.records.identity import (
    ConversationsIdentity,
    Identity,
    LogsIdentity,
    Manifest,
    TasksIdentity,
)
from holdfast.records.model import Failure
from holdfast.records.precedent_records import PrecedentChat
from holdfast.records.run_summary import Summary, read_summary
from holdfast.records.samples import HeadScores, TaskSample

Kind = TypeVar("Kind", bound=Identity)

Columns = dict[str, list[Any]]

_INTS = ("seed", "conversation", "round", "probe", "sample")
_FLOATS = ("score", "mass", "turn_mass")
_PROBES = (
    *("model", "suite", "seed", "method", "conversation", "agent", "category", "user"),
    *("user_category", "round", "kind", "rule", "probe", "question", "reply", "score", "reason"),
    *("mass", "turn_mass", "stop_reason", "rule_kind", "polarity", "pressure"),
)
_SCORES = (
    *("model", "data", "method", "sample", "task", "variant", "target", "reply", "name", "score"),
)
_OF_SAMPLES = ("tasks", "profile")  # the commands whose records are samples


@dataclass(frozen=True)
class Run:
    """The contents of a run folder.

    Attributes:
        folder: the path of the run folder.
        manifest: what the run was started with, in the current form (`earlier.version_of`).
        records: in the order they were written.
        failures: requests that were not answered and are still not recorded, which the next
            command asks again: the latest of each key.
    """

    folder: Path
    manifest: Manifest
    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {len(self.records)} records)"

    def identity(self, kind: type[Kind]) -> Kind:
        """The identity of the run, of the kind that its command has.

        Raises:
            RecordsError: another command made the run.
        """
        if not isinstance(self.manifest.identity, kind):
            raise RecordsError(f"{self.folder} holds a run of `holdfast {self.manifest.command}`.")
        return self.manifest.identity

    @property
    def conversations(self) -> list[Conversation]:
        """The conversations, of a run of `drift`, `check`, `calibrate`, `trace` or `geometry`."""
        return [record for record in self.records if isinstance(record, Conversation)]

    @property
    def capabilities(self) -> list[CapabilityConversation]:
        """The answered capability questions of a calibration, by conversation."""
        return [record for record in self.records if isinstance(record, CapabilityConversation)]

    @property
    def dialogs(self) -> list[LogDialog]:
        """The scored dialogs of a run of `logs`."""
        return [record for record in self.records if isinstance(record, LogDialog)]

    @property
    def samples(self) -> list[TaskSample]:
        """The samples of a run of `tasks`."""
        return [record for record in self.records if isinstance(record, TaskSample)]

    @property
    def head_scores(self) -> list[HeadScores]:
        """The samples of a run of `profile`."""
        return [record for record in self.records if isinstance(record, HeadScores)]

    @property
    def precedents(self) -> list[PrecedentChat]:
        """The conversations of a run of `precedent`."""
        return [record for record in self.records if isinstance(record, PrecedentChat)]

    @property
    def summary(self) -> Summary | None:
        """The results in `summary.json`, as it is now; None if there is none that can be read."""
        return read_summary(self.folder)

    def to_columns(self) -> Columns:
        """The records as a tidy table: a row for each probe of each round of each conversation, or
        for each score of each sample (docs/runs.md describes the columns).

        Columns are lists by name, with None where nothing was measured; `polars.DataFrame`,
        `pyarrow.table` and `pandas.DataFrame` take them.
        """
        return columns_of(self)

    def to_pandas(self) -> Any:
        """The same table as a pandas data frame.

        Raises:
            UsageError: pandas is not installed.
        """
        pandas = package("pandas", "pandas", "run.to_pandas()")
        # a column in which nothing was measured would otherwise have no type
        types = {name: kind for name, kind in types_of(self).items() if kind is float}
        return pandas.DataFrame(columns_of(self)).astype(types)


def types_of(run: Run) -> Mapping[str, type]:
    """The columns of a run's table in their order, and whether each holds str, int or float."""
    names = _SCORES if run.manifest.command in _OF_SAMPLES else _PROBES
    return {n: float if n in _FLOATS else int if n in _INTS else str for n in names}


def columns_of(run: Run) -> Columns:
    """The table of a run, column by column; None where nothing was measured or nothing applies."""
    of_samples = run.manifest.command in _OF_SAMPLES
    rows = _rows_of_scores(run) if of_samples else _rows_of_probes(run)
    columns: Columns = {name: [] for name in types_of(run)}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    for name, kind in types_of(run).items():
        if kind is float:
            columns[name] = [None if value is None else float(value) for value in columns[name]]
    return columns


def write_csv(run: Run, path: Path | str) -> Path:
    """Writes the table of a run as CSV (UTF-8, RFC 4180); None is an empty field.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    text, columns = io.StringIO(newline=""), columns_of(run)
    kinds = types_of(run)
    safe = [
        [_without_formula(value) for value in column] if kinds[name] is str else column
        for name, column in columns.items()
    ]
    for row in ([*columns], *zip(*safe, strict=True)):
        line = io.StringIO(newline="")
        # the writer quotes the characters of its line ends, so carriage returns are quoted too
        csv.writer(line, lineterminator="\r\n").writerow(row)
        text.write(line.getvalue().removesuffix("\r\n") + "\n")
    return write_whole(path, text.getvalue(), "another file with --csv")


# also in full width, which some spreadsheets take for the same
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def _without_formula(text: str | None) -> str | None:
    """A text cell that no spreadsheet takes for a formula; a number stays one."""
    if text is None or not text.startswith(_FORMULA_STARTS) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def write_parquet(run: Run, path: Path | str) -> Path:
    """Writes the table of a run as Parquet; the schema holds the identity of the run as JSON."""
    arrow = package("pyarrow", "parquet", "--parquet")
    parquet = importlib.import_module("pyarrow.parquet")
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    about = {
        "identity": json.dumps(run.manifest.identity.to_json()),
        SCHEMA: str(run.manifest.version),
    }
    schema = arrow.schema(
        [(name, kinds[kind]) for name, kind in types_of(run).items()],
        metadata={f"holdfast.{name}": text for name, text in about.items()},
    )
    columns = {name: list(map(_valid, column)) for name, column in columns_of(run).items()}
    content = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=schema), content)
    return write_whole(path, content.getvalue(), "another file with --parquet")


def package(name: str, extra: str, needed_by: str) -> ModuleType:
    """Imports a package that comes with one of our extras."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{needed_by} needs {name}; pip install 'holdfast-llm[{extra}]' ({error})."
        ) from error


def _rows_of_probes(run: Run) -> Iterator[dict[str, Any]]:
    identity = run.manifest.identity
    of_run: dict[str, Any] = {"model": identity.model}
    if isinstance(identity, ConversationsIdentity):
        of_run |= {"suite": identity.suite, "seed": identity.settings.seed}
    elif isinstance(identity, LogsIdentity):
        of_run |= {"suite": identity.suite}
    # a probe in place of the user's message follows the round before
    in_place = isinstance(identity, ConversationsIdentity) and (
        identity.settings.probe_at == "in-place"
    )
    dialogs: list[Conversation | LogDialog] = [*run.conversations, *run.dialogs]
    for record in dialogs:
        of_dialog = {
            "method": record.method,
            "conversation": record.conversation,
            "agent": record.agent.id,
            "category": record.agent.category,
            "user": record.user.id,
            "user_category": record.user.category,
        }
        masses = {turn.round: turn.mass for turn in record.turns if turn.speaker == "agent"}
        pressures = {turn.round: turn.pressure for turn in record.turns if turn.speaker == "user"}
        for probe in record.answered:
            of_turn = {
                "turn_mass": masses.get(probe.round),
                "pressure": pressures.get(probe.round - in_place),
            }
            yield {**of_run, **of_dialog, **of_turn, **probe.to_json()}


def _rows_of_scores(run: Run) -> Iterator[dict[str, Any]]:
    identity = run.manifest.identity
    data = identity.data if isinstance(identity, TasksIdentity) else None
    samples: list[TaskSample | HeadScores] = [*run.samples, *run.head_scores]
    for record in samples:
        of_sample = {
            **record.to_json(),
            "model": identity.model,
            "data": data,
            "sample": record.conversation,
        }
        for name, score in record.scores.items():
            yield {**of_sample, "name": name, "score": score}


def _valid(value: Any) -> Any:
    """A text without lone surrogates, which Parquet does not take."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
