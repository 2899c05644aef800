"""Resolves the settings that depend on the suite, or on dialogs or user turns from a file."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.chat.messages import Message, Tool, uses_tools
from holdfast.chat.prompt import render_with_spans
from holdfast.drift.cases import Suite
from holdfast.drift.recorded_dialogs import Dialogs
from holdfast.drift.settings import Settings, UserPrompt
from holdfast.drift.user_scripts import UserSource, UserTurns
from holdfast.errors import PromptError, UsageError, option
from holdfast.models.capabilities import require_chat_model
from holdfast.models.protocol import ChatModel, tokenizer_of
from holdfast.models.replicas import call_with_model
from holdfast.plurals import count_of


def user_prompt_of(suite: Suite, settings: Settings) -> UserPrompt:
    """Where the user model's prompt comes from; the suite determines what "auto" means.

    Raises:
        UsageError: the suite lacks what the setting requires.
    """
    source = settings.user_prompt
    if source in ("replayed", "scripted"):
        needed = "dialogs" if source == "replayed" else "user turns"
        raise UsageError(
            f"{option('user_prompt', source)} is for a run with {needed}; leave it out."
        )
    if source == "auto" and suite.personas:
        return "persona"
    if source == "auto":
        return "suite" if len(suite.cases) > 1 else "empty"
    if source == "persona" and not suite.personas:
        raise UsageError(
            f"The suite {suite.name!r} has no personas for the user model; list some under"
            " 'personas' in its file, or choose another user prompt."
        )
    if source == "suite" and len(suite.cases) < 2:
        raise UsageError(
            f"The suite {suite.name!r} has only {count_of(len(suite.cases), 'system prompt')}, and"
            " so none for the user model; give the user model a persona, or an empty prompt."
        )
    return source


def prepare(
    model: ChatModel, suite: Suite, settings: Settings, user_source: UserSource | None
) -> tuple[UserSource | None, Settings]:
    """Prepares the recorded dialogs or scripts of a run, and resolves its settings.

    Dialogs with tools that the model's chat template cannot render are left out, with a warning.
    """
    require_chat_model(model)
    if isinstance(user_source, Dialogs):
        user_source = _leave_out_refused(model, suite, settings, user_source)
    return user_source, resolve_settings(suite, settings, user_source)


def resolve_settings(suite: Suite, settings: Settings, user_source: UserSource | None) -> Settings:
    """Resolves the user prompt, and limits the conversations to the number of dialogs."""
    if user_source is None:
        return replace(settings, user_prompt=user_prompt_of(suite, settings))
    source: UserPrompt = "scripted" if isinstance(user_source, UserTurns) else "replayed"
    if settings.user_prompt not in ("auto", source):
        raise UsageError(
            f"{option('user_prompt', settings.user_prompt)} is for a user model, and"
            f" {user_source.name} has the user's messages; leave out one of the two."
        )
    if isinstance(user_source, UserTurns):
        script = user_source.shortest
        messages = len(script.messages)
        if messages < settings.rounds:
            raise UsageError(
                f"Line {script.line} of {user_source.name} has {count_of(messages, 'message')}, but"
                f" a conversation of {count_of(settings.rounds, 'round')} needs one for each round;"
                f" give {option('rounds', messages)}, or longer dialogs."
            )
        return replace(settings, user_prompt=source)
    count = min(settings.conversations, len(user_source.dialogs))
    return replace(settings, user_prompt=source, conversations=count)


def _leave_out_refused(
    model: ChatModel, suite: Suite, settings: Settings, recorded: Dialogs
) -> Dialogs:
    """Leaves out dialogs with tools that the chat template cannot render; warns which these are.

    Raises:
        UsageError: no dialog is left.
    """
    chats = {}
    for dialog in recorded.dialogs:
        if dialog.tools or uses_tools(dialog.messages):
            case = suite.case_with_prompt(dialog.system) or suite.cases[0]
            system = {"role": "system", "content": case.system_prompt}
            probe = {"role": "user", "content": case.rules[0].probes[0]}
            chats[dialog.line] = ([system, *dialog.messages, probe], dialog.tools)
    refusals = call_with_model(model, _refusals, chats, settings.system_as) if chats else {}
    if not refusals:
        return recorded
    lines = f"line{'s' * (len(refusals) > 1)} {', '.join(map(str, refusals))}"
    left_out = (
        f"{len(refusals):,} of {len(recorded.dialogs):,} dialogs in {recorded.name} are left out,"
        f" because {model.name} does not take their tools ({lines}):"
        f" {next(iter(refusals.values()))}"
    )
    others = tuple(dialog for dialog in recorded.dialogs if dialog.line not in refusals)
    if not others:
        raise UsageError(left_out)
    warnings.warn(left_out, stacklevel=4)
    return replace(recorded, dialogs=others, left_out=left_out)


def _refusals(
    model: ChatModel, chats: Mapping[int, tuple[list[Message], Sequence[Tool]]], system_as: str
) -> dict[int, str]:
    """Why the model's chat template cannot render a chat with tools, by the chat's line.

    A model without a tokenizer here renders chats elsewhere, so none of its chats is refused.
    """
    refusals: dict[int, str] = {}
    tokenizer = tokenizer_of(model)
    if tokenizer is None:
        return refusals
    for line, (messages, tools) in chats.items():
        try:
            render_with_spans(messages, tokenizer, system_as=system_as, tools=tools)
        except PromptError as error:
            refusals[line] = str(error)
    return refusals
