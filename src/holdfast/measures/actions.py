"""An agent's actions in a turn, in order: the commands it ran, the tools it called, and the files
that each of these changed.
"""

import fnmatch
import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Annotated, Any

from holdfast.errors import cut
from holdfast.measures.agent_tools import COMMITS, script_of
from holdfast.measures.arguments import takes
from holdfast.measures.command_readings import Command, Reading
from holdfast.measures.edit_texts import FileEdit
from holdfast.measures.file_edits import edits_by_call, edits_by_command
from holdfast.measures.patterns import compiled, matches
from holdfast.measures.shell import read_script
from holdfast.measures.turns import ToolCall

Pattern = Annotated[str, takes("a regular expression", "git push")]
Glob = Annotated[str, takes("a path with * and ?", "migrations/*", pattern=r"\S")]
Globs = Annotated[
    Glob | Sequence[Glob],
    takes("a path with * and ?, or a list of these", ["*.py", "!tests/*"], min_length=1),
]


_SHOWN = 60  # characters of a command in a reason


@dataclass(frozen=True)
class Action:
    """A command, or the call of another tool, whose command is its name and its arguments in JSON.

    Args:
        position: of its call in the turn.
    """

    command: Command
    edits: tuple[FileEdit, ...]
    position: int
    is_shell: bool

    @property
    def shown(self) -> str:
        """The command as it was run, cut short, or the name of another tool; in backticks."""
        words = self.command.words if self.is_shell else self.command.words[:1]
        return f"`{cut(' '.join(shlex.join(words).split()), _SHOWN)}`"

    def matches(self, pattern: str) -> bool:
        """Whether the command begins with a match of a regular expression."""
        return any(
            matches(rf"\A(?:{pattern})", " ".join(reading.words))
            for reading in (*self.command.readings, *self.command.around)
            if reading.suits(pattern)
        )


def actions_of(calls: Sequence[ToolCall]) -> Iterator[Action]:
    """Every command and every other call, also the commands within other commands."""
    for position, call in enumerate(calls):
        script = script_of(call)
        if not script:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            command = Command((Reading((call.name, arguments)),))
            yield Action(command, tuple(edits_by_call(call)), position, False)
        folder = ""  # where `cd` went to in the script
        for command in _read_script(script) if script else ():
            edits = tuple(_in_folder(edit, folder) for edit in edits_by_command(command))
            yield Action(command, edits, position, True)
            if command.arguments[0] == "cd" and "(" not in script:  # a subshell would keep it
                folder = _folder_after(folder, command.arguments[1:])


def _folder_after(folder: str, words: Sequence[str]) -> str:
    """The folder after a `cd`; "" if it is not known."""
    target = words[0] if len(words) == 1 else ""
    if not target or target.startswith(("-", "~")) or "$" in target or "`" in target:
        return ""
    return posixpath.normpath(posixpath.join(folder, target))


def _in_folder(edit: FileEdit, folder: str) -> FileEdit:
    """An edit with its path as seen from where the script began."""
    if not folder or not edit.path or edit.path.startswith(("/", "~", "$")):
        return edit
    return replace(edit, path=posixpath.normpath(posixpath.join(folder, edit.path)))


_read_script = lru_cache(maxsize=1024)(read_script)  # several rules read the same turns


def commands_of(calls: Sequence[ToolCall]) -> list[Command]:
    """Every shell command among the calls, also those within other commands."""
    return [action.command for action in actions_of(calls) if action.is_shell]


def edits_of(calls: Sequence[ToolCall]) -> list[FileEdit]:
    """The changes of files, in order, according to arguments, patches and shell commands."""
    return [edit for action in actions_of(calls) for edit in action.edits]


def is_commit(action: Action) -> bool:
    """Whether an action is a commit to Git, by the command or by a tool such as `git_commit`."""
    if not action.is_shell:
        return COMMITS.search(action.command.words[0]) is not None
    return action.command.arguments[:2] == ("git", "commit")


def calls_since_commit(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """The last of some calls, from the one with the last commit on; all of them if none has one."""
    for position in range(len(calls) - 1, -1, -1):  # of a long session, only its end is parsed
        if any(map(is_commit, actions_of([calls[position]]))):
            return calls[position:]
    return calls


def mentions(call: ToolCall, path: str) -> bool:
    """Whether a path occurs in the arguments of a call."""
    return any(path in str(value) for value in call.arguments.values())


def is_among(path: str, globs: Globs) -> bool:
    """Whether a path, or its end, is matched by a glob, and by none that begins with `!`."""
    listed = [globs] if isinstance(globs, str) else list(globs)
    excluded = [glob[1:] for glob in listed if glob.startswith("!")]
    included = [glob for glob in listed if not glob.startswith("!")] or ["*"]
    return _is_like(path, included) and not _is_like(path, excluded)


def touches(edit: FileEdit, globs: Globs) -> bool:
    """Whether an edit changes a file that globs match, perhaps with the folder that it is in."""
    path = edit.path.rstrip("/")
    return bool(path) and (
        is_among(path, globs) or (edit.is_folder and is_among(f"{path}/", globs))
    )


def _is_like(path: str, globs: Sequence[str]) -> bool:
    for glob in globs:
        for plain in _plain_globs(glob.removeprefix("./")):
            if fnmatch.fnmatchcase(path, plain) or fnmatch.fnmatchcase(path, f"*/{plain}"):
                return True
    return False


@cache
def _plain_globs(glob: str) -> list[str]:
    """A glob as several with nothing but `*` and `?`, which match any text, also `/`."""
    varied = re.search(r"\{([^{}]*)\}|\*\*/", glob)
    if varied is None:
        return [glob.replace("[", "[[]")]
    parts = ["", "*/"] if varied[1] is None else varied[1].split(",")
    plain: list[str] = []
    for part in parts:
        plain += _plain_globs(glob[: varied.start()] + part + glob[varied.end() :])
    return plain


def check_patterns(*patterns: Any) -> None:
    """Compiles regular expressions, to find invalid ones; skips None."""
    for pattern in patterns:
        if pattern is not None:
            compiled(pattern, "")
