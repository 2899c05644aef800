"""Tells from its name whether a path is absolute, a folder or a pattern, and finds written files.

For example:

    is_absolute("~/a.py"), is_absolute("a.py")            ->  True, False
    may_be_folder("src"), may_be_folder("Makefile")       ->  True, False
    find_path("s.sh", {"/home/me/app/s.sh": "git push"})  ->  "/home/me/app/s.sh"
"""

import posixpath
import re
from collections.abc import Mapping

# names of files; others may be folders, such as `Docs`, `v1.2` and `.config`
_FILE_NAME = re.compile(
    r"\.?[^.].*\.[a-z][a-z0-9]{0,10}|\.env|\.\w*(?:rc|ignore|attributes)"
    r"|(?:Make|Docker|Gem|Pip|Proc|Rake|Brew|Vagrant|Container|Jenkins)file"
    r"|LICENSE|README|CHANGELOG|NOTICE|AUTHORS|CODEOWNERS|VERSION"
)
DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # how an absolute path of Windows begins


def is_absolute(path: str) -> bool:
    """Whether a path does not depend on the working folder, as far as it can be told."""
    return path.startswith(("/", "~", "$")) or DRIVE.match(path) is not None


def may_be_folder(path: str) -> bool:
    """Whether a path may be that of a folder, by its name.

    `src`, `v1.2` and `src/` may be; `Makefile` and `a.py` may not.
    """
    name = path.rpartition("/")[2]
    return not name or (not is_pattern(path) and not _FILE_NAME.fullmatch(name))


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern of files, such as `*.py`."""
    return any(sign in path for sign in "*?[")


def find_path(name: str, files: Mapping[str, str]) -> str | None:
    """Returns the path under which a file of this name was written; None if none was.

    If only one of them is absolute, the other may be its end, as the root is not known.

    Args:
        files: the texts of the files, by their paths; the last written is found first.
    """
    plain = posixpath.normpath(name)
    for path in reversed([*files]):
        written = posixpath.normpath(path)
        if written == plain:
            return path
        if written.startswith("/") != plain.startswith("/"):
            whole, end = (written, plain) if written.startswith("/") else (plain, written)
            if whole.endswith(f"/{end}"):
                return path
    return None
