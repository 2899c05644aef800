"""Finds the log files at the paths that a user gives."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.transcripts.opencode_storage import sessions_among

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_LOG_SUFFIXES = (
    *(f"{suffix}{compression}" for compression in _COMPRESSIONS for suffix in _JSON_SUFFIXES),
    ".eval",
    ".zip",
    *TAR_SUFFIXES,
)
# other files in a folder are logs only if they have the name that their program gives to logs
_LOG_NAMES = (
    *(".aider.chat.history.md", "cursor_*.md", "state.vscdb", "store.db", "opencode.db"),
    *("sessions.db", "session.db"),  # of Goose, and of Google's ADK
)
# archives and compressed files of other kinds
_UNSUPPORTED_SUFFIXES = tuple(".br .lz4 .7z .tar.zst".split())
# files that programs write into the folder of their logs: they repeat the logs, or have no dialog
_NAMES_WITHOUT_DIALOG = ("agent-*.meta.json", "sessions-index.json", "custom-title.json")
_FOLDER_OF_RESULTS = "tool-results"  # in which Claude Code keeps long outputs of tools
# Gemini CLI's list of what the user typed, and the folder of its sessions beside it
_GEMINI_INPUTS = "logs.json"
_GEMINI_SESSIONS = "chats"
# Cline's log of a task, and the other files that it writes into the folder of the task
_CLINE_LOG = "api_conversation_history.json"
_CLINE_NAMES_WITHOUT_DIALOG = (
    "ui_messages.json",
    "task_metadata.json",
    "context_history.json",
    "history_item.json",
    "settings.json",
)


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
            in the run, or the file is an archive or compressed in a way that is not read.
    """
    from holdfast.records import MANIFEST  # readers of transcripts do without it

    if not path.exists():
        raise UsageError(
            f"There is no file or folder {path}; check the path.", option="paths", value=str(path)
        )
    if path.is_dir():
        return [_records_of_run(path)] if (path / MANIFEST).is_file() else _logs_in_folder(path)
    if _ends_in(path, _UNSUPPORTED_SUFFIXES):
        raise UsageError(
            f"{path} is packed in a way that is not read; unpack it.",
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
            is_log = _ends_in(path, _LOG_SUFFIXES) or _has_name(path, _LOG_NAMES)
            if _ends_in(path, _UNSUPPORTED_SUFFIXES):
                skip(path, "is compressed; unpack it first")
            elif is_log and path.exists() and not path.is_file():
                skip(path, "is not a regular file")  # a pipe would never end
            elif is_log and _is_compacted_context(path):
                skip(path, "is the compacted context of a session of Cline, which is left out")
            elif is_log and not _is_without_dialog(path):
                files.append(path)
    sessions, single_files = sessions_among(files)
    readable = [FoundLog(path, is_named=False) for path in (*sessions, *single_files)]
    if not readable:
        raise _no_logs(folder, unreadable)
    return [*sorted(unreadable), *sorted(readable)]


def _no_logs(folder: Path, unreadable: list[FoundLog]) -> UsageError:
    """The error for a folder with no log, or only with logs that cannot be read."""
    if unreadable:
        first = min(unreadable)
        return UsageError(
            f"{folder} has no logs that can be read: {first.path} {first.obstacle}.",
            option="paths",
            value=str(folder),
        )
    return UsageError(
        f"{folder} holds no file that ends in {', '.join(_JSON_SUFFIXES)}, also with .gz, .bz2,"
        f" .xz or .zst behind it, and no other log ({', '.join(('*.eval', *_LOG_NAMES))}).",
        option="paths",
        value=str(folder),
        allowed=(*_LOG_SUFFIXES, *_LOG_NAMES),
    )


def is_json_log(path: Path) -> bool:
    """Whether a file may be a log of JSON values, to judge by its name; it may be compressed by
    gzip, bzip2 or xz.
    """
    packed = (".gz", ".bz2", ".xz")
    plain = path.with_suffix("") if path.suffix.lower() in packed else path
    return _ends_in(plain, _JSON_SUFFIXES) and not _has_name(path, _NAMES_WITHOUT_DIALOG)


def is_unread_in_archives(path: Path) -> bool:
    """Whether a file has the name of a log, but is of a kind that is not read within an archive."""
    is_log = _ends_in(path, (*_LOG_SUFFIXES, *_UNSUPPORTED_SUFFIXES)) or _has_name(path, _LOG_NAMES)
    return is_log and not (is_json_log(path) or _has_name(path, _NAMES_WITHOUT_DIALOG))


def _ends_in(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.name.lower().endswith(suffixes)


def _has_name(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in patterns)


def _is_compacted_context(path: Path) -> bool:
    """Whether a file is what Cline sends in place of the session in the file beside it."""
    name = path.name.removesuffix(".compaction.json")
    return name != path.name and path.with_name(f"{name}.messages.json").exists()


def _is_without_dialog(path: Path) -> bool:
    """Whether a program wrote the file beside a log, without a dialog of its own."""
    if path.parent.name == _FOLDER_OF_RESULTS:
        return True
    if path.name == _GEMINI_INPUTS and path.with_name(_GEMINI_SESSIONS).is_dir():
        return True
    if path.suffix == ".json" and path.with_name(f"{path.stem}.messages.json").exists():
        return True  # what describes a session of Cline
    is_of_cline = path.name in _CLINE_NAMES_WITHOUT_DIALOG and path.with_name(_CLINE_LOG).exists()
    return is_of_cline or _has_name(path, _NAMES_WITHOUT_DIALOG)
