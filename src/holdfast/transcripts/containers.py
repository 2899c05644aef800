"""The values in a log of any kind: JSON text, Markdown, an archive, a database, a folder.

What is no JSON text is turned into the values that its reader takes: an `.eval` archive into its
samples, a database into its dialogs, opencode's folder of a session into one session.
"""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.common.files import read_text, unpack_zstandard
from holdfast.errors import UsageError
from holdfast.transcripts.databases import read_database
from holdfast.transcripts.opencode_storage import read_session
from holdfast.transcripts.parsing import loaded, parse
from holdfast.transcripts.reader import Located, Markdown, Unread

_DATABASES = (".vscdb", ".db", ".sqlite", ".sqlite3")
_MARKDOWN = (".md", ".markdown")
_ZSTANDARD = 93  # the method of compression in a zip archive
_LENGTHS_AT = 26  # in the header before a member
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error)


@dataclass(frozen=True)
class Contents:
    """What is in a log.

    Args:
        text: of the file; that of its values if it is no text.
        values: and what of it cannot be read.
    """

    text: str
    values: Sequence[Located | Unread]


def contents_of(path: Path) -> Contents:
    """The values in a log.

    Raises:
        UsageError: it cannot be read, or unpacked.
    """
    name = path.name.lower()
    if path.is_dir():
        return _contents(read_session(path))
    if name.endswith(".eval"):
        return _contents(_read_archive(path))
    if name.endswith(_DATABASES):
        return _contents(read_database(path))
    text = read_text(path)
    if not text.strip():
        return Contents(text, [Unread(f"{path} is empty")])
    if name.endswith(_MARKDOWN):
        return Contents(text, [Located(f"{path}, entry 1", Markdown(text))])
    return Contents(text, list(parse(path, text)))


def _contents(values: Iterator[Located | Unread]) -> Contents:
    listed = list(values)
    texts = [_as_text(value) for value in listed if isinstance(value, Located)]
    return Contents("\n".join(texts), listed)


def _as_text(value: Located) -> str:
    try:
        return json.dumps(value.value)
    except RecursionError:  # which its reader names
        return value.source


def _read_archive(path: Path) -> Iterator[Located | Unread]:
    """The header and the samples in an `.eval` file."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            # the header is missing while the evaluation runs
            members = [m for m in archive.infolist() if m.filename == "header.json"]
            samples = [m for m in archive.infolist() if m.filename.startswith("samples/")]
            parts = [member for member in samples if member.filename.count("/") > 1]
            if not samples:
                yield Unread(f"{path} has no samples, as a log of Inspect's has")
            if parts:
                yield Unread(
                    f"{path} keeps its samples in parts (such as {parts[0].filename}), which is not"
                    " read; convert it with `inspect log convert --to json`"
                )
            for member in (*members, *samples):
                if member not in parts:
                    content = _unpacked(path, file, archive, member)
                    yield loaded(f"{path}, {member.filename}", content)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the path.") from error
    except _DAMAGED as error:
        raise UsageError(f"{path} cannot be unpacked ({error}); give it whole.") from error


def _unpacked(
    path: Path, file: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> bytes:
    """A member of an archive; zstandard's method is unknown to Python's zipfile before 3.14."""
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    file.seek(member.header_offset + _LENGTHS_AT)
    lengths = struct.unpack("<HH", file.read(4))  # of the name, and of what follows it
    file.seek(sum(lengths), os.SEEK_CUR)
    return unpack_zstandard(path, file.read(member.compress_size))
