"""Parses log files into JSON values, each with its source.

For example:

    july.jsonl -> Located("july.jsonl, line 1", {...}), Located("july.jsonl, line 2", {...})
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import reason_of
from holdfast.transcripts.reader import Located, Unread, has_messages, is_message_list

_PAGES = ("data", "runs", "loglines")  # the fields in which pages of APIs list their values
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that `text_lines` could not decode
_NOT_BLANK = re.compile(r"\S")


def is_bookkeeping_event(value: Any) -> bool:
    """Whether a value in a log of sessions is outside the dialog, such as a snapshot of files."""
    has_type = isinstance(value, Mapping) and isinstance(value.get("type"), str)
    return has_type and not value.keys() & {"role", "content", "message", "messages"}


def parse(path: Path, text: str) -> Iterator[Located | Unread]:
    """Parses the text of a file: a value per line, or those of a JSON document."""
    if may_be_document(path) and not _is_json_lines(text):
        return _parse_document(path, text)
    return parse_lines(path, text.split("\n"))


def may_be_document(path: Path) -> bool:
    """Whether a file may be a single JSON document, to judge by its name."""
    return re.search(r"\.json(?:\.(?:gz|bz2|xz|zst))?\Z", path.name.lower()) is not None


def _is_json_lines(text: str) -> bool:
    """Whether a text has several lines and the first is JSON, whatever the file's name says."""
    first, _, rest = text.strip().partition("\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest)


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


def load_json(source: str, content: Any) -> Located | Unread:
    """Parses a value that is a JSON document by itself, such as a member of an archive.

    Args:
        content: bytes or a text; any other value, such as a number in a database, is not JSON.
    """
    try:
        return Located(source, json.loads(content or ""))
    except (TypeError, ValueError, RecursionError) as error:
        return Unread(f"{source} is not JSON: {reason_of(error)}")


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


def parse_lines(path: Path, lines: Iterable[str], first: int = 1) -> Iterator[Located | Unread]:
    """Parses the lines of a file; `first` is the number of the first line."""
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        line = line.strip("\0") or line  # zeros are left where the computer stopped
        if not line.isascii() and _NOT_UTF8.search(line):
            text = in_windows_1252(line)
            if not (text and _is_json(text)):
                yield Unread(f"{path}, line {number}: it is not UTF-8 text")
                continue
            yield Unread(f"{path}, line {number}: it is not UTF-8, and was read as Windows-1252")
            line = text
        try:
            for value in _values_on(line):
                yield Located(f"{path}, line {number}", value)
        except (ValueError, RecursionError) as error:
            yield Unread(f"{path}, line {number}: it is not JSON: {reason_of(error)}")


def _values_on(line: str) -> list[Any]:
    """Returns the value on a line, or the several objects that were written at once.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return [json.loads(line)]
    except ValueError:
        if not line.lstrip().startswith("{"):
            raise
        try:
            values = [*_documents_in(line)]
        except ValueError:
            values = []
        if not all(isinstance(value, dict) for value in values) or len(values) < 2:
            raise
        return values
