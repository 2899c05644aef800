"""Files that only grow, line by line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.files import sync
from holdfast.records.lines import to_line, whole_lines


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Appends a record as one line, and waits until it is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    with open(path, "ab", buffering=0) as file:
        write_all(file.fileno(), to_line(record))
        sync(file.fileno(), path.parent)


def write_all(file: int, data: bytes) -> None:
    """Writes to a descriptor, however often that takes."""
    while data:
        data = data[os.write(file, data) :]


def cut_torn_line(path: Path) -> None:
    """Removes what follows the last whole line: a line whose writing was cut short."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        data = file.read()
        whole = whole_lines(data)
        if whole < len(data):
            file.truncate(whole)
            file.flush()
            sync(file.fileno(), path.parent)
