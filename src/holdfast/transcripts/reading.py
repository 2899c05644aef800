"""Finds log files, and reads each into transcripts with the reader of its format."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.common.files import read_text
from holdfast.errors import UnknownName, UsageError, reason_of, shortened
from holdfast.records import MANIFEST, RECORDS
from holdfast.transcripts.chat_messages import is_message
from holdfast.transcripts.formats import FORMATS, format_of, may_be
from holdfast.transcripts.reader import Unread, Values
from holdfast.transcripts.transcript import Transcript

_SUFFIXES = (".jsonl", ".ndjson", ".json")
_COMPRESSED = (".zst", ".gz", ".bz2", ".xz", ".zip", ".br", ".lz4", ".7z", ".tar", ".tgz")


@dataclass(frozen=True)
class LogFile:
    """The transcripts of a file, and what was not read.

    Args:
        unread: a sentence for each line that was not understood, and each part that was left out.
        text: its content, unpacked; "" if it was not read.
    """

    path: Path
    transcripts: tuple[Transcript, ...] = ()
    unread: tuple[str, ...] = ()
    text: str = field(default="", repr=False)


def read_transcripts(
    paths: Path | str | Sequence[Path | str], form: str | None = None
) -> Iterator[LogFile]:
    """Reads log files, including those in folders.

    Args:
        form: one of `FORMATS`; None detects it for each value.

    Raises:
        UsageError: there is no such format, or a file cannot be read.
    """
    if form is not None and form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    paths = [paths] if isinstance(paths, (Path, str)) else paths
    for path in map(Path, paths):
        yield from _in_folder(path, form) if path.is_dir() else [_read_file(path, form)]


def _in_folder(folder: Path, form: str | None) -> Iterator[LogFile]:
    if (folder / MANIFEST).is_file():  # a run
        records = folder / RECORDS
        if not (records.is_file() and records.stat().st_size):
            raise UsageError(
                f"{folder} has no finished conversation yet; repeat its command to continue,"
                " then score it again."
            )
        yield _read_file(records, form)
        return
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    packed = {f: f"{f} is compressed, which is not read" for f in files if f.suffix in _COMPRESSED}
    inside = [file for file in files if file.suffix in _SUFFIXES]
    if not inside:
        first = f" ({next(iter(packed.values()))}; unpack it first)" if packed else ""
        raise UsageError(f"{folder} holds no file that ends in {', '.join(_SUFFIXES)}{first}.")
    yield from (LogFile(file, unread=(sentence,)) for file, sentence in packed.items())
    yield from (_read_file(file, form) for file in inside)


def _read_file(path: Path, form: str | None) -> LogFile:
    if path.suffix in _COMPRESSED:
        raise UsageError(f"{path} is compressed, which is not read; unpack it first.")
    text = read_text(path)
    parts = list(_read_values(path, text, form))
    return LogFile(
        path,
        tuple(part for part in parts if isinstance(part, Transcript)),
        tuple(part.sentence for part in parts if isinstance(part, Unread)),
        text,
    )


def _read_values(path: Path, text: str, form: str | None) -> Iterator[Transcript | Unread]:
    if not text.strip():
        yield Unread(f"{path} is empty")
    by_format: dict[str, Values] = {}
    unknown: Values = []
    for value in _values(path, text):
        if isinstance(value, Unread):
            yield value
            continue
        where, content = value
        name = form or format_of(content)
        if name is None:
            unknown.append(value)
        elif form is not None and not may_be(content, form):
            yield Unread(f"{where} is in the format {format_of(content)}, not {form}")
        else:
            by_format.setdefault(name, []).append(value)
    has_events = any(FORMATS[name].has_events for name in by_format)
    for where, content in unknown:
        if not (has_events and _is_other_event(content)):
            yield Unread(f"{where}: {shortened(content)} is in no known format")
    for name, values in by_format.items():
        for part in FORMATS[name].read(values):
            yield replace(part, format=name) if isinstance(part, Transcript) else part


def _is_other_event(value: Any) -> bool:
    """Whether a line among the events of sessions is one more, such as a snapshot of files."""
    typed = isinstance(value, Mapping) and isinstance(value.get("type"), str)
    return typed and not value.keys() & {"role", "content", "message", "messages"}


def _values(path: Path, text: str) -> Iterator[tuple[str, Any] | Unread]:
    """The values in a file, each with its place: one per line, or those of one JSON document."""
    if path.suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass  # JSON lines despite the file's name
        else:
            many = isinstance(value, list) and not (value and is_message(value[0]))
            if isinstance(value, dict) and isinstance(value.get("data"), list):
                value, many = value["data"], True  # a page of an API's response
            values = value if many else [value]
            yield from ((f"{path}, entry {n}", entry) for n, entry in enumerate(values, start=1))
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Unread(f"{path}, line {number}: it is not JSON: {reason_of(error)}")
