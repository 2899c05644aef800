"""Log files in parts that can be read by themselves, one after the other or side by side.

A file is one part, unless it is large and every line of it is a dialog.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from holdfast.common.files import read_text, text_lines
from holdfast.errors import UsageError
from holdfast.transcripts.finding import FoundLog
from holdfast.transcripts.formats import FORMATS, format_of
from holdfast.transcripts.parsing import may_be_document, parse, parse_lines
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.reading import read_values
from holdfast.transcripts.transcript import Transcript

PART = 8_000_000  # bytes of a part


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
    if log.obstacle or may_be_document(log.path) or log.path.suffix == ".gz":
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


def read_part(part: FilePart, format_name: str | None) -> Iterator[Transcript | Unread]:
    """The transcripts of a part, and what was not read of it.

    Raises:
        UsageError: the file cannot be read; what was yielded before does not count either.
        NotByItself: the part cannot be read without the rest of the file.
    """
    path = part.log.path
    if may_be_document(path):
        text = read_text(path)
        return read_values(path, parse(path, text) if text.strip() else (), format_name)
    lines = text_lines(path, part.start, part.end)
    return read_values(path, parse_lines(path, lines, part.first_line), format_name, part.only)
