"""Reads run folders: a `Run` has the manifest, and the records by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import AnotherRun, RecordsError
from holdfast.extras import import_extra
from holdfast.files import similar_path
from holdfast.records.belonging import Record, RecordKey, key_of
from holdfast.records.conversation import CapabilityConversation, Conversation, LogDialog
from holdfast.records.identity import Identity, Manifest
from holdfast.records.lines import read_lines, read_notes
from holdfast.records.log_scores import LogScores, collect_log_scores
from holdfast.records.manifest import MANIFEST, read_manifest, read_raw_manifest
from holdfast.records.model import Failure
from holdfast.records.precedent_records import PrecedentChat
from holdfast.records.run_summary import Summary, read_summary
from holdfast.records.run_table import Columns, RecordTable, probe_table, score_table
from holdfast.records.samples import HeadScores, TaskSample
from holdfast.records.stored_logs import LARGE_RUN_BYTES, StoredLogs

RECORDS = "records.jsonl"
FAILURES = "failures.jsonl"
IdentityKind = TypeVar("IdentityKind", bound=Identity)
RecordKind = TypeVar("RecordKind")


@dataclass(frozen=True)
class Run:
    """The contents of a run folder.

    Attributes:
        folder: the path of the run folder.
        manifest: the run's manifest, in the current form (`manifest.as_current`).
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

    def to_table(self) -> RecordTable:
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


def read_run(folder: Path | str) -> Run:
    """Reads a run folder, finished or still growing; a torn last line is left out.

    Raises:
        AnotherRun: it is not a run folder.
        RecordsError: the manifest is damaged, or a line is damaged or not of this run; the message
            names the line's number.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise AnotherRun(f"{folder} is not a run: {_explain_no_run(folder)}", option=str(folder))
    path = folder / RECORDS
    if path.is_file() and path.stat().st_size >= LARGE_RUN_BYTES:
        manifest = read_manifest(folder)
        if manifest.command == "logs" and not manifest.lines_without_crc32:
            return Run(folder, manifest, StoredLogs(path, manifest))
    # A running command writes the manifest before the records that it allows, so they are read in
    # the opposite order.
    lines = _bytes_of(path)
    failure_lines = _bytes_of(folder / FAILURES)
    manifest = read_manifest(folder)
    records = read_lines(lines, path, manifest)
    recorded_keys = set(map(key_of, records))
    notes = read_notes(failure_lines, folder / FAILURES, Failure)
    latest = {RecordKey(note.method, note.conversation): note for note in notes}
    failures = [note for key, note in latest.items() if key not in recorded_keys]
    return Run(folder, manifest, tuple(records), tuple(failures))


def read_earlier(folder: Path | str, command: str) -> Run:
    """Reads the run that `--against` names; refuses one that another command made."""
    run = read_run(folder)
    if run.manifest.command != command:
        raise AnotherRun(
            f"{folder} holds a run of `holdfast {run.manifest.command}`; give --against one of"
            f" `holdfast {command}`.",
            option="against",
            value=run.manifest.command,
            allowed=command,
        )
    return run


def _explain_no_run(folder: Path) -> str:
    """Says why a path is not a run, and what to give instead."""
    cure = "give the folder that a command's --out named."
    if folder.is_file():
        if (folder.parent / MANIFEST).is_file():
            cure = f"give the run's folder, {folder.parent}."
        return f"it is a file; {cure}"
    if not folder.is_dir():
        similar = similar_path(folder)
        return f"it does not exist; {cure if similar is None else f'did you mean {similar}?'}"
    subfolders = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    drift_runs = [
        subfolder
        for subfolder in subfolders
        if read_raw_manifest(subfolder).get("command", "drift") == "drift"
    ]
    if not drift_runs:
        return f"it holds no {MANIFEST}; {cure}"
    page = folder / "report.html"
    if page.is_file():
        return (
            f"its page is {page}, and its conversations are in {drift_runs[0]}; give that folder."
        )
    return f"its conversations are in {drift_runs[0]}; give that folder."


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise RecordsError(
            f"Cannot read {path}: {error.strerror}; make it readable, or give another folder.",
            option=str(path),
        ) from error
