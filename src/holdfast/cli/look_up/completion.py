"""`holdfast completion`: a script that completes commands and options in a shell.

The script contains every command and option, so that completing them runs no Python.
"""

import argparse
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from holdfast.cli.shared.command import Arg, Command, Options, RunFolder
from holdfast.cli.shared.json_output import write_document

Shell = Literal["bash", "zsh", "fish"]


class CompletionArguments(Options):
    shell: Annotated[Shell, Arg(positional=True)]
    """the shell"""


def run(arguments: CompletionArguments) -> None:
    script = completion_script(arguments.shell)
    print(script)
    write_document({"shell": arguments.shell, "script": script})


def completion_script(shell: Shell) -> str:
    """Builds the script that a shell sources, or keeps among its completions."""
    import shtab

    from holdfast.cli.main_parser import parser

    complete = copy.deepcopy(parser())
    for action in _actions_of(complete):
        if isinstance(action, argparse._SubParsersAction):
            action.help = "command"  # shtab leaves out an action whose help is suppressed
        elif isinstance(action, RunFolder):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path or "FILE" in str(action.metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(complete, shell=shell))


def _actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields the actions of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions_of(command)


COMMAND = Command(
    "completion",
    run,
    CompletionArguments,
    description="Prints a script that completes commands, options and their values in a shell.",
    examples=(
        "examples:\n"
        "  source <(holdfast completion bash)            in ~/.bashrc, or in this shell\n"
        "  holdfast completion zsh > ~/.zfunc/_holdfast  with fpath+=~/.zfunc before compinit\n"
        "  holdfast completion fish > ~/.config/fish/completions/holdfast.fish"
    ),
)
