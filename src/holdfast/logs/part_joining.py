"""Joins the scanned parts of files, and the files, into the scores of logs.

For example:

    the parts of july.jsonl   -> join_parts -> one ScannedPart
    july.jsonl, august.jsonl  -> join_files -> ScoredLogs, without the turns that are copies
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from holdfast.drift.cases import Case
from holdfast.drift.probe_outcomes import PendingProbe, ProbeOutcome
from holdfast.files import digest_of
from holdfast.logs.copies import copies_in
from holdfast.logs.log_reading import log_fingerprint, no_dialog
from holdfast.logs.part_scanning import Scan, ScannedDialog, ScannedPart, read_pending
from holdfast.logs.scored_logs import DialogToWrite, ScoredLogs
from holdfast.logs.turn_scoring import ScoredDialog
from holdfast.records import LogDialog
from holdfast.records.lines import to_content
from holdfast.transcripts.finding import FoundLog


def join_parts(log: FoundLog, parts: Sequence[ScannedPart]) -> ScannedPart | None:
    """The parts of a file as one part; None if one of them cannot be read by itself."""
    if any(part.is_refused for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    unread = [unread for part in parts for unread in part.unread]
    return ScannedPart(
        log.path,
        digest_of(log.path),
        tuple(sorted(unread, key=lambda item: item.stage)),  # in the order of a file read at once
        sum((Counter(part.unread_parts) for part in parts), Counter()),
        tuple(sentence for part in parts for sentence in part.silent),
        tuple(dialog for part in parts for dialog in part.dialogs),
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
    store = _RecordStore()
    count = 0
    to_write: list[DialogToWrite] = []
    for dialog, copied_turns in zip(dialogs, copies.turns, strict=True):
        if len(copied_turns) == dialog.turns:  # another dialog has all of it
            continue
        count += 1
        if dialog.case is not None:
            case = scan.suite.cases[dialog.case]
            to_write.append(_to_write(dialog, case, copied_turns, store))
    return ScoredLogs(
        to_write=to_write,
        count=count,
        formats=formats,
        problems=(*problems, *copies.problems),
        fingerprint=log_fingerprint(
            (file.digest for file in files), formats, (dialog.digest for dialog in dialogs)
        ),
        loaded=tuple(file.name for file in scan.loaded),
    )


def _to_write(
    dialog: ScannedDialog, case: Case, copied_turns: frozenset[int], store: _RecordStore
) -> DialogToWrite:
    """A dialog on the disk, without the turns at these positions, which are counted in others."""
    return DialogToWrite(
        case=case,
        has_other_prompt=dialog.has_other_prompt,
        reasoning_turns=len({*dialog.reasoning} - copied_turns),
        refused_calls=sum(turn not in copied_turns for turn in dialog.refused),
        scores=partial(_read_scores, store, dialog, copied_turns),
    )


def _read_scores(
    store: _RecordStore, dialog: ScannedDialog, copied_turns: frozenset[int]
) -> ScoredDialog | bytes:
    """Reads a dialog's record without its copied turns and their scores."""
    content = store.read(dialog)
    numbers = {position + 1 for position in copied_turns}
    if dialog.awaits_judge:
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
