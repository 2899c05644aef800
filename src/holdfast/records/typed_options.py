"""The options of a command as it was typed: read, repeated and changed, without its parser."""

import shlex
from collections.abc import Mapping, Sequence


def split_command(command: str) -> list[str]:
    """The words of a command; none of one that a shell could not read."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def options_in(words: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The named options of a command, with their values, as words of another one."""
    found: list[str] = []
    for name in names:
        if value := option_in(words, name):
            found += (name, value)
        elif name in words:
            found.append(name)
    return tuple(found)


def option_in(words: Sequence[str], name: str) -> str:
    """The value of an option in a command; "" if it has none."""
    for at, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and at + 1 < len(words) and not words[at + 1].startswith("--"):
            return words[at + 1]
    return ""


def repeated(words: Sequence[str], options: Mapping[str, str | None]) -> str:
    """The command of these words with some options set to other values, or, by None, left out."""
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in options and word not in options and word.split("=")[0] not in options
    ]
    given = [(name, value) for name, value in options.items() if value is not None]
    return shlex.join([*kept, *(word for pair in given for word in pair)])
