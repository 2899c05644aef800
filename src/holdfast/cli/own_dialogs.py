"""`--dialogs` of `holdfast drift`: dialogs that were held, replayed in place of self-chats."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite
    from holdfast.drift.dialogs import Dialogs


def add_dialogs(add) -> None:
    """Adds the file of dialogs."""
    add(
        "--dialogs",
        str,
        "your own logs, one dialog per line (OpenAI's messages or ShareGPT), are replayed up"
        " to --rounds and probed at every round, in place of self-chats",
        metavar="FILE.jsonl",
    )


def load_dialogs(arguments: argparse.Namespace, suite: Suite, settings: Settings) -> Dialogs | None:
    """The dialogs of `--dialogs`; None without. Says what of them the run does not take as it is.

    Raises:
        UsageError: the file holds none, or an option is of a user model.
    """
    from holdfast.drift.dialogs import read_dialogs
    from holdfast.drift.pairing import case_of

    if arguments.dialogs is None:
        return None
    for option, value in (("--persona", arguments.persona), ("--user-model", arguments.user_model)):
        if value is not None:
            raise UsageError(
                f"{option} says who the user model is, and --dialogs {arguments.dialogs} has what"
                " its users said; leave one of the two out."
            )
    dialogs = read_dialogs(arguments.dialogs)
    count, rounds = len(dialogs.dialogs), dialogs.rounds
    if count > settings.conversations:
        _tell(
            f"{dialogs.name} has {count:,} dialogs, of which the first {settings.conversations:,}"
            f" are replayed; --conversations {count} takes all."
        )
    if rounds > settings.rounds:
        _tell(
            f"the longest dialog has {rounds:,} rounds, of which the first {settings.rounds:,} are"
            f" replayed; --rounds {rounds} takes all."
        )
    taken = dialogs.dialogs[: settings.conversations]
    foreign = sum(bool(dialog.system) and case_of(suite, dialog) is None for dialog in taken)
    if foreign:
        _tell(
            f"{foreign:,} of {len(taken):,} dialogs have a system prompt that the suite"
            f" {suite.name!r} does not have, and get one of the suite's in its place."
        )
    return dialogs


def _tell(line: str) -> None:
    print(f"holdfast: {line}", file=sys.stderr)
