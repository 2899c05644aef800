"""Follows logs as they grow, and scores what is new in them.

A file with a dialog on each line is read on from where it ended before. Any other file is read
anew, as a new event may change how earlier events are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import UsageError
from holdfast.logs.part_joining import join_files, join_parts
from holdfast.logs.part_scanning import Scan, ScannedDialog, ScannedPart, read_pending, scan_part
from holdfast.logs.scored_logs import ScoredLogs
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import MANIFEST, RECORDS, LogDialog, Probe
from holdfast.records.manifest import read_manifest
from holdfast.transcripts.containers import files_of
from holdfast.transcripts.file_parts import FilePart
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS

_BLOCK = 1_000_000  # bytes per read


class Breach(NamedTuple):
    """A turn that breaks a rule."""

    source: str  # of its dialog
    turn: int
    rule: str
    reason: str
    reply: str


class _Stamp(NamedTuple):
    """The size of a log and the time of its last change; if either differs, the log has changed."""

    size: int
    changed: int  # nanoseconds


class LogWatch:
    """Logs that are followed, and what has been read of them.

    Args:
        paths: log files, or folders of them; a folder may still be empty.
    """

    def __init__(self, paths: Sequence[Path], scan: Scan) -> None:
        self._paths = paths
        self._scan = scan
        self._stamps: dict[FoundLog, _Stamp] = {}
        self._files: dict[FoundLog, ScannedPart] = {}
        self._reported: set[tuple[str, int, str]] = set()

    def poll(self) -> list[Breach] | None:
        """Reads what has changed. Returns the breaches that were not reported before, [] for none,
        or None if no log has changed.
        """
        stamps = {log: stamp for log in self._logs() if (stamp := _stamp_of(log)) is not None}
        changed_logs = [log for log, stamp in stamps.items() if self._stamps.get(log) != stamp]
        removed_logs = self._stamps.keys() - stamps.keys()
        for log in changed_logs:
            self._files[log] = self._read(log, stamps[log].size)
        for log in removed_logs:
            del self._files[log]
        self._stamps = stamps
        if not changed_logs and not removed_logs:
            return None
        dialogs = [dialog for log in changed_logs for dialog in self._files[log].dialogs]
        new_breaches: list[Breach] = []
        for breach in chain.from_iterable(map(_breaches, dialogs)):
            key = (breach.source, breach.turn, breach.rule)
            if key not in self._reported:
                self._reported.add(key)
                new_breaches.append(breach)
        return new_breaches

    def logs(self) -> ScoredLogs:
        """The scores of all dialogs that were read so far.

        Raises:
            NoDialog: there is no dialog yet.
        """
        files = [self._files[log] for log in sorted(self._files)]
        return join_files(self._paths, files, self._scan)

    def _logs(self) -> Iterator[FoundLog]:
        for path in self._paths:
            try:
                yield from find_logs(path)
            except UsageError:
                if not path.is_dir():  # an empty folder may fill
                    raise

    def _read(self, log: FoundLog, end: int) -> ScannedPart:
        """Reads a log up to a size, as it may grow in the meantime."""
        appended = self._appended_part(log, end)
        if appended is not None:
            file = join_parts(log, [self._files[log], scan_part(self._scan, appended)])
            if file is not None:
                return file
        return scan_part(self._scan, FilePart(log, end=end))

    def _appended_part(self, log: FoundLog, end: int) -> FilePart | None:
        """The lines that were added to a log since it was read; None if it has to be read anew."""
        stamp = self._stamps.get(log)
        file = self._files.get(log)
        if stamp is None or file is None or log.path.suffix not in (".jsonl", ".ndjson"):
            return None
        formats = {dialog.format for dialog in file.dialogs}
        if len(formats) != 1 or file.unread or file.silent:
            return None
        (name,) = formats
        if not FORMATS[name].is_per_value:
            return None
        lines = _lines_before(log.path, stamp.size)
        return None if lines is None else FilePart(log, stamp.size, end, lines + 1, name)


def _lines_before(path: Path, end: int) -> int | None:
    """The number of lines before a byte of a file; None if no line begins there."""
    count = 0
    size = 0
    block = b""
    with path.open("rb") as file:
        while size < end and (block := file.read(min(end - size, _BLOCK))):
            count += block.count(b"\n")
            size += len(block)
        is_continued = size == end and block.endswith(b"\n") and bool(file.read(1))
    return count if is_continued else None


def _stamp_of(log: FoundLog) -> _Stamp | None:
    try:
        statuses = [path.stat() for path in files_of(log.path)]
    except OSError:
        return None  # removed since the folder was listed
    size = sum(status.st_size for status in statuses)
    return _Stamp(size, max((status.st_mtime_ns for status in statuses), default=0))


def _breaches(dialog: ScannedDialog) -> Iterator[Breach]:
    """The breaches in a dialog, except those that a judge has to find."""
    if dialog.case is None:
        return
    with dialog.records.open("rb") as file:
        file.seek(dialog.start)
        content = file.read(dialog.size)
    outcomes: Sequence[object]
    if dialog.awaits_judge:
        scored = read_pending(content)
        record = scored.record
        outcomes = scored.outcomes
    else:
        record = LogDialog.model_validate_json(content)
        outcomes = record.probes
    for probe in outcomes:
        if isinstance(probe, Probe) and probe.score < MIN_KEPT_SCORE:
            rule = probe.rule or record.agent.id
            yield Breach(record.source, probe.round, rule, probe.reason, probe.reply)


def replace_run(out: Path) -> None:
    """Removes the records of an earlier version of the logs from a run folder of `logs`.

    A folder of another command is left as it is; it is refused when it is opened.
    """
    if (out / MANIFEST).is_file() and read_manifest(out).command == "logs":
        # without records, the manifest is replaced when the run is opened
        (out / RECORDS).unlink(missing_ok=True)
