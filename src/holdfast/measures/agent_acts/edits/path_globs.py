"""Paths with `*`, `?`, `**/` and `{a,b}`, as rules name files.

For example:

    src/*.{js,ts}  matches  src/a.js and src/b/c.ts
    migrations/    matches  migrations/0001.py and app/migrations/0002.py
"""

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated

from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.path_names import is_absolute
from holdfast.measures.arguments import takes

Glob = Annotated[str, takes("a path with * and ?", "migrations/*", pattern=r"\S")]
Globs = Annotated[
    Glob | Sequence[Glob],
    takes("a path with * and ?, or a list of these", ["*.py", "!tests/*"], min_length=1),
]

_TEMPORARY = ("/tmp/", "/var/tmp/")  # folders that are no repository, but may hold one
_OUTSIDE = (*_TEMPORARY, "/dev/")  # folders that hold no repository
# a part of a path that only the shell knows: $(pwd), `pwd`, ${HOME}, $HOME, and {} of xargs
_UNKNOWN_PART = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$\w+|\{\}")
# a part of a glob that stands for several: {a,b} and **/
_VARIANTS = re.compile(r"\{(?P<choices>[^{}]*)\}|\*\*/")


# --- Whether globs match a path


def touches(edit: FileEdit, globs: Globs) -> bool:
    """Whether an edit changes a file that globs match, or a whole folder that they match."""
    path = edit.path.rstrip("/")
    return bool(path) and (
        is_among(path, globs) or (edit.is_folder and is_among(f"{path}/", globs))
    )


def is_among(path: str, globs: Globs) -> bool:
    """Whether a glob matches a path or its last parts, and no glob that begins with `!` does.

    A glob with a folder matches the last parts of absolute paths only, whose root is not known.
    """
    all_globs = [*map(_files_in, [globs] if isinstance(globs, str) else globs)]
    excluded = [glob[1:] for glob in all_globs if glob.startswith("!")]
    included = [glob for glob in all_globs if not glob.startswith("!")] or ["*"]
    return _matches_any(path, included) and not _matches_any(path, excluded)


def _files_in(glob: str) -> str:
    """Returns the glob of all that is in a folder: `migrations/*` for `migrations/`."""
    return f"{glob}*" if glob.endswith("/") else glob


def _matches_any(path: str, globs: Sequence[str]) -> bool:
    plain_globs = (plain for glob in globs for plain in _plain_globs(glob.removeprefix("./")))
    return any(_matches(path, plain) for plain in plain_globs)


def _matches(path: str, glob: str) -> bool:
    """Whether a glob with `*` and `?` alone matches a path, or its last parts."""
    temporary = next(filter(path.startswith, _TEMPORARY), "")
    if temporary and not glob.startswith("/"):  # `/tmp/a` is no file of a repository
        return fnmatch.fnmatchcase(path.removeprefix(temporary), f"?*/{glob}")
    if fnmatch.fnmatchcase(path.removeprefix("./"), glob):
        return True
    return not _begins_at_root(glob, path) and fnmatch.fnmatchcase(path, f"*/{glob}")


def _begins_at_root(glob: str, path: str) -> bool:
    """Whether a glob with a folder means the folder in the root, where the path begins too."""
    return "/" in glob.rstrip("/") and not is_absolute(path)


@cache
def _plain_globs(glob: str) -> list[str]:
    """Expands {a,b} and **/ in a glob, so that only `*` and `?` are left; these also match `/`.

    >>> _plain_globs("**/*.{js,ts}")
    ['*.js', '*.ts', '*/*.js', '*/*.ts']
    """
    variants = _VARIANTS.search(glob)
    if variants is None:
        return [glob.replace("[", "[[]")]
    choices = variants["choices"]
    parts = ["", "*/"] if choices is None else choices.split(",")
    plain: list[str] = []
    for part in parts:
        plain += _plain_globs(glob[: variants.start()] + part + glob[variants.end() :])
    return plain


# --- Whether a path that is not known in full may match


def may_touch(edit: FileEdit, glob: Glob) -> bool:
    """Whether an edit may change a file that a glob matches, as far as its path is known.

    The glob `*.py` may match the path `$DIR/$NAME`, which is read as `*/*`.
    """
    path = _UNKNOWN_PART.sub("*", edit.path.rstrip("/").removeprefix("./"))
    if path in ("", "."):
        path = "*"
    if path.startswith(_OUTSIDE):
        return False
    has_suffix = "." in posixpath.basename(path)
    may_be_folder = edit.is_folder or not (edit.is_shown or has_suffix)
    if not may_be_folder and {"*", "?"}.isdisjoint(path):
        return False
    paths = [path, f"{path}/*"] if may_be_folder else [path]
    plain = [*_plain_globs(_files_in(glob))]
    plain += [f"*/{name}" for name in plain if not _begins_at_root(name, path)]
    return any(_overlap(path, other) for path in paths for other in plain)


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
        left, right = first[a : a + 1], second[b : b + 1]  # "" at the end
        following = []
        if left == "*":  # matches nothing more, or the next character of the other
            following += [(a + 1, b)] + ([(a, b + 1)] if right else [])
        if right == "*":
            following += [(a, b + 1)] + ([(a + 1, b)] if left else [])
        if left and right and (left == right or "?" in (left, right)):
            following.append((a + 1, b + 1))
        new = [positions for positions in following if positions not in reached]
        reached.update(new)
        to_visit += new
    return False
