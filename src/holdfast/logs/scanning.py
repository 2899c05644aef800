"""Reads and scores logs of any size: part by part, in several processes.

Each part is read, its dialogs are scored, and their records go to a scratch file (`part_scanning`).
Once all parts are read, copied turns are found (`join_files`), and the records are written in the
order of the files, as if these had been read one after the other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from holdfast.drift.cases import Suite
from holdfast.drift.judges import Judging
from holdfast.drift.suites import as_suite
from holdfast.errors import HoldfastError, UnknownName, option
from holdfast.files import cannot_write
from holdfast.logs.loaded_files import LoadedFile
from holdfast.logs.part_joining import join_files, join_parts
from holdfast.logs.part_scanning import Scan, ScannedPart, scan_part
from holdfast.logs.scored_logs import identity_of, write_scores
from holdfast.logs.turn_scoring import METHOD
from holdfast.measures.measure_specs import inner_specs, read_spec
from holdfast.measures.registry import JUDGE, REGISTRY
from holdfast.records import Run, refuse_early
from holdfast.transcripts.file_parts import FilePart, parts_of
from holdfast.transcripts.finding import FoundLog, find_logs
from holdfast.transcripts.formats import FORMATS

_SCRATCH = ".scanning-"  # the prefix of a folder in the run's folder
_MAX_SCRATCH_SECONDS = 86_400  # the age at which a scratch folder is taken for a forgotten one
MAX_BYTES_IN_ONE_PROCESS = 16_000_000  # more logs are faster in several processes

# scans parts, and yields each with its position
_ScanAll = Callable[[Sequence[FilePart]], Iterable[tuple[int, ScannedPart]]]


@dataclass(frozen=True)
class ScanProgress:
    """How much of the logs has been read.

    Args:
        files, bytes: what has been read.
        all_files, all_bytes: what there is to read.
        problems: the number of problems with the files so far.
    """

    files: int
    bytes: int
    all_files: int
    all_bytes: int
    problems: int


def scan_logs(
    paths: Sequence[Path | str],
    suite: Suite | str,
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
        paths: the log files, and folders that contain some.
        form: the format, one of `FORMATS`; None detects it for each value.
        workers: the number of processes that read and score. A suite with Python functions as
            measures is scored in this process, and so are few logs. A script that uses more needs
            `if __name__ == "__main__":`.
        judging: how the judges of the suite are loaded, if it has any.
        command: the command line, for the manifest.
        watch: is called with the progress after each part.
        loaded: files of rules that the agent put into every context, which its transcripts lack.

    Raises:
        UsageError: a file cannot be read, or no dialog has one of the suite's prompts.
        AnotherRun: the folder holds another run.
    """
    if form is not None and form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    suite = as_suite(suite, probed=False)
    refuse_early(out, identity_of(suite), {"command": METHOD, "argv": command})
    logs = [log for path in paths for log in find_logs(Path(path))]
    with scratch_folder(Path(out)) as folder:
        scan = Scan(suite, form, folder, tuple(loaded))
        files = _scan_files(logs, scan, workers, watch)
        return write_scores(join_files(paths, files, scan), suite, out, judging, command)


@contextlib.contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """A scratch folder on the disk of the run, for records that are not yet in order.

    A run folder that was made for it is removed if it stays empty.
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
    """Removes scratch folders of commands that were killed a day ago or more."""
    for folder in out.glob(f"{_SCRATCH}*"):
        if time.time() - folder.stat().st_mtime > _MAX_SCRATCH_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _scan_files(
    logs: Sequence[FoundLog],
    scan: Scan,
    workers: int,
    watch: Callable[[ScanProgress], None],
) -> list[ScannedPart]:
    """Scans the files, and returns each as one part, in the order of the files."""
    parts_by_file = [parts_of(log, scan.form) for log in logs]
    parts = [part for file_parts in parts_by_file for part in file_parts]
    total = sum(map(_size, logs))
    file_of_part = [number for number, file_parts in enumerate(parts_by_file) for _ in file_parts]
    progress = _ProgressCounts(Counter(file_of_part), len(logs), total)
    if total <= MAX_BYTES_IN_ONE_PROCESS:
        workers = 1
    with _scanner(scan, min(workers, len(parts))) as scan_all:
        scanned: dict[int, ScannedPart] = {}  # by the positions of the parts
        for position, scanned_part in scan_all(parts):
            scanned[position] = scanned_part
            progress.add(file_of_part[position], parts[position], scanned_part)
            watch(progress.so_far())
        in_order = (scanned[position] for position in range(len(parts)))
        files = [
            _join_file(log, [*islice(in_order, len(file_parts))], scan_all)
            for log, file_parts in zip(logs, parts_by_file, strict=True)
        ]
    problems = sum(len(file.problems) for file in files)
    watch(ScanProgress(len(logs), total, len(logs), total, problems))
    return files


def _join_file(log: FoundLog, parts: Sequence[ScannedPart], scan_all: _ScanAll) -> ScannedPart:
    """Returns the parts of a file as one, or scans the file again if a part is of no use alone."""
    file = join_parts(log, parts)
    if file is None:
        ((_, file),) = scan_all([FilePart(log)])
    return file


@dataclass
class _ProgressCounts:
    """Counts what has been read, part by part.

    Args:
        open_parts: the number of parts that are not read yet, by the number of their file.
    """

    open_parts: Counter[int]
    all_files: int
    all_bytes: int
    files: int = 0
    bytes: int = 0
    problems: int = 0

    def add(self, file: int, part: FilePart, scanned: ScannedPart) -> None:
        self.open_parts[file] -= 1
        if self.open_parts[file] == 0:
            self.files += 1
        self.bytes += _size_of_part(part)
        self.problems += len(scanned.problems)

    def so_far(self) -> ScanProgress:
        return ScanProgress(self.files, self.bytes, self.all_files, self.all_bytes, self.problems)


def _size_of_part(part: FilePart) -> int:
    return _size(part.log) if part.end is None else part.end - part.start


def _size(log: FoundLog) -> int:
    try:
        return 0 if log.obstacle else log.path.stat().st_size
    except OSError:
        return 0


@contextlib.contextmanager
def _scanner(scan: Scan, workers: int) -> Iterator[_ScanAll]:
    """A function that scans parts, and yields each with its position as soon as it is read."""
    if workers < 2 or has_code(scan.suite):
        yield lambda parts: ((n, scan_part(scan, part)) for n, part in enumerate(parts))
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
    """Scans the largest parts first, so that no process is left with a large one at the end."""
    order = sorted(range(len(parts)), key=lambda n: -_size_of_part(parts[n]))
    positions = {pool.submit(scan_part, scan, parts[n]): n for n in order}
    for future in as_completed(positions):
        position = positions[future]
        yield position, _result_of(future, parts[position])


def _result_of(future: Future[ScannedPart], part: FilePart) -> ScannedPart:
    try:
        return future.result()
    except BrokenProcessPool:
        raise HoldfastError(
            f"A process ended while it read {part.log.path} or a file beside it, perhaps because"
            f" memory ran out; repeat it with fewer {option('workers')}."
        ) from None


def _begin_worker() -> None:
    """Lets a worker leave interrupts to its parent, and end if the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def has_code(suite: Suite) -> bool:
    """Whether a suite has Python functions as measures, which other processes may not have."""
    return any(_is_code(rule.measure.spec) for case in suite.cases for rule in case.rules)


def _is_code(spec: Any) -> bool:
    name, arguments = read_spec(spec)
    return (name not in REGISTRY and name != JUDGE) or any(map(_is_code, inner_specs(arguments)))
