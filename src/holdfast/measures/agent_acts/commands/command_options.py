"""Reads the options of a command line, and finds the command behind those of a wrapper.

For example:

    options_of(["-am", "fix", "a.py"], {"--message": "m"}, {"--all": "a"})
    -> ParsedOptions({"--message": ["fix"]}, {"--all"}, ("a.py",))
"""

import re
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


# --- Where the options of a wrapper end

# options of programs that come before a subcommand and take a value
_COMPOSE_VALUED = (
    *("-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory"),
    *("--ansi", "--parallel", "--progress", "-H", "--host", "--context", "--log-level"),
)
KUBECTL_VALUED = (
    *("-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--as"),
    *("--as-group", "--token", "--user", "--request-timeout", "--pod-running-timeout"),
)
_NODE_VALUED = ("-C", "--dir", "--filter", "-F", "--prefix", "--cwd", "-w", "--workspace")
_VALUED_BEFORE = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _COMPOSE_VALUED),
    **dict.fromkeys(("kubectl", "oc"), KUBECTL_VALUED),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NODE_VALUED),
    "nix": ("--extra-experimental-features", "--experimental-features", "--option"),
    "uv": ("--directory", "--project", "--config-file"),
    "poetry": ("-C", "--directory", "-P", "--project"),
    "mise": ("-C", "--cd", "-E", "--env"),
    "tmux": ("-L", "-S", "-f", "-c", "-T"),
}


def after_names(words: Sequence[str], names: Sequence[str]) -> Sequence[str] | None:
    """Returns the words after a program and its subcommands; None if these are others."""
    rest = words[1:]
    for name in names[1:]:
        rest = after_options(rest, _VALUED_BEFORE.get(names[0], ()), 0)
        if rest[:1] != (name,):
            return None
        rest = rest[1:]
    return rest


def after_options(words: Sequence[str], valued: Sequence[str], positional: int) -> tuple[str, ...]:
    """Returns the words after options, assignments, and `positional` other arguments.

    Args:
        valued: the options that take a value.
    """
    return split_words(words, valued, positional)[1]


def split_words(
    words: Sequence[str], valued: Sequence[str], positional: int, flags: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the first `positional` arguments, and the words after these and all options.

    Args:
        valued: the options that take a value.
        flags: the options that take none, if all others take one.
    """
    operands: list[str] = []
    rest = list(words)
    while rest:
        if flags and len(operands) == positional:
            break  # after an image, options are those of its command
        if rest[0] == "--":
            rest.pop(0)
        elif rest[0].startswith("-"):
            del rest[: 2 if _takes_next(rest[0], valued, flags) else 1]
        elif re.match(r"\w+=", rest[0]):
            rest.pop(0)
        elif len(operands) < positional:
            operands.append(rest.pop(0))
        else:
            break
    return tuple(operands), tuple(rest)


def _takes_next(option: str, valued: Sequence[str], flags: Sequence[str]) -> bool:
    """Whether the word after an option is its value.

    Of joined letters, as in `-itu root`, only the last may take it.
    """
    if "=" in option or option == "-":
        return False
    if option.startswith("--") or len(option) == len("-x"):
        return option in valued if not flags else option not in flags
    letters = [f"-{letter}" for letter in option[1:]]
    takes = [name in valued if not flags else name not in flags for name in letters]
    return option in valued or (takes[-1] and not any(takes[:-1]))
