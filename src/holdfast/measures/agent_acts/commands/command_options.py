"""Reads the options of a command line.

For example:

    options_of(["-am", "fix", "a.py"], {"--message": "m"}, {"--all": "a"})
    -> ParsedOptions(values={"--message": ["fix"]}, flags={"--all"}, rest=("a.py",))
"""

from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ParsedOptions:
    """The options and the arguments of a command.

    Args:
        values: the values of each option that takes one, by its long name.
        flags: the other options, by their long names where these are known.
        rest: the arguments of the command itself.
    """

    values: Mapping[str, list[str]]
    flags: frozenset[str]
    rest: tuple[str, ...]

    def last(self, name: str) -> str | None:
        """Returns the last value of an option; None if it has none."""
        values = self.values.get(name)
        return values[-1] if values else None


def options_of(
    words: Sequence[str], valued: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> ParsedOptions:
    """Reads the words of a command.

    Args:
        words: without the program and its subcommands.
        valued: the options that take a value: by long name, the letter of each, or "".
        flags: the other options, in the same form; None for none.
    """
    long_names = {letter: name for name, letter in {**valued, **(flags or {})}.items() if letter}
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
            unread.extendleft(reversed(_expand_letters(word[1:], long_names, valued)))
        else:
            name, equals, value = word.partition("=")
            if name not in valued:
                without_value.add(name)
            elif equals or unread:
                values.setdefault(name, []).append(value if equals else unread.popleft())
    return ParsedOptions(values, frozenset(without_value), tuple(rest))


def _expand_letters(
    letters: str, long_names: Mapping[str, str], valued: Container[str]
) -> list[str]:
    """Returns the long names of options such as the `dt` of `-dt`; `--?x` for an unknown letter.

    Letters after an option that takes a value are its value: `-mfix` is `--message=fix`.
    """
    options: list[str] = []
    for position, letter in enumerate(letters):
        name = long_names.get(letter, f"--?{letter}")
        value = letters[position + 1 :]
        if name in valued and value:
            return [*options, f"{name}={value.removeprefix('=')}"]
        options.append(name)
    return options
