"""Reads and changes the options of a typed command, without its parser."""

import shlex
from collections.abc import Mapping, Sequence


def split_command(command: str) -> list[str]:
    """Returns the words of a command; [] if a shell could not read it."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def options_in(words: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Returns those of the named options that a command has, with their values, as words of another
    command.
    """
    options: list[str] = []
    for name in names:
        if value := option_in(words, name):
            options += (name, value)
        elif name in words:
            options.append(name)
    return tuple(options)


def option_in(words: Sequence[str], name: str) -> str:
    """Returns the value of an option in a command; "" if the command lacks it, or it is a flag."""
    for index, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        following = words[index + 1 : index + 2]
        if word == name and following and not following[0].startswith("--"):
            return following[0]
    return ""


def change_options(words: Sequence[str], options: Mapping[str, str | None]) -> str:
    """Returns a command with some options set to other values, or left out if their value is None.

    Options must have values, as flags are not told apart from them.
    """
    command = [
        word
        for previous, word in zip(["", *words], words, strict=False)
        if previous not in options and word.partition("=")[0] not in options
    ]
    for name, value in options.items():
        if value is not None:
            command += (name, value)
    return shlex.join(command)
