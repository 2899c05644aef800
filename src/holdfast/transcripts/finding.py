"""Finds the log files at the paths that a user gives."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.transcripts.opencode_storage import sessions_among

_SUFFIXES = (".jsonl", ".ndjson", ".json")
_COMPRESSED_LOGS = (
    *(f"{suffix}.gz" for suffix in _SUFFIXES),
    *(f"{suffix}.zst" for suffix in _SUFFIXES),
)
_LOGS = (*_SUFFIXES, *_COMPRESSED_LOGS, ".eval")
# other files in a folder are logs only if they have the name that their program gives to logs
_NAMES = (".aider.chat.history.md", "cursor_*.md", "state.vscdb", "store.db", "opencode.db")
_COMPRESSED = (".bz2", ".xz", ".zip", ".br", ".lz4", ".7z", ".tar", ".tar.gz", ".tgz", ".zst")
# files that programs write beside their logs: they repeat these, or are outside of any dialog
_BESIDE = ("agent-*.meta.json", "sessions-index.json")
_BESIDE_TASK = (
    "ui_messages.json",
    "task_metadata.json",
    "context_history.json",
    "history_item.json",
    "settings.json",
)
_TASK = "api_conversation_history.json"


@dataclass(frozen=True, order=True)
class FoundLog:
    """A file to read as a log.

    Args:
        is_named: whether the user named the file itself, rather than a folder that it is in.
        obstacle: why it cannot be read, such as "is compressed; unpack it first"; "" if nothing is
            known to prevent it.
    """

    path: Path
    is_named: bool
    obstacle: str = ""


def find_logs(path: Path) -> list[FoundLog]:
    """Finds the logs at a path: the file itself, those in a folder, or the records of a run.

    Files in a folder that have the name of a log but cannot be read are found too.

    Raises:
        UsageError: there is nothing at the path, no log in the folder, or no finished conversation
            in the run, or the file is compressed other than by gzip or zstandard.
    """
    from holdfast.records import MANIFEST  # readers of transcripts do without it

    if not path.exists():
        raise UsageError(
            f"There is no file or folder {path}; check the path.", option="paths", value=str(path)
        )
    if path.is_dir():
        return [_records_of_run(path)] if (path / MANIFEST).is_file() else _logs_in_folder(path)
    if _ends_in(path, _COMPRESSED) and not _ends_in(path, _LOGS):
        raise UsageError(
            f"{path} is compressed in a way that is not supported; unpack it first.",
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
    """Finds the logs in a folder; files that are logs but cannot be read come first."""
    unreadable: list[FoundLog] = []
    files: list[Path] = []

    def skip(path: Path | str, obstacle: str) -> None:
        unreadable.append(FoundLog(Path(path), is_named=False, obstacle=obstacle))

    for parent, _, names in os.walk(
        folder, onerror=lambda error: skip(error.filename, f"cannot be read ({error.strerror})")
    ):
        for path in (Path(parent, name) for name in names):
            is_log = _ends_in(path, _LOGS) or _has_name(path, _NAMES)
            if _ends_in(path, _COMPRESSED) and not is_log:
                skip(path, "is compressed; unpack it first")
            elif is_log and path.exists() and not path.is_file():
                skip(path, "is not a regular file")  # a pipe would never end
            elif is_log and not _is_beside(path):
                files.append(path)
    sessions, others = sessions_among(files)
    readable = [FoundLog(path, is_named=False) for path in (*sessions, *others)]
    if not readable and unreadable:
        first = min(unreadable)
        raise UsageError(
            f"{folder} has no logs that can be read: {first.path} {first.obstacle}.",
            option="paths",
            value=str(folder),
        )
    if not readable:
        raise UsageError(
            f"{folder} holds no file that ends in {', '.join(_SUFFIXES)}, gzipped or not, and no"
            f" other log ({', '.join(('*.eval', *_NAMES))}).",
            option="paths",
            value=str(folder),
            allowed=(*_LOGS, *_NAMES),
        )
    return [*sorted(unreadable), *sorted(readable)]


def _ends_in(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.name.lower().endswith(suffixes)


def _has_name(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in patterns)


def _is_beside(path: Path) -> bool:
    """Whether a program wrote the file beside a log, without a dialog in it."""
    is_of_task = path.name in _BESIDE_TASK and path.with_name(_TASK).exists()
    return is_of_task or _has_name(path, _BESIDE)
