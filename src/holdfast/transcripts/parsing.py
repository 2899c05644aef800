"""Parses log files into JSON values, each with its source.

For example:

    july.jsonl -> Located("july.jsonl, line 1", {...}), Located("july.jsonl, line 2", {...})
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.errors import reason_of
from holdfast.transcripts.reader import Located, Unread, has_messages, is_message_list

_PAGES = ("data", "runs", "loglines")  # the fields in which pages of APIs list their values
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that `text_lines` could not decode
_NOT_BLANK = re.compile(r"\S")
# a line with nothing but "{" or "["
_BRACKET = re.compile(r"\s*[\[{][ \t\r]*\n")
# what may stand around a value: zeros where the computer stopped, byte order marks where files were
# joined, and the separators of RFC 7464
_AROUND_VALUES = "\0\ufeff\x1e"
# "{"type":" at the beginning of an object
_FIRST_FIELD = re.compile(r"\{\"[^\"]+\":")
_DECODER = json.JSONDecoder()


def is_bookkeeping_event(value: Any) -> bool:
    """Whether a value in a log of sessions is outside the dialog, such as a snapshot of files."""
    has_type = isinstance(value, Mapping) and isinstance(value.get("type"), str)
    return has_type and not value.keys() & {"role", "content", "message", "messages"}


def load_json(source: str, content: Any) -> Located | Unread:
    """Parses a value that is a JSON document by itself, such as a member of an archive.

    Args:
        content: bytes or a text; any other value, such as a number in a database, is not JSON.
    """
    try:
        return Located(source, json.loads(content or ""))
    except (TypeError, ValueError, RecursionError) as error:
        return Unread(f"{source} is not JSON: {reason_of(error)}")


def parse(path: Path, text: str) -> Iterator[Located | Unread]:
    """Parses the text of a file: a value per line, or those of a JSON document."""
    is_document = may_be_document(path) and not _begins_with_json_line(text)
    if is_document or (begins_document(text) and _documents_or_none(text) is not None):
        return _parse_document(path, text)
    return parse_lines(path, text.split("\n"))


def begins_document(text: str) -> bool:
    """Whether a text begins as a JSON document of several lines: with a bracket on its own."""
    return _BRACKET.match(text) is not None


def may_be_document(path: Path) -> bool:
    """Whether a file may be a single JSON document, to judge by its name."""
    return re.search(r"\.json(?:\.(?:gz|bz2|xz|zst))?\Z", path.name.lower()) is not None


def _begins_with_json_line(text: str) -> bool:
    """Whether a text has several lines and the first is JSON, whatever the file's name says."""
    first, _, rest = text.strip().partition("\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest)


# --- JSON documents


def _parse_document(path: Path, text: str) -> Iterator[Located | Unread]:
    try:
        document, *others = _documents_in(text)
    except (ValueError, RecursionError) as error:
        yield Unread(f"{path} is not JSON: {reason_of(error)}")
        return
    entries = [document, *others] if others else _entries_of(document)
    for number, entry in enumerate(entries, start=1):
        yield Located(f"{path}, entry {number}", entry)


def _entries_of(document: Any) -> list[Any]:
    """Returns the values in a document: the entries of a page or a list, or else the document."""
    if isinstance(document, dict) and not has_messages(document):
        for name in _PAGES:
            if isinstance(document.get(name), list):
                return list(document[name])
    if isinstance(document, list) and not is_message_list(document):
        return document
    return [document]


def _documents_in(text: str) -> Iterator[Any]:
    """Yields the JSON documents in a text: some exporters write several, one after the other."""
    position = 0
    decoder = json.JSONDecoder()
    while rest := _NOT_BLANK.search(text, position):
        document, position = decoder.raw_decode(text, rest.start())
        yield document


def _documents_or_none(text: str) -> list[Any] | None:
    try:
        return [*_documents_in(text)]
    except (ValueError, RecursionError):
        return None


# --- JSON lines


def parse_lines(path: Path, lines: Iterable[str], first: int = 1) -> Iterator[Located | Unread]:
    """Parses the lines of a file; `first` is the number of the first line."""
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        line = line.strip(_AROUND_VALUES) or line
        if not line.isascii() and _NOT_UTF8.search(line):
            text = in_windows_1252(line)
            if not (text and _is_json(text)):
                yield Unread(f"{path}, line {number}: it is not UTF-8 text")
                continue
            yield Unread(f"{path}, line {number}: it is not UTF-8, and was read as Windows-1252")
            line = text
        source = f"{path}, line {number}"
        try:
            for value in _values_in_line(line):
                yield Located(source, value)
        except (ValueError, RecursionError) as error:
            record = _last_whole_record(line)
            if record is None:
                yield Unread(f"{source}: it is not JSON: {reason_of(error)}")
            else:
                yield Unread(f"{source}: left out a record that was written only in part")
                yield Located(source, record)


def _values_in_line(line: str) -> list[Any]:
    """Returns the value on a line; the several objects that were written at once; or the entry of
    an array that was written a line at a time, whose other lines are `[` and `]`.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return [json.loads(line)]
    except ValueError:
        entry = line.strip().removeprefix("[").removesuffix("]").strip(" ,")
        if not entry:
            return []
        if not entry.startswith("{"):
            raise
        values = _documents_or_none(entry) or []
        if not values or not all(isinstance(value, dict) for value in values):
            raise
        return values


def _last_whole_record(line: str) -> Any:
    """Returns the record at the end of a line that begins with a part of one: a program was
    stopped while it wrote, and wrote the record or the next one again; None if there is none.
    """
    first = _FIRST_FIELD.match(line)
    start = line.find(first[0], 1) if first is not None else -1
    length = len(line.rstrip())
    while first is not None and start > 0:
        with suppress(ValueError, RecursionError):
            record, end = _DECODER.raw_decode(line, start)
            if end == length:  # otherwise an object within the record
                return record
        start = line.find(first[0], start + 1)
    return None


# --- Text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def in_windows_1252(text: str) -> str:
    """Returns a text that is not UTF-8 as Windows-1252, of which Latin-1 is a part; "" if some of
    it is UTF-8 or it cannot be either.

    Args:
        text: as UTF-8, with a lone surrogate for each byte that is none.
    """
    if re.search("[^\x00-\x7f\udc80-\udcff]", text):
        return ""
    try:
        return text.encode("utf-8", "surrogateescape").decode("cp1252")
    except UnicodeDecodeError:
        return ""
