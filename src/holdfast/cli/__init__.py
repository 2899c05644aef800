"""The command line: one file per command.

Exit codes: 0 done; 1 it could not be done; 2 the command is malformed, or its folder holds another
run; 130 Ctrl-C; 143 SIGTERM.
`holdfast check` has codes of its own (cli/check.py).
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from holdfast.cli import (
    calibrate,
    catalogue,
    chat,
    check,
    drift,
    export,
    fit,
    generate,
    geometry,
    lm_eval,
    profile,
    report,
    reproduce,
    serve,
    tasks,
    trace,
)
from holdfast.cli.termination import INTERRUPTED, TERMINATED, Terminated, heeding_sigterm
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.threads import wait_asleep
from holdfast.version import __version__

# each has add_parser(commands), and run(arguments), which the parser of its command names
COMMANDS = (
    drift,
    check,
    report,
    export,
    trace,
    geometry,
    reproduce,
    calibrate,
    tasks,
    generate,
    serve,
    chat,
    profile,
    fit,
    lm_eval,
    catalogue,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; without a command, prints the help."""
    wait_asleep()
    words = list(sys.argv[1:] if argv is None else argv)
    made, commands = _parsers()
    if not words:
        made.print_help()
        return 0
    arguments = argparse.Namespace()
    try:
        if not words[0].startswith("-") and words[0] not in commands:
            raise UnknownName("command", words[0], commands)
        arguments, unknown = made.parse_known_args(words)
        if unknown:
            _refuse_unknown(commands[arguments.command], unknown)
        with heeding_sigterm(), warnings.catch_warnings():
            warnings.showwarning = _tell_warning  # type: ignore[assignment]
            code: int | None = arguments.run(arguments)
    except HoldfastError as error:
        print(f"holdfast: {error.on_command_line}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else getattr(arguments, "could_not", 1)
    except KeyboardInterrupt as ended:
        told = "terminated" if isinstance(ended, Terminated) else "interrupted"
        kept = getattr(arguments, "on_interrupt", "")
        print(f"\nholdfast: {told}. {kept}".rstrip(), file=sys.stderr)
        return TERMINATED if isinstance(ended, Terminated) else INTERRUPTED
    except BrokenPipeError:  # the reader of a table went away
        sys.stderr.close()
        return 1
    return code or 0


def _refuse_unknown(command: argparse.ArgumentParser, words: Sequence[str]) -> NoReturn:
    """Leaves with the command's own usage and, of a misspelt option, the one that is nearest."""
    options = [word.split("=")[0] for word in words if re.match("--?[a-zA-Z]", word)]
    if not options:
        command.error(f"unrecognized arguments: {' '.join(words)}")
    known = re.findall(r"(?<![\w-])--([a-z][a-z-]*)", command.format_usage())
    near = difflib.get_close_matches(options[0].lstrip("-"), known, n=1)
    hint = f"did you mean --{near[0]}?" if near else f"see `{command.prog} --help`."
    command.error(f"there is no option {options[0]}; {hint}")


def _tell_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """A warning as a sentence on the error output, without the line of code that raised it."""
    print(f"holdfast: {' '.join(str(message).split())}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    return _parsers()[0]


def _parsers() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of the command line, and by name those of its commands."""
    made = _Parser(
        prog="holdfast",
        description="Measure how a chat model drifts from its system prompt, and keep it there.",
        epilog="Try: holdfast drift",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return made, commands.choices


class _Parser(argparse.ArgumentParser):
    """Of the command line and of each command: a part of an option's name is no option, so that a
    misspelt one is refused.
    """

    def __init__(self, **named):
        super().__init__(**{**named, "allow_abbrev": False})


class _Version(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print(f"holdfast {__version__}")
        parser.exit()
