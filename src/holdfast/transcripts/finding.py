"""Finds the log files at the paths that a user gives."""

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UsageError

_SUFFIXES = (".jsonl", ".ndjson", ".json")
_LOGS = (*_SUFFIXES, *(f"{suffix}.gz" for suffix in _SUFFIXES))
_COMPRESSED = (".zst", ".bz2", ".xz", ".zip", ".br", ".lz4", ".7z", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, order=True)
class FoundLog:
    """A file to read as a log.

    Args:
        is_named: whether the user named it, and not a folder that it is in.
        obstacle: why it cannot be read, such as "is compressed; unpack it first"; "" if nothing is
            known against it.
    """

    path: Path
    is_named: bool
    obstacle: str = ""


def find_logs(path: Path) -> list[FoundLog]:
    """The logs at a path: the file itself, those in a folder, or the records of a run.

    Files in a folder that are logs by their names, but cannot be read, are found too.

    Raises:
        UsageError: there is nothing at the path, no log in the folder, no finished conversation in
            the run, or the file is compressed other than by gzip.
    """
    from holdfast.records import MANIFEST  # readers of transcripts do without it

    if not path.exists():
        raise UsageError(
            f"There is no file or folder {path}; check the path.", option="paths", value=str(path)
        )
    if path.is_dir():
        return [_records_of_run(path)] if (path / MANIFEST).is_file() else _logs_in_folder(path)
    if path.name.endswith(_COMPRESSED):
        raise UsageError(
            f"{path} is compressed, which is not read; unpack it first.",
            option="paths",
            value=str(path),
        )
    return [FoundLog(path, is_named=True)]


def _records_of_run(run: Path) -> FoundLog:
    from holdfast.records import RECORDS

    records = run / RECORDS
    if not (records.is_file() and records.stat().st_size):
        raise UsageError(
            f"{run} has no finished conversation yet; repeat its command to continue,"
            " then score it again.",
            option="paths",
            value=str(run),
        )
    return FoundLog(records, is_named=True)


def _logs_in_folder(folder: Path) -> list[FoundLog]:
    unreadable: list[FoundLog] = []
    readable: list[FoundLog] = []

    def skip(path: Path | str, obstacle: str) -> None:
        unreadable.append(FoundLog(Path(path), is_named=False, obstacle=obstacle))

    for parent, _, names in os.walk(
        folder, onerror=lambda error: skip(error.filename, f"cannot be read ({error.strerror})")
    ):
        for path in (Path(parent, name) for name in names):
            if path.name.endswith(_COMPRESSED):
                skip(path, "is compressed; unpack it first")
            elif path.name.endswith(_LOGS) and path.exists() and not path.is_file():
                skip(path, "is not a regular file")  # a pipe would never end
            elif path.name.endswith(_LOGS):
                readable.append(FoundLog(path, is_named=False))
    if not readable and unreadable:
        first = min(unreadable)
        raise UsageError(
            f"{folder} has no logs that can be read: {first.path} {first.obstacle}.",
            option="paths",
            value=str(folder),
        )
    if not readable:
        raise UsageError(
            f"{folder} holds no file that ends in {', '.join(_SUFFIXES)}, gzipped or not.",
            option="paths",
            value=str(folder),
            allowed=_LOGS,
        )
    return [*sorted(unreadable), *sorted(readable)]
