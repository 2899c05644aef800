"""A run is a folder: `manifest.json`, and `records.jsonl` to which finished conversations are appended.

Every line is on the disk before the next conversation counts as done, so a run may be killed at any moment
and resumed by repeating its command. A line is one conversation, named by its key (method, conversation);
in a run of `holdfast tasks` or `holdfast profile` it is one sample, named by its task and variant, or its stage, and by its number.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import RecordsError

if TYPE_CHECKING:
    import pandas

Key = tuple[str, int]

MANIFEST = "manifest.json"
RECORDS = "records.jsonl"
LOCK = "run.lock"
_FIELDS = {"tasks": ("task", "variant", "scores"), "profile": ("scores",)}  # by the command of the manifest, what every reader relies on
_DIALOG = ("agent", "user", "turns", "probes")

_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up", errno.EFBIG: "the file may not grow further"}


@dataclass(frozen=True)
class RunData:
    """What a run folder holds: its manifest, and its records in the order they were written."""

    folder: Path
    manifest: dict[str, Any]
    records: list[dict[str, Any]]


class Run:
    """A run folder open for appending, and locked until `close()` or the end of the process."""

    def __init__(self, folder: Path, manifest: dict[str, Any], keys: set[Key], lock: int):
        self.folder = folder
        self.manifest = manifest
        self._keys = keys
        self._lock: int | None = lock
        self._file = os.open(folder / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def keys(self) -> set[Key]:
        """The (method, conversation) pairs already recorded."""
        return set(self._keys)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one conversation as one line and wait until it is on the disk.

        Raises:
            RecordsError: the conversation is already recorded, or the line cannot be written; what was
                recorded before stays intact.
        """
        key = _key(record)
        if key in self._keys:
            raise RecordsError(f"Conversation {key[1]} with method {key[0]!r} is already recorded in {self.folder}; each is written once.")
        size = os.fstat(self._file).st_size
        try:
            _write(self._file, _line(record))
            os.fsync(self._file)
        except OSError as error:
            _cut(self._file, size)
            raise _unwritable(self.folder, error, len(self._keys)) from error
        self._keys.add(key)

    def close(self) -> None:
        """Release the folder; a second call does nothing."""
        if self._lock is not None:
            os.close(self._file)
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_run(folder: Path | str, identity: Mapping[str, Any], about: Mapping[str, Any]) -> Run:
    """Create a run folder, or open it again if it holds the same run.

    Args:
        folder: the folder; made with its parents where it does not exist.
        identity: everything that must be equal for two commands to be the same run (JSON values).
        about: the rest of the manifest (command, versions, seed, argv); `created` is added. When a run is
            resumed, the manifest of its start stays and `about` joins its list `resumed`.

    Raises:
        RecordsError: the folder holds another run (the message names the first difference), is in use by
            another process, is not a run, or cannot be written.
    """
    folder = Path(folder)
    identity = json.loads(json.dumps(dict(identity)))
    told = {"created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **about}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(folder)
    except OSError as error:
        raise _unwritable(folder, error, 0) from error
    try:
        manifest = _start_or_resume(folder, identity, told)
        _cut_torn_line(folder / RECORDS)
        keys = {_key(record) for record in _read_records(folder / RECORDS, manifest)}
        return Run(folder, manifest, keys, lock)
    except OSError as error:
        os.close(lock)
        raise _unwritable(folder, error, 0) from error
    except BaseException:
        os.close(lock)
        raise


def read_run(folder: Path | str) -> RunData:
    """Read a run folder, finished or still growing; a torn last line is left out.

    Raises:
        RecordsError: not a run folder, or a line that is not a record (named by its number).
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        what = "holds no manifest.json" if folder.is_dir() else "does not exist"
        raise RecordsError(f"{folder} is not a run: it {what}; give a folder written with `holdfast drift --out`.")
    manifest = _read_manifest(folder)
    return RunData(folder, manifest, _read_records(folder / RECORDS, manifest))


def probes_frame(run: RunData) -> pandas.DataFrame:
    """One row per probe: method, conversation, agent, category, user, user_category, round, kind, probe, question, reply, score, reason, mass."""
    import pandas

    columns = ["method", "conversation", "agent", "category", "user", "user_category",
               "round", "kind", "probe", "question", "reply", "score", "reason", "mass"]
    rows = [
        {"method": record["method"], "conversation": record["conversation"],
         "agent": record["agent"]["id"], "category": record["agent"]["category"],
         "user": record["user"]["id"], "user_category": record["user"]["category"], **probe}
        for record in run.records for probe in record["probes"]
    ]
    return pandas.DataFrame(rows, columns=columns)


def _key(record: Mapping[str, Any]) -> Key:
    return str(record["method"]), int(record["conversation"])


def _line(record: Mapping[str, Any]) -> bytes:
    """UTF-8 as it reads; a lone surrogate, which UTF-8 cannot hold, puts the line into escapes."""
    try:
        return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(record, allow_nan=False) + "\n").encode()


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data):]


def _cut(file: int, size: int) -> None:
    """Take back a half-written line; where even that fails, the next opening cuts it."""
    with contextlib.suppress(OSError):
        os.ftruncate(file, size)


def _unwritable(folder: Path, error: OSError, kept: int) -> RecordsError:
    why = _FULL.get(error.errno or 0, error.strerror or str(error))
    if error.errno in _FULL:
        return RecordsError(f"Cannot write to {folder}: {why}; the {kept} conversations recorded there are safe, so free some space and repeat the command to resume.")
    return RecordsError(f"Cannot write to {folder}: {why}; choose a folder you may write to with --out.")


def _take_lock(folder: Path) -> int:
    """Lock the folder for this process; the system drops the lock when the process ends, however it ends."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl
    except ImportError:  # Windows: no advisory locks of this kind, so two writers are not kept apart there
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        by = f"process {owner}" if owner else "another process"
        raise RecordsError(f"{folder} is being written by {by}; wait for it to end, or choose another folder with --out.") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _start_or_resume(folder: Path, identity: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    if not (folder / MANIFEST).exists():
        foreign = sorted(path.name for path in folder.iterdir() if path.name not in (LOCK, MANIFEST + ".new") and not path.name.startswith("."))
        if foreign:
            raise RecordsError(f"{folder} is not empty and is not a run (it holds {foreign[0]!r}); choose a new or empty folder with --out.")
        manifest = {**about, "identity": identity}
    else:
        manifest = _read_manifest(folder)
        difference = _first_difference(manifest.get("identity", {}), identity)
        if difference:
            name, there, here = difference
            raise RecordsError(
                f"{folder} holds another run: its {name} is {_short(there)}, this command's is {_short(here)}; "
                f"choose another folder with --out, or repeat the first command to resume it{_command(manifest)}."
            )
        manifest = {**manifest, "resumed": [*manifest.get("resumed", []), about]}
    _replace(folder / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
    return manifest


_ABSENT = object()


def _first_difference(there: Any, here: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The dotted name of the first unequal value, depth first in this command's order, with both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in [*here, *(name for name in there if name not in here)]:
            found = _first_difference(there.get(name, _ABSENT), here.get(name, _ABSENT), f"{path}.{name}" if path else name)
            if found:
                return found
        return None
    # 1 == True and 1 == 1.0 in Python: the spelling in JSON decides, except for whole floats
    same = there == here and isinstance(there, bool) == isinstance(here, bool)
    return None if same else (path or "identity", there, here)


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "..."


def _command(manifest: Mapping[str, Any]) -> str:
    return f" (`{manifest['argv']}`)" if manifest.get("argv") else ""


def _replace(path: Path, text: str) -> None:
    """Write a small file so that a crash leaves the old one or the new one, never a part."""
    fresh = path.with_name(path.name + ".new")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _cut_torn_line(path: Path) -> None:
    """Remove what follows the last newline: a line whose writing was cut short."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)
            file.flush()
            os.fsync(file.fileno())


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordsError(f"{folder / MANIFEST} cannot be read ({error}); restore it, or start a new run in another folder.") from error
    if not isinstance(manifest, dict):
        raise RecordsError(f"{folder / MANIFEST} holds a {type(manifest).__name__} and not an object; restore it, or start a new run in another folder.")
    return manifest


def _read_records(path: Path, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The whole lines of a records file, each checked for what every reader relies on."""
    needed = _FIELDS.get(str(manifest.get("command")), _DIALOG)
    if not path.exists():
        return []
    records: list[dict[str, Any]] = []
    seen: set[Key] = set()
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            record = json.loads(line)
            key = _key(record)
            missing = [name for name in needed if name not in record]
        except (ValueError, TypeError, KeyError) as error:
            raise RecordsError(f"Line {number} of {path} is not a record ({error!r}); delete that line, and repeat the command of the run to measure it again.") from error
        if missing:
            raise RecordsError(f"Line {number} of {path} has no {missing[0]!r}; delete that line, and repeat the command of the run to measure it again.")
        if key in seen:
            raise RecordsError(f"Line {number} of {path} repeats conversation {key[1]} with method {key[0]!r}; delete one of the two lines.")
        seen.add(key)
        records.append(record)
    return records
