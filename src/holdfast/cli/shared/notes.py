"""Prints notes on standard error, such as "holdfast: loading qwen-0.5b ...".

`printable` makes a text from elsewhere safe to print.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_SLOW_FILE_BYTES = 50_000  # a larger rules file takes seconds to read
# control characters, and the marks that reverse the direction of text, which could hide other text
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def note(line: str) -> None:
    """Prints a line on stderr, so that other programs can read a command's output from stdout."""
    print(f"holdfast: {line}", file=sys.stderr, flush=True)


def note_if_long(path: Path) -> None:
    """Says that reading the rules of a file takes a while, if the file is large."""
    with contextlib.suppress(OSError):
        size = path.stat().st_size
        if size > _SLOW_FILE_BYTES:
            note(f"{path} has {size // 1000:,} kB; reading its rules takes a while.")


@contextlib.contextmanager
def naming_new_folders(*files: Path) -> Iterator[None]:
    """Says which folders were created for these files within this context.

    So a misspelt folder is noticed.
    """
    missing = {file.parent: file for file in files if not file.absolute().parent.exists()}
    try:
        yield
    finally:
        for folder, file in missing.items():
            if folder.exists():
                note(f"created the folder {folder} for {file.name}.")


def printable(text: str) -> str:
    """Replaces control characters, except tabs and newlines, by spaces, and surrogates by "?"."""
    return _SURROGATE.sub("?", _CONTROL.sub(" ", text))
