"""A command of a script, and the ways to read it, which patterns of rules are matched with.

For example:

    sudo git -C app push > log
    -> ShellCommand(
           readings=(`sudo git -C app push > log`, `git -C app push > log`, `git push > log`),
           writes=("log",))
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from holdfast.measures.agent_acts.edits.file_edits import FileEdit

_REDIRECTION = re.compile(r"[0-9&]*[<>]")
ANY_OPTION = "-"  # stands for all options of a wrapper among the names that a reading leaves out


@dataclass(frozen=True)
class Reading:
    """A way to read a command, such as `git push` for `sudo git -C app push`.

    Args:
        words: the program and its arguments, without quotes and assignments.
        without: the wrappers, options and folders that this reading leaves out.
    """

    words: tuple[str, ...]
    without: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """The words in a row.

        Words of git and gh may be texts, such as the message of a commit. In these, the space
        before a dash becomes one that does not break, so that ` --force` is found only among the
        options. A word of another program may be a command, as in `ssh web 'rm -rf /'`.
        """
        if self.words[0] in ("git", "gh"):
            return " ".join(word.replace(" -", "\u00a0-") for word in self.words)
        return " ".join(self.words)

    def suits(self, pattern: str) -> bool:
        """Whether a pattern may be matched with this reading: it excludes nothing that is left out.

        `(?!sudo )apt` excludes sudo, which the reading without it would never have.
        """
        excluded = _exclusions_in(pattern)
        return not any(exclusion.names(name) for exclusion in excluded for name in self.without)

    def reduce_to(self, words: Sequence[str], *names: str) -> "Reading":
        """Returns the reading with these words, which leaves out these names as well."""
        return Reading(tuple(words), self.without | frozenset(names))


@dataclass(frozen=True)
class ShellCommand:
    """A command of a script.

    Args:
        readings: the command as it is written, then without one wrapper after another, outermost
            first.
        writes: the files that its output goes to.
        around: the readings of the shell whose script begins with this command, as in
            `bash -c 'git push'`.
        input: the text of its here-document or here-string; None without one.
        redirections: the last of its words, from the first redirection on.
        is_in_group: whether its files also take the output of commands before it, as in
            `(date; ls) > log`.
        group_output: the output of all of these; None if it is not known.
        is_elsewhere: whether it runs with another file system, as in `docker exec web rm a`; only
            `writes` are files here.
        subshells: the subshells and inner scripts that it runs in, outermost first, by numbers: a
            `cd` has no effect outside of them.
        source: the command as the agent wrote it; "" if it was not found by the parser.
        edits: the changes of files by the program in its words or its input, as far as its text
            shows them.
    """

    readings: tuple[Reading, ...]
    writes: tuple[str, ...] = ()
    around: tuple[Reading, ...] = ()
    input: str | None = None
    redirections: tuple[str, ...] = ()
    is_in_group: bool = False
    group_output: str | None = None
    is_elsewhere: bool = False
    subshells: tuple[int, ...] = ()
    source: str = ""
    edits: tuple[FileEdit, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command, with the values of variables and without assignments."""
        return self.readings[0].words

    @property
    def written(self) -> str:
        """The command as the agent wrote it."""
        return self.source or shlex.join(self.words)

    @property
    def innermost(self) -> tuple[str, ...]:
        """The words of the program that all wrappers run."""
        return self.readings[-1].words

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words of the innermost program without redirections."""
        words = self.innermost
        rest = words[: len(words) - len(self.redirections)]
        return rest if words[len(rest) :] == self.redirections and rest else words

    @property
    def appends(self) -> bool:
        """Whether its output is added to a file rather than written over it."""
        return any(word.endswith(">>") for word in self.redirections)

    def leaving_out(self, names: frozenset[str]) -> "ShellCommand":
        """Returns the command with readings that leave out these names as well."""
        readings = [replace(reading, without=reading.without | names) for reading in self.readings]
        return replace(self, readings=tuple(readings))


def is_redirection(word: str) -> bool:
    """Whether a word is the operator of a redirection, such as `<` or `2>`."""
    return _REDIRECTION.match(word) is not None


# --- What a pattern excludes

_PARENTHESIS_OR_LITERAL = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|[()]", re.DOTALL)
# what a regular expression may have before a `(?!...)` that excludes programs
_BEGINS_ALTERNATIVE = re.compile(r"(?:\A|[(:|)^]|\\[Ab])\Z")


@dataclass(frozen=True)
class _Exclusion:
    """The inside of a `(?!...)`, and whether it stands where a command begins."""

    pattern: str
    is_first: bool

    def names(self, name: str) -> bool:
        """Whether an option or a folder is excluded, or a program where a command begins."""
        text = re.sub(r"\\[A-Za-z]", " ", self.pattern)
        if name == ANY_OPTION:  # one that is not spelled out, as in `(?!-)` and `(?!.* -\w*n)`
            return re.search(r"(?<![\w-])-+(?![\w-])", text) is not None
        if name.startswith("-") or "/" in name:
            return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None
        is_named = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
        return self.is_first and is_named


@lru_cache(maxsize=1024)
def _exclusions_in(pattern: str) -> tuple[_Exclusion, ...]:
    """Returns what a regular expression excludes, wherever it has a `(?!...)`.

    `(?!sudo )apt` -> _Exclusion("sudo ", is_first=True)
    """
    exclusions = []
    for start in re.finditer(r"\(\?!", pattern):
        inside = pattern[start.end() : _closing_parenthesis(pattern, start.end())]
        is_first = _BEGINS_ALTERNATIVE.search(pattern[: start.start()]) is not None
        exclusions.append(_Exclusion(inside, is_first))
    return tuple(exclusions)


def _closing_parenthesis(pattern: str, start: int) -> int:
    """Returns the position of the parenthesis that closes a group; the end if none does.

    Args:
        start: the position after its opening parenthesis.
    """
    depth = 1
    for sign in _PARENTHESIS_OR_LITERAL.finditer(pattern, start):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if not depth:
            return sign.start()
    return len(pattern)
