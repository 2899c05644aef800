"""The changes that a tool call or a shell command makes to files, as far as a log shows them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from holdfast.measures.shell import Command, shown_output
from holdfast.measures.turns import ToolCall


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


# whole words of a tool's name, as in read_file, ReadFile and mcp__files__read
_READERS = re.compile(
    r"(?:\b|_|(?<=[a-z])(?=[A-Z]))(?i:read|view|open|list|ls|glob|grep|search|find|fetch|get|cat)"
    r"(?![a-z])"
)
_REPLACES = re.compile(r"search_(?:and_)?replace", re.IGNORECASE)  # which is no search
_INSERTS = re.compile(r"insert|append", re.IGNORECASE)
_DELETES = re.compile(r"delete|remove|rename|move", re.IGNORECASE)

# of the tool str_replace_based_edit_tool, which calls its operation a command
EDITOR_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
# Arguments of the tools of coding agents, as `_named` writes them: file_path is filepath.
_PATHS = (
    *("filepath", "path", "filename", "notebookpath", "targetfile", "relativepath"),
    *("absolutepath", "relativeworkspacepath", "file"),
)
_WHOLE = ("content", "contents", "filetext", "filecontent", "newsource")
_OLD = ("oldstring", "oldstr", "oldtext", "oldcontent", "search", "find", "targetcontent")
_NEW = (
    *("newstring", "newstr", "newtext", "newcontent", "replace", "replacement"),
    *("replacementcontent", "inserttext", "newsource"),
)
_SEVERAL = ("edits", "replacements", "replacementchunks", "operations")
_PATCHES = ("diff", "patch", "patchtext", "input")


def edits_by_call(call: ToolCall) -> list[FileEdit]:
    """The changes by a tool that edits files, according to its arguments."""
    operation = call.arguments.get("command")
    reads = _READERS.search(call.name) and not _REPLACES.search(call.name)
    if operation == "view" or (reads and operation not in EDITOR_COMMANDS):
        return []
    return _edits_among(call.name, call.arguments, "")


def _named(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {re.sub(r"[_-]", "", str(key)).lower(): value for key, value in arguments.items()}


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    texts = (fields.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str)), None)


def _edits_among(tool: str, arguments: Mapping[str, Any], path: str) -> list[FileEdit]:
    fields = _named(arguments)
    if "source" in fields and "destination" in fields and _DELETES.search(tool):
        return [FileEdit(str(fields[name])) for name in ("source", "destination")]
    path = _first_text(fields, _PATHS) or path
    lists = (fields.get(name) for name in _SEVERAL)
    several = next((value for value in lists if isinstance(value, list) and value), None)
    if several is not None and all(isinstance(entry, Mapping) for entry in several):
        return [edit for entry in several for edit in _edits_among(tool, entry, path)]
    texts = (fields.get(name) for name in _PATCHES) if path else fields.values()
    patches = [text for text in texts if isinstance(text, str)]
    edits = [edit for text in patches for edit in edits_by_patch(text, path)]
    if edits or not path:
        return edits
    if str(fields.get("editmode") or fields.get("kind")) == "delete" or _DELETES.search(tool):
        return [FileEdit(path)]
    old, new, whole = (_first_text(fields, names) for names in (_OLD, _NEW, _WHOLE))
    inserts = _INSERTS.search(tool) or fields.get("command") == "insert"
    if inserts or "newsource" in fields:
        text = new if new is not None else whole
        return [FileEdit(path, is_shown=False) if text is None else FileEdit(path, (text,))]
    if old is not None or new is not None:
        return [replaced(path, old or "", new or "")]
    return [FileEdit(path, is_shown=False) if whole is None else written(path, whole)]


def written(path: str, text: str) -> FileEdit:
    """A file that is written as a whole."""
    return FileEdit(path, (text,), is_whole=True)


def replaced(path: str, old: str, new: str) -> FileEdit:
    """A text in place of another: the lines that both have are neither added nor removed."""
    if not old:
        return FileEdit(path, (new,) if new else ())
    before, after = old.splitlines(), new.splitlines()
    return FileEdit(path, _pieces(after, before), _pieces(before, after))


def _pieces(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The lines that are not among others, where consecutive ones are one text."""
    left, pieces, is_new = Counter(others), list[list[str]](), False
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
    old, new, part = list[str](), list[str](), list[str]()
    for line in text.splitlines(keepends=True):
        if re.match(r"[-<]{5,} *SEARCH", line):
            old, new = [], []
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
        edit, lines = None, []
        if header is not None:
            edit = FileEdit(header[2] or header[3], is_whole=header[1] == "Add")


def _with_lines(edit: FileEdit, lines: Sequence[str]) -> FileEdit:
    """An edit with the lines of a hunk or several that begin with + and -."""
    return replace(edit, added=_marked(lines, "+"), removed=_marked(lines, "-"))


