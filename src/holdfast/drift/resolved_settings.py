"""Resolves the settings of a run with its suite, and with dialogs or user turns from a file."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.chat.messages import Message, Tool, uses_tools
from holdfast.chat.prompt import render_with_spans
from holdfast.drift.cases import Suite
from holdfast.drift.recorded_dialogs import Dialogs
from holdfast.drift.settings import Settings
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import PromptError, UsageError
from holdfast.models.protocol import ChatModel
from holdfast.models.replicas import ask_model
from holdfast.plurals import count_of


def user_prompt_of(suite: Suite, settings: Settings) -> str:
    """Where the user model gets its prompt; "auto" is resolved by what the suite contains."""
    chosen = settings.user_prompt
    if chosen in ("replayed", "scripted"):
        given = "dialogs" if chosen == "replayed" else "user turns"
        raise UsageError(f"user_prompt={chosen!r} is for a run with {given}; leave it out.")
    if chosen == "auto":
        return "persona" if suite.personas else "suite" if len(suite.cases) > 1 else "empty"
    if chosen == "persona" and not suite.personas:
        raise UsageError(
            f"The suite {suite.name!r} has no personas for the user model; list some under"
            " 'personas' in its file, or choose another user prompt."
        )
    if chosen == "suite" and len(suite.cases) < 2:
        raise UsageError(
            f"The suite {suite.name!r} has {len(suite.cases)} system prompt, so it has no other"
            " one for the user model; give the user model a persona, or an empty prompt."
        )
    return chosen


def prepare(
    model: ChatModel, suite: Suite, settings: Settings, given: Dialogs | UserTurns | None
) -> tuple[Dialogs | UserTurns | None, Settings]:
    """The user's side of a run, and the resolved settings.

    Dialogs whose tools the model's template cannot render are left out, with a warning.
    """
    if isinstance(given, Dialogs):
        given = _without_refused(model, suite, settings, given)
    return given, resolve_settings(suite, settings, given)


def resolve_settings(
    suite: Suite, settings: Settings, given: Dialogs | UserTurns | None
) -> Settings:
    """The settings with the user prompt resolved, and no more conversations than dialogs."""
    if given is None:
        return replace(settings, user_prompt=user_prompt_of(suite, settings))
    source = "scripted" if isinstance(given, UserTurns) else "replayed"
    if settings.user_prompt not in ("auto", source):
        raise UsageError(
            f"--user-prompt {settings.user_prompt} is for a user model, and {given.name} has the"
            " user's messages; leave out one of the two."
        )
    if isinstance(given, UserTurns):
        few = given.shortest
        if len(few.messages) < settings.rounds:
            raise UsageError(
                f"Line {few.line} of {given.name} has {count_of(len(few.messages), 'message')}, and"
                f" a conversation of {count_of(settings.rounds, 'round')} needs one for each; give"
                f" --rounds {len(few.messages)}, or longer dialogs."
            )
        return replace(settings, user_prompt=source)
    count = min(settings.conversations, len(given.dialogs))
    return replace(settings, user_prompt=source, conversations=count)


def _without_refused(model: ChatModel, suite: Suite, settings: Settings, given: Dialogs) -> Dialogs:
    """The dialogs without those whose tools the template cannot render, which a warning lists."""
    chats = {}
    for dialog in given.dialogs:
        if dialog.tools or uses_tools(dialog.messages):
            case = suite.case_with_prompt(dialog.system) or suite.cases[0]
            system = {"role": "system", "content": case.system_prompt}
            probe = {"role": "user", "content": case.rules[0].probes[0]}
            chats[dialog.line] = ([system, *dialog.messages, probe], dialog.tools)
    refusals = ask_model(model, _refusals, chats, settings.system_as) if chats else {}
    if not refusals:
        return given
    lines = f"line{'s' * (len(refusals) > 1)} {', '.join(map(str, refusals))}"
    left_out = (
        f"{len(refusals):,} of {len(given.dialogs):,} dialogs in {given.name} are left out, because"
        f" {model.name} does not take their tools ({lines}): {next(iter(refusals.values()))}"
    )
    kept = tuple(dialog for dialog in given.dialogs if dialog.line not in refusals)
    if not kept:
        raise UsageError(left_out)
    warnings.warn(left_out, stacklevel=4)
    return replace(given, dialogs=kept, left_out=left_out)


def _refusals(
    model: ChatModel, chats: Mapping[int, tuple[list[Message], Sequence[Tool]]], system_as: str
) -> dict[int, str]:
    """By line, why the model's chat template cannot render a chat with tools."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    refusals = {}
    for line, (messages, tools) in chats.items() if tokenizer is not None else ():
        try:
            render_with_spans(messages, tokenizer, system_as=system_as, tools=tools)
        except PromptError as error:
            refusals[line] = str(error)
    return refusals
