"""The changes of files by shell commands: by their redirections, and by the programs they run.

For example:

    rm -r build           ->  FileEdit("build", is_folder=True)
    echo "x = 2" > a.py   ->  FileEdit("a.py", added=("x = 2",), is_whole=True)
    sed -i s/1/2/ a.py    ->  FileEdit("a.py", is_shown=False)
"""

import posixpath
import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.commands.shell_commands import ShellCommand
from holdfast.measures.agent_acts.edits.file_edits import FileEdit, hidden_edit
from holdfast.measures.agent_acts.edits.output_files import (
    edits_in_place,
    files_written_by,
    folders_written_by,
    manifests_changed_by,
    operands_of,
)
from holdfast.measures.agent_acts.edits.patches import edits_by_patch
from holdfast.measures.agent_acts.scripts.command_output import known_output

_PATCHES = ("apply_patch", "applypatch", "patch")
_ONLY_CHECKS = frozenset(("--check", "--stat", "--numstat", "--summary", "--dry-run"))  # a patch
_MOVERS = ("rm", "unlink", "mv", "cp", "touch", "truncate", "chmod", "ln", "install")
_COPIERS = ("cp", "ln", "install")
_RECURSIVE = re.compile("-[a-zA-Z]*[rR]|--recursive")  # "-rf"


def edits_by_command(command: ShellCommand) -> list[FileEdit]:
    """Returns the changes of files by a shell command: by its redirections and its program."""
    if command.is_elsewhere:
        return [hidden_edit(path) for path in command.writes]
    words = command.arguments
    if words[0] in _PATCHES or words[:2] == ("git", "apply"):
        return _edits_by_patch_program(words, command.input)
    if words[:2] == ("git", "am") or _edits_unnamed_files(command):
        return [hidden_edit("")]
    return [
        *command.edits,
        *_edits_by_redirection(command),
        *_edits_by_program(words, command.input),
    ]


def _edits_by_patch_program(words: Sequence[str], from_input: str | None) -> list[FileEdit]:
    """Returns the edits of `patch`, `git apply` or `apply_patch`.

    The patch is in the input or in an argument.
    """
    if not _ONLY_CHECKS.isdisjoint(words):
        return []
    patch = from_input
    if patch is None:
        patch = next((word for word in operands_of(words) if "\n" in word), "")
    return edits_by_patch(patch) or [hidden_edit("")]


def _edits_unnamed_files(command: ShellCommand) -> bool:
    """Whether a command edits files in place that `xargs` names."""
    has_xargs = any(reading.words[0] == "xargs" for reading in command.readings)
    return has_xargs and edits_in_place(command.innermost)


def _edits_by_redirection(command: ShellCommand) -> list[FileEdit]:
    """Returns the edits of the files that the output of a command, or of its group, goes to."""
    output = command.group_output
    if not command.is_in_group:
        output = known_output(command.arguments, command.input)
    return [_output_edit(path, output, appends=command.appends) for path in command.writes]


def _output_edit(path: str, text: str | None, *, appends: bool) -> FileEdit:
    """Returns the change of a file that output goes to; None for a text that is not known."""
    added = () if text is None else (text,)
    return FileEdit(path, added, is_whole=not appends, is_shown=text is not None)


def _edits_by_program(words: Sequence[str], from_input: str | None) -> list[FileEdit]:
    """Returns the edits of the files that a program changes by its arguments."""
    if words[0] == "tee":
        appends = not {"-a", "--append"}.isdisjoint(words)
        return [_output_edit(path, from_input, appends=appends) for path in operands_of(words)]
    if words[0] in _MOVERS or words[:2] in (("git", "mv"), ("git", "rm")):
        return _edits_by_mover(words)
    is_git = words[0] == "git"
    takes_back = _takes_back(words)
    edits = [
        FileEdit(
            path,
            is_shown=False,
            takes_back=takes_back,
            is_folder=is_git and "." not in posixpath.basename(path),
        )
        for path in files_written_by(words)
    ]
    edits += [FileEdit(path, is_folder=True) for path in folders_written_by(words)]
    edits += [FileEdit(path) for path in manifests_changed_by(words)]
    return edits


def _edits_by_mover(words: Sequence[str]) -> list[FileEdit]:
    """Returns the edits of a program that moves, copies or deletes files, or the like."""
    if "--cached" in words:  # of `git rm`: the file itself stays
        return []
    paths = operands_of(words)[1 if words[0] == "git" else 0 :]
    if words[0] in _COPIERS:
        paths = _copies(paths)
    return [FileEdit(path, is_folder=_may_be_folder(path, words)) for path in paths]


def _copies(paths: Sequence[str]) -> list[str]:
    """Returns the files that a copy writes: the last path, or files in it if it is a folder."""
    *sources, target = paths or ("",)
    if target.endswith("/") or len(sources) > 1:
        return [posixpath.join(target, posixpath.basename(source)) for source in sources]
    return [target]


def _may_be_folder(path: str, words: Sequence[str]) -> bool:
    """Whether a path that is moved or deleted may be a folder, which goes with all its files."""
    if {"rm", "mv"}.isdisjoint(words[:2]):
        return False
    is_recursive = any(map(_RECURSIVE.match, words))
    return is_recursive or "." not in path.rpartition("/")[2]


def _takes_back(words: Sequence[str]) -> bool:
    """Whether a command of Git undoes changes that were not committed.

    One that takes files from another commit does not.
    """
    if words[:2] == ("git", "restore"):
        return not any(re.match("-s|--source", word) for word in words)
    if words[:2] != ("git", "checkout") or "--" not in words:
        return False
    before = [word for word in words[2 : words.index("--")] if not word.startswith("-")]
    return before in ([], ["HEAD"])
