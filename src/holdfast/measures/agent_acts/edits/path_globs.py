"""Paths with `*`, `?`, `**/` and `{a,b}`, as rules name files.

For example:

    src/*.{js,ts}  ->  src/a.js, src/b/c.ts
    migrations/    ->  migrations/0001.py
"""

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated

from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.arguments import takes

Glob = Annotated[str, takes("a path with * and ?", "migrations/*", pattern=r"\S")]
Globs = Annotated[
    Glob | Sequence[Glob],
    takes("a path with * and ?, or a list of these", ["*.py", "!tests/*"], min_length=1),
]

# names of files; others may be folders, such as `Docs`, `v1.2` and `.config`
_FILE_NAME = re.compile(
    r"\.?[^.].*\.[a-z][a-z0-9]{0,10}|\.env|\.\w*(?:rc|ignore|attributes)"
    r"|(?:Make|Docker|Gem|Pip|Proc|Rake|Brew|Vagrant|Container|Jenkins)file"
    r"|LICENSE|README|CHANGELOG|NOTICE|AUTHORS|CODEOWNERS|VERSION"
)
DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # how an absolute path of Windows begins
_TEMPORARY = ("/tmp/", "/var/tmp/")  # folders that are no repository, but may hold one
_OUTSIDE = (*_TEMPORARY, "/dev/")  # folders that hold no repository
# a part of a path that only the shell knows: $(pwd), `pwd`, ${HOME}, $HOME, and {} of xargs
_UNKNOWN_PART = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$\w+|\{\}")


def is_absolute(path: str) -> bool:
    """Whether a path does not depend on the working folder, as far as it can be told."""
    return path.startswith(("/", "~", "$")) or DRIVE.match(path) is not None


def may_be_folder(path: str) -> bool:
    """Whether a path may be that of a folder, by its name: `src`, `v1.2` or `src/`, but not
    `Makefile` or `a.py`.
    """
    name = path.rpartition("/")[2]
    return not name or (not is_pattern(path) and not _FILE_NAME.fullmatch(name))


def is_pattern(path: str) -> bool:
    """Whether an operand of Git is a pattern of files."""
    return any(sign in path for sign in "*?[")


def is_among(path: str, globs: Globs) -> bool:
    """Whether a glob matches a path or its last parts, and no glob that begins with `!` does.

    A glob with a folder matches the last parts of absolute paths only, whose root is not known.
    """
    all_globs = [*map(_in_folder, [globs] if isinstance(globs, str) else globs)]
    excluded = [glob[1:] for glob in all_globs if glob.startswith("!")]
    included = [glob for glob in all_globs if not glob.startswith("!")] or ["*"]
    return _is_like(path, included) and not _is_like(path, excluded)


def _in_folder(glob: str) -> str:
    """Reads a folder, such as `migrations/`, as all that is in it."""
    return f"{glob}*" if glob.endswith("/") else glob


def touches(edit: FileEdit, globs: Globs) -> bool:
    """Whether an edit changes a file that globs match, or a whole folder that they match."""
    path = edit.path.rstrip("/")
    return bool(path) and (
        is_among(path, globs) or (edit.is_folder and is_among(f"{path}/", globs))
    )


def may_touch(edit: FileEdit, glob: Glob) -> bool:
    """Whether an edit may change a file that a glob matches, as far as its path is known."""
    path = _UNKNOWN_PART.sub("*", edit.path.rstrip("/").removeprefix("./")) or "*"
    if path.startswith(_OUTSIDE):
        return False
    may_be_folder = edit.is_folder or not (edit.is_shown or "." in posixpath.basename(path))
    paths = ["*" if path == "." else path, f"{path}/*"][: 2 if may_be_folder else 1]
    if not may_be_folder and not {"*", "?"} & {*paths[0]}:
        return False
    plain = [*_plain_globs(_in_folder(glob))]
    plain += [f"*/{name}" for name in plain if not _begins_at_root(name, path)]
    return any(_overlap(path, other) for path in paths for other in plain)


def _begins_at_root(glob: str, path: str) -> bool:
    """Whether a glob with a folder means the folder in the root, where the path begins too."""
    return "/" in glob.rstrip("/") and not is_absolute(path)


@cache
def _overlap(first: str, second: str) -> bool:
    """Whether a text exists that both globs match.

    Both are read side by side. A pair of positions is reached if some text matches both globs up to
    there.

    >>> _overlap("src/*", "*.py"), _overlap("src/*", "docs/*")
    (True, False)
    """
    to_visit = [(0, 0)]
    reached = set(to_visit)
    while to_visit:
        a, b = to_visit.pop()
        if a == len(first) and b == len(second):
            return True
        one, other = first[a : a + 1], second[b : b + 1]  # "" at the end
        following = []
        if one == "*":  # matches nothing more, or the next character of the other
            following += [(a + 1, b)] + ([(a, b + 1)] if other else [])
        if other == "*":
            following += [(a, b + 1)] + ([(a + 1, b)] if one else [])
        if one and other and (one == other or "?" in (one, other)):
            following.append((a + 1, b + 1))
        new = [positions for positions in following if positions not in reached]
        reached.update(new)
        to_visit += new
    return False


def _is_like(path: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs matches a path, or its last parts."""
    temporary = next(filter(path.startswith, _TEMPORARY), "")
    for glob in globs:
        for plain in _plain_globs(glob.removeprefix("./")):
            if temporary and not plain.startswith("/"):  # `/tmp/a` is no file of a repository
                name = path.removeprefix(temporary)
                if fnmatch.fnmatchcase(name, f"?*/{plain}"):
                    return True
                continue
            if fnmatch.fnmatchcase(path.removeprefix("./"), plain):
                return True
            if not _begins_at_root(plain, path) and fnmatch.fnmatchcase(path, f"*/{plain}"):
                return True
    return False


@cache
def _plain_globs(glob: str) -> list[str]:
    """Expands {a,b} and **/ in a glob, so that only `*` and `?` are left; these also match `/`.

    >>> _plain_globs("**/*.{js,ts}")
    ['*.js', '*.ts', '*/*.js', '*/*.ts']
    """
    variants = re.search(r"\{(?P<choices>[^{}]*)\}|\*\*/", glob)
    if variants is None:
        return [glob.replace("[", "[[]")]
    choices = variants["choices"]
    parts = ["", "*/"] if choices is None else choices.split(",")
    plain: list[str] = []
    for part in parts:
        plain += _plain_globs(glob[: variants.start()] + part + glob[variants.end() :])
    return plain
