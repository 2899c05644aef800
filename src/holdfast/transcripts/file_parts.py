"""Log files in parts that can be read by themselves, one after the other or side by side.

A file is one part, unless it is large and every line of it is a dialog.
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
from holdfast.transcripts.reading import read_values
from holdfast.transcripts.transcript import Transcript

PART = 8_000_000  # bytes of a part
_BACK = 100_000  # bytes before a part that are read first to find the dialogs before it


@dataclass(frozen=True)
class FilePart:
    """A log file, or some of its lines.

    Args:
        start, end: in bytes; None: the end of the file. A file that is not uncompressed lines is
            read to its end.
        first_line: the number of its first line.
        only: the format that its lines have to be in, as the file was divided for it; "" for a
            whole file.
    """

    log: FoundLog
    start: int = 0
    end: int | None = None
    first_line: int = 1
    only: str = ""


def parts_of(log: FoundLog, format_name: str | None) -> list[FilePart]:
    """The parts of a file."""
    whole_file = FilePart(log)
    if log.obstacle or not is_lines(log.path):
        return [whole_file]
    try:
        if log.path.stat().st_size < 2 * PART:
            return [whole_file]
        form = format_name or _format_of_first_line(log.path)
        if not form or not FORMATS[form].is_per_value:
            return [whole_file]
        with log.path.open("rb") as file:
            return list(_divided(file, log, form))
    except (OSError, UsageError):
        return [whole_file]  # whose reading names the fault


def _format_of_first_line(path: Path) -> str | None:
    first = next((line for line in text_lines(path) if line.strip()), "")
    try:
        return format_of(json.loads(first))
    except (ValueError, RecursionError):
        return None


def _divided(file: IO[bytes], log: FoundLog, form: str) -> Iterator[FilePart]:
    start, line = 0, 1
    while block := file.read(PART):
        block += file.readline() if not block.endswith(b"\n") else b""
        yield FilePart(log, start, start + len(block), line, form)
        start += len(block)
        line += block.count(b"\n")


def contents_of(part: FilePart) -> Contents | Iterable[Located | Unread]:
    """The values of a part; of a whole file, with its digest."""
    path = part.log.path
    if not part.only:
        return Contents(path, part.end)
    return parse_lines(path, text_lines(path, part.start, part.end), part.first_line)


def dialogs_before(part: FilePart, count: int) -> tuple[Transcript, ...]:
    """The last dialogs before a part, without those of subagents: at most `count`.

    Raises:
        UsageError, NotByItself: as `read_values` and its values do.
    """
    if not part.start:
        return ()
    size = _BACK
    while True:
        lines = _lines_before(part, size)
        items = read_values(part.log.path, contents_of(lines), part.only, part.only)
        transcripts = [item for item in items if isinstance(item, Transcript)]
        dialogs = [dialog for dialog in transcripts if not dialog.is_of_subagent]
        if len(dialogs) >= count or not lines.start:
            return tuple(dialogs[-count:])
        size *= 4


def _lines_before(part: FilePart, size: int) -> FilePart:
    """The lines that begin within this many bytes before a part, as a part of their own."""
    start = max(part.start - size, 0)
    with part.log.path.open("rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()  # the rest of a line that begins before
            start = min(file.tell(), part.start)
        count = file.read(part.start - start).count(b"\n")
    return replace(part, start=start, end=part.start, first_line=part.first_line - count)
