"""The changes of files that a patch describes.

    *** Update File: a.py
    @@
    -x = 1
    +x = 2
    -> FileEdit("a.py", added=("x = 2",), removed=("x = 1",))

Patches have one of three forms: that of Codex, blocks of SEARCH and REPLACE, or a unified diff.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from holdfast.measures.agent_acts.edits.file_edits import FileEdit, replacement_edit

# "*** Update File: a.py", "*** Move to: b.py"
_CODEX_FILE = re.compile(
    r"\*\*\* (?P<operation>Add|Update|Delete) File: (?P<path>.+)|\*\*\* Move to: (?P<target>.+)"
)
_CODEX_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ", re.MULTILINE)
_UNIFIED_DIFF = re.compile(r"^@@ -\d", re.MULTILINE)
# "rename from a.py" in the header of Git; a file that is only renamed has no hunks
_RENAMED = re.compile(r"^(?:rename|copy) (?:from|to) (\S.*)$", re.MULTILINE)
# "@@ -1,3 +1,4 @@"
_HUNK = re.compile(r"@@ -\d+(?:,(?P<old_lines>\d+))? \+\d+(?:,(?P<new_lines>\d+))? @@")
_FILE_HEADER = re.compile(r"(?P<side>---|\+\+\+) (?P<name>\S[^\t]*)")  # "--- a/a.py"
# the lines that Cline writes above the text of SEARCH: ":start_line:12" and "-------"
_LINE_NUMBERS = re.compile(r"\A(?::(?:start|end)_line:.*\n)+-{5,}\n")


def edits_by_patch(text: str, path: str = "") -> list[FileEdit]:
    """Reads the changes in a patch of Codex, in SEARCH and REPLACE blocks, or in a unified diff.

    Args:
        path: of the file, for a patch that does not name it.

    Returns:
        [] if the text has none of these forms.
    """
    if _CODEX_PATCH.search(text):
        return list(_edits_by_codex_patch(text))
    blocks = list(_search_blocks(text))
    if blocks:
        return [replacement_edit(path, _LINE_NUMBERS.sub("", old), new) for old, new in blocks]
    renamed = [FileEdit(name) for name in _RENAMED.findall(text)]
    if _UNIFIED_DIFF.search(text):
        return [*renamed, *_edits_by_unified_diff(text, path)]
    return renamed


def _search_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yields the texts of SEARCH and REPLACE in each complete block."""
    old = list[str]()
    new = list[str]()
    current = list[str]()  # the one of these that lines belong to; outside blocks, neither
    for line in text.splitlines(keepends=True):
        if re.match(r"[-<]{5,} *SEARCH", line):
            old = []
            new = []
            current = old
        elif current is old and re.match(r"={5,}\s*\Z", line):
            current = new
        elif current is new and re.match(r"[+>]{5,} *REPLACE", line):
            yield "".join(old), "".join(new)
            current = []
        else:
            current.append(line)


def _edits_by_codex_patch(text: str) -> Iterator[FileEdit]:
    """Yields the edits of a patch of Codex; a file that is moved has one under each name."""
    edit: FileEdit | None = None  # None before the first header of a file, and after the patch
    lines: list[str] = []
    for line in [*text.split("\n"), "*** End Patch"]:  # the end may be missing
        header = _CODEX_FILE.fullmatch(line.rstrip())
        if header is None and not line.startswith("*** End Patch"):
            lines.append(line)
            continue
        if edit is not None:
            yield _with_lines(edit, lines)
        edit = None
        lines = []
        if header is not None:
            path = header["path"] or header["target"]
            is_new = header["operation"] == "Add"
            edit = FileEdit(path, is_whole=is_new, is_new=is_new)


def _with_lines(edit: FileEdit, lines: Sequence[str]) -> FileEdit:
    """Returns the edit with the lines of its hunks that begin with + and -."""
    return replace(edit, added=_lines_with_sign(lines, "+"), removed=_lines_with_sign(lines, "-"))


def _lines_with_sign(lines: Sequence[str], sign: Literal["+", "-"]) -> tuple[str, ...]:
    """Returns the lines that begin with a sign, joined unless a line without + or - is between."""
    other_sign = "-" if sign == "+" else "+"
    pieces = list[list[str]]()
    continues_piece = False
    for line in lines:
        if line.startswith(sign):
            if not continues_piece:
                pieces.append([])
            pieces[-1].append(line[1:])
            continues_piece = True
        elif not line.startswith(other_sign):
            continues_piece = False
    return tuple("\n".join(piece) for piece in pieces)


def _edits_by_unified_diff(text: str, path: str) -> Iterator[FileEdit]:
    """Yields the edits of a unified diff.

    A hunk is as long as its header says, even if its lines look like the header of a file.
    """
    edit = FileEdit(path)
    lines = list[str]()
    old_lines_left = 0  # in the hunk
    new_lines_left = 0
    for line in text.split("\n"):
        if old_lines_left > 0 or new_lines_left > 0:
            lines.append(line)
            # a line with a backslash, "\ No newline at end of file", is of neither text
            if not line.startswith(("+", "\\")):
                old_lines_left -= 1
            if not line.startswith(("-", "\\")):
                new_lines_left -= 1
        elif hunk_header := _HUNK.match(line):
            old_lines_left = int(hunk_header["old_lines"] or 1)
            new_lines_left = int(hunk_header["new_lines"] or 1)
            lines.append("")  # so that lines of two hunks are not joined
        elif file_header := _FILE_HEADER.match(line):
            names_old_file = file_header["side"] == "---"
            if names_old_file and (lines or edit.path != path):  # the edit before is complete
                yield _with_lines(edit, lines)
                edit = FileEdit(path)
                lines = []
            name = _without_prefix(file_header["name"].strip())
            if name != "/dev/null":
                edit = replace(edit, path=name)
            elif names_old_file:  # there was no file before
                edit = replace(edit, is_whole=True)
    yield _with_lines(edit, lines)


def _without_prefix(name: str) -> str:
    """Returns a path without the a/ or b/ that Git puts before it."""
    return name[2:] if name.startswith(("a/", "b/")) else name
