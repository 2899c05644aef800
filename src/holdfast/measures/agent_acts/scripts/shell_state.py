"""The state of a shell while a script is read: its variables, functions and aliases, and the files
that the script wrote.

    cd app; echo 'git push' > s.sh; f=s.sh
    -> folder "app", files {"app/s.sh": "git push"}, variables {"f": "s.sh"}
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.path_names import find_path

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_INNER_SCRIPTS = 300  # that are read for one script: functions may call functions
_CHARACTERS_OF_INNER_SCRIPT = 100  # a longer one counts as several
_MAX_DEPTH = 8  # of scripts within scripts, as in bash -c "bash -c ..."


@dataclass
class InnerScriptBudget:
    """How many more scripts may be read within a script; shared by all of these."""

    left: int = _MAX_INNER_SCRIPTS


@dataclass
class ShellState:
    """The state of the shell at a point of a script.

    Args:
        source: the script, as bytes, at which the nodes of its syntax tree point.
        depth: how many other scripts the script is inside.
        variables: the values of variables and, as "1" and so on, of arguments.
        lists: arrays, the values that a loop goes through, and as "@" all arguments of the function
            or the script.
        functions: the bodies of functions.
        aliases: the aliases of the shell.
        git_aliases: the aliases of Git.
        files: the texts of files that were written before, by the path of each.
        folder: the working folder; relative to the script's first, if that is not known.
        returns: whether `return` ends the script: that of a function, a file that is sourced, or a
            shell other than Bash, which goes on.
        budget: how many more scripts may be read inside this one.
    """

    source: bytes = b""
    depth: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    git_aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    returns: bool = False
    budget: InnerScriptBudget = field(default_factory=InnerScriptBudget)

    def text(self, node: "Node") -> str:
        """Returns the text of a node as it is in the script."""
        return self.text_between(node.start_byte, node.end_byte)

    def text_between(self, start: int, end: int) -> str:
        """Returns the text between two bytes of the script."""
        return self.source[start:end].decode("utf-8", "replace")

    def read_file(self, name: str) -> str | None:
        """Returns the text of a file that was written before; None if it is not known."""
        path = find_path(posixpath.join(self.folder, name), self.files)
        return None if path is None else self.files[path]

    def write_file(self, name: str, text: str | None) -> None:
        """Takes note of the text of a file, which is None if it is not known."""
        whole = posixpath.join(self.folder, name)
        path = find_path(whole, self.files)
        if path is not None:
            del self.files[path]
        if text is not None:
            self.files[path or whole] = text

    def take_from_budget(self, script: str) -> bool:
        """Counts a script that begins in this state; False if it is too deep, or one too many."""
        if self.depth > _MAX_DEPTH or self.budget.left <= 0:
            return False
        self.budget.left -= 1 + len(script) // _CHARACTERS_OF_INNER_SCRIPT
        return True

    def inside(
        self,
        arguments: Sequence[str] | None = None,
        *,
        without: str = "",
        is_new: bool = False,
        returns: bool | None = None,
    ) -> "ShellState":
        """Returns the state in which a script within this one begins.

        Args:
            arguments: of the function or the script; None for a script that has those around it.
            without: a function or an alias that means something else inside.
            is_new: whether another shell runs the script, which has the functions only.
            returns: whether `return` ends the script; None for one in which it does what it does
                around it.
        """
        variables = {} if is_new else dict(self.variables)
        lists = {} if is_new else dict(self.lists)
        if arguments is not None:
            lists["@"] = [*arguments]
            variables["@"] = variables["*"] = " ".join(arguments)
            values = [*arguments, *[""] * 9][:9]
            variables.update((str(number), value) for number, value in enumerate(values, 1))
        functions = {name: body for name, body in self.functions.items() if name != without}
        aliases = {name: text for name, text in self.aliases.items() if name != without}
        return replace(
            self,
            depth=self.depth + 1,
            variables=variables,
            lists=lists,
            functions=functions,
            aliases={} if is_new else aliases,
            returns=self.returns if returns is None else returns,
        )

    def take_over(self, inner: "ShellState") -> None:
        """Takes note of what a script defined that ran in the same shell."""
        self.variables |= inner.variables
        self.lists |= inner.lists
        self.functions |= inner.functions
        self.aliases |= inner.aliases