def _marked(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    other = "-" if sign == "+" else "+"
    pieces, follows = list[list[str]](), False
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
    edit, lines, old, new = FileEdit(path), list[str](), 0, 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            lines.append(line)
            old -= not line.startswith(("+", "\\"))
            new -= not line.startswith(("-", "\\"))
        elif header := _HUNK.match(line):
            old, new = int(header[1] or 1), int(header[2] or 1)
            lines.append("")  # between hunks
        elif named := re.match(r"(---|\+\+\+) (\S[^\t]*)", line):
            if named[1] == "---" and (lines or edit.path != path):
                yield _with_lines(edit, lines)
                edit, lines = FileEdit(path), []
            if (name := _without_prefix(named[2].strip())) != "/dev/null":
                edit = replace(edit, path=name)
            elif named[1] == "---":
                edit = replace(edit, is_whole=True)
    yield _with_lines(edit, lines)


def _without_prefix(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name


_MOVERS = ("rm", "mv", "cp", "touch", "truncate", "chmod", "ln", "install")
_CHANGED_IN_PLACE = ("sed", "perl")
# programs that write to the file that an option names
_OUTPUT_OPTIONS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "pandoc": ("-o", "--output"),
    "shuf": ("-o", "--output"),
}


def edits_by_command(command: Command) -> list[FileEdit]:
    """The changes by a shell command: its redirections, and programs that write files."""
    words = command.arguments
    program, rest = words[0], [word for word in words[1:] if not word.startswith("-")]
    text = command.input
    if program in ("apply_patch", "applypatch", "patch") or words[:2] == ("git", "apply"):
        patch = text if text is not None else next((word for word in rest if "\n" in word), None)
        edits = edits_by_patch(patch) if patch is not None else []
        return edits or [FileEdit("", is_shown=False)]
    shown = shown_output(words, text)
    shown = None if command.is_in_group else shown
    edits = [_to_file(path, shown, command.appends) for path in command.writes]
    options = [word for word in words[1:] if word.startswith("-")]
    if program == "tee":
        edits += [_to_file(path, text, _is_among(("-a", "--append"), options)) for path in rest]
    elif program == "sponge":
        edits += [FileEdit(path, is_shown=False) for path in rest]
    elif program == "dd":
        edits += [FileEdit(word[3:], is_shown=False) for word in rest if word.startswith("of=")]
    elif program in _OUTPUT_OPTIONS:
        paths = _named_outputs(words, *_OUTPUT_OPTIONS[program])
        edits += [FileEdit(path, is_shown=False) for path in paths]
    elif program in _MOVERS or (program == "git" and words[1:2] in (("mv",), ("rm",))):
        paths = rest[-1:] if program in ("cp", "ln", "install") else rest[program == "git" :]
        edits += [FileEdit(path, is_folder=_may_be_folder(path, words)) for path in paths]
    elif words[:2] == ("git", "restore") and not _is_among(("--staged", "-S"), options):
        edits += [FileEdit(path, is_shown=False) for path in rest[1:]]
    elif words[:2] == ("git", "checkout") and "--" in words:
        named = words[words.index("--") + 1 :]
        edits += [FileEdit(path, is_shown=False) for path in named]
    elif program in _CHANGED_IN_PLACE and any(
        re.match("-[a-z]*i|--in-place", option) for option in options
    ):
        edits += [FileEdit(path, is_shown=False) for path in _changed_in_place(words)]
    return edits


def _named_outputs(words: Sequence[str], short: str, long: str) -> list[str]:
    """The files that an option names, as `-o F`, `-oF`, `--output F` or `--output=F`."""
    paths = [after for word, after in pairwise(words) if word in (short, long)]
    paths += [word[len(short) :] for word in words if re.match(f"{short}[^-]", word)]
    paths += [word.partition("=")[2] for word in words if word.startswith(f"{long}=")]
    return [path for path in paths if path not in ("", "-", "/dev/null")]


def _may_be_folder(path: str, words: Sequence[str]) -> bool:
    """Whether a path that is moved or deleted may be that of a folder, with all that is in it."""
    if not {"rm", "mv"} & {*words[:2]} or "--cached" in words:
        return False
    recursive = any(re.match("-[a-zA-Z]*[rR]|--recursive", word) for word in words)
    return recursive or "." not in path.rpartition("/")[2]


def _changed_in_place(words: Sequence[str]) -> list[str]:
    """The files among the arguments of sed and perl, which follow their script."""
    paths, has_script, is_script = list[str](), False, False
    for word in words[1:]:
        if is_script:
            has_script, is_script = True, False
        elif word.startswith("-"):
            is_script = re.fullmatch(r"-[a-zA-Z0-9]*[ef]|--expression|--file", word) is not None
        elif word:
            paths.append(word)
    return paths if has_script else paths[1:]


def _is_among(names: Sequence[str], options: Sequence[str]) -> bool:
    return any(option in names for option in options)


def _to_file(path: str, text: str | None, appends: bool) -> FileEdit:
    added = () if text is None else (text,)
    return FileEdit(path, added, is_whole=not appends, is_shown=text is not None)
