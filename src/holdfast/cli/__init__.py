"""The command line; `GROUPS` lists its commands, and `_EPILOG` its exit codes.

Each group of `holdfast --help` is a folder here, in which every command has a module; `shared` has
what commands are made of. A command's module is imported only when the command is typed, as
importing all of them takes a second.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from holdfast.cli.shared.argument_parser import HelpFormatter, OneSentenceParser
from holdfast.cli.shared.exit_codes import INTERRUPTED, MALFORMED, TERMINATED, UNAVAILABLE
from holdfast.cli.shared.interrupts import Terminated, interrupting_on_sigterm
from holdfast.errors import (
    HoldfastError,
    RequestFailed,
    Unavailable,
    UnknownName,
    UsageError,
    as_argument,
)
from holdfast.files import FULL
from holdfast.generation.cpu_threads import set_before_torch
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.cli.shared.command import Command, Options


class Entry(NamedTuple):
    """A command in the list that `holdfast --help` prints."""

    variable: str  # the module in its group's folder, and the name of its `Command`
    summary: str


# the commands by what they are for; each group has a folder here
GROUPS = {
    "Measure": {
        "try": Entry("first_run.COMMAND", "measure a model, or your own bot, for two minutes"),
        "drift": Entry("drift.COMMAND", "measure how a model drifts from its system prompts"),
        "check": Entry("check.COMMAND", "test whether system prompts hold, for CI"),
    },
    "Logs": {
        "suite": Entry(
            "suite.COMMAND", "draft a suite from a rules file, or test a suite's measures"
        ),
        "logs": Entry("logs.COMMAND", "score logs of real dialogs by the rules of their prompts"),
        "remind": Entry("remind.COMMAND", "remind a coding agent of the rules that it just broke"),
    },
    "Results": {
        "report": Entry("report.COMMAND", "write one page about one or more runs"),
        "compare": Entry("compare.COMMAND", "compare runs of two models, prompts or versions"),
        "map": Entry("map.COMMAND", "see which kinds of rules are kept, and which are lost"),
        "export": Entry("export.COMMAND", "write a run as a table, for other tools"),
        "join": Entry("join.COMMAND", "join the shards of a run in one folder"),
    },
    "Explain": {
        "precedent": Entry(
            "precedent.COMMAND",
            "see whether a model follows its system prompt or its own earlier replies",
        ),
        "trace": Entry("trace.COMMAND", "see how attention to the prompt decays"),
        "geometry": Entry(
            "trace.GEOMETRY", "see how a model's hidden states spread as a dialog grows"
        ),
    },
    "Fix": {
        "calibrate": Entry(
            "calibrate.COMMAND", "measure the gain and the cost of each fix, and recommend one"
        ),
        "profile": Entry("profile.COMMAND", "find the attention heads that are worth steering"),
        "fit": Entry("fit.COMMAND", "learn from examples the directions that some methods need"),
    },
    "Serve": {
        "serve": Entry(
            "serve.COMMAND", "serve a model to OpenAI's clients, with steering per request"
        ),
        "proxy": Entry(
            "proxy.COMMAND",
            "forward a client's requests to its server, add reminders, score replies",
        ),
        "chat": Entry("chat.COMMAND", "talk with a model in the terminal"),
        "generate": Entry("generate.COMMAND", "answer one chat"),
    },
    "Papers": {
        "reproduce": Entry(
            "reproduce.COMMAND", "reproduce a paper's figures on your model, and judge its claims"
        ),
        "tasks": Entry(
            "tasks.COMMAND", "run the benchmark tasks of the PASTA paper, with prompts or steering"
        ),
        "lm-eval": Entry("lm_eval.COMMAND", "run lm-evaluation-harness, with --model holdfast"),
    },
    "Look up": {
        "methods": Entry("catalogue.METHODS", "list the steering methods"),
        "measures": Entry(
            "catalogue.MEASURES", "list the measures, and the word lists that they know"
        ),
        "docs": Entry("docs.COMMAND", "read the documentation, in the terminal or in a browser"),
        "completion": Entry(
            "completion.COMMAND", "print a script that completes commands in a shell"
        ),
    },
}
ENTRIES = {name: entry for group in GROUPS.values() for name, entry in group.items()}
_FOLDERS = {
    name: group.lower().replace(" ", "_") for group, entries in GROUPS.items() for name in entries
}
_WITH_VERDICTS = ("check", "logs")  # the commands that write JUnit XML
_VERSION = f"holdfast {__version__}"
_START = """Holdfast measures how a chat model drifts from its system prompt, and reduces it.

