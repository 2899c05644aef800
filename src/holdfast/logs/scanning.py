"""Reads and scores logs of any size: a part of a file at a time, in several processes.

A part is read, its dialogs are scored, and their records go to a file beside the others; what stays
in memory of a dialog is where that is, and the ids of its events. Once all parts are read, the
turns that several dialogs have are known, and the records are written in the order of the files:
the same as if they had been read one after the other.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import IO, Any, NamedTuple

from holdfast.drift.cases import Suite
from holdfast.drift.judges import Judging
from holdfast.drift.probe_outcomes import PendingProbe, ProbeOutcome, results_of
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.files import cannot_write, digest_of
from holdfast.logs.copies import TurnEvents, copies_in
from holdfast.logs.dialogs import (
    DialogsBefore,
    dialog_digest,
    dialog_of,
    no_dialog,
    silent,
    turn_events,
)
from holdfast.logs.loaded_files import LoadedFile, with_loaded
from holdfast.logs.log_fingerprint import log_fingerprint
from holdfast.logs.turn_scoring import (
    METHOD,
    ScoredDialog,
    ScoredLogs,
    case_of,
    has_other_prompt,
    identity_of,
    score_dialog,
    with_results,
    write_scores,
)
from holdfast.measures.registry import JUDGE, REGISTRY, inner_specs, read_spec
from holdfast.records import LogDialog, Run, refuse_early
from holdfast.records.lines import to_content
from holdfast.transcripts.containers import Contents
from holdfast.transcripts.file_parts import FilePart, contents_of, dialogs_before, parts_of
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.reading import NotByItself, read_values

_SCRATCH = ".scanning-"  # a folder in the run's folder
_FORGOTTEN = 86_400  # seconds
ALONE = 16_000_000  # bytes up to which one process is faster than starting several


@dataclass(frozen=True)
class ScanProgress:
    """How much of the logs is read.

    Args:
        files, bytes: that are read.
        all_files, all_bytes: that there are.
        problems: with the files so far.
    """

    files: int
    bytes: int
    all_files: int
    all_bytes: int
    problems: int


@dataclass(frozen=True, slots=True)
class ScannedDialog:
    """A dialog that is scored, and where its record is.

    Args:
        turns: how many it has.
        events: by which copies of them are known; without turns if the log has no ids.
        case: the position of its case in the suite; None if it has none, and no record.
        reasoning: the positions of its turns that begin with reasoning.
        records: the file with its record, which starts there and has this size.
        awaits_judge: whether the record is a pickled `ScoredDialog`, and not JSON.
    """

    turns: int
    events: TurnEvents
    format: str
    digest: bytes
    case: int | None = None
    has_other_prompt: bool = False
    reasoning: tuple[int, ...] = ()
    records: Path = Path()
    start: int = 0
    size: int = 0
    awaits_judge: bool = False


@dataclass(frozen=True)
class ScannedPart:
    """A part of a file, or a file, that is read and scored.

    Args:
        digest: the SHA-256 of the file in hexadecimal; "" if it is not read, and for a part.
        silent: the problems of dialogs in which the assistant says nothing.
        is_refused: whether the part cannot be read by itself, so that the whole file has to be.
    """

    digest: str = ""
    unread: tuple[Unread, ...] = ()
    silent: tuple[str, ...] = ()
    dialogs: tuple[ScannedDialog, ...] = ()
    is_refused: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        return (*(unread.sentence for unread in self.unread), *self.silent)


def scan_logs(
    paths: Sequence[Path | str],
    suite: Suite,
    out: Path | str,
    form: str | None = None,
    workers: int = 1,
    judging: Judging | None = None,
    command: str = "",
    watch: Callable[[ScanProgress], None] = lambda progress: None,
    loaded: Sequence[LoadedFile] = (),
) -> Run:
    """Reads and scores log files into a run folder, as `score_logs(read_logs(paths))` does.

    Args:
        paths: as in `read_logs`.
        form: as in `read_logs`.
        workers: processes that read and score. A suite with Python functions as measures is scored
            in this one, and so are few logs. A script that uses more than one needs
            `if __name__ == "__main__":`.
        judging: as in `score_logs`.
        command: as in `score_logs`.
        watch: is given the progress after each part.
        loaded: files of rules that the agent put into every context, which its transcripts lack.

    Raises:
        UsageError: a file cannot be read, or no dialog has one of the suite's prompts.
        AnotherRun: the folder holds another run.
    """
    if form is not None and form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    refuse_early(out, identity_of(suite), {"command": METHOD, "argv": command})
    found = [log for path in paths for log in find_logs(Path(path))]
    with scratch_folder(Path(out)) as folder:
        scan = Scan(suite, form, folder, tuple(loaded))
        files = _scan_files(found, scan, workers, watch)
        logs = scored_logs(paths, files, scan)
        return write_scores(logs, suite, out, judging, command)


@contextlib.contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """A folder for records that are not yet in order, on the disk of the run.

    A run folder that was made for it and stays empty is removed.
    """
    is_new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        _remove_forgotten(out)
        scratch = tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=out)
    except OSError as error:
        raise cannot_write(out, error, "a folder you may write to with --out") from error
    try:
        with scratch as name:
            yield Path(name)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty
                out.rmdir()


def _remove_forgotten(out: Path) -> None:
    """Removes the records that a command left which was killed, a day ago or more."""
    for folder in out.glob(f"{_SCRATCH}*"):
        if time.time() - folder.stat().st_mtime > _FORGOTTEN:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Scan:
    """The settings with which every part is read and scored."""

    suite: Suite
    form: str | None
    folder: Path  # for the records
    loaded: tuple[LoadedFile, ...] = ()  # into every context


def _scan_files(
    found: Sequence[FoundLog],
    scan: Scan,
    workers: int,
    watch: Callable[[ScanProgress], None],
) -> list[ScannedPart]:
    """The files in their order, each as one part."""
    divided = [parts_of(log, scan.form) for log in found]
    parts = [part for listed in divided for part in listed]
    file_of_part = [number for number, listed in enumerate(divided) for _ in listed]
    left = Counter(file_of_part)  # the parts of each file that are not yet read
    total = sum(map(_size, found))
    scanned: dict[int, ScannedPart] = {}  # by the places of the parts
    files, size, problems = 0, 0, 0
    with _scanner(scan, min(workers, len(parts)) if total > ALONE else 1) as scan_all:
        for place, part in scan_all(parts):
            scanned[place] = part
            left[file_of_part[place]] -= 1
            files += left[file_of_part[place]] == 0
            size += _size_of_part(parts[place])
            problems += len(part.problems)
            watch(ScanProgress(files, size, len(found), total, problems))
        scanned_files = []
        places = iter(range(len(parts)))
        for log, listed in zip(found, divided, strict=True):
            file = joined(log, [scanned[next(places)] for _ in listed])
            if file is None:
                ((_, file),) = scan_all([FilePart(log)])
            scanned_files.append(file)
    problems = sum(len(file.problems) for file in scanned_files)
    watch(ScanProgress(len(found), total, len(found), total, problems))
    return scanned_files


def _size_of_part(part: FilePart) -> int:
    return _size(part.log) if part.end is None else part.end - part.start


def _size(log: FoundLog) -> int:
    try:
        return 0 if log.obstacle else log.path.stat().st_size
    except OSError:
        return 0


def joined(log: FoundLog, parts: Sequence[ScannedPart]) -> ScannedPart | None:
    """The parts of a file as one; None if one of them cannot be read by itself."""
    if any(part.is_refused for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    unread = [unread for part in parts for unread in part.unread]
    return ScannedPart(
        digest_of(log.path),
        tuple(sorted(unread, key=lambda item: item.stage)),  # as if read at once
        tuple(sentence for part in parts for sentence in part.silent),
        tuple(dialog for part in parts for dialog in part.dialogs),
    )


_ScanAll = Callable[[Sequence[FilePart]], Iterable[tuple[int, ScannedPart]]]


@contextlib.contextmanager
def _scanner(scan: Scan, workers: int) -> Iterator[_ScanAll]:
    """A function that scans parts, and yields each with its place as soon as it is read."""
    if workers < 2 or has_code(scan.suite):
        yield lambda parts: ((place, scan_part(scan, part)) for place, part in enumerate(parts))
        return
    # a new process has no locks of this one's threads, which a fork would copy
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker)
    try:
        yield partial(_scan_in_pool, pool, scan)
    finally:
        pool.shutdown(cancel_futures=True)


def _scan_in_pool(
    pool: ProcessPoolExecutor, scan: Scan, parts: Sequence[FilePart]
) -> Iterator[tuple[int, ScannedPart]]:
    """Scans the largest parts first, so that no process is left with one at the end."""
    order = sorted(range(len(parts)), key=lambda place: -_size_of_part(parts[place]))
    places = {pool.submit(scan_part, scan, parts[place]): place for place in order}
    for future in as_completed(places):
        place = places[future]
        yield place, _result_of(future, parts[place])


def _result_of(future: Future[ScannedPart], part: FilePart) -> ScannedPart:
    try:
        return future.result()
    except BrokenProcessPool:
        raise HoldfastError(
            f"A process ended while {part.log.path} or a file beside it was read, perhaps as memory"
            " ran out; repeat the command with fewer --workers."
        ) from None


def _begin_worker() -> None:
    """Leaves interrupts to the parent, and ends this process if that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def has_code(suite: Suite) -> bool:
    """Whether a suite has Python functions as measures, which other processes may not have."""
    return any(_is_code(rule.measure.spec) for case in suite.cases for rule in case.all_rules)


