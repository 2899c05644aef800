"""The ways to read a command: `sudo git -C app push` is `git push` too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.measures.command_wrappers import unwrap


@dataclass(frozen=True)
class Reading:
    """A way to read a command, such as `git push` for `sudo git -C app push`.

    Args:
        words: the program and its arguments, without quotes and assignments.
        without: the wrappers, options and folders that this reading leaves out.
    """

    words: tuple[str, ...]
    without: frozenset[str] = frozenset()

    def suits(self, pattern: str) -> bool:
        """Whether a pattern may be matched with this reading: it names nothing that is left out.

        `(?!sudo )apt` asks for sudo, which the reading without it would never have.
        """
        return not any(_mentions(pattern, name) for name in self.without)

    def reduce_to(self, words: Sequence[str], *names: str) -> "Reading":
        """Returns the reading with these words, which leaves out these names as well."""
        return Reading(tuple(words), self.without | frozenset(names))


def _mentions(pattern: str, name: str) -> bool:
    """Whether a regular expression has an option or a folder, or begins with a program's name."""
    if name.startswith("-") or "/" in name:
        return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", pattern) is not None
    first = re.search(r"[A-Za-z][\w-]*", re.sub(r"\\[A-Za-z]", " ", pattern))
    return first is not None and first[0] == name


@dataclass(frozen=True)
class Command:
    """A command of a script.

    Args:
        readings: the command as it is written, then without one wrapper after another, outermost
            first.
        writes: the files that its output goes to.
        around: the readings of the shell whose script begins with this command, as in
            `bash -c 'git push'`.
        input: the text of its here-document or here-string; None without one.
        redirects: the last of its words, from the first redirection on.
        is_in_group: whether its files also take the output of commands before it, as in
            `(date; ls) > log`.
    """

    readings: tuple[Reading, ...]
    writes: tuple[str, ...] = ()
    around: tuple[Reading, ...] = ()
    input: str | None = None
    redirects: tuple[str, ...] = ()
    is_in_group: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command as it is written."""
        return self.readings[0].words

    @property
    def innermost(self) -> tuple[str, ...]:
        """The words of the program that all wrappers run."""
        return self.readings[-1].words

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words of the innermost program without redirections."""
        words = self.innermost
        rest = words[: len(words) - len(self.redirects)]
        return rest if words[len(rest) :] == self.redirects and rest else words

    @property
    def appends(self) -> bool:
        """Whether its output is added to a file rather than written over it."""
        return any(word.endswith(">>") for word in self.redirects)


_MAX_READINGS = 16
# Options between a program and its subcommand, and whether they take a value.
_BEFORE_SUBCOMMAND = {
    "git": {
        **dict.fromkeys(("-C", "-c", "--git-dir", "--work-tree", "--namespace"), True),
        **dict.fromkeys(("--no-pager", "-p", "-P", "--paginate", "--bare"), False),
        **dict.fromkeys(("--no-replace-objects", "--no-optional-locks"), False),
    },
    "make": {"-C": True, "--directory": True, "-s": False, "--silent": False},
    "npm": {"--prefix": True},
    **dict.fromkeys(
        ("kubectl", "oc"), dict.fromkeys(("-n", "--namespace", "--context", "--kubeconfig"), True)
    ),
}


def readings_of(reading: Reading) -> tuple[Reading, ...]:
    """Returns a reading and those without its wrappers: `sudo git push`, then `git push`."""
    readings = [reading]
    while len(readings) < _MAX_READINGS:
        following = _unwrap(readings[-1])
        if following is None or not following.words:
            break
        readings.append(following)
    return tuple(readings)


def _unwrap(reading: Reading) -> Reading | None:
    """Returns the reading without its outermost wrapper, folder or options; None without these."""
    words = reading.words
    folder, slash, program = words[0].rpartition("/")
    if slash and program:
        return reading.reduce_to((program, *words[1:]), f"{folder}/")
    if unwrapped := unwrap(words):
        command, names = unwrapped
        return reading.reduce_to(command, *names)
    return _without_global_options(reading) if program in _BEFORE_SUBCOMMAND else None


def _without_global_options(reading: Reading) -> Reading | None:
    program, *rest = reading.words
    has_argument = _BEFORE_SUBCOMMAND[program]
    options = []
    while rest and rest[0].startswith("-"):
        option, equals, _ = rest[0].partition("=")
        if option not in has_argument:
            break
        options.append(option)
        del rest[: 2 if has_argument[option] and not equals else 1]
    return reading.reduce_to((program, *rest), *options) if options else None
