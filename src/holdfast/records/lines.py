"""Writes and reads records as lines of JSON, each ending with a checksum of what precedes it."""

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
from holdfast.records.belonging import NotOfRun, Record, describe_fault, validate_record
from holdfast.records.identity import Manifest
from holdfast.records.model import RecordModel

FIELD = "crc32"
Note = TypeVar("Note", bound=RecordModel)
_LINE_END = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\Z')
_MANIFEST_END = re.compile(rb',\n  "crc32": "([0-9a-f]{8})"\n\}\n\Z')
_CURE = "delete that line, and repeat the command of the run to measure it again"


class CheckedContent(NamedTuple):
    """The JSON of a line or a manifest without its checksum, after that was verified."""

    body: bytes
    has_checksum: bool  # whether it had a checksum; files of earlier versions have none


def to_line(record: RecordModel | Mapping[str, Any]) -> bytes:
    """Returns a record as a line of JSON whose last field, `crc32`, covers the bytes before it.

    Text is plain UTF-8; if it has a lone surrogate, which UTF-8 cannot encode, the line uses
    escapes.
    """
    return with_checksum(to_content(record))


def to_content(record: RecordModel | Mapping[str, Any]) -> bytes:
    """Returns the JSON of a record as in its line, without the checksum."""
    fields = record.to_json() if isinstance(record, RecordModel) else record
    return _encode(json.dumps(fields, ensure_ascii=False, allow_nan=False), fields)


def with_checksum(content: bytes) -> bytes:
    """Returns a JSON object as a line that ends with its checksum."""
    body = content[:-1]
    return b'%b, "%b": "%08x"}\n' % (body, FIELD.encode(), zlib.crc32(body))


def to_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Returns a manifest as indented JSON that ends with a checksum, as lines do."""
    body = _encode(json.dumps(manifest, ensure_ascii=False, indent=2), manifest, indent=2)[:-2]
    return b'%b,\n  "%b": "%08x"\n}\n' % (body, FIELD.encode(), zlib.crc32(body))


def without_checksum(data: bytes) -> CheckedContent | None:
    """Verifies and removes the checksum of a line or a manifest; None if the checksum is wrong."""
    end = _LINE_END.search(data) or _MANIFEST_END.search(data)
    if end is None:
        return CheckedContent(data, has_checksum=False)
    body = data[: end.start()]
    if zlib.crc32(body) != int(end[1], 16):
        return None
    return CheckedContent(body + b"}", has_checksum=True)


def whole_lines_size(data: bytes) -> int:
    """Returns how many bytes of a file of records are whole lines.

    The rest is a line whose writing was cut short.

    A last line without a newline but with a valid checksum counts as whole.
    """
    tail = data[data.rfind(b"\n") + 1 :]
    content = without_checksum(tail[:-1]) if tail else None
    return len(data) if content and content.has_checksum else len(data) - len(tail)


def read_lines(data: bytes, path: Path, manifest: Manifest) -> list[Record]:
    """Reads the records of a file; a last line whose writing was cut short is left out.

    Args:
        data: the content of the file.
        path: its path, for messages.
        manifest: of the run that the records belong to. Its `lines_without_crc32` counts the
            leading lines that a version without checksums wrote.

    Raises:
        RecordsError: a line is damaged, is repeated, or is not of the run.
    """
    lines = data[: whole_lines_size(data)].split(b"\n")
    if not lines[-1]:
        lines.pop()
    num_old = manifest.lines_without_crc32
    if num_old is None:  # a manifest of version 1
        num_old = len(lines)
    records: list[Record] = []
    line_numbers: dict[tuple[str, int], int] = {}  # by key
    for number, line in enumerate(lines, start=1):
        location = f"Line {number} of {path}"
        fields = _read_object(line, number, path, needs_checksum=number > num_old)
        try:
            record = validate_record(fields, manifest, location)
        except NotOfRun as error:
            raise RecordsError(f"{error}; {_CURE}.", option=str(path), value=number) from None
        key = record.method, record.conversation
        if key in line_numbers:
            raise RecordsError(
                f"{location} repeats conversation {key[1]} with method {key[0]!r} of line"
                f" {line_numbers[key]}; delete one of the two lines.",
                option=str(path),
                value=number,
            )
        line_numbers[key] = number
        records.append(record)
    return records


def read_notes(data: bytes, path: Path, kind: type[Note]) -> list[Note]:
    """Reads the lines of another file of a run, such as its failures.

    Raises:
        RecordsError: a line is damaged, or does not fit the model `kind`.
    """
    notes = []
    for number, line in enumerate(data[: whole_lines_size(data)].splitlines(), start=1):
        fields = _read_object(line, number, path, needs_checksum=True)
        try:
            notes.append(kind.model_validate(fields))
        except ValidationError as error:
            raise RecordsError(
                f"{describe_fault(f'Line {number} of {path}', error)}; {_CURE}.",
                option=str(path),
                value=number,
            ) from None
    return notes


def _read_object(line: bytes, number: int, path: Path, *, needs_checksum: bool) -> dict[str, Any]:
    """Returns the JSON object in a line; refuses a damaged line, naming its number."""
    location = f"Line {number} of {path}"

    def refuse(fault: str) -> RecordsError:
        return RecordsError(f"{fault}; {_CURE}.", option=str(path), value=number)

    content = without_checksum(line)
    if content is None:
        raise refuse(f"{location} is damaged: its checksum does not match")
    if needs_checksum and not content.has_checksum:
        raise refuse(f"{location} is damaged: it has no checksum at its end")
    try:
        fields = json.loads(content.body)
    except RecursionError:
        raise refuse(f"{location} is not a record (it is nested too deeply)") from None
    except ValueError as error:
        raise refuse(f"{location} is not a record ({error})") from None
    if not isinstance(fields, dict):
        raise refuse(f"{location} is not a record but {json_type_in_words(fields)}")
    return fields


def _encode(text: str, content: Any, indent: int | None = None) -> bytes:
    """Encodes the JSON `text` of `content`, with escapes if UTF-8 cannot encode it."""
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
    """Removes the last line of a file if its writing was cut short."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        data = file.read()
        size = whole_lines_size(data)
        if size < len(data):
            file.truncate(size)
            file.flush()
            sync(file.fileno(), path.parent)
