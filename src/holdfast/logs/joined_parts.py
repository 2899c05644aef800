"""Joins the scanned parts of all files into scored logs, once the copied turns are known."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from holdfast.drift.probe_outcomes import PendingProbe, ProbeOutcome
from holdfast.logs.copies import copies_in
from holdfast.logs.log_fingerprint import log_fingerprint
from holdfast.logs.log_reading import no_dialog
from holdfast.logs.part_scanning import Scan, ScannedDialog, ScannedPart, read_pending
from holdfast.logs.scored_logs import ScoredLogs
from holdfast.logs.turn_scoring import ScoredDialog
from holdfast.records import LogDialog
from holdfast.records.lines import to_content


class _Original(NamedTuple):
    """A dialog, and the positions of those of its turns that are counted in another one."""

    dialog: ScannedDialog
    copies: frozenset[int]

    @property
    def reasoning_turns(self) -> int:
        return len({*self.dialog.reasoning} - self.copies)

    @property
    def refused_calls(self) -> int:
        return sum(turn not in self.copies for turn in self.dialog.refused)


def join_files(paths: Sequence[Path | str], files: Sequence[ScannedPart], scan: Scan) -> ScoredLogs:
    """The dialogs of files as scored logs, without turns that are copies of others.

    Raises:
        NoDialog: no file has a dialog.
    """
    problems = [problem for file in files for problem in file.problems]
    dialogs = [dialog for file in files for dialog in file.dialogs]
    if not dialogs:
        raise no_dialog(paths, problems)
    formats = Counter(dialog.format for dialog in dialogs)
    copies = copies_in([dialog.events for dialog in dialogs])
    originals = [
        _Original(dialog, positions)
        for dialog, positions in zip(dialogs, copies.turns, strict=True)
        if len(positions) < dialog.turns
    ]
    scored = [original for original in originals if original.dialog.case is not None]
    store = _RecordStore()
    return ScoredLogs(
        dialogs=len(originals),
        cases=tuple(scan.suite.cases[original.dialog.case or 0] for original in scored),
        other_prompts=sum(original.dialog.has_other_prompt for original in scored),
        reasoning_turns=sum(original.reasoning_turns for original in scored),
        refused_calls=sum(original.refused_calls for original in scored),
        formats=formats,
        problems=(*problems, *copies.problems),
        fingerprint=log_fingerprint(
            (file.digest for file in files), formats, (dialog.digest for dialog in dialogs)
        ),
        scored=lambda number: _without_copies(store.read(scored[number].dialog), scored[number]),
        loaded=tuple(file.name for file in scan.loaded),
    )


class _RecordStore:
    """Reads records from scratch files. As the dialogs of a file come one after the other, the last
    scratch file stays open.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._file: IO[bytes] | None = None

    def read(self, dialog: ScannedDialog) -> bytes:
        if self._file is None or dialog.records != self._path:
            if self._file is not None:
                self._file.close()
            self._path = dialog.records
            self._file = dialog.records.open("rb")
        self._file.seek(dialog.start)
        return self._file.read(dialog.size)


def _without_copies(content: bytes, original: _Original) -> ScoredDialog | bytes:
    """A dialog's record without its copied turns and their scores."""
    numbers = {position + 1 for position in original.copies}
    if original.dialog.awaits_judge:
        scored = read_pending(content)
        outcomes = tuple(o for o in scored.outcomes if _round_of(o) not in numbers)
        return replace(scored, record=_without(scored.record, numbers), outcomes=outcomes)
    if not numbers:
        return content
    return to_content(_without(LogDialog.model_validate_json(content), numbers))


def _round_of(outcome: ProbeOutcome) -> int:
    return outcome.probe.round if isinstance(outcome, PendingProbe) else outcome.round


def _without(record: LogDialog, numbers: Collection[int]) -> LogDialog:
    """A record without the turns that have these numbers, and without their scores."""
    fields = {
        name: tuple(item for item in getattr(record, name) if item.round not in numbers)
        for name in ("turns", "probes", "unscored", "unanswered")
    }
    compactions = tuple(item for item in record.compactions if item.turn not in numbers)
    return record.model_copy(update={**fields, "compactions": compactions})
