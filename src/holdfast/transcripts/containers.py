"""Reads the values in a log of any kind: JSON text, Markdown, an archive, a database, a folder.

JSON text is parsed as it is, also in a `.zip` or `.tar`. Of the others, an `.eval` archive has a
value per sample, a database one per dialog, and opencode's folder of a session becomes a single
value.
"""

import bz2
import codecs
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from holdfast.errors import UsageError
from holdfast.files import (
    MAX_UNPACKED_BYTES,
    check_unpacked_size,
    digest_of,
    read_text,
    text_lines,
    unpack_zstandard,
)
from holdfast.transcripts.databases.reading import read_database
from holdfast.transcripts.finding import TAR_SUFFIXES, is_json_log, is_unread_in_archives
from holdfast.transcripts.opencode_storage import files_of_session, read_session
from holdfast.transcripts.parsing import (
    begins_document,
    in_windows_1252,
    load_json,
    may_be_document,
    parse,
    parse_lines,
)
from holdfast.transcripts.reader import Located, Markdown, Unread

_ARCHIVE = ".eval"
_ZIP = ".zip"  # as chat services send their exports
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
# by its suffix, how a compressed member of an archive is opened
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_DATABASES = (".vscdb", ".db", ".sqlite", ".sqlite3")
_MARKDOWN = (".md", ".markdown")
_ZSTANDARD = 93  # the number of this compression method in zip archives
_LENGTHS_AT = 26  # the offset of two lengths in the header before a member
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
    *(EOFError, RuntimeError, struct.error),
)


class Contents:
    """The values in a log, to be iterated over once, and an `Unread` for each unreadable part.

    Args:
        end: the byte up to which uncompressed lines are read; None reads to the end of the file.

    Raises:
        UsageError: while iterating, if the log cannot be read or unpacked.
    """

    def __init__(self, path: Path, end: int | None = None) -> None:
        self._path = path
        self._end = end
        self._digest = hashlib.sha256()  # of the values, if the log is not text

    def __iter__(self) -> Iterator[Located | Unread]:
        for value in _values_in(self._path, self._end):
            if isinstance(value, Located) and not is_text(self._path):
                self._digest.update(_text_to_digest(value).encode("utf-8", "surrogatepass"))
            yield value

    @property
    def digest(self) -> str:
        """The SHA-256 in hexadecimal, available once all values are read.

        For text it is that of the file. Otherwise it is that of the values, since a database file
        may change while its values stay the same.
        """
        return digest_of(self._path) if is_text(self._path) else self._digest.hexdigest()


def is_text(path: Path) -> bool:
    """Whether a log is text, compressed or not."""
    others = (_ARCHIVE, _ZIP, *TAR_SUFFIXES, *_DATABASES)
    return not (path.is_dir() or path.name.lower().endswith(others))


def is_lines(path: Path) -> bool:
    """Whether a log is uncompressed UTF-8 text with a value in each line."""
    is_other = path.name.lower().endswith((*_MARKDOWN, *_COMPRESSED)) or may_be_document(path)
    return is_text(path) and not (is_other or _is_utf16(path) or _begins_document(path))


def files_of(path: Path) -> list[Path]:
    """Returns the files that make up a log; the log changes when one of them does."""
    if path.is_dir():
        return files_of_session(path)
    write_ahead_log = path.with_name(f"{path.name}-wal")  # kept by SQLite beside a database
    if is_text(path) or not write_ahead_log.exists():
        return [path]
    return [path, write_ahead_log]


def _values_in(path: Path, end: int | None) -> Iterator[Located | Unread]:
    """Reads the values of a log in the container that its name or its content shows."""
    name = path.name.lower()
    if path.is_dir():
        return read_session(path)
    if name.endswith(_ARCHIVE):
        return _read_eval(path)
    if name.endswith(_ZIP):
        return _read_zip(path)
    if name.endswith(TAR_SUFFIXES):
        return _read_tar(path)
    if name.endswith(_DATABASES):
        return read_database(path)
    if name.endswith(_MARKDOWN):
        return _read_markdown(path)
    utf16_text = _utf16_text(path)
    if may_be_document(path) or _begins_document(path):
        text, problem = _text_of(path) if utf16_text is None else (utf16_text, [])
        return chain(problem, parse(path, text) if text.strip() else ())
    if utf16_text is not None:
        return parse_lines(path, utf16_text.split("\n"))
    return parse_lines(path, text_lines(path, end=end, is_strict=False))


def _text_of(path: Path) -> tuple[str, list[Unread]]:
    """Returns the text of a file, and what there is to say about its encoding.

    Raises:
        UsageError: it is neither UTF-8 nor Windows-1252.
    """
    text = read_text(path, is_strict=False)
    if not re.search("[\udc80-\udcff]", text):
        return text, []
    if legacy := in_windows_1252(text):
        return legacy, [Unread(f"{path} is not UTF-8, and was read as Windows-1252")]
    return read_text(path), []