Start here:
  holdfast try                                      the default model: two minutes, no download
  holdfast try --model MODEL --prompt bot.txt       your model, and your bot's prompt
  holdfast suite init AGENTS.md --out rules.yaml    draft the rules of your coding agent
  holdfast logs SESSIONS --suite rules.yaml         see which it broke, when and why

MODEL is a folder, a GGUF file, a name on the Hugging Face hub, or the URL of an endpoint.
`holdfast --help` lists all commands, `holdfast docs` all pages."""
_EPILOG = """Try: holdfast try, or holdfast COMMAND --help

Exit codes (check and logs have more; `holdfast docs runs` lists all):
  0    success
  1    failure
  2    the command is malformed, names what does not exist, or its folder holds another run
  5    a server that the command needs is not available
  130  stopped by Ctrl-C
  143  stopped by SIGTERM"""


class _Parsers(NamedTuple):
    """The parser of the command line, and the parsers of its commands."""

    main: OneSentenceParser
    commands: dict[str, OneSentenceParser]


def command_named(name: str) -> Command[Any]:
    """Imports a command by the name that is typed."""
    module, _, variable = ENTRIES[name].variable.partition(".")
    package = f"holdfast.cli.{_FOLDERS[name]}"
    command: Command[Any] = getattr(import_module(f"{package}.{module}"), variable)
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; without a command, says where to start."""
    set_before_torch()
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # libraries' bars would fill a log file
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(_START)
        return 0
    try:
        return _run_with_json(words) if "--json" in words else _run(words)
    except BrokenPipeError:  # whoever read the output has stopped reading
        _discard(sys.stdout, sys.stderr)
        return 1


def _run_with_json(words: Sequence[str]) -> int:
    """Runs one command whose output is one JSON document."""
    from holdfast.cli.shared.json_output import json_on_stdout

    words = [word for word in words if word != "--json"]
    with json_on_stdout() as output:
        if not words:
            message = "--json needs a command; name one, as in `holdfast try --json`."
            print(f"holdfast: {message}", file=sys.stderr)
            output.write_error(message)
            return MALFORMED
        try:
            code = _run(words, output.write_error)
        except SystemExit as ended:
            if ended.code:
                raise
            # the parser has printed the help or the version
            output.write_error("The help and the version are text; leave out --json.")
            return MALFORMED
        if code:
            output.write_error(f"`holdfast {words[0]}` failed; stderr says why.")
    return code


def _run(words: Sequence[str], write_error: Callable[[str], None] | None = None) -> int:
    """Runs one command and returns its exit code; prints why it failed, if it did.

    Args:
        write_error: receives that sentence too, under `--json`.
    """
    command: Command[Any] | None = None
    arguments: Options | None = None
    try:
        if write_error is None and (code := _answer_hook(words)) is not None:
            return code
        with interrupting_on_sigterm(), warnings.catch_warnings():
            from holdfast.cli.shared.command import naming_new_folders

            command, arguments = read_command(words)
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            _write_no_verdict(words, "the command has not finished")
            with naming_new_folders(*arguments.files_to_write):
                code = command.run(arguments)
            sys.stdout.flush()  # output that cannot be written fails here, not as Python exits
            return code or 0
    except HoldfastError as error:
        failure = _failure_of(error, words, command)
    except KeyboardInterrupt as interrupt:
        failure = _interruption(interrupt, words, arguments)
    except OSError as error:
        if error.errno not in FULL:
            raise
        failure = _full_disk(FULL[error.errno])
    print(f"holdfast: {failure.message}", file=sys.stderr)
    if write_error is not None:
        write_error(failure.message)
    return failure.code


def _answer_hook(words: Sequence[str]) -> int | None:
    """Answers the hook of a coding agent, if it called the command; returns the exit code, or None.

    A hook has no time for the parser, whose imports take too long.
    """
    if words[0] != "remind":
        return None
    from holdfast.coding_agents.hook_command import answer_on_stdin, hook_call

    call = hook_call(words)
    return None if call is None else answer_on_stdin(call)


class _Failure(NamedTuple):
    """Why a command failed, as a sentence for people, and its exit code."""

    message: str
    code: int


def _failure_of(
    error: HoldfastError, words: Sequence[str], command: Command[Any] | None
) -> _Failure:
    """The failure that an error of ours means; `command` is None if its line was malformed."""
    message = _as_typed(error, words[0])
    with contextlib.suppress(HoldfastError):
        _write_no_verdict(words, message)
    return _Failure(message, _exit_code_of(error, words[0], command))


