"""The contents of a run folder: its manifest, and its records by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import AnotherRun
from holdfast.extras import import_extra
from holdfast.records.belonging import Record
from holdfast.records.conversation import CapabilityConversation, Conversation, LogDialog
from holdfast.records.identity import Identity, Manifest
from holdfast.records.log_scores import LogScores, collect_log_scores
from holdfast.records.model import Failure
from holdfast.records.precedent_records import PrecedentChat
from holdfast.records.run_summary import Summary, read_summary
from holdfast.records.run_table import Columns, Table, probe_table, score_table
from holdfast.records.samples import HeadScores, TaskSample
from holdfast.records.stored_logs import StoredLogs

IdentityKind = TypeVar("IdentityKind", bound=Identity)
RecordKind = TypeVar("RecordKind")


@dataclass(frozen=True)
class Run:
    """The contents of a run folder.

    Attributes:
        folder: the path of the run folder.
        manifest: the run's manifest, in the current form (`earlier.as_current`).
        records: in the order they were written; for logs that are too large for memory, a sequence
            that reads each record from the disk.
        failures: the latest failure of each record that is still missing; the next command repeats
            these requests.
    """

    folder: Path
    manifest: Manifest
    records: Sequence[Record]
    failures: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {len(self.records)} records)"

    def identity_as(self, kind: type[IdentityKind]) -> IdentityKind:
        """Returns the identity of the run as the kind that a command's runs have.

        Raises:
            AnotherRun: another command made the run.
        """
        if isinstance(self.manifest.identity, kind):
            return self.manifest.identity
        command = self.manifest.command
        raise AnotherRun(
            f"{self.folder} was made by `holdfast {command}`, so it has no {kind.contents}; give"
            f" the folder of a run of `holdfast {kind.command}`.",
            value=command,
            allowed=[kind.command],
        )

    @property
    def conversations(self) -> list[Conversation]:
        """The conversations, of a run of `drift`, `check`, `calibrate`, `trace` or `geometry`."""
        return self._records_of(Conversation)

    @property
    def capability_conversations(self) -> list[CapabilityConversation]:
        """The answered capability questions of a calibration, by conversation."""
        return self._records_of(CapabilityConversation)

    @property
    def dialogs(self) -> Sequence[LogDialog]:
        """The scored dialogs of a run of `logs`."""
        if isinstance(self.records, StoredLogs):
            return self.records
        return self._records_of(LogDialog)

    def with_dialogs(self, dialogs: Mapping[int, LogDialog]) -> Run:
        """Returns the run with some dialogs replaced, given by position; writes nothing."""
        if isinstance(self.records, StoredLogs):
            return replace(self, records=self.records.with_dialogs(dialogs))
        records = [dialogs.get(row, record) for row, record in enumerate(self.dialogs)]
        return replace(self, records=tuple(records))

    @property
    def is_stored(self) -> bool:
        """Whether the records are logs too large for memory, which are read from the disk."""
        return isinstance(self.records, StoredLogs)

    @cached_property
    def log_scores(self) -> LogScores:
        """The scores of a run of `logs` as columns."""
        if isinstance(self.records, StoredLogs):
            return self.records.scores
        return collect_log_scores(self.dialogs)

    @property
    def samples(self) -> list[TaskSample]:
        """The samples of a run of `tasks`."""
        return self._records_of(TaskSample)

    @property
    def head_scores(self) -> list[HeadScores]:
        """The samples of a run of `profile`."""
        return self._records_of(HeadScores)

    @property
    def precedents(self) -> list[PrecedentChat]:
        """The conversations of a run of `precedent`."""
        return self._records_of(PrecedentChat)

    def _records_of(self, kind: type[RecordKind]) -> list[RecordKind]:
        if isinstance(self.records, StoredLogs):
            return []  # all records are of another kind, so none need be read
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def summary(self) -> Summary | None:
        """The results in `summary.json`, as it is now; None if it is missing or cannot be read."""
        return read_summary(self.folder)

    def to_table(self) -> Table:
        """Returns the records as a tidy table: a row for each probe of each round of each
        conversation, or for each score of each sample. docs/runs.md describes the columns.
        """
        identity = self.manifest.identity
        if self.manifest.command in ("tasks", "profile"):
            return score_table(identity, [*self.samples, *self.head_scores])
        return probe_table(identity, self.dialogs or self.conversations)

    def to_columns(self) -> Columns:
        """Returns the same table as lists by column, with None where nothing was measured.

        `polars.DataFrame`, `pyarrow.table` and `pandas.DataFrame` accept them.
        """
        return self.to_table().values

    def to_pandas(self) -> Any:
        """Returns the same table as a pandas data frame.

        Raises:
            UsageError: pandas is not installed.
        """
        pandas = import_extra("pandas", "pandas", "run.to_pandas()")
        table = self.to_table()
        # a column in which nothing was measured would otherwise have no type
        types = {column.name: float for column in table.columns if column.type is float}
        return pandas.DataFrame(table.values).astype(types)
