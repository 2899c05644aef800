"""Finds the user's messages: in scripts, in recorded dialogs, or from a model with a persona."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.shared.command import Options, option_of
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import UserTurnsOptions
from holdfast.drift import Settings, Suite
from holdfast.drift.cases import personas_of
from holdfast.drift.recorded_dialogs import RecordedDialog, RecordedDialogs, read_dialogs
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.suites import PUBLISHED, SHIPPED
from holdfast.drift.user_scripts import SHIPPED_SCRIPTS, UserTurns, read_user_turns
from holdfast.errors import UsageError

NO_SCRIPTS = "none"  # the value of --user-turns that lets a model play the user


def load_user_turns(arguments: UserTurnsOptions, suite: Suite) -> UserTurns | None:
    """Reads the scripts of `--user-turns`, or those that suit the suite; None if a model plays the
    user.
    """
    if arguments.user_turns is None:
        return _bundled_user_turns(arguments, suite)
    if arguments.user_turns == NO_SCRIPTS:
        return None
    _refuse_other_users(arguments, "user_turns", ("persona", "user_model", "dialogs"))
    return read_user_turns(arguments.user_turns)


def _bundled_user_turns(arguments: UserTurnsOptions, suite: Suite) -> UserTurns | None:
    """The bundled scripts for a suite file, unless an option or the suite says who the user is.

    Without scripts, the model would talk with itself, and a real model that does so soon repeats
    itself.
    """
    suite_name = str(getattr(arguments, "suite", ""))
    is_suite_file = suite_name not in SHIPPED and suite_name.partition(":")[0] not in PUBLISHED
    options = ("dialogs", "persona", "user_model", "user_prompt")
    option_decides = any(not arguments.is_default(name) for name in options)
    pairs_decide = getattr(arguments, "pairs", "") == "all"  # pairs of an agent and a user
    if not is_suite_file or option_decides or pairs_decide or suite.personas:
        return None
    rounds = getattr(arguments, "rounds", Settings.rounds)
    for name in SHIPPED_SCRIPTS:
        turns = read_user_turns(name)
        if len(turns.shortest.messages) >= rounds:
            return turns
    return None


def note_usual_user_turns(arguments: UserTurnsOptions, user_turns: UserTurns | None) -> None:
    """Prints which scripts the user's messages are from, if no option chose them.

    Scripts begin with messages of their own, so the suite's starters are not used then.
    """
    if arguments.user_turns is None and user_turns is not None:
        note(
            f"the user's messages are those of --user-turns {Path(user_turns.name).stem}, as the"
            f" suite is your own; with --user-turns {NO_SCRIPTS}, a model plays the user, and"
            " begins with a starter of the suite."
        )


def load_dialogs(
    arguments: Options, path: str | None, suite: Suite, settings: Settings
) -> RecordedDialogs | None:
    """Reads the dialogs of `--dialogs`; prints how many are cut, changed or left out.

    Returns:
        The dialogs; None if the option is not given.
    """
    if path is None:
        return None
    _refuse_other_users(arguments, "dialogs", ("persona", "user_model"))
    dialogs = read_dialogs(path)
    _note_dialogs_cut(dialogs, settings)
    _note_prompts_replaced(dialogs.dialogs[: settings.conversations], suite)
    return dialogs


def _note_dialogs_cut(dialogs: RecordedDialogs, settings: Settings) -> None:
    """Prints if the settings leave out dialogs, or the end of the longest one."""
    count = len(dialogs.dialogs)
    rounds = dialogs.most_rounds
    if count > settings.conversations:
        note(
            f"only the first {settings.conversations:,} of {count:,} dialogs in {dialogs.name} are"
            f" replayed; --conversations {count} replays all."
        )
    if rounds > settings.rounds:
        note(
            f"only the first {settings.rounds:,} of the longest dialog's {rounds:,} rounds are"
            f" replayed; --rounds {rounds} replays all."
        )


def _note_prompts_replaced(replayed: Sequence[RecordedDialog], suite: Suite) -> None:
    """Prints how many dialogs get a system prompt of the suite in place of their own."""
    prompts = [dialog.system for dialog in replayed if dialog.system]
    if unknown := sum(suite.case_with_prompt(prompt) is None for prompt in prompts):
        note(
            f"{unknown:,} of {len(replayed):,} dialogs have a system prompt that the suite"
            f" {suite.name!r} does not have, and get one of the suite's in its place."
        )


def with_user_prompt(
    suite: Suite, settings: Settings, personas: Sequence[str] | None
) -> tuple[Suite, Settings]:
    """Adds the personas of --persona to the suite, and sets which prompt the user model has:
    another of the suite, a persona, or none.
    """
    if personas is not None:
        suite = _with_personas(suite, settings, personas)
    user_prompt = user_prompt_of(suite, settings)
    if (settings.user_prompt, user_prompt) == ("auto", "empty"):
        note(
            f"the suite {suite.name!r} has one system prompt, so the user model talks without one;"
            " say who it is with --persona."
        )
    if (settings.pairs, user_prompt) == ("all", "suite"):
        _note_unequal_pairs(suite, settings)
    return suite, dataclasses.replace(settings, user_prompt=user_prompt)


def _with_personas(suite: Suite, settings: Settings, personas: Sequence[str]) -> Suite:
    """Adds the personas of --persona; refuses empty ones, and a --user-prompt beside them."""
    if settings.user_prompt not in ("auto", "persona"):
        raise UsageError(
            "--persona says who the user model is, and so does --user-prompt"
            f" {settings.user_prompt}; give one of the two."
        )
    if not all(text.strip() for text in personas):
        raise UsageError(
            "--persona '' is empty; write who the user model is, or give --user-prompt empty."
        )
    return dataclasses.replace(suite, personas=personas_of(personas))


def _note_unequal_pairs(suite: Suite, settings: Settings) -> None:
    """Prints if the conversations do not use all pairs of system prompts equally often."""
    pairs = len(suite.cases) * (len(suite.cases) - 1)
    if settings.conversations % pairs:
        note(
            f"--pairs all goes through {pairs:,} pairs prompt after prompt, and --conversations"
            f" {settings.conversations} does not use all of them equally often; --pairs balanced"
            " gives every prompt its share."
        )


def _refuse_other_users(arguments: Options, name: str, others: Sequence[str]) -> None:
    """Refuses other options that determine the user's messages, as the option `name` does."""
    option = f"{option_of(name)} {getattr(arguments, name)}"
    arguments.refuse(others, f"and {option} both say what the user says; leave out one of them")