def _is_code(spec: Any) -> bool:
    name, arguments = read_spec(spec)
    return (name not in REGISTRY and name != JUDGE) or any(map(_is_code, inner_specs(arguments)))


def scan_part(scan: Scan, part: FilePart) -> ScannedPart:
    """Reads and scores a part of a file."""
    path = part.log.path
    if part.log.obstacle:
        return ScannedPart(unread=(Unread(f"{path} {part.log.obstacle}"),))
    descriptor, name = tempfile.mkstemp(dir=scan.folder)
    try:
        with open(descriptor, "wb") as file:
            return _scan_into(file, Path(name), scan, part)
    except NotByItself:
        return ScannedPart(is_refused=True)
    except UsageError as error:
        if part.only:
            return ScannedPart(is_refused=True)
        if part.log.is_named:
            raise
        return ScannedPart(unread=(Unread(str(error).removesuffix(".")),))


def _scan_into(file: IO[bytes], records: Path, scan: Scan, part: FilePart) -> ScannedPart:
    unread, nothing_said, dialogs = list[Unread](), list[str](), list[ScannedDialog]()
    contents = contents_of(part)
    before = DialogsBefore(partial(dialogs_before, part))
    for item in read_values(part.log.path, contents, scan.form, part.only):
        if isinstance(item, Unread):
            unread.append(item)
            continue
        dialog = dialog_of(with_loaded(item, scan.loaded))
        dialog = replace(dialog, before=before.of_next())
        before.add(item)
        if not dialog.turns:
            nothing_said.append(silent(dialog))
            continue
        events = turn_events(dialog)
        scanned = ScannedDialog(
            len(dialog.turns),
            events if any(events.turns) else replace(events, turns=()),
            sys.intern(item.format),
            dialog_digest(dialog),
        )
        case = case_of(dialog, scan.suite)
        if case is not None:
            record = _content_of(score_dialog(dialog, case))
            scanned = replace(
                scanned,
                case=scan.suite.cases.index(case),
                has_other_prompt=has_other_prompt(dialog, case),
                reasoning=tuple(n for n, turn in enumerate(dialog.turns) if turn.reasoning),
                records=records,
                start=file.tell(),
                size=file.write(record.content),
                awaits_judge=record.awaits_judge,
            )
        dialogs.append(scanned)
    digest = contents.digest if isinstance(contents, Contents) else ""
    return ScannedPart(digest, tuple(unread), tuple(nothing_said), tuple(dialogs))


