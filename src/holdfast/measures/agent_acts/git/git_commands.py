"""Reads a command of Git: its subcommand, its options and the paths that it names.

For example:

    cd app && git -C lib restore --staged a.py
    -> GitCommand("restore", folder="app/lib"), whose flags are {"--staged"} and whose paths are
       ["app/lib/a.py"]
"""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.commands.command_options import ParsedOptions, options_of
from holdfast.measures.agent_acts.git.pathspecs import operands_in
from holdfast.measures.agent_acts.written_texts import WrittenTexts

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


def listed_paths(options: ParsedOptions, action: Action, texts: WrittenTexts) -> list[str] | None:
    """Returns the paths in the file of `--pathspec-from-file`.

    [] without this option, and None if the log does not show them.
    """
    file = options.last("--pathspec-from-file")
    if file is None:
        return []
    text = action.command.input if file in ("-", "/dev/stdin") else texts.of(file)
    if text is None:
        return None
    separator = "\0" if "--pathspec-file-nul" in options.flags else "\n"
    return [path.strip('"') for path in text.split(separator) if path.strip()]


def folder_of(action: Action) -> str:
    """Returns the folder that a command of Git runs in, as far as `cd` and `git -C` tell it."""
    for reading in action.command.readings:
        words = reading.words
        has_folder = words[:2] == ("git", "-C") and len(words) > 2
        if has_folder and not words[2].startswith(("/", "~", "$")):
            return posixpath.join(action.folder, words[2])
    return action.folder
