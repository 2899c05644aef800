"""Opens run folders for appending: to start a run, to resume it, or to extend it.

with open_run("runs/first", identity, about) as run:
    if RecordKey("none", 0) not in run:
        run.append(conversation)
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import AnotherRun, RecordsError, Unreachable, option, reason_of
from holdfast.files import FULL, sync, write_whole
from holdfast.records.belonging import Record, RecordKey, key_of, refuse_foreign
from holdfast.records.compatibility import ALIKE, Compatibility, join_identities, refuse_another
from holdfast.records.identity import Manifest
from holdfast.records.lines import append_line, cut_torn_line, to_line, to_manifest, write_all
from holdfast.records.lock import LOCK, take_lock
from holdfast.records.manifest import (
    CURRENT,
    EARLIER_SIZES,
    EXTENDED_BY,
    MANIFEST,
    OLD_LINES,
    SCHEMA,
    as_json,
    command_of,
    holds_lines,
    read_manifest,
    read_raw_manifest,
    typed_command,
)
from holdfast.records.model import Failure
from holdfast.records.run import FAILURES, RECORDS, read_run
from holdfast.records.run_summary import NAME as SUMMARY

if TYPE_CHECKING:
    from filelock import BaseFileLock

_OWN_FILES = (LOCK, MANIFEST)  # what a new folder may contain already


class OpenRun:
    """A run folder open for appending, and locked until `close()` or the end of the process."""

    def __init__(
        self, folder: Path, manifest: Manifest, keys: set[RecordKey], lock: BaseFileLock | None
    ):
        self.folder = folder
        self.manifest = manifest
        self._keys = keys
        self._lock = lock
        self._open = True
        self._file = os.open(folder / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def keys(self) -> set[RecordKey]:
        """Returns the keys of the records that the folder has already."""
        return set(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def append(self, record: Record) -> None:
        """Writes one record as one line, and waits until it is on the disk.

        Raises:
            NotOfRun: the record has a method, a number or a score that the run cannot have.
            RecordsError: it is recorded already, or cannot be written.
        """
        refuse_foreign(record, self.manifest, "The record")
        self.append_lines({key_of(record): to_line(record)})

    def append_lines(self, lines: Mapping[RecordKey, bytes]) -> None:
        """Writes the lines of records, given by key, and waits until all are on the disk.

        Raises:
            RecordsError: one is recorded already, or they cannot be written.
        """
        for key in lines.keys() & self._keys:
            raise RecordsError(
                f"Conversation {key.conversation} with method {key.method!r} is already recorded in"
                f" {self.folder}; each is written once.",
                option=str(self.folder),
                value=key,
            )
        size = os.fstat(self._file).st_size
        is_written = False
        try:
            write_all(self._file, b"".join(lines.values()))
            is_written = True  # an interrupt after this keeps the lines
            self._keys.update(lines)
            sync(self._file, self.folder)
        except OSError as error:
            self._keys.difference_update(lines)
            _truncate(self._file, size)
            raise _unwritable(self.folder, error, len(self._keys)) from error
        except BaseException:
            if not is_written:
                _truncate(self._file, size)
            raise

    def note_failure(self, method: str, conversation: int, why: str, reason: str) -> None:
        """Notes a failed request, which the next command repeats.

        Args:
            why: "filter" (a content filter withheld the reply), "context" (the chat is longer than
                the model's context), or "failure" (anything else).
            reason: the message of the error.
        """
        failure = Failure(method=method, conversation=conversation, why=why, reason=reason)
        try:
            append_line(self.folder / FAILURES, failure)
        except OSError as error:
            raise _unwritable(self.folder, error, len(self._keys)) from error

    def close(self) -> None:
        """Releases the folder; a second call does nothing."""
        if self._open:
            self._open = False
            os.close(self._file)
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> OpenRun:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        if isinstance(error, Unreachable):
            message = str(error).rstrip(".")
            raise Unreachable(
                f"{message}, then repeat the command: what is finished is kept in {self.folder}."
            ) from None


def open_run(
    folder: Path | str,
    identity: Mapping[str, Any],
    about: Mapping[str, Any],
    compatibility: Compatibility = ALIKE,
) -> OpenRun:
    """Creates a run folder, or opens one that holds the same run or a run that this one extends.

    Args:
        identity: everything that must be equal for two commands to be the same run (JSON values).
        about: the rest of the manifest (command, versions, seed, argv); `created` is added. When a
            run is resumed, its first manifest stays, and `about` is appended to its list `resumed`.
            If nothing was recorded yet, another identity starts a new run.
        compatibility: how the identity may differ from that in the folder.

    Raises:
        AnotherRun: the folder holds another run (the message names the first difference), or files
            that are not of a run.
        RecordsError: the folder is damaged, in use by another process, or cannot be written.
    """
    folder = Path(folder)
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_lock(folder)
    except OSError as error:
        raise _unwritable(folder, error, 0) from error
    try:
        if not (folder / MANIFEST).exists():
            _refuse_other_files(folder)  # before anything in the folder is touched
        for name in (RECORDS, FAILURES):
            cut_torn_line(folder / name)
        about = {"created": created, **about}
        _start_or_resume(folder, as_json(identity), about, compatibility)
        run = read_run(folder)
        return OpenRun(folder, run.manifest, set(map(key_of, run.records)), lock)
    except BaseException as error:
        if lock is not None:
            lock.release()
        if isinstance(error, OSError):
            raise _unwritable(folder, error, 0) from error
        raise


def refuse_early(
    folder: Path | str,
    identity: Mapping[str, Any],
    about: Mapping[str, Any],
    compatibility: Compatibility = ALIKE,
) -> None:
    """Refuses what `open_run` would, given the part of the identity that is known without a model.

    Writes nothing.
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file():
        if holds_lines(folder / RECORDS):
            refuse_another(folder, read_raw_manifest(folder), identity, compatibility, about)
    elif folder.is_dir():
        _refuse_other_files(folder)


def refuse_other_command(folder: Path | str, command: str) -> None:
    """Refuses a folder that another command has written to; writes nothing."""
    earlier_command = _command_in(Path(folder))
    if earlier_command not in ("", command):
        raise AnotherRun(
            f"{folder} holds a run of `holdfast {earlier_command}`, and `holdfast {command}` needs"
            f" a separate folder; choose another with {option('out')}."
        )


def _command_in(folder: Path) -> str:
    """Returns the command that wrote the manifest or the summary in a folder.

    "" if there is neither.
    """
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        return typed_command(command_of(manifest)) or manifest.command
    try:
        return str(json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["command"])
    except (OSError, ValueError, LookupError, TypeError):  # no summary, or not one that we wrote
        return ""


def _start_or_resume(
    folder: Path, identity: dict[str, Any], about: Mapping[str, Any], compatibility: Compatibility
) -> None:
    """Writes the manifest: a new one, or the existing run's, extended by this command."""
    manifest = _resumed_manifest(folder, identity, about, compatibility)
    if manifest is None:
        manifest = {SCHEMA: CURRENT, **about, "identity": identity, OLD_LINES: 0}
    write_whole(folder / MANIFEST, to_manifest(manifest), f"another folder with {option('out')}")


def _resumed_manifest(
    folder: Path, identity: dict[str, Any], about: Mapping[str, Any], compatibility: Compatibility
) -> dict[str, Any] | None:
    """Returns the existing run's manifest, extended by this command.

    None if a new run starts here: there is no run, or another one that has recorded nothing but
    perhaps failures, which are removed.
    """
    if not (folder / MANIFEST).exists():
        return None
    old_manifest = read_raw_manifest(folder)
    lines = (folder / RECORDS).read_bytes().count(b"\n") if holds_lines(folder / RECORDS) else 0
    if not lines and old_manifest["identity"] != identity:
        (folder / FAILURES).unlink(missing_ok=True)
        return None
    joined = join_identities(folder, old_manifest, identity, compatibility, about)
    return _extend_manifest(old_manifest, joined, about, lines)


def _extend_manifest(
    old_manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    about: Mapping[str, Any],
    lines: int,
) -> dict[str, Any]:
    """Returns the manifest of a run that a command resumes or extends.

    Args:
        old_manifest: the run's manifest so far.
        identity: of the extended run.
        about: the command.
        lines: how many lines are recorded; all of them are old if the manifest does not say.
    """
    manifest = {
        **old_manifest,
        "identity": identity,
        "resumed": [*old_manifest.get("resumed", []), about],
        OLD_LINES: old_manifest.get(OLD_LINES, lines),
        SCHEMA: CURRENT,
    }
    if identity != old_manifest["identity"] and about.get("argv"):
        manifest[EXTENDED_BY] = about["argv"]
    if earlier := _earlier_sizes(old_manifest, identity):
        manifest[EARLIER_SIZES] = earlier
    return manifest


def _earlier_sizes(old_manifest: Mapping[str, Any], identity: Mapping[str, Any]) -> list[int]:
    """Returns how many conversations the run had before each time that it was extended.

    Verdicts on it could be read each time (`analysis.verdicts.error_at`).
    """
    size = _planned_conversations(old_manifest["identity"])
    earlier = list(old_manifest.get(EARLIER_SIZES, []))
    return earlier if size == _planned_conversations(identity) else [*earlier, size]


def _planned_conversations(identity: Mapping[str, Any]) -> Any:
    """Returns the number of conversations in the settings; None if the identity has none."""
    return identity.get("settings", {}).get("conversations")


def _is_junit(path: Path) -> bool:
    """Whether a file is JUnit XML, which `--junit` may write into the folder before the run."""
    if path.suffix != ".xml" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b"<testsuite" in file.read(1000)


def _refuse_other_files(folder: Path) -> None:
    """Refuses a folder without a manifest that has files in it."""
    names = sorted(path.name for path in folder.iterdir() if not _is_junit(path))
    other_names = [name for name in names if name not in _OWN_FILES and not name.startswith(".")]
    if other_names:
        raise AnotherRun(
            f"{folder} is not empty and is not a run (it holds {other_names[0]!r});"
            f" choose a new or empty folder with {option('out')}.",
            option=str(folder),
            value=other_names[0],
        )


def _truncate(file: int, size: int) -> None:
    """Removes a half-written line; if even that fails, the next opening removes it."""
    with contextlib.suppress(OSError):
        os.ftruncate(file, size)


def _unwritable(folder: Path, error: OSError, recorded: int) -> RecordsError:
    """Makes the error for a folder that cannot be written and has this many records."""
    why = FULL.get(error.errno or 0, reason_of(error))
    if error.errno in FULL:
        return RecordsError(
            f"Cannot write to {folder}: {why}; the {recorded} conversations recorded there are"
            " safe, so free some space and repeat the command to resume.",
            option=str(folder),
            value=recorded,
        )
    return RecordsError(
        f"Cannot write to {folder}: {why}; choose a folder you may write to with {option('out')}.",
        option=str(folder),
    )
