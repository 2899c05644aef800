"""Reads the values in a log of any kind: JSON text, Markdown, an archive, a database, a folder.

JSON text is parsed as it is, also in a `.zip` or `.tar`. Of the others, an `.eval` archive has a
value per sample, a database one per dialog, and opencode's folder of a session becomes a single
value.
"""

import codecs
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from holdfast.files import digest_of, read_text, text_lines
from holdfast.transcripts.archives import read_eval, read_tar, read_zip
from holdfast.transcripts.databases.database_reading import read_database
from holdfast.transcripts.finding import TAR_SUFFIXES
from holdfast.transcripts.opencode_storage import files_of_session, read_session
from holdfast.transcripts.parsing import (
    begins_document,
    in_windows_1252,
    may_be_document,
    parse,
    parse_lines,
)
from holdfast.transcripts.reader import Located, Markdown, Unread

_ARCHIVE = ".eval"
_ZIP = ".zip"  # as chat services send their exports
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
_DATABASES = (".vscdb", ".db", ".sqlite", ".sqlite3")
_MARKDOWN = (".md", ".markdown")


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
        return read_eval(path)
    if name.endswith(_ZIP):
        return read_zip(path)
    if name.endswith(TAR_SUFFIXES):
        return read_tar(path)
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
