"""The changes that a tool call or a shell command makes to files, as far as a log shows them."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from holdfast.measures.agent_tools import (
    DELETES,
    EDIT_LISTS,
    EDITOR_COMMANDS,
    INSERTS,
    NEW_TEXTS,
    OLD_TEXTS,
    PATCHES,
    PATHS,
    READS,
    REPLACES,
    WHOLE_TEXTS,
    fields_of,
    first_text,
)
from holdfast.measures.command_readings import Command
from holdfast.measures.edit_texts import (
    FileEdit,
    edits_by_patch,
    replacement_edit,
    whole_file_edit,
)
from holdfast.measures.shell import known_output
from holdfast.measures.turns import ToolCall

_MOVERS = ("rm", "unlink", "mv", "cp", "touch", "truncate", "chmod", "ln", "install")
_IN_PLACE_EDITORS = ("sed", "perl")
_IN_PLACE = re.compile("-[a-z]*i|--in-place")
# programs that write to the file that an option names
_OUTPUT_OPTIONS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "pandoc": ("-o", "--output"),
    "shuf": ("-o", "--output"),
}


def edits_by_call(call: ToolCall) -> list[FileEdit]:
    """Returns the changes of files by a tool, according to its arguments."""
    operation = call.arguments.get("command")
    reads = READS.search(call.name) and not REPLACES.search(call.name)
    if operation == "view" or (reads and operation not in EDITOR_COMMANDS):
        return []
    return _edits_among(call.name, call.arguments, "")


def _edits_among(tool: str, arguments: Mapping[str, Any], path: str) -> list[FileEdit]:
    """Returns the changes that arguments describe, which may be a list of edits.

    Args:
        path: of the file, for arguments that do not name it.
    """
    fields = fields_of(arguments)
    if "source" in fields and "destination" in fields and DELETES.search(tool):
        return [FileEdit(str(fields[name])) for name in ("source", "destination")]
    path = first_text(fields, PATHS) or path
    lists = (fields.get(name) for name in EDIT_LISTS)
    entries = next((value for value in lists if isinstance(value, list) and value), ())
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        return [edit for entry in entries for edit in _edits_among(tool, entry, path)]
    texts = (fields.get(name) for name in PATCHES) if path else fields.values()
    patches = [text for text in texts if isinstance(text, str)]
    edits = [edit for text in patches for edit in edits_by_patch(text, path)]
    if edits or not path:
        return edits
    if str(fields.get("editmode") or fields.get("kind")) == "delete" or DELETES.search(tool):
        return [FileEdit(path)]
    return [_edit_of_texts(tool, fields, path)]


def _edit_of_texts(tool: str, fields: Mapping[str, Any], path: str) -> FileEdit:
    """Returns the change of a file by a call that has its old and new text, or the whole text."""
    old = first_text(fields, OLD_TEXTS)
    new = first_text(fields, NEW_TEXTS)
    whole = first_text(fields, WHOLE_TEXTS)
    if INSERTS.search(tool) or fields.get("command") == "insert" or "newsource" in fields:
        text = new if new is not None else whole
        return _unknown_edit(path) if text is None else FileEdit(path, (text,))
    if old is not None or new is not None:
        return replacement_edit(path, old or "", new or "")
    return _unknown_edit(path) if whole is None else whole_file_edit(path, whole)


def _unknown_edit(path: str) -> FileEdit:
    """Returns a change whose text the log does not show."""
    return FileEdit(path, is_shown=False)


def edits_by_command(command: Command) -> list[FileEdit]:
    """Returns the changes of files by a shell command: by its redirections and its program."""
    if command.is_elsewhere:
        return [_unknown_edit(path) for path in command.writes]
    words = command.arguments
    program = words[0]
    operands = [word for word in words[1:] if not word.startswith("-")]
    options = [word for word in words[1:] if word.startswith("-")]
    if program in ("apply_patch", "applypatch", "patch") or words[:2] == ("git", "apply"):
        patch = command.input
        if patch is None:
            patch = next((word for word in operands if "\n" in word), "")
        return edits_by_patch(patch) or [_unknown_edit("")]
    output = None if command.is_in_group else known_output(words, command.input)
    edits = [_output_edit(path, output, appends=command.appends) for path in command.writes]
    if program == "tee":
        appends = _is_among(("-a", "--append"), options)
        edits += [_output_edit(path, command.input, appends=appends) for path in operands]
    elif program in _MOVERS or words[:2] in (("git", "mv"), ("git", "rm")):
        paths = operands[1:] if program == "git" else operands
        if program in ("cp", "ln", "install"):
            paths = paths[-1:]
        edits += [FileEdit(path, is_folder=_may_be_folder(path, words)) for path in paths]
    else:
        takes_back = _takes_back(words)
        outputs = _outputs(words, operands, options)
        edits += [FileEdit(path, is_shown=False, takes_back=takes_back) for path in outputs]
    return edits


def _takes_back(words: Sequence[str]) -> bool:
    """Whether a command of Git undoes changes of files that were not committed, and takes no file
    from another commit.
    """
    if words[:2] == ("git", "restore"):
        return not any(re.match("-s|--source", word) for word in words)
    if words[:2] != ("git", "checkout") or "--" not in words:
        return False
    before = [word for word in words[2 : words.index("--")] if not word.startswith("-")]
    return before in ([], ["HEAD"])


def _outputs(
    words: Sequence[str], operands: Sequence[str], options: Sequence[str]
) -> Sequence[str]:
    """Returns the files that a program writes itself, whose text the log does not show."""
    program = words[0]
    if program == "sponge":
        return operands
    if program == "dd":
        return [word[3:] for word in operands if word.startswith("of=")]
    if program in _OUTPUT_OPTIONS:
        return _named_outputs(words, *_OUTPUT_OPTIONS[program])
    if words[:2] == ("git", "restore") and not _is_among(("--staged", "-S"), options):
        return operands[1:]
    if words[:2] == ("git", "checkout") and "--" in words:
        return words[words.index("--") + 1 :]
    if program in _IN_PLACE_EDITORS and any(map(_IN_PLACE.match, options)):
        return _files_after_script(words)
    return ()


def _named_outputs(words: Sequence[str], short: str, long: str) -> list[str]:
    """Returns the files that an option names, as `-o F`, `-oF`, `--output F` or `--output=F`."""
    paths = [after for word, after in pairwise(words) if word in (short, long)]
    paths += [word[len(short) :] for word in words if re.match(f"{short}[^-]", word)]
    paths += [word.partition("=")[2] for word in words if word.startswith(f"{long}=")]
    return [path for path in paths if path not in ("", "-", "/dev/null")]


def _may_be_folder(path: str, words: Sequence[str]) -> bool:
    """Whether a path that is moved or deleted may be a folder, which goes with all its files."""
    if not {"rm", "mv"} & {*words[:2]} or "--cached" in words:
        return False
    recursive = any(re.match("-[a-zA-Z]*[rR]|--recursive", word) for word in words)
    return recursive or "." not in path.rpartition("/")[2]


def _files_after_script(words: Sequence[str]) -> list[str]:
    """Returns the files among the arguments of sed and perl.

    The first argument is the script, unless an option such as `-e` has it.
    """
    paths: list[str] = []
    has_script = False
    is_script = False  # whether this word is the value of an option such as `-e`
    for word in words[1:]:
        if is_script:
            has_script = True
            is_script = False
        elif word.startswith("-"):
            is_script = re.fullmatch(r"-[a-zA-Z0-9]*[ef]|--expression|--file", word) is not None
        elif word:
            paths.append(word)
    return paths if has_script else paths[1:]


def _is_among(names: Sequence[str], options: Sequence[str]) -> bool:
    return any(option in names for option in options)


def _output_edit(path: str, text: str | None, *, appends: bool) -> FileEdit:
    """Returns the change of a file that output goes to; None for a text that is not known."""
    added = () if text is None else (text,)
    return FileEdit(path, added, is_whole=not appends, is_shown=text is not None)
