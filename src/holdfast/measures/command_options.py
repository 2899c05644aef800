"""The options of a command line, by the names that a program has for them."""

from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options of a command.

    Args:
        values: the arguments of each option that has them, by its long name.
        flags: the other options, by their long names if these are known.
        rest: the arguments of the command itself.
    """

    values: Mapping[str, list[str]]
    flags: frozenset[str]
    rest: tuple[str, ...]

    def last(self, *names: str) -> str | None:
        """The last value of an option, or of one of several."""
        values = [value for name in names for value in self.values.get(name, [])]
        return values[-1] if values else None


def options_of(
    words: Sequence[str], valued: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> Options:
    """Reads the words of a command.

    Args:
        words: without the program and its subcommands.
        valued: the options with an argument: the letter of each, or "", by its long name.
        flags: other options, likewise.
    """
    long_of = {letter: name for name, letter in {**valued, **(flags or {})}.items() if letter}
    values: dict[str, list[str]] = {}
    without_value: set[str] = set()
    rest: list[str] = []
    unread = deque(words)
    while unread:
        word = unread.popleft()
        if word == "--":
            rest += unread
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif not word.startswith("--"):
            unread.extendleft(reversed(_long(word[1:], long_of, valued)))
        else:
            name, equals, value = word.partition("=")
            if name not in valued:
                without_value.add(name)
            elif equals or unread:
                values.setdefault(name, []).append(value if equals else unread.popleft())
    return Options(values, frozenset(without_value), tuple(rest))


def _long(letters: str, long_of: Mapping[str, str], valued: Container[str]) -> list[str]:
    """The options of a word such as `-dt` by their long names; `--?x` for an unknown letter."""
    options: list[str] = []
    for position, letter in enumerate(letters):
        name = long_of.get(letter, f"--?{letter}")
        value = letters[position + 1 :]
        if name in valued and value:
            return [*options, f"{name}={value.removeprefix('=')}"]
        options.append(name)
    return options
