"""Finds where the options and arguments of a wrapper end, and the command that it runs begins.

For example:

    after_names(["docker", "-H", "web", "exec", "-it", "a", "ls"], ["docker", "exec"])
    -> ("-it", "a", "ls")
    split_words(["-u", "root", "a", "ls", "-l"], valued=["-u"], num_arguments=1)
    -> arguments ("a",), rest ("ls", "-l")
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
_VALUED_BEFORE: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _COMPOSE_VALUED),
    **dict.fromkeys(("kubectl", "oc"), KUBECTL_VALUED),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NODE_VALUED),
    "nix": ("--extra-experimental-features", "--experimental-features", "--option"),
    "uv": ("--directory", "--project", "--config-file"),
    "poetry": ("-C", "--directory", "-P", "--project"),
    "mise": ("-C", "--cd", "-E", "--env"),
    "tmux": ("-L", "-S", "-f", "-c", "-T"),
}


class SplitWords(NamedTuple):
    """The words of a wrapper without its options.

    Args:
        arguments: its own arguments, such as the container of `docker exec`.
        rest: the words after these, which are the command that it runs.
    """

    arguments: tuple[str, ...]
    rest: tuple[str, ...]


def after_names(words: Sequence[str], names: Sequence[str]) -> Sequence[str] | None:
    """Returns the words after a program and its subcommands; None if these are others."""
    program, *subcommands = names
    rest = words[1:]
    for name in subcommands:
        rest = after_options(rest, _VALUED_BEFORE.get(program, ()))
        if rest[:1] != (name,):
            return None
        rest = rest[1:]
    return rest


def after_options(
    words: Sequence[str], valued: Sequence[str], num_arguments: int = 0
) -> tuple[str, ...]:
    """Returns the words after options, assignments, and a number of other arguments.

    Args:
        valued: the options that take a value.
    """
    return split_words(words, valued, num_arguments).rest


def split_words(
    words: Sequence[str],
    valued: Sequence[str],
    num_arguments: int,
    flags: Sequence[str] = (),
    paired: Sequence[str] = (),
) -> SplitWords:
    """Returns the first arguments, and the words after these and all options.

    Args:
        valued: the options that take a value.
        num_arguments: how many words that are no options or assignments come before the rest.
        flags: the options that take none, if all others take one.
        paired: the options that take two values.
    """
    arguments: list[str] = []
    rest = list(words)
    while rest:
        if flags and len(arguments) == num_arguments:
            break  # after an image, options are those of its command
        if rest[0] == "--":
            rest.pop(0)
        elif rest[0] in paired:
            del rest[:3]
        elif rest[0].startswith("-"):
            del rest[: 2 if _takes_next(rest[0], valued, flags) else 1]
        elif re.match(r"\w+=", rest[0]):
            rest.pop(0)
        elif len(arguments) < num_arguments:
            arguments.append(rest.pop(0))
        else:
            break
    return SplitWords(tuple(arguments), tuple(rest))


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
