"""Finds the command in the arguments of another, here or in another environment.

For example:

    timeout 60 git push               ->  git push
    docker exec web git push          ->  git push
    python -m pytest tests            ->  pytest tests
"""

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.measures.agent_acts.commands.find_commands import commands_of_find
from holdfast.measures.agent_acts.commands.inner_scripts import (
    SCRIPT_RUNNERS,
    SHELLS,
    file_of_shell,
    script_of_option,
)
from holdfast.measures.agent_acts.commands.shell_commands import is_redirection
from holdfast.measures.agent_acts.commands.wrapper_options import (
    SplitWords,
    after_names,
    split_words,
)
from holdfast.measures.agent_acts.commands.wrapper_table import (
    CONTAINER_RUN,
    DASHES,
    UV_RUN,
    WRAPPERS,
    Wrapper,
)
from holdfast.measures.agent_acts.programs.program_texts import is_python

_NODE_RUNNERS = ("npx", "bunx", "pnpx", "uvx")
# programs that run commands with another file system
_ELSEWHERE = frozenset(
    "docker podman nerdctl docker-compose kubectl oc lxc incus multipass wsl heroku ddev ssh"
    " devcontainer vagrant gcloud fly flyctl ansible chroot machinectl".split()
)
_PYTHON_VALUED = ("-W", "-X")
_VERSION = re.compile(r"(?<=.)@[\w.^~*-]+\Z")  # eslint@9


class Unwrapped(NamedTuple):
    """A command without its outermost wrapper.

    Args:
        command: the words of the command.
        left_out: the words of the wrapper by which patterns can mention it.
    """

    command: tuple[str, ...]
    left_out: tuple[str, ...]


def unwrap(words: Sequence[str]) -> Unwrapped | None:
    """Removes the outermost wrapper of a command; None for a command without a wrapper."""
    program = words[0]
    if program == "find":
        return _unwrap_find(words)
    if script_of_option(program, words) is not None:
        return None
    if program in SHELLS:
        return Unwrapped(file_of_shell(words), (program,))
    if is_python(program):
        module = _module_of_python(words)
        return Unwrapped(module, (program, "-m")) if module else None
    if program == "command" and words[1:2] in (("-v",), ("-V",)):  # only says where it is
        return None
    for names, wrapper in _wrappers_of(program):
        if (rest := after_names(words, names)) is not None:
            return Unwrapped(_command_in(rest, wrapper), (program,))
    return None


def _unwrap_find(words: Sequence[str]) -> Unwrapped | None:
    """Returns the command that `find -exec` runs; None if it runs none, or several."""
    commands = commands_of_find(words)
    return Unwrapped(commands[0], ("find", "-exec")) if len(commands) == 1 else None


def _module_of_python(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the module that Python runs, with its arguments; () if it runs none."""
    rest = deque(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.popleft()
        if option == "-m":
            return tuple(rest)
        if option in _PYTHON_VALUED and rest:
            rest.popleft()
        if option in ("-c", "-"):
            break
    return ()


@lru_cache(maxsize=1024)
def _wrappers_of(program: str) -> list[tuple[tuple[str, ...], Wrapper]]:
    """Returns the rows of the table that are about a program."""
    return [row for row in WRAPPERS.items() if row[0][0] == program]


def _command_in(words: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Returns the command after the options and arguments of a wrapper; () for none."""
    rest = _after_wrapper(words, wrapper)
    if rest and is_redirection(rest[0]):
        return ()
    if len(rest) == 1:  # as in nohup 'git status'
        rest = tuple(rest[0].split())
    if wrapper.has_version and rest:
        rest = (_VERSION.sub("", rest[0]), *rest[1:])
    return rest


def _after_wrapper(words: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Returns the words after the options and arguments of a wrapper.

    A program that an option names comes first: `docker run --entrypoint npm node test` runs
    `npm test`.
    """
    if wrapper.needs_mark:
        marks = [number for number, word in enumerate(words) if word in wrapper.marks]
        return tuple(words[marks[0] + 1 :]) if marks else ()
    rest = _split(words, wrapper).rest
    before = words[: len(words) - len(rest)]
    if wrapper is UV_RUN and not {"-m", "--module"}.isdisjoint(before):
        return ("python", "-m", *rest)
    if wrapper is CONTAINER_RUN and (program := _entrypoint_in(before)):
        return (program, *rest)
    return rest


def _entrypoint_in(words: Sequence[str]) -> str:
    """Returns the program that `docker run --entrypoint PROGRAM` names; "" if none is named."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--entrypoint":
            return value if equals else "".join(words[number + 1 : number + 2])
    return ""


def _split(words: Sequence[str], wrapper: Wrapper) -> SplitWords:
    """Returns a wrapper's own arguments, and the words after these and its options."""
    return split_words(
        words,
        wrapper.valued_options,
        wrapper.num_arguments,
        wrapper.flags,
        wrapper.paired_options,
    )


def wrapper_without_options(words: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the outermost wrapper of a command with its own arguments, such as `docker exec web`.

    None for a command without a wrapper.
    """
    for names, wrapper in _wrappers_of(words[0]):
        rest = after_names(words, names)
        if rest is not None and not wrapper.needs_mark:
            arguments = _split(rest, wrapper).arguments
            dashes = DASHES if wrapper.marks and "--" in rest else ()
            return (*names, *arguments, *dashes)
    return None


def runs_elsewhere(words: Sequence[str]) -> bool:
    """Whether the program of a command runs others with another file system.

    That is so in a container, a pod, a machine or on a host.
    """
    return bool(words) and words[0].rpartition("/")[2] in _ELSEWHERE


def wrappers_in(text: str) -> list[str]:
    """Returns the wrappers that a text of a rule names, such as `uv run`.

    A wrapper of one word, such as `npx`, counts where code in backticks begins with it.
    """
    codes = [code.split() for code in re.findall("`([^`]+)`", text)]
    programs = {code[0] for code in codes if code}
    words = [word.strip(",;:.!?()") for word in text.replace("`", " ").split()]
    wrappers: list[str] = []
    for names in WRAPPERS:
        if len(names) == 1 and names[0] not in _NODE_RUNNERS:
            is_named = names[0] in programs
        else:
            is_named = any(
                after_names(words[start:], names) is not None
                for start, word in enumerate(words)
                if word == names[0]
            )
        wrappers += [" ".join(names)] if is_named else []
    wrappers += [name for name in SCRIPT_RUNNERS if name in programs and name != "git"]
    return wrappers
