"""The command line; `GROUPS` lists its commands, and `_EPILOG` its exit codes.

The module of a command is imported when the command is typed or its help is shown: together, those
of all commands take a second to import.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from holdfast.cli.exit_codes import MALFORMED, UNAVAILABLE
from holdfast.cli.one_sentence_parser import OneSentenceParser
from holdfast.cli.progress import INTERRUPTED, TERMINATED, Terminated, interrupting_on_sigterm
from holdfast.cli.unfinished_junit import write_no_verdict
from holdfast.errors import (
    HoldfastError,
    RequestFailed,
    Unavailable,
    UnknownName,
    UsageError,
    as_argument,
)
from holdfast.files import FULL
from holdfast.generation.cpu_threads import limit_spinning
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.cli.command import Command, Options

GROUPS = {  # the commands by what they are for, each with the module and name of its `Command`
    "Start": {"try": "first_run.COMMAND"},
    "Measure": {
        "drift": "drift.COMMAND",
        "check": "check.COMMAND",
        "logs": "logs.COMMAND",
        "suite": "suite.COMMAND",
    },
    "Read results": {
        "report": "report.COMMAND",
        "compare": "compare.COMMAND",
        "map": "map.COMMAND",
        "export": "export.COMMAND",
        "join": "join.COMMAND",
    },
    "Explain": {
        "precedent": "precedent.COMMAND",
        "trace": "trace.COMMAND",
        "geometry": "trace.GEOMETRY",
    },
    "Fix": {"calibrate": "calibrate.COMMAND", "profile": "profile.COMMAND", "fit": "fit.COMMAND"},
    "Use and serve": {
        "chat": "chat.COMMAND",
        "generate": "generate.COMMAND",
        "serve": "serve.COMMAND",
        "proxy": "proxy.COMMAND",
        "remind": "remind.COMMAND",
    },
    "Papers and benchmarks": {
        "reproduce": "reproduce.COMMAND",
        "tasks": "tasks.COMMAND",
        "lm-eval": "lm_eval.COMMAND",
    },
    "Look up": {
        "methods": "catalogue.METHODS",
        "measures": "catalogue.MEASURES",
        "docs": "docs.COMMAND",
        "completion": "completion.COMMAND",
    },
}
_VARIABLES = {  # by command, the module and name of its `Command`
    name: variable for group in GROUPS.values() for name, variable in group.items()
}


def command_named(name: str) -> Command[Any]:
    """A command by the name that is typed; imports its module."""
    module, _, variable = _VARIABLES[name].partition(".")
    command: Command[Any] = getattr(import_module(f"holdfast.cli.{module}"), variable)
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; without a command, says where to start."""
    limit_spinning()
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # libraries' bars would fill a log file
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(_START)
        return 0
    try:
        return _run_with_json(words) if "--json" in words else _run(words)
    except BrokenPipeError:  # the reader of the output has gone
        _discard(sys.stdout, sys.stderr)
        return 1


def _run_with_json(words: Sequence[str]) -> int:
    """Runs one command whose output is one JSON document."""
    from holdfast.cli.json_output import json_on_stdout

    words = [word for word in words if word != "--json"] or ["--help"]
    with json_on_stdout() as output:
        code = _run(words, output.write_error)
        if code:
            output.write_error(f"`holdfast {words[0]}` failed; stderr says why.")
    return code


def _run(words: Sequence[str], write_error: Callable[[str], None] | None = None) -> int:
    """Runs one command; with `--json`, `write_error` takes an error too."""

    def fail(error: str) -> None:
        print(f"holdfast: {error}", file=sys.stderr)
        if write_error is not None:
            write_error(error)

    command: Command[Any] | None = None
    arguments: Options | None = None
    try:
        if words[0] == "remind" and write_error is None:  # a hook has no time for a parser
            from holdfast.coding_agents.hook_command import answer_on_stdin, hook_call

            if (call := hook_call(words)) is not None:
                return answer_on_stdin(call)
        with interrupting_on_sigterm(), warnings.catch_warnings():
            command, arguments = read_command(words)
            write_no_verdict(words, "the command has not finished")
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            code = command.run(arguments)
            sys.stdout.flush()  # what cannot be written fails here, not while Python ends
    except HoldfastError as error:
        message = _as_typed(error, words[0])
        with contextlib.suppress(HoldfastError):
            write_no_verdict(words, message)
        fail(message)
        return _exit_code_of(error, words[0], command)
    except KeyboardInterrupt as interrupt:
        is_terminated = isinstance(interrupt, Terminated)
        how = "terminated" if is_terminated else "interrupted"
        write_no_verdict(words, f"the command was {how}")
        folder = None if arguments is None else arguments.resumable_folder
        print(file=sys.stderr)
        fail(f"{how}{_resuming(folder, words)}.")
        return TERMINATED if is_terminated else INTERRUPTED
    except OSError as error:
        if error.errno not in FULL:
            raise
        _discard(sys.stdout)
        fail(
            f"The output cannot be written: {FULL[error.errno]}; free some space, and repeat the"
            " command."
        )
        return 1
    return code or 0