def _utf16_text(path: Path) -> str | None:
    """Returns the text of a file in UTF-16, as PowerShell writes output; None for other files."""
    if not _is_utf16(path):
        return None
    return path.read_bytes().decode("utf-16", "replace")  # the last character may be cut off


def _is_utf16(path: Path) -> bool:
    """Whether a file begins with the byte order mark of UTF-16; False if it cannot be opened."""
    with contextlib.suppress(OSError), path.open("rb") as file:  # reading the text reports it
        return file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return False


def _begins_document(path: Path) -> bool:
    """Whether an uncompressed file begins as a JSON document, whatever its name says."""
    if path.name.lower().endswith(_COMPRESSED):
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        return begins_document(file.read(100).decode("utf-8-sig", "replace"))
    return False


def _read_markdown(path: Path) -> Iterator[Located | Unread]:
    text, problem = _text_of(path)
    yield from problem
    if text.strip():
        yield Located(f"{path}, entry 1", Markdown(text.replace("\r\n", "\n")))


def _text_to_digest(value: Located) -> str:
    """Returns a value as text to take the digest of."""
    try:
        return json.dumps(value.value)
    except RecursionError:  # its reader reports this
        return value.source


def _read_eval(path: Path) -> Iterator[Located | Unread]:
    """Reads the header and the samples of an `.eval` file."""
    with _open_zip(path) as (file, archive):
        # the header is missing while the evaluation runs
        headers = [m for m in archive.infolist() if m.filename == "header.json"]
        samples = [m for m in archive.infolist() if m.filename.startswith("samples/")]
        parts = [member for member in samples if member.filename.count("/") > 1]
        if not samples:
            yield Unread(f"{path} has no samples, as a log of Inspect's has")
        if parts:
            yield Unread(
                f"{path} keeps its samples in parts (such as {parts[0].filename}), which is not"
                " read; convert it with `inspect log convert --to json`"
            )
        for member in (*headers, *samples):
            if member not in parts:
                content = _unpack(path, file, archive, member)
                yield load_json(f"{path}, {member.filename}", content)


class _Member(NamedTuple):
    """A file in an archive; `read` unpacks its content."""

    name: str
    size: int
    read: Callable[[], bytes]


def _read_zip(path: Path) -> Iterator[Located | Unread]:
    """Reads the logs in an archive, such as an export of ChatGPT or Claude."""
    with _open_zip(path) as (file, archive):
        members = (
            _Member(m.filename, m.file_size, partial(_unpack, path, file, archive, m))
            for m in archive.infolist()
        )
        yield from _read_members(path, members)


def _read_tar(path: Path) -> Iterator[Located | Unread]:
    with _naming_damage(path), tarfile.open(path) as archive:
        members = (
            _Member(m.name, m.size, partial(_extract, archive, m)) for m in archive if m.isfile()
        )
        yield from _read_members(path, members)


def _read_members(archive: Path, members: Iterable[_Member]) -> Iterator[Located | Unread]:
    """Reads the logs of JSON values in an archive, and reports logs of other kinds."""
    is_empty = True
    for member in members:
        path = archive / member.name
        if is_json_log(path):
            is_empty = False
            check_unpacked_size(path, member.size)
            yield from _parse_member(path, member.read())
        elif is_unread_in_archives(path):
            yield Unread(f"{path} is not read within an archive; unpack it first")
    if is_empty:
        yield Unread(f"{archive} holds no file that ends in .json, .jsonl or .ndjson")


def _parse_member(path: Path, content: bytes) -> Iterator[Located | Unread]:
    """Parses a member of an archive, which may be compressed once more."""
    if (opener := _OPENERS.get(path.suffix.lower())) is not None:
        with opener(io.BytesIO(content)) as file:
            content = file.read(MAX_UNPACKED_BYTES + 1)
        check_unpacked_size(path, len(content))
    yield from parse(path, content.decode("utf-8-sig", "surrogateescape"))


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


@contextlib.contextmanager
def _open_zip(path: Path) -> Iterator[tuple[BinaryIO, zipfile.ZipFile]]:
    """Opens an archive.

    Raises:
        UsageError: it cannot be read or unpacked.
    """
    with _naming_damage(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield file, archive


@contextlib.contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Raises a `UsageError` that names the archive for an error in unpacking it."""
    try:
        yield
    except _DAMAGED as error:
        reason = str(error).split("\n")[0].rstrip(":")
        raise UsageError(f"{path} cannot be unpacked ({reason}); give it whole.") from error
    except OSError as error:
        if error.errno is None:  # of bz2, about damaged contents
            raise UsageError(f"{path} cannot be unpacked ({error}); give it whole.") from error
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the path.") from error


def _unpack(path: Path, file: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns the content of a member of an archive.

    Members compressed with zstandard are unpacked here, as `zipfile` does it only since Python
    3.14.
    """
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    file.seek(member.header_offset + _LENGTHS_AT)
    lengths = struct.unpack("<HH", file.read(4))  # of the name, and of what follows it
    file.seek(sum(lengths), os.SEEK_CUR)
    return unpack_zstandard(path, file.read(member.compress_size))
