"""Finds the dialogs of a run's records in the logs again, as records have their texts cut short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import cut
from holdfast.logs.dialogs import LoggedDialog, dialog_of
from holdfast.logs.loaded_files import LoadedFile, with_loaded
from holdfast.logs.turn_scoring import MAX_TEXT_CHARACTERS
from holdfast.records import LogDialog
from holdfast.transcripts.containers import Contents
from holdfast.transcripts.finding import find_logs
from holdfast.transcripts.transcript import Transcript
from holdfast.transcripts.value_reading import read_values


@dataclass(frozen=True)
class LogSource:
    """The logs from which a run was scored; the fields are parameters of `scan_logs`."""

    paths: Sequence[Path | str]
    form: str | None = None
    loaded: tuple[LoadedFile, ...] = ()

    def dialogs(self, records: Mapping[int, LogDialog]) -> dict[int, LoggedDialog]:
        """The dialogs of these records, by the records' rows. One that the logs no longer have,
        or have with other turns, is left out. Turns that are copies of others are in the dialogs.

        Raises:
            UsageError: a file cannot be read.
        """
        rows: dict[str, list[int]] = {}  # several dialogs of a session have one source
        for row, record in records.items():
            rows.setdefault(record.source, []).append(row)
        dialogs: dict[int, LoggedDialog] = {}
        for transcript in self._transcripts(rows):
            dialog = dialog_of(with_loaded(transcript, self.loaded))
            for row in rows[transcript.source]:
                if _has(dialog, records[row]):
                    dialogs[row] = dialog
        return dialogs

    def _transcripts(self, sources: Mapping[str, object]) -> Iterator[Transcript]:
        logs = (log for path in self.paths for log in find_logs(Path(path)))
        for log in logs:
            has_source = any(source.startswith(str(log.path)) for source in sources)
            if log.obstacle or not has_source:
                continue
            for part in read_values(log.path, Contents(log.path), self.form):
                if isinstance(part, Transcript) and part.source in sources:
                    yield part


def _has(dialog: LoggedDialog, record: LogDialog) -> bool:
    """Whether a dialog has the turns of a record."""
    texts = {turn.number: cut(turn.done.text, MAX_TEXT_CHARACTERS) for turn in dialog.turns}
    return all(texts.get(turn.round) == turn.text for turn in record.turns)
