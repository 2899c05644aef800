"""Reads the commands and the files of the program `find`.

For example:

    find src -name "*.pyc" -exec rm {} +  ->  the command `rm src/*.pyc`
    find src -name "*.pyc" -delete        ->  the files `src/*.pyc`
"""

from collections.abc import Sequence
from itertools import pairwise, takewhile

_EXECUTE = ("-exec", "-execdir", "-ok", "-okdir")
_ENDS_OF_COMMAND = (";", "+")
_NAME_TESTS = ("-name", "-iname", "-path")
_STARTS_OF_EXPRESSION = ("-", "(", "!")  # the words before it are folders


def commands_of_find(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the commands that the options `-exec` of `find` run.

    In place of `{}`, they have a glob of the files that are found if `find` begins in one folder.
    """
    files = files_of_find(words)
    replacement = files[0] if len(files) == 1 else "{}"
    commands: list[tuple[str, ...]] = []
    rest = list(words)
    while rest:
        if rest.pop(0) in _EXECUTE:
            command = list(takewhile(lambda word: word not in _ENDS_OF_COMMAND, rest))
            commands.append(tuple(replacement if word == "{}" else word for word in command))
            del rest[: len(command) + 1]
    return [command for command in commands if command]


def files_of_find(words: Sequence[str]) -> list[str]:
    """Returns globs of the files that `find` finds, one for each folder that it begins in."""
    folders = takewhile(lambda word: not word.startswith(_STARTS_OF_EXPRESSION), words[1:])
    names = [name for option, name in pairwise(words) if option in _NAME_TESTS]
    name = names[0] if len(names) == 1 else "*"
    return [name if folder in (".", "./") else f"{folder.rstrip('/')}/{name}" for folder in folders]