def _exit_code_of(error: HoldfastError, name: str, command: Command[Any] | None) -> int:
    """The exit code of a command that failed; `command` is None if it could not be read."""
    if command is None:
        return command_named(name).malformed if name in _VARIABLES else MALFORMED
    if isinstance(error, UsageError):
        return MALFORMED
    return UNAVAILABLE if _is_outage(error) else command.failed


def read_command(words: Sequence[str]) -> tuple[Command[Any], Options]:
    """The command that is typed, and its options.

    Raises:
        UsageError: there is no such command, or an option is unknown or malformed.
    """
    names = [*_VARIABLES, "--help", "--version"]
    if words[0] not in (*names, "-h"):
        kind = "option" if words[0].startswith("-") else "command"
        raise UnknownName(kind, words[0], names)
    main_parser, parsers = _parsers(words[0] if words[0] in _VARIABLES else None)
    arguments, unknown = main_parser.parse_known_args(words)
    if unknown:
        parsers[arguments.command].refuse(unknown, arguments)
    command = command_named(arguments.command)
    return command, command.read(arguments)


def _discard(*streams: TextIO) -> None:
    """Lets Python end without trying again to write what is left for these streams."""
    with open(os.devnull, "w") as nowhere:
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nowhere.fileno(), stream.fileno())


def _as_typed(error: HoldfastError, name: str) -> str:
    """The error's message, with the options that a command has as they are typed."""
    if name not in _VARIABLES:
        return error.worded(as_argument)
    actions = _parsers(name)[1][name]._actions
    typed = {action.dest: action.option_strings[-1] for action in actions if action.option_strings}

    def as_typed(option: str, value: Any) -> str:
        if option not in typed:
            return as_argument(option, value)
        if value in (None, True):
            return typed[option]
        return f"{typed[option]} {shlex.quote(str(value))}"

    return error.worded(as_typed)


def _resuming(folder: Path | None, words: Sequence[str]) -> str:
    """Where the results of an interrupted command are kept, and the command that resumes it."""
    if folder is None:
        return ""
    command = shlex.join(["holdfast", *words])
    if not any(file.stat().st_size for file in folder.rglob("*.jsonl")):
        return f"; nothing was finished yet, so `{command}` starts from the beginning"
    return f"; finished work is in {folder}, and `{command}` resumes it"


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    print(f"holdfast: {' '.join(str(message).split())}", file=sys.stderr)


_START = """Holdfast measures how a chat model drifts from its system prompt, and reduces it.

Start here:
  holdfast try                                   the default model: two minutes, no download
  holdfast try --model MODEL --prompt bot.txt    your model, and your bot's prompt

MODEL is a folder, a GGUF file, a name on the Hugging Face hub, or the URL of an endpoint.
`holdfast --help` lists all commands."""
_EPILOG = """Try: holdfast try, or holdfast COMMAND --help

Exit codes (check and logs have more):
  0    success
  1    failure
  2    the command is malformed, names what is not there, or its folder has another run
  5    a server that the command needs is not available
  130  stopped by Ctrl-C
  143  stopped by SIGTERM"""


def _is_outage(error: HoldfastError) -> bool:
    """Whether a server is not available; one that withholds a reply, or has no room for it, is."""
    if isinstance(error, RequestFailed):
        return error.why == "failure"
    return isinstance(error, Unavailable)


def parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands with their options."""
    return _parsers()[0]


def _listed_commands() -> str:
    """The commands by group, each with what it does."""
    width = max(len(name) for name in _VARIABLES)
    lines: list[str] = []
    for group, names in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}  {command_named(name).summary}" for name in names]
    return "\n".join(lines[1:])


@functools.cache
def _parsers(name: str | None = None) -> tuple[OneSentenceParser, dict[str, OneSentenceParser]]:
    """The parser of the command line, and those of its commands, or of one command alone."""
    from holdfast.cli.command import HelpFormatter, add_command

    main_parser = OneSentenceParser(
        prog="holdfast",
        usage="holdfast COMMAND [options]",
        description="Measure how a chat model drifts from its system prompt, see why, and"
        " reduce it.",
        epilog=None if name else f"{_listed_commands()}\n\n{_EPILOG}",
        formatter_class=HelpFormatter,
    )
    version = f"holdfast {__version__}"
    text = "print the version and exit"
    main_parser.add_argument("--version", action="version", version=version, help=text)
    commands = main_parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        prog="holdfast",
        help=argparse.SUPPRESS,  # the epilog lists them by group
    )
    for listed in [name] if name else _VARIABLES:
        add_command(commands, command_named(listed))
    return main_parser, commands.choices
