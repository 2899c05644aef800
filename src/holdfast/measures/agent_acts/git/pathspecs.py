"""The paths that commands of Git take, as their manuals define pathspecs.

For example:

    operands_in("app", ["a.py", ":/b.py"])    ->  ("app/a.py", "b.py")
    is_in("app/poetry.lock", "*.lock")        ->  True
    names_everything([":!docs"])              ->  True, as it leaves out docs only
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable

EVERYTHING = frozenset((".", "*", "/", ":/", "./", ":/."))  # pathspecs of all files
EXCLUDED = re.compile(r":(?:[!^]|\(exclude\))/?")  # a pathspec that leaves out files
_MAGIC = re.compile(r":(?:\([\w,]*\)|/)")  # in front of a path, as in `:(glob)*.lock`


def names_everything(paths: Iterable[str]) -> bool:
    """Whether one of these operands of Git stands for all files, or all but some."""
    paths = list(paths)
    only_excludes = bool(paths) and all(map(EXCLUDED.match, paths))
    return only_excludes or not EVERYTHING.isdisjoint(paths)


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