def _interruption(
    interrupt: KeyboardInterrupt, words: Sequence[str], arguments: Options | None
) -> _Failure:
    """The failure of a command that Ctrl-C or SIGTERM has ended."""
    is_terminated = isinstance(interrupt, Terminated)
    how = "terminated" if is_terminated else "interrupted"
    _write_no_verdict(words, f"the command was {how}")
    print(file=sys.stderr)  # ends the line with the bar, or with "^C"
    folder = None if arguments is None else arguments.resumable_folder
    message = _interruption_message(how, folder, words)
    return _Failure(message, TERMINATED if is_terminated else INTERRUPTED)


def _full_disk(reason: str) -> _Failure:
    """The failure of a command whose output cannot be written."""
    _discard(sys.stdout)
    message = f"The output cannot be written: {reason}; free some space, and repeat the command."
    return _Failure(message, 1)


def _exit_code_of(error: HoldfastError, name: str, command: Command[Any] | None) -> int:
    """The exit code of a command that failed; `command` is None if its line was malformed."""
    if command is None:
        return command_named(name).malformed if name in ENTRIES else MALFORMED
    if isinstance(error, UsageError):
        return MALFORMED
    return UNAVAILABLE if _is_outage(error) else command.failed


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
    from holdfast.cli.look_up.catalogue import place_of

    if place := place_of(word, list(ENTRIES)):
        return UsageError(place, option="command", value=word)
    return UnknownName("command", word, names)


def _write_no_verdict(words: Sequence[str], why: str) -> None:
    """Writes the file of --junit, if it is given, so that no verdict of an earlier run stays there.

    Args:
        words: the command line, which may be malformed.
        why: why there is no verdict.
    """
    if words[0] not in _WITH_VERDICTS or "--dry-run" in words:
        return
    paths = [
        word.partition("=")[2] or after
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word == "--junit" or word.startswith("--junit=")
    ]
    if not paths or not paths[-1] or paths[-1].startswith("--"):
        return
    # these take a while to import
    from holdfast.cli.shared.command import naming_new_folders
    from holdfast.report.junit import write_unfinished

    path = Path(paths[-1])
    with naming_new_folders(path):
        write_unfinished(words[0], path, why)


def _discard(*streams: TextIO) -> None:
    """Discards the rest of the output, which Python would otherwise try to write as it exits."""
    with open(os.devnull, "w") as nowhere:
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nowhere.fileno(), stream.fileno())


def _as_typed(error: HoldfastError, name: str) -> str:
    """The error's message, with the options of the command `name` as they are typed."""
    if name not in ENTRIES:
        return error.message_in(as_argument)
    typed = _parsers(name).commands[name].typed_options()

    def as_typed(option: str, value: Any) -> str:
        if option not in typed:
            return as_argument(option, value)
        if value in (None, True):
            return typed[option]
        return f"{typed[option]} {shlex.quote(str(value))}"

    return error.message_in(as_typed)


def _interruption_message(how: str, folder: Path | None, words: Sequence[str]) -> str:
    """Says that a command was interrupted, where its finished work is, and how to resume it.

    Args:
        how: "interrupted" or "terminated".
        folder: where the command keeps its work; None if it cannot be resumed.
    """
    if folder is None:
        return f"{how}."
    command = shlex.join(["holdfast", *words])
    if not any(file.stat().st_size for file in folder.rglob("*.jsonl")):
        return f"{how}; nothing was finished yet, so `{command}` starts from the beginning."
    return f"{how}; finished work is in {folder}, and `{command}` resumes it."


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    print(f"holdfast: {' '.join(str(message).split())}", file=sys.stderr)


def _is_outage(error: HoldfastError) -> bool:
    """Whether an error means that a server is not available.

    A server that withheld a reply, or whose context had no room for it, is available.
    """
    if isinstance(error, RequestFailed):
        return error.why == "failure"
    return isinstance(error, Unavailable)


def parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands with their options."""
    return _parsers(*ENTRIES).main


def _list_commands() -> str:
    """Lists the commands by group, each with its summary."""
    width = max(len(name) for name in ENTRIES)
    lines: list[str] = []
    for group, entries in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}  {entry.summary}" for name, entry in entries.items()]
    return "\n".join(lines[1:])


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
        epilog=None if names else f"{_list_commands()}\n\n{_EPILOG}",
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
        from holdfast.cli.shared.command import add_command

        add_command(commands, command_named(name), ENTRIES[name].summary)
    return _Parsers(main_parser, commands.choices)