class _Content(NamedTuple):
    """A record as it is kept until all are known."""

    content: bytes
    awaits_judge: bool


def _content_of(scored: ScoredDialog) -> _Content:
    if any(isinstance(outcome, PendingProbe) for outcome in scored.outcomes):
        return _Content(pickle.dumps(scored), awaits_judge=True)
    record = with_results(scored, results_of(scored.outcomes))
    return _Content(to_content(record), awaits_judge=False)


def scored_logs(
    paths: Sequence[Path | str], files: Sequence[ScannedPart], scan: Scan
) -> ScoredLogs:
    """The dialogs of files, without the turns that are copies."""
    problems = [problem for file in files for problem in file.problems]
    dialogs = [dialog for file in files for dialog in file.dialogs]
    if not dialogs:
        raise no_dialog(paths, problems)
    formats = Counter(dialog.format for dialog in dialogs)
    copies = copies_in([dialog.events for dialog in dialogs])
    kept = [
        _KeptDialog(dialog, copied)
        for dialog, copied in zip(dialogs, copies.turns, strict=True)
        if len(copied) < dialog.turns
    ]
    scored = [item for item in kept if item.dialog.case is not None]
    store = _RecordStore()
    return ScoredLogs(
        dialogs=len(kept),
        cases=tuple(scan.suite.cases[item.dialog.case or 0] for item in scored),
        other_prompts=sum(item.dialog.has_other_prompt for item in scored),
        reasoning_turns=sum(len({*item.dialog.reasoning} - item.copied) for item in scored),
        formats=formats,
        problems=(*problems, *copies.problems),
        fingerprint=log_fingerprint(
            (file.digest for file in files), formats, (dialog.digest for dialog in dialogs)
        ),
        scored=lambda number: _without_copies(store.read(scored[number].dialog), scored[number]),
        loaded=tuple(file.name for file in scan.loaded),
    )


