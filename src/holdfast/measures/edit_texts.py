"""A change of a file, and the changes that a patch describes."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class FileEdit:
    """A change of a file.

    Args:
        path: "" if the log does not show it.
        added: the text that it adds, in pieces of consecutive lines.
        removed: likewise the text that it takes away, as far as it is shown.
        is_whole: whether what is added is all that the file then has.
        is_shown: whether the log shows what is added.
        is_folder: whether it may be a folder that is moved or deleted with all that is in it.
    """

    path: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_whole: bool = False
    is_shown: bool = True
    is_folder: bool = False

    @property
    def writes(self) -> bool:
        """Whether it puts text into the file; moving and deleting do not."""
        return bool(self.added) or not self.is_shown


def written(path: str, text: str) -> FileEdit:
    """A file that is written as a whole."""
    return FileEdit(path, (text,), is_whole=True)


def replaced(path: str, old: str, new: str) -> FileEdit:
    """A text in place of another: the lines that both have are neither added nor removed."""
    if not old:
        return FileEdit(path, (new,) if new else ())
    before = old.splitlines()
    after = new.splitlines()
    return FileEdit(path, _pieces(after, before), _pieces(before, after))


def _pieces(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The lines that are not among others, where consecutive ones are one text."""
    left = Counter(others)
    pieces = list[list[str]]()
    is_new = False
    for line in lines:
        if left[line]:
            left[line] -= 1
            is_new = False
            continue
        if not is_new:
            pieces.append([])
        pieces[-1].append(line)
        is_new = True
    return tuple("\n".join(piece) for piece in pieces)


_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")
_LINE_NUMBERS = re.compile(r"\A(?::(?:start|end)_line:.*\n)+-{5,}\n")


def edits_by_patch(text: str, path: str = "") -> list[FileEdit]:
    """The changes in a patch of Codex, in blocks of SEARCH and REPLACE, or in a unified diff.

    Args:
        path: of the file, for a form that does not name it.
    """
    if re.search(r"^\*\*\* (?:Add|Update|Delete) File: ", text, re.MULTILINE):
        return list(_by_codex_patch(text))
    blocks = list(_search_blocks(text))
    if blocks:
        return [replaced(path, _LINE_NUMBERS.sub("", old), new) for old, new in blocks]
    if re.search(r"^@@ -\d", text, re.MULTILINE):
        return list(_by_unified_diff(text, path))
    return []


def _search_blocks(text: str) -> Iterator[tuple[str, str]]:
    """The texts of SEARCH and REPLACE in each whole block."""
    old = list[str]()
    new = list[str]()
    part = list[str]()
    for line in text.splitlines(keepends=True):
        if re.match(r"[-<]{5,} *SEARCH", line):
            old = []
            new = []
            part = old
        elif part is old and re.match(r"={5,}\s*\Z", line):
            part = new
        elif part is new and re.match(r"[+>]{5,} *REPLACE", line):
            yield "".join(old), "".join(new)
            part = []
        else:
            part.append(line)


def _by_codex_patch(text: str) -> Iterator[FileEdit]:
    edit: FileEdit | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "*** End Patch"]:
        header = _FILE.fullmatch(line.rstrip())
        if header is None and not line.startswith("*** End Patch"):
            lines.append(line)
            continue
        if edit is not None:
            yield _with_lines(edit, lines)
        edit = None
        lines = []
        if header is not None:
            edit = FileEdit(header[2] or header[3], is_whole=header[1] == "Add")


def _with_lines(edit: FileEdit, lines: Sequence[str]) -> FileEdit:
    """An edit with the lines of a hunk or several that begin with + and -."""
    return replace(edit, added=_marked(lines, "+"), removed=_marked(lines, "-"))


def _marked(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    other = "-" if sign == "+" else "+"
    pieces = list[list[str]]()
    follows = False
    for line in lines:
        if line.startswith(sign):
            if not follows:
                pieces.append([])
            pieces[-1].append(line[1:])
            follows = True
        elif not line.startswith(other):
            follows = False
    return tuple("\n".join(piece) for piece in pieces)


_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def _by_unified_diff(text: str, path: str) -> Iterator[FileEdit]:
    """The files of a unified diff; a hunk is as long as its header says, whatever its lines are."""
    edit = FileEdit(path)
    lines = list[str]()
    old = 0
    new = 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            lines.append(line)
            old -= not line.startswith(("+", "\\"))
            new -= not line.startswith(("-", "\\"))
        elif header := _HUNK.match(line):
            old = int(header[1] or 1)
            new = int(header[2] or 1)
            lines.append("")  # between hunks
        elif named := re.match(r"(---|\+\+\+) (\S[^\t]*)", line):
            if named[1] == "---" and (lines or edit.path != path):
                yield _with_lines(edit, lines)
                edit = FileEdit(path)
                lines = []
            if (name := _without_prefix(named[2].strip())) != "/dev/null":
                edit = replace(edit, path=name)
            elif named[1] == "---":
                edit = replace(edit, is_whole=True)
    yield _with_lines(edit, lines)


def _without_prefix(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name
