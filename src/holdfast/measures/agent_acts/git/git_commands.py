"""Reads a command of Git: its subcommand, its options and the paths that it names.

cd app && git -C lib restore --staged a.py
-> GitCommand("restore", folder="app/lib"), whose flags are {"--staged"} and whose paths are
   ["app/lib/a.py"]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.commands.command_options import ParsedOptions, options_of
from holdfast.measures.agent_acts.git.pathspecs import folder_of, operands_in

# flags of the commands that stage files, and their letters
_FLAGS = {
    "--all": "A",
    "--update": "u",
    "--patch": "p",
    "--staged": "S",
    "--worktree": "W",
    "--intent-to-add": "N",
    "--dry-run": "n",
}
_VALUED_OPTIONS = {"--pathspec-from-file": "", "--source": "s", "--cacheinfo": ""}
_VALUED_OPTIONS_OF_STASH = {"--message": "m", "--pathspec-from-file": ""}
ASKS_FOR_EACH_CHANGE = frozenset(("--patch", "--interactive"))


@dataclass(frozen=True)
class GitCommand:
    """A command of Git.

    Args:
        name: the subcommand, such as "add".
        words: the words after it.
        folder: the folder that it runs in, relative to that of the script.
        options: its options and operands.
    """

    name: str
    words: Sequence[str]
    folder: str
    options: ParsedOptions

    @property
    def flags(self) -> frozenset[str]:
        """Its options without a value, by their long names."""
        return self.options.flags

    @property
    def operands(self) -> list[str]:
        """The words that are no options, as they were written."""
        return list(self.options.rest)

    @property
    def paths(self) -> list[str]:
        """Its operands as paths, relative to the folder of the script."""
        return self.resolve(self.options.rest)

    def resolve(self, paths: Iterable[str]) -> list[str]:
        """Returns paths relative to the folder of the script."""
        return list(operands_in(self.folder, paths))

    @property
    def before_dashes(self) -> list[str] | None:
        """The operands before `--`, which are no paths; None without it."""
        if "--" not in self.words:
            return None
        return [word for word in self.words[: self.words.index("--")] if not word.startswith("-")]

    @property
    def asks_for_each_change(self) -> bool:
        """Whether the user chooses among the changes, as with `--patch`."""
        return bool(self.flags & ASKS_FOR_EACH_CHANGE)


def git_command_of(action: Action) -> GitCommand | None:
    """Returns the command of Git that an action is; None for any other action."""
    words = action.command.arguments if action.is_shell else ()
    if words[:1] != ("git",) or len(words) < 2:
        return None
    name, *rest = words[1:]
    valued = _VALUED_OPTIONS_OF_STASH if name == "stash" else _VALUED_OPTIONS
    return GitCommand(name, rest, folder_of(action), options_of(rest, valued, _FLAGS))
