"""Why a command failed: a sentence for people, and the exit code."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from holdfast.cli.command_list import ENTRIES, command_named
from holdfast.cli.main_parser import typed_options
from holdfast.cli.shared.exit_codes import FAILED, INTERRUPTED, MALFORMED, TERMINATED, UNAVAILABLE
from holdfast.cli.shared.interrupts import Terminated
from holdfast.errors import (
    HoldfastError,
    RequestFailed,
    Unavailable,
    Unsteerable,
    UsageError,
    as_argument,
)

if TYPE_CHECKING:
    from holdfast.cli.shared.command import Command, Options

_WITH_VERDICTS = ("check", "logs")  # the commands that write JUnit XML


class Failure(NamedTuple):
    """Why a command failed, as a sentence for people, and its exit code."""

    message: str
    code: int


def failure_of(error: HoldfastError, words: Sequence[str], command: Command[Any] | None) -> Failure:
    """The failure that an error of ours means; `command` is None if its line was malformed."""
    message = _message_as_typed(error, words[0])
    with contextlib.suppress(HoldfastError):
        write_no_verdict(words, message)
    return Failure(message, _exit_code_of(error, words[0], command))


def _message_as_typed(error: HoldfastError, name: str) -> str:
    """The error's message, with options as they are typed in the command `name`."""
    if name not in ENTRIES:
        return error.message_in(as_argument)
    options = typed_options(name)

    def as_typed(field: str, value: Any) -> str:
        if field not in options:
            return as_argument(field, value)
        if value in (None, True):
            return options[field]
        return f"{options[field]} {shlex.quote(str(value))}"

    return error.message_in(as_typed)


def _exit_code_of(error: HoldfastError, name: str, command: Command[Any] | None) -> int:
    if command is None:
        return command_named(name).malformed if name in ENTRIES else MALFORMED
    if isinstance(error, (UsageError, Unsteerable)):
        return MALFORMED
    return UNAVAILABLE if _is_outage(error) else command.failed


def _is_outage(error: HoldfastError) -> bool:
    """Whether an error means that a server is not available.

    A server that withheld a reply, or whose context had no room for it, is available.
    """
    if isinstance(error, RequestFailed):
        return error.why == "failure"
    return isinstance(error, Unavailable)


def interruption(
    interrupt: KeyboardInterrupt, words: Sequence[str], arguments: Options | None
) -> Failure:
    """The failure of a command that Ctrl-C or SIGTERM has ended."""
    is_terminated = isinstance(interrupt, Terminated)
    how = "terminated" if is_terminated else "interrupted"
    write_no_verdict(words, f"the command was {how}")
    print(file=sys.stderr)  # ends the line with the bar, or with "^C"
    folder = None if arguments is None else arguments.resumable_folder
    message = _interruption_message(how, folder, words)
    return Failure(message, TERMINATED if is_terminated else INTERRUPTED)


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


def full_disk(reason: str) -> Failure:
    """The failure of a command whose output cannot be written."""
    discard(sys.stdout)
    message = f"The output cannot be written: {reason}; free some space, and repeat the command."
    return Failure(message, FAILED)


def discard(*streams: TextIO) -> None:
    """Discards the rest of the output, which Python would otherwise try to write as it exits."""
    with open(os.devnull, "w") as nowhere:
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nowhere.fileno(), stream.fileno())


def write_no_verdict(words: Sequence[str], why: str) -> None:
    """Writes the file of --junit, if it is given, so that no verdict of an earlier run stays there.

    Args:
        words: the command line, which may be malformed.
        why: why there is no verdict.
    """
    if words[0] not in _WITH_VERDICTS or "--dry-run" in words:
        return
    paths = [
        word.partition("=")[2] or following
        for word, following in zip(words, [*words[1:], ""], strict=True)
        if word == "--junit" or word.startswith("--junit=")
    ]
    if not paths or not paths[-1] or paths[-1].startswith("--"):
        return
    from holdfast.cli.shared.notes import naming_new_folders
    from holdfast.report.junit import write_unfinished  # takes a while to import

    path = Path(paths[-1])
    with naming_new_folders(path):
        write_unfinished(words[0], path, why)