class _KeptDialog(NamedTuple):
    """A dialog, and the positions of its turns that are counted in another one."""

    dialog: ScannedDialog
    copied: frozenset[int]


class _RecordStore:
    """Reads records; dialogs of one file follow each other, so the last file stays open."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._file: IO[bytes] | None = None

    def read(self, dialog: ScannedDialog) -> bytes:
        if self._file is None or dialog.records != self._path:
            if self._file is not None:
                self._file.close()
            self._path, self._file = dialog.records, dialog.records.open("rb")
        self._file.seek(dialog.start)
        return self._file.read(dialog.size)


def _without_copies(content: bytes, kept: _KeptDialog) -> ScoredDialog | bytes:
    """The scores of a dialog without those of copied turns."""
    numbers = {position + 1 for position in kept.copied}
    if kept.dialog.awaits_judge:
        scored: ScoredDialog = pickle.loads(content)  # which this run wrote
        rounds = [_round_of(outcome) for outcome in scored.outcomes]
        outcomes = zip(scored.outcomes, rounds, strict=True)
        left = tuple(outcome for outcome, number in outcomes if number not in numbers)
        return replace(scored, record=_without(scored.record, numbers), outcomes=left)
    if not numbers:
        return content
    return to_content(_without(LogDialog.model_validate_json(content), numbers))


def _round_of(outcome: ProbeOutcome) -> int:
    return outcome.probe.round if isinstance(outcome, PendingProbe) else outcome.round


def _without(record: LogDialog, numbers: Collection[int]) -> LogDialog:
    """A record without turns of these numbers, and their scores."""
    update = {
        name: tuple(item for item in getattr(record, name) if item.round not in numbers)
        for name in ("turns", "probes", "unscored", "unanswered")
    }
    kept = tuple(item for item in record.compactions if item.turn not in numbers)
    return record.model_copy(update={**update, "compactions": kept})
