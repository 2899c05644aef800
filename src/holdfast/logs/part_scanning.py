"""Reads and scores a part of a log file, and writes its records to a scratch file.

    FilePart(july.jsonl, bytes 0 to 8,000,000)  -> scan_part  -> ScannedPart, its records on disk

All that stays in memory of a dialog is where its record is, and the ids of its events.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

from holdfast.drift.cases import Suite
from holdfast.drift.probe_outcomes import results_of
from holdfast.errors import UsageError
from holdfast.logs.copies import TurnEvents
from holdfast.logs.dialogs import LoggedDialog, dialog_of
from holdfast.logs.loaded_files import LoadedFile, with_loaded
from holdfast.logs.log_reading import RecentTranscripts, dialog_digest, silence_problem, turn_events
from holdfast.logs.turn_scoring import (
    ScoredDialog,
    case_of,
    has_other_prompt,
    score_dialog,
    with_results,
)
from holdfast.records.lines import to_content
from holdfast.transcripts.containers import Contents
from holdfast.transcripts.file_parts import FilePart, contents_of, dialogs_before
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.reading import count_unread_parts, unread_parts_sentence
from holdfast.transcripts.value_reading import NotByItself, read_values


@dataclass(frozen=True)
class Scan:
    """How every part is read and scored.

    Args:
        form: the format of the logs; None detects it.
        folder: for the scratch files with records.
        loaded: files that the agent put into every context.
    """

    suite: Suite
    form: str | None
    folder: Path
    loaded: tuple[LoadedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ScannedDialog:
    """A dialog that was read, and where its record is if it was scored.

    Args:
        turns: the number of its turns.
        events: the ids by which copies of its turns are found; no turns if the log has no ids.
        case: the position of its case in the suite; None if it has no case, and so no record.
        reasoning: the positions of those of its turns that begin with reasoning.
        refused: for each call that never ran, the position of its turn.
        records: the file in which its record has this start and size.
        awaits_judge: whether the record is a `ScoredDialog` without its judged scores, not JSON.
    """

    turns: int
    events: TurnEvents
    format: str
    digest: bytes
    case: int | None = None
    has_other_prompt: bool = False
    reasoning: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    records: Path = Path()
    start: int = 0
    size: int = 0
    awaits_judge: bool = False


@dataclass(frozen=True)
class ScannedPart:
    """A file, or a part of one, that was read and scored.

    A `LogFile` has the transcripts of a file in memory; this has the scores of its dialogs, on the
    disk.

    Args:
        digest: the SHA-256 of the file in hexadecimal; "" for a part, or if it was not read.
        unread_parts: how many parts of messages are not read, by their types.
        silent: a sentence for each dialog in which the assistant says nothing.
        is_refused: whether the part cannot be read by itself, so that the whole file has to be.
    """

    path: Path
    digest: str = ""
    unread: tuple[Unread, ...] = ()
    unread_parts: Mapping[str, int] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    dialogs: tuple[ScannedDialog, ...] = ()
    is_refused: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        problems = [unread.sentence for unread in self.unread]
        if self.unread_parts:
            problems.append(unread_parts_sentence(self.path, self.unread_parts))
        return (*problems, *self.silent)


def scan_part(scan: Scan, part: FilePart) -> ScannedPart:
    """Reads and scores a part of a file.

    Raises:
        UsageError: a file that the user named cannot be read.
    """
    path = part.log.path
    if part.log.obstacle:
        return ScannedPart(path, unread=(Unread(f"{path} {part.log.obstacle}"),))
    descriptor, name = tempfile.mkstemp(dir=scan.folder)
    try:
        with open(descriptor, "wb") as file:
            return _scan_into(file, Path(name), scan, part)
    except NotByItself:
        return ScannedPart(path, is_refused=True)
    except UsageError as error:
        if part.line_format:
            return ScannedPart(path, is_refused=True)
        if part.log.is_named:
            raise
        return ScannedPart(path, unread=(Unread(str(error).removesuffix(".")),))


def _scan_into(file: IO[bytes], records: Path, scan: Scan, part: FilePart) -> ScannedPart:
    """Reads and scores a part, and writes its records to a file."""
    unread: list[Unread] = []
    unread_parts: Counter[str] = Counter()
    silent_dialogs: list[str] = []
    dialogs: list[ScannedDialog] = []
    contents = contents_of(part)
    recent = RecentTranscripts(partial(dialogs_before, part))
    for transcript in read_values(part.log.path, contents, scan.form, part.line_format):
        if isinstance(transcript, Unread):
            unread.append(transcript)
            continue
        unread_parts.update(count_unread_parts(transcript))
        dialog = dialog_of(with_loaded(transcript, scan.loaded))
        dialog = replace(dialog, before=recent.before_next())
        recent.add(transcript)
        if dialog.turns:
            dialogs.append(_scan_dialog(dialog, file, records, scan.suite))
        else:
            silent_dialogs.append(silence_problem(dialog))
    digest = contents.digest if isinstance(contents, Contents) else ""
    return ScannedPart(
        part.log.path, digest, tuple(unread), unread_parts, tuple(silent_dialogs), tuple(dialogs)
    )


def _scan_dialog(
    dialog: LoggedDialog, file: IO[bytes], records: Path, suite: Suite
) -> ScannedDialog:
    """Scores a dialog, unless it has no case, and writes its record to a file (`records`)."""
    events = turn_events(dialog)
    scanned = ScannedDialog(
        turns=len(dialog.turns),
        events=events if any(events.turns) else replace(events, turns=()),
        format=sys.intern(dialog.transcript.format),
        digest=dialog_digest(dialog),
    )
    case = case_of(dialog, suite)
    if case is None:
        return scanned
    scored = score_dialog(dialog, case)
    return replace(
        scanned,
        case=suite.cases.index(case),
        has_other_prompt=has_other_prompt(dialog, case),
        reasoning=tuple(n for n, turn in enumerate(dialog.turns) if turn.reasoning),
        refused=tuple(n for n, turn in enumerate(dialog.turns) for _ in turn.refused),
        records=records,
        start=file.tell(),
        size=file.write(_content_of(scored)),
        awaits_judge=scored.awaits_judge,
    )


def read_pending(content: bytes) -> ScoredDialog:
    """Reads a record that awaits a judge from the content of a scratch file, which this command
    wrote.
    """
    scored: ScoredDialog = pickle.loads(content)
    return scored


def _content_of(scored: ScoredDialog) -> bytes:
    """A dialog's record as a scratch file has it."""
    if scored.awaits_judge:
        return pickle.dumps(scored)
    return to_content(with_results(scored, results_of(scored.outcomes)))
