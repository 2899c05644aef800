"""The word lists that ship with the package, one text file each under `assets/words`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files


@cache
def list_names() -> tuple[str, ...]:
    """The names of the shipped lists."""
    folder = files("holdfast") / "assets" / "words"
    return tuple(
        sorted(
            entry.name.removesuffix(".txt")
            for entry in folder.iterdir()
            if entry.name.endswith(".txt")
        )
    )


@cache
def shipped_list(name: str) -> tuple[str, ...]:
    """The words or phrases of one shipped list; lines that start with '#' are remarks."""
    text = (files("holdfast") / "assets" / "words" / f"{name}.txt").read_text(encoding="utf-8")
    entries = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    return tuple(entry for line in entries for entry in line.split(", ") if entry)


def entries(words: Sequence[str] | str) -> tuple[str, ...]:
    """A list as given, or the shipped list of that name."""
    return shipped_list(words) if isinstance(words, str) else tuple(words)
