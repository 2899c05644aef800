"""Finds a file among those that were written, whose paths may be relative or absolute.

find_path("s.sh", {"/home/me/app/s.sh": "git push"})  ->  "/home/me/app/s.sh"
"""

import posixpath
from collections.abc import Mapping


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
