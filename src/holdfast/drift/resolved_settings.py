"""Resolves the settings that depend on the suite, or on dialogs or user turns from a file."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.chat.messages import Message, Tool, uses_tools
from holdfast.chat.prompt import render_with_spans
from holdfast.drift.cases import Suite
from holdfast.drift.recorded_dialogs import RecordedDialogs
from holdfast.drift.settings import Cast, Settings, UserPrompt
from holdfast.drift.user_scripts import UserTurns
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
    model: ChatModel, suite: Suite, settings: Settings, cast: Cast
) -> tuple[Settings, Cast]:
    """Adapts settings and cast to the suite and the model: resolves what they leave open.

    Dialogs with tools that the model's chat template cannot render are left out, with a warning.
    """
    require_chat_model(model)
    if cast.dialogs is not None:
        dialogs = _without_refused(cast.dialogs, model, suite, settings)
        cast = replace(cast, dialogs=dialogs)
    return resolve_settings(suite, settings, cast), cast


def resolve_settings(suite: Suite, settings: Settings, cast: Cast = Cast()) -> Settings:
    """Resolves the user prompt, and limits the conversations to the number of dialogs."""
    if cast.dialogs is not None:
        _refuse_user_prompt(settings, "replayed", cast.dialogs.name)
        count = min(settings.conversations, len(cast.dialogs.dialogs))
        return replace(settings, user_prompt="replayed", conversations=count)
    if cast.user_turns is not None:
        _refuse_user_prompt(settings, "scripted", cast.user_turns.name)
        _refuse_short_scripts(settings, cast.user_turns)
        return replace(settings, user_prompt="scripted")
    return replace(settings, user_prompt=user_prompt_of(suite, settings))


def _refuse_user_prompt(settings: Settings, replacement: UserPrompt, file: str) -> None:
    """Refuses a user prompt that was chosen although a file has the user's messages."""
    if settings.user_prompt not in ("auto", replacement):
        raise UsageError(
            f"{option('user_prompt', settings.user_prompt)} is for a user model, and {file} has the"
            " user's messages; leave out one of the two."
        )


def _refuse_short_scripts(settings: Settings, user_turns: UserTurns) -> None:
    """Refuses scripts with fewer messages than a conversation has rounds."""
    script = user_turns.shortest
    messages = len(script.messages)
    if messages < settings.rounds:
        raise UsageError(
            f"Line {script.line} of {user_turns.name} has {count_of(messages, 'message')}, but a"
            f" conversation of {count_of(settings.rounds, 'round')} needs one for each round; give"
            f" {option('rounds', messages)}, or longer dialogs."
        )


def _without_refused(
    recorded: RecordedDialogs, model: ChatModel, suite: Suite, settings: Settings
) -> RecordedDialogs:
    """Leaves out dialogs with tools that the chat template cannot render; warns which these are.

    Raises:
        UsageError: no dialog is left.
    """
    refusals = _refusals(recorded, model, suite, settings)
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


class _ToolChat(NamedTuple):
    """A recorded dialog with tools, as a request would show it."""

    line: int  # of the dialog in its file
    messages: list[Message]
    tools: tuple[Tool, ...]


def _refusals(
    recorded: RecordedDialogs, model: ChatModel, suite: Suite, settings: Settings
) -> dict[int, str]:
    """Why the model's chat template cannot render a dialog with tools, by the dialog's line."""
    chats: list[_ToolChat] = []
    for dialog in recorded.dialogs:
        if dialog.tools or uses_tools(dialog.messages):
            case = suite.case_with_prompt(dialog.system) or suite.cases[0]
            system = {"role": "system", "content": case.system_prompt}
            probe = {"role": "user", "content": case.rules[0].probes[0]}
            chats.append(_ToolChat(dialog.line, [system, *dialog.messages, probe], dialog.tools))
    return call_with_model(model, _refusals_of_template, chats, settings.system_as) if chats else {}


def _refusals_of_template(
    model: ChatModel, chats: Sequence[_ToolChat], system_as: str
) -> dict[int, str]:
    """The chats that cannot be rendered, where the model is: their lines, and the reasons.

    A model without a tokenizer here renders chats elsewhere, so none of its chats is refused.
    """
    refusals: dict[int, str] = {}
    tokenizer = tokenizer_of(model)
    if tokenizer is None:
        return refusals
    for chat in chats:
        try:
            render_with_spans(chat.messages, tokenizer, system_as=system_as, tools=chat.tools)
        except PromptError as error:
            refusals[chat.line] = str(error)
    return refusals
