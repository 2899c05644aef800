"""Divides log files into parts that can be read alone, one after the other or side by side.

A file is a single part, unless it is large and every line of it is a dialog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from holdfast.errors import UsageError
from holdfast.files import text_lines
from holdfast.transcripts.containers import Contents, is_lines
from holdfast.transcripts.finding import FoundLog
from holdfast.transcripts.formats import FORMATS, format_of
from holdfast.transcripts.parsing import parse_lines
from holdfast.transcripts.reader import Located, Unread
from holdfast.transcripts.transcript import Transcript
from holdfast.transcripts.value_reading import read_values

PART_SIZE = 8_000_000  # bytes
_BACK = 100_000  # bytes before a part to read first when looking for the dialogs before it


@dataclass(frozen=True)
class FilePart:
    """A log file, or some of its lines.

    Args:
        start, end: in bytes; an end of None is that of the file. Files other than uncompressed
            lines are read to their end in any case.
        first_line: the number of its first line in the file.
        line_format: the format that all its lines have to be in, since the file was divided on that
            assumption; "" for a whole file.
    """

    log: FoundLog
    start: int = 0
    end: int | None = None
    first_line: int = 1
    line_format: str = ""


def parts_of(log: FoundLog, format_name: str | None) -> list[FilePart]:
    """Divides a file into parts."""
    whole_file = FilePart(log)
    if log.obstacle or not is_lines(log.path):
        return [whole_file]
    try:
        if log.path.stat().st_size < 2 * PART_SIZE:
            return [whole_file]
        form = format_name or _format_of_first_line(log.path)
        if not form or not FORMATS[form].is_per_value:
            return [whole_file]
        with log.path.open("rb") as file:
            return list(_divide(file, log, form))
    except (OSError, UsageError):
        return [whole_file]  # reading it reports the fault


def _format_of_first_line(path: Path) -> str | None:
    """Returns the format of the first line that is not empty; None if it is in none."""
    first = next((line for line in text_lines(path) if line.strip()), "")
    try:
        return format_of(json.loads(first))
    except (ValueError, RecursionError):
        return None


def _divide(file: IO[bytes], log: FoundLog, form: str) -> Iterator[FilePart]:
    """Divides a file at the line ends after every `PART_SIZE` bytes."""
    start = 0
    line = 1
    while block := file.read(PART_SIZE):
        if not block.endswith(b"\n"):
            block += file.readline()
        yield FilePart(log, start, start + len(block), line, form)
        start += len(block)
        line += block.count(b"\n")


def contents_of(part: FilePart) -> Contents | Iterable[Located | Unread]:
    """Returns the values of a part; for a whole file, `Contents`, which has a digest."""
    path = part.log.path
    if not part.line_format:
        return Contents(path, part.end)
    return parse_lines(path, text_lines(path, part.start, part.end), part.first_line)


def dialogs_before(part: FilePart, count: int) -> tuple[Transcript, ...]:
    """Reads the last dialogs before a part, at most `count`, without those of subagents.

    Raises:
        UsageError, NotByItself: from `read_values` and the values it reads.
    """
    if not part.start:
        return ()
    size = _BACK
    while True:
        lines = _lines_before(part, size)
        items = read_values(part.log.path, contents_of(lines), part.line_format, part.line_format)
        transcripts = [item for item in items if isinstance(item, Transcript)]
        dialogs = [dialog for dialog in transcripts if not dialog.is_of_subagent]
        if len(dialogs) >= count or not lines.start:
            return tuple(dialogs[-count:])
        size *= 4


def _lines_before(part: FilePart, size: int) -> FilePart:
    """Returns the lines that begin in the `size` bytes before a part, as a part."""
    start = max(part.start - size, 0)
    with part.log.path.open("rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()  # the rest of a line that begins earlier
            start = min(file.tell(), part.start)
        count = file.read(part.start - start).count(b"\n")
    return replace(part, start=start, end=part.start, first_line=part.first_line - count)
