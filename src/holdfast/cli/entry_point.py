"""The entry point of the command line: runs one command, and returns its exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.command_failures import (
    discard,
    failure_of,
    full_disk,
    interruption,
    write_no_verdict,
)
from holdfast.cli.main_parser import read_command
from holdfast.cli.shared.exit_codes import FAILED, MALFORMED, PASSED
from holdfast.cli.shared.interrupts import interrupting_on_sigterm
from holdfast.errors import HoldfastError
from holdfast.files import FULL
from holdfast.generation.cpu_threads import set_before_torch

if TYPE_CHECKING:
    from holdfast.cli.shared.command import Command, Options

_START_HERE = """Holdfast measures how a chat model drifts from its system prompt, and reduces it.

Start here:
  holdfast try                                      the default model: two minutes, no download
  holdfast try --model MODEL --prompt bot.txt       your model, and your bot's prompt
  holdfast suite init AGENTS.md --out rules.yaml    draft the rules of your coding agent
  holdfast logs SESSIONS --suite rules.yaml         see which it broke, when and why

MODEL is a folder, a GGUF file, a name on the Hugging Face hub, or the URL of an endpoint.
`holdfast --help` lists all commands, `holdfast docs` all pages."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; without a command, says where to start."""
    set_before_torch()
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # libraries' bars would fill a log file
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(_START_HERE)
        return PASSED
    try:
        return _run_with_json(words) if "--json" in words else _run(words)
    except BrokenPipeError:  # whoever read the output has stopped reading
        discard(sys.stdout, sys.stderr)
        return FAILED


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
            from holdfast.cli.shared.notes import naming_new_folders

            command, arguments = read_command(words)
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            write_no_verdict(words, "the command has not finished")
            with naming_new_folders(*arguments.files_to_write):
                code = command.run(arguments)
            sys.stdout.flush()  # output that cannot be written fails here, not as Python exits
            return code or PASSED
    except HoldfastError as error:
        failure = failure_of(error, words, command)
    except KeyboardInterrupt as interrupt:
        failure = interruption(interrupt, words, arguments)
    except OSError as error:
        if error.errno not in FULL:
            raise
        failure = full_disk(FULL[error.errno])
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


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    print(f"holdfast: {' '.join(str(message).split())}", file=sys.stderr)
