"""One thing that a coding agent did: a shell command that it ran, or another tool that it called.

For example:

    ToolCall("Bash", {"command": "sudo git push"})
    -> Action(`sudo git push`, edits=(), position=0), which matches the pattern "git push"
    ToolCall("Write", {"file_path": "a.py", "content": "x = 1"})
    -> Action(`Write`, edits=(FileEdit("a.py", ("x = 1",), is_whole=True),), position=0)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from holdfast.errors import cut
from holdfast.measures.agent_acts.commands.shell_commands import Reading, ShellCommand
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.git.git_branches import pushed_branches_in, pushes_current_branch
from holdfast.measures.arguments import takes
from holdfast.measures.patterns import compile_regex, matches
from holdfast.measures.turns import ToolCall

Pattern = Annotated[str, takes("a regular expression", "git push")]
_MAX_LABEL_CHARACTERS = 60


def check_patterns(*patterns: str | None) -> None:
    """Refuses a regular expression that is not valid; skips None."""
    for pattern in patterns:
        if pattern is not None:
            compile_regex(pattern, "")


@dataclass(frozen=True)
class Action:
    """A shell command, or the call of another tool.

    Args:
        command: for another tool, a command of two words, which rules match: the tool's name, and
            its arguments in JSON.
        edits: the changes of files.
        position: the number of the call in the turn, from 0.
        tool_call: the call of another tool; None for a shell command.
        folder: the working folder, relative to the one that the script began in.
        side_effects: changes of files that are no edits: by a formatter, or by what Git brings in.
        result: what its call returned, if the log shows it.
        branch: the branch of Git that is checked out before it; "" if the log does not show it.
    """

    command: ShellCommand
    edits: tuple[FileEdit, ...]
    position: int
    tool_call: ToolCall | None = None
    folder: str = ""
    side_effects: tuple[FileEdit, ...] = ()
    result: str = ""
    branch: str = ""

    @property
    def is_shell(self) -> bool:
        """Whether it is a shell command."""
        return self.tool_call is None

    @property
    def label(self) -> str:
        """The start of the command as the agent wrote it, or the name of the other tool."""
        text = self.command.written if self.is_shell else self.command.words[0]
        return f"`{cut(' '.join(text.split()), _MAX_LABEL_CHARACTERS)}`"

    def matches(self, pattern: str) -> bool:
        """Whether the command begins with a match of a regular expression."""
        return bool(self.program_matching(pattern))

    def program_matching(self, pattern: str) -> str:
        """Returns the program of the reading that begins with a match; "" if none does."""
        if self.is_shell and _only_shows(self.command.arguments, pattern):
            return ""
        readings = (*self.command.readings, *self.command.around, *self._push_with_branches())
        for reading in readings:
            if reading.suits(pattern) and matches(rf"\A(?:{pattern})", reading.line):
                return reading.words[0]
        return ""

    def _push_with_branches(self) -> Iterator[Reading]:
        """Yields `git push origin main` for a `git push` that leaves the branch to Git.

        The branch is the one that the output or the log names.
        """
        words = self.command.arguments
        if not (self.is_shell and pushes_current_branch(words)):
            return
        names_remote = any(not word.startswith("-") for word in words[2:])
        remote = () if names_remote else ("origin",)
        branches = pushed_branches_in(self.result) or [self.branch]
        yield Reading((*words, *remote, *filter(None, branches)))


# programs that change nothing if they are called with `--dry-run`
_HAVE_DRY_RUNS = frozenset("git npm pnpm yarn bun cargo kubectl helm poetry uv twine".split())
_DRY_RUN = re.compile(r"--dry-run(?:=(?!none|false).*)?", re.DOTALL)  # not `--dry-run=none`


def _only_shows(words: Sequence[str], pattern: str) -> bool:
    """Whether a command only says what it would do: `git push --help`, `git push --dry-run`."""
    if words[-1] == "--help" and "--" not in words and "help" not in pattern:
        return True
    is_dry = any(map(_DRY_RUN.fullmatch, words))
    return is_dry and words[0] in _HAVE_DRY_RUNS and "dry" not in pattern
