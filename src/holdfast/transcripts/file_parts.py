"""Log files in parts that can be read by themselves, one after the other or side by side.

A file is one part, unless it is large and every line of it is a dialog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
        start, end: in bytes; None: the end of the file.
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
    whole = FilePart(log)
    if log.obstacle or not is_lines(log.path):
        return [whole]
    try:
        if log.path.stat().st_size < 2 * PART:
            return [whole]
        form = format_name or _format_of_first_line(log.path)
        if not form or not FORMATS[form].is_per_value:
            return [whole]
        with log.path.open("rb") as file:
            return list(_divided(file, log, form))
    except (OSError, UsageError):
        return [whole]  # whose reading names the fault


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
        return Contents(path)
    return parse_lines(path, text_lines(path, part.start, part.end), part.first_line)


def dialogs_before(part: FilePart, count: int) -> tuple[Transcript, ...]:
    """The last dialogs before a part, without those of subagents: at most `count`.

    Raises:
        UsageError, NotByItself: as `read_values` and its values do.
    """
    if not part.start:
        return ()
    path, size = part.log.path, _BACK
    while True:
        start, lines = _line_start(path, part.start, size)
        parsed = parse_lines(path, text_lines(path, start, part.start), part.first_line - lines)
        read = read_values(path, parsed, part.only, part.only)
        dialogs = [t for t in read if isinstance(t, Transcript) and not t.is_of_subagent]
        if len(dialogs) >= count or not start:
            return tuple(dialogs[-count:])
        size *= 4


def _line_start(path: Path, end: int, size: int) -> tuple[int, int]:
    """Where the first line begins that is at most `size` bytes before `end`, and how many lines
    there are from it on.
    """
    with path.open("rb") as file:
        if size >= end:
            return 0, file.read(end).count(b"\n")
        file.seek(end - size - 1)
        file.readline()
        start = min(file.tell(), end)
        return start, file.read(end - start).count(b"\n")
