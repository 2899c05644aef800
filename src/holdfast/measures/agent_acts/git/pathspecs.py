"""The paths that commands of Git take, as their manuals define pathspecs.

For example:

    :!docs  ->  all files but those in docs
    :/a.py  ->  a.py in the top folder
    *.lock  ->  the files that the pattern matches
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.commands.command_options import ParsedOptions
from holdfast.measures.agent_acts.written_texts import WrittenTexts

EVERYTHING = frozenset((".", "*", "/", ":/", "./", ":/."))
EXCLUDED = re.compile(r":(?:[!^]|\(exclude\))/?")  # a pathspec that leaves out files
_MAGIC = re.compile(r":(?:\([\w,]*\)|/)")  # in front of a path, as in `:(glob)*.lock`


def names_everything(paths: Iterable[str]) -> bool:
    """Whether one of these operands of Git stands for all files, or all but some."""
    paths = list(paths)
    only_excludes = bool(paths) and all(map(EXCLUDED.match, paths))
    return only_excludes or not EVERYTHING.isdisjoint(paths)


def listed_paths(options: ParsedOptions, action: Action, texts: WrittenTexts) -> list[str] | None:
    """Returns the paths in the file of `--pathspec-from-file`.

    [] without this option, and None if the log does not show them.
    """
    file = options.last("--pathspec-from-file")
    if file is None:
        return []
    text = action.command.input if file in ("-", "/dev/stdin") else texts.of(file)
    if text is None:
        return None
    separator = "\0" if "--pathspec-file-nul" in options.flags else "\n"
    return [path.strip('"') for path in text.split(separator) if path.strip()]


def folder_of(action: Action) -> str:
    """Returns the folder that a command of Git runs in, as far as `cd` and `git -C` tell it."""
    for reading in action.command.readings:
        words = reading.words
        if (
            words[:2] == ("git", "-C")
            and len(words) > 2
            and not words[2].startswith(("/", "~", "$"))
        ):
            return posixpath.join(action.folder, words[2])
    return action.folder


def operands_in(folder: str, operands: Iterable[str]) -> tuple[str, ...]:
    """Returns operands of Git relative to the folder that the script began in: `a` for `./a`."""
    return tuple(_operand_in(folder, operand) for operand in operands)


def _operand_in(folder: str, operand: str) -> str:
    if EXCLUDED.match(operand) or (operand in EVERYTHING and not folder) or "@{" in operand:
        return operand
    if operand.startswith((":/", ":(top)")):
        return _MAGIC.sub("", operand) or "."
    path = _MAGIC.sub("", operand)
    whole = posixpath.normpath(posixpath.join(folder, path)) if path else path
    return f"{whole}/" if path.endswith("/") and whole != "." else whole


def is_in_any(path: str, names: Iterable[str]) -> bool:
    """Whether a path is in one of several."""
    return any(is_in(path, name) for name in names)


def is_in(path: str, name: str) -> bool:
    """Whether a path is this file, in this folder, or matches this pattern of Git.

    If only one of them is absolute, as tools write paths, the other is compared with its end.
    """
    path = posixpath.normpath(path)
    name = posixpath.normpath(name)
    if name in EVERYTHING:
        return True
    if path.startswith("/") and not name.startswith("/"):
        return f"/{name}/" in f"{path}/" or fnmatch.fnmatchcase(path, f"*/{name}")
    if name.startswith("/") and not path.startswith("/"):
        parts = path.split("/")
        parents = ("/".join(parts[: number + 1]) for number in range(len(parts)))
        return any(name.endswith(f"/{parent}") for parent in parents)
    return path == name or path.startswith(f"{name}/") or fnmatch.fnmatchcase(path, name)
