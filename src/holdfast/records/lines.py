"""A record as a line of JSON that ends with a checksum of everything before it."""

import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from holdfast.errors import RecordsError, json_type_in_words
from holdfast.files import sync
from holdfast.records.belonging import NotOfRun, Record, first_fault, record_of
from holdfast.records.identity import Manifest
from holdfast.records.model import RecordModel

FIELD = "crc32"
Note = TypeVar("Note", bound=RecordModel)
_LINE_END = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\Z')
_CURE = "delete that line, and repeat the command of the run to measure it again"


def to_line(record: RecordModel | Mapping[str, Any]) -> bytes:
    """A record as a line of JSON whose last field, `crc32`, covers the bytes before that field.

    Text is plain UTF-8; with a lone surrogate, which UTF-8 cannot encode, the line uses escapes.
    """
    return with_checksum(to_content(record))


def to_content(record: RecordModel | Mapping[str, Any]) -> bytes:
    """The JSON of a record, as its line has it."""
    fields = record.to_json() if isinstance(record, RecordModel) else record
    return _encode(json.dumps(fields, ensure_ascii=False, allow_nan=False), fields)


def with_checksum(content: bytes) -> bytes:
    """A JSON object as a line that ends with its checksum."""
    body = content[:-1]
    return b'%b, "%b": "%08x"}\n' % (body, FIELD.encode(), zlib.crc32(body))


def to_manifest(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as a file of indented JSON, with the same checksum at its end."""
    body = _encode(json.dumps(manifest, ensure_ascii=False, indent=2), manifest, indent=2)[:-2]
    return b'%b,\n  "%b": "%08x"\n}\n' % (body, FIELD.encode(), zlib.crc32(body))


_MANIFEST_END = re.compile(rb',\n  "crc32": "([0-9a-f]{8})"\n\}\n\Z')


class CheckedContent(NamedTuple):
    """A line or a manifest without its checksum, which is right or is not there."""

    body: bytes
    has_checksum: bool


def without_checksum(data: bytes) -> CheckedContent | None:
    """The content of a line or a manifest; None if its checksum is wrong."""
    end = _LINE_END.search(data) or _MANIFEST_END.search(data)
    if end is None:
        return CheckedContent(data, has_checksum=False)
    body = data[: end.start()]
    if zlib.crc32(body) != int(end[1], 16):
        return None
    return CheckedContent(body + b"}", has_checksum=True)


def whole_lines(data: bytes) -> int:
    """How many bytes of a file of records are whole lines; the rest was cut short in writing.

    A whole line whose newline became another character is damaged, not cut short.
    """
    tail = data[data.rfind(b"\n") + 1 :]
    content = without_checksum(tail[:-1]) if tail else None
    return len(data) if content and content.has_checksum else len(data) - len(tail)


def read_lines(data: bytes, path: Path, manifest: Manifest) -> list[Record]:
    """The records of a file, each checked for damage and for belonging to the run.

    A last line whose writing was cut short is left out. The manifest's `lines_without_crc32` counts
    leading lines from a version without checksums.
    """
    lines = data[: whole_lines(data)].split(b"\n")
    if not lines[-1]:
        lines.pop()
    old = len(lines) if manifest.lines_without_crc32 is None else manifest.lines_without_crc32
    records: list[Record] = []
    first: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines, start=1):
        where = f"Line {number} of {path}"
        try:
            record = record_of(_read(line, number, path, needs_checksum=number > old), manifest)
        except NotOfRun as error:
            raise RecordsError(
                f"{where} {error}; {_CURE}.", option=str(path), value=number
            ) from None
        key = record.method, record.conversation
        if key in first:
            raise RecordsError(
                f"{where} repeats conversation {key[1]} with method {key[0]!r} of line "
                f"{first[key]}; delete one of the two lines.",
                option=str(path),
                value=number,
            )
        first[key] = number
        records.append(record)
    return records


def read_notes(data: bytes, path: Path, kind: type[Note]) -> list[Note]:
    """The lines of a file that is beside the records, each checked for damage."""
    notes = []
    for number, line in enumerate(data[: whole_lines(data)].splitlines(), start=1):
        try:
            notes.append(kind.model_validate(_read(line, number, path, needs_checksum=True)))
        except ValidationError as error:
            raise RecordsError(
                f"Line {number} of {path} {first_fault(error)}; {_CURE}.",
                option=str(path),
                value=number,
            ) from None
    return notes


def _read(line: bytes, number: int, path: Path, needs_checksum: bool) -> dict[str, Any]:
    """The object in a line; refuses one that is damaged, naming its number."""

    def damaged(how: str) -> RecordsError:
        message = f"Line {number} of {path} {how}; {_CURE}."
        return RecordsError(message, option=str(path), value=number)

    content = without_checksum(line)
    if content is None:
        raise damaged("is damaged: its checksum does not match")
    if needs_checksum and not content.has_checksum:
        raise damaged("is damaged: it has no checksum at its end")
    try:
        record = json.loads(content.body)
    except RecursionError:
        raise damaged("is not a record (it is nested too deeply)") from None
    except ValueError as error:
        raise damaged(f"is not a record ({error})") from None
    if not isinstance(record, dict):
        raise damaged(f"is not a record but {json_type_in_words(record)}")
    return record


def _encode(text: str, content: Any, indent: int | None = None) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(content, indent=indent).encode()


def append_line(path: Path, record: RecordModel | Mapping[str, Any]) -> None:
    """Appends a record as one line, and waits until it is on the disk."""
    with open(path, "ab", buffering=0) as file:
        write_all(file.fileno(), to_line(record))
        sync(file.fileno(), path.parent)


def write_all(file: int, data: bytes) -> None:
    """Writes all of the data to a file descriptor, in as many calls as that takes."""
    while data:
        data = data[os.write(file, data) :]


def cut_torn_line(path: Path) -> None:
    """Removes what follows the last whole line: a line whose writing was cut short."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        data = file.read()
        whole = whole_lines(data)
        if whole < len(data):
            file.truncate(whole)
            file.flush()
            sync(file.fileno(), path.parent)
