"""The ways to read a command: `sudo git -C app push` is `git push` too."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


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


class _Wrapper(NamedTuple):
    """A program that runs the command in its arguments."""

    valued_options: tuple[str, ...]  # its options that take a value
    arguments: int = 0  # how many of its own arguments come before the command


_WRAPPERS = {
    "sudo": _Wrapper(("-u", "-g", "-p", "-h", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user")),
    "doas": _Wrapper(("-u", "-C")),
    "env": _Wrapper(("-u", "-C", "--unset", "--chdir")),
    "timeout": _Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    "gtimeout": _Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    "xargs": _Wrapper(
        ("-I", "-n", "-P", "-L", "-d", "-E", "-a", "-s", "--max-args", "--max-procs")
    ),
    "parallel": _Wrapper(("-j", "--jobs", "-a", "--arg-file", "-I")),
    "nice": _Wrapper(("-n", "--adjustment")),
    "ionice": _Wrapper(("-c", "-n", "--class", "--classdata")),
    "stdbuf": _Wrapper(("-i", "-o", "-e", "--input", "--output", "--error")),
    "time": _Wrapper(("-f", "-o", "--format", "--output")),
    "watch": _Wrapper(("-n", "--interval")),
    "strace": _Wrapper(("-e", "-o", "-p", "-s")),
    "flock": _Wrapper(("-w", "-E", "--timeout"), 1),
    "chroot": _Wrapper((), 1),
    "taskset": _Wrapper((), 1),
    "exec": _Wrapper(("-a",)),
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "chronic", "unbuffer"), _Wrapper(())),
    **dict.fromkeys(("caffeinate", "busybox"), _Wrapper(())),
}
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "fish", "ash")
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
}


def script_in(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script that a command runs, such as that of `bash -c`; None if it runs none.

    Args:
        from_input: the text of the command's input, which a shell without arguments runs.
    """
    program = words[0].rpartition("/")[2]
    if program == "eval":
        return " ".join(words[1:])
    if program == "trap":
        return words[1] if len(words) > 1 else None
    if program in (*_SHELLS, "su"):
        for number, word in enumerate(words[1:], start=1):
            if re.fullmatch(r"-[a-z]*c|--command", word) and number + 1 < len(words):
                return words[number + 1]
        files = [word for word in words[1:] if not word.startswith("-")]
        return from_input if program != "su" and not files else None
    if program == "ssh":
        rest = list(_after_options(words[1:], ("-p", "-i", "-l", "-o", "-F", "-J", "-L"), 1))
        return " ".join(rest) or from_input
    return None


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
    if program == "find":
        return _unwrap_find(reading)
    if program in _BEFORE_SUBCOMMAND:
        return _without_global_options(reading)
    if program not in _WRAPPERS or (program == "command" and words[1:2] in (("-v",), ("-V",))):
        return None
    wrapper = _WRAPPERS[program]
    rest = tuple(_after_options(words[1:], wrapper.valued_options, wrapper.arguments))
    if len(rest) == 1:  # as in watch 'git status'
        rest = tuple(rest[0].split())
    return reading.reduce_to(rest, program)


def _after_options(words: Sequence[str], valued: Sequence[str], positional: int) -> Iterator[str]:
    """Yields the words after options, assignments, and `positional` other arguments.

    Args:
        valued: the options that take a value.
    """
    rest = list(words)
    while rest:
        if rest[0] == "--":
            rest.pop(0)
        elif rest[0] in valued:
            del rest[:2]
        elif rest[0].startswith("-") or re.match(r"\w+=", rest[0]):
            rest.pop(0)
        elif positional:
            positional -= 1
            rest.pop(0)
        else:
            break
    yield from rest


def _unwrap_find(reading: Reading) -> Reading | None:
    """Returns the command that `find -exec` runs; None if it runs none."""
    words = reading.words
    starts = [n for n, word in enumerate(words) if word in ("-exec", "-execdir", "-ok", "-okdir")]
    if not starts:
        return None
    rest = words[starts[0] + 1 :]
    ends = [number for number, word in enumerate(rest) if word in (";", "+")]
    return reading.reduce_to(rest[: ends[0]] if ends else rest, "find", "-exec")


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
