"""Command lines, and the parsers of commands."""

import argparse
import signal
from collections.abc import Mapping, Sequence

from holdfast.cli.main_parser import parser


def changed(words: Sequence[str], *options: str) -> list[str]:
    """A command with further options, which replace those of its own that have the same name; each
    of the command's own options has one value."""
    names = {word.partition("=")[0] for word in options if word.startswith("--")}
    kept_words: list[str] = []
    follows_replaced = False
    for word in words:
        replaced = word in names
        if not replaced and not follows_replaced:
            kept_words.append(word)
        follows_replaced = replaced
    return [*kept_words, *options]


def heed_interrupts() -> None:
    """For a child process: background jobs of a shell ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command_parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command, by its name."""
    (commands,) = (action for action in parser()._actions if action.choices)
    return commands.choices
