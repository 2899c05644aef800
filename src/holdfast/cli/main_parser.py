"""Reads a command line: finds the command, and builds its options from the words that follow.

read_command(["try", "--minutes", "3"])  ->  the command `try`, TryArguments(minutes=3.0)
"""

from __future__ import annotations

import argparse
import difflib
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.cli.command_list import ENTRIES, command_named, list_of_commands
from holdfast.cli.shared.argument_parser import HelpFormatter, OneSentenceParser
from holdfast.errors import UnknownName, UsageError
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.cli.shared.command import Command, Options

_VERSION = f"holdfast {__version__}"
_EPILOG = """Try: holdfast try, or holdfast COMMAND --help

Exit codes (check and logs have more; `holdfast docs runs` lists all):
  0    success
  1    failure
  2    the command is malformed, names what does not exist, or its folder holds another run
  5    a server that the command needs is not available
  130  stopped by Ctrl-C
  143  stopped by SIGTERM"""


def read_command(words: Sequence[str]) -> tuple[Command[Any], Options]:
    """Reads a command line: the command, and its options.

    Raises:
        UsageError: there is no such command, or an option is unknown or malformed.
    """
    names = [*ENTRIES, "--help", "--version"]
    if words[0] not in (*names, "-h"):
        raise _no_command(words[0], names)
    parsers = _parsers(*(name for name in words[:1] if name in ENTRIES))
    arguments, unknown = parsers.main.parse_known_args(words)
    if unknown:
        parsers.commands[arguments.command].refuse(unknown, arguments)
    command = command_named(arguments.command)
    return command, command.read(arguments)


def _no_command(word: str, names: Sequence[str]) -> UsageError:
    """The error about a first word that is no command, but may be the name of something else."""
    if word.startswith("-"):
        alone = [name for name in names if name.startswith("-")]
        if difflib.get_close_matches(word, alone, 1):
            return UnknownName("option", word, alone)
        return UsageError(
            f"{word} comes before a command; give options after it, as in `holdfast COMMAND {word}`"
            " (`holdfast --help` lists the commands)."
        )
    from holdfast.cli.look_up.catalogue_lines import use_of_name

    if use := use_of_name(word, list(ENTRIES)):
        return UsageError(use, option="command", value=word)
    return UnknownName("command", word, names)


def parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands with their options."""
    return _parsers(*ENTRIES).main


def typed_options(name: str) -> Mapping[str, str]:
    """The options of a command as they are typed, such as "--max-batch", by field."""
    return _parsers(name).commands[name].typed_options()


class _Parsers(NamedTuple):
    """The parser of the command line, and the parsers of its commands."""

    main: OneSentenceParser
    commands: dict[str, OneSentenceParser]


@functools.cache
def _parsers(*names: str) -> _Parsers:
    """Builds the main parser with those of the named commands, which are imported for it.

    Without a name, its help lists every command.
    """
    main_parser = OneSentenceParser(
        prog="holdfast",
        usage="holdfast COMMAND [options]",
        description="Measure how a chat model drifts from its system prompt, see why, and"
        " reduce it.",
        epilog=None if names else f"{list_of_commands()}\n\n{_EPILOG}",
        formatter_class=HelpFormatter,
    )
    text = "print the version and exit"
    main_parser.add_argument("--version", action="version", version=_VERSION, help=text)
    commands = main_parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        prog="holdfast",
        help=argparse.SUPPRESS,  # the epilog lists them by group
    )
    for name in names:
        from holdfast.cli.shared.command_parser import add_command

        add_command(commands, command_named(name), ENTRIES[name].summary)
    return _Parsers(main_parser, commands.choices)
