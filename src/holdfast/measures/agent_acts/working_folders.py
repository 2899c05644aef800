"""The folders that the commands of a script run in, and the paths of files from there.

For example:

    cd app; rm a.py; (cd lib; rm b.py); rm c.py  ->  app/a.py, app/lib/b.py, app/c.py
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.measures.agent_acts.agent_tools import working_folder_of
from holdfast.measures.agent_acts.commands.shell_commands import ShellCommand
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.path_names import DRIVE, is_absolute
from holdfast.measures.turns import ToolCall

_GO_TO_FOLDER = ("cd", "pushd", "Set-Location", "Push-Location", "chdir")
_WORKTREE = re.compile(r"/.*/\.?worktrees/[^/]+(?=/|\Z)")  # /w/app/.worktrees/fix
_UNKNOWN_FOLDER = re.compile(r"[-~]|.*[$`]", re.DOTALL)  # `cd -`, `cd ~/a`, `cd "$A"`


class WorkingFolders:
    """The working folder of each shell of a script, relative to the one that the script began in.

    A subshell begins in the folder of the shell around it, whose folder it leaves as it is.
    """

    def __init__(self, start: str) -> None:
        self._folders: dict[tuple[int, ...], str] = {(): start}
        self._left: list[str] = []  # the folders that `popd` goes back to

    def at(self, command: ShellCommand) -> str:
        """Returns the folder that a command runs in; "" if it is not known."""
        shell = command.subshells
        while shell not in self._folders:
            shell = shell[:-1]
        return self._folders[shell]

    def run(self, command: ShellCommand) -> None:
        """Changes the folder if a command does so."""
        program, *operands = command.arguments
        folder = self.at(command)
        if command.is_elsewhere or program not in (*_GO_TO_FOLDER, "popd"):
            return
        if program == "pushd":
            self._left.append(folder)
        if program != "popd":
            folder = _folder_after(folder, operands)
        elif self._left:
            folder = self._left.pop()
        self._folders[command.subshells] = folder


def _folder_after(folder: str, operands: Sequence[str]) -> str:
    """Returns the folder that a `cd` with these operands goes to; "" if it is not known."""
    target = operands[0] if len(operands) == 1 else ""
    if not target or _UNKNOWN_FOLDER.match(target):
        return ""
    return posixpath.normpath(posixpath.join(folder, target))


def base_of(call: ToolCall) -> str:
    """Returns the folder from which a session gives the paths of files at a call; "" if unknown.

    It is the one that the session began in, or the worktree or other folder that it went to.
    """
    folder = call.folder if call.folder.startswith("/") else ""
    if worktree := _WORKTREE.match(folder):
        return worktree[0]
    is_below = f"{folder}/".startswith(f"{call.first_folder.rstrip('/')}/")
    return call.first_folder if folder and is_below else folder


def start_of_script(call: ToolCall) -> str:
    """Returns the folder that the script of a call begins in, relative to `base_of` the call."""
    base = base_of(call)
    folder = posixpath.relpath(call.folder, base) if base else "."
    return posixpath.join("" if folder == "." else folder, working_folder_of(call))


def with_folder(edit: FileEdit, folder: str) -> FileEdit:
    """Returns an edit whose path begins with a folder, if it is not absolute."""
    if not folder or not edit.path or is_absolute(edit.path):
        return edit
    return replace(edit, path=posixpath.normpath(posixpath.join(folder, edit.path)))


def with_slashes(edit: FileEdit) -> FileEdit:
    """Returns an edit whose path, if it is one of Windows, is written with `/`, as in suites."""
    if "\\" not in edit.path or not (DRIVE.match(edit.path) or "/" not in edit.path):
        return edit
    return replace(edit, path=edit.path.replace("\\", "/"))
