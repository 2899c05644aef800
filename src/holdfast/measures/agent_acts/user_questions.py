"""The questions that an agent asks the user with a tool, in the arguments of the call.

    {"questions": [{"question": "Push?", "options": [{"label": "Yes"}]}]}
    -> UserQuestion("Push?", options=(Option("Yes"),))

Claude Code, opencode, Codex and Gemini CLI list several in `questions`; the tools of Cline, Roo
Code and others ask a single one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.validation.json_values import fields_of, objects_in, text_or_empty

_TEXT_FIELDS = ("question", "prompt", "text")
_OPTION_FIELDS = ("options", "choices", "follow_up", "suggestions")
_LABEL_FIELDS = ("label", "text", "title", "name", "value")


@dataclass(frozen=True)
class Option:
    """An answer that a question offers."""

    label: str
    description: str = ""


@dataclass(frozen=True)
class UserQuestion:
    """A question to the user; a field that the call does not have is empty."""

    text: str
    header: str = ""
    id: str = ""
    options: tuple[Option, ...] = ()


def questions_in(arguments: Mapping[str, Any]) -> tuple[UserQuestion, ...]:
    """Returns the questions in the arguments of a call that asks the user."""
    listed = objects_in(arguments.get("questions"))
    if listed:
        return tuple(map(_question, listed))
    single = _question(arguments)
    return (single,) if single.text else ()


def _question(fields: Mapping[str, Any]) -> UserQuestion:
    values = (fields.get(name) for name in _OPTION_FIELDS)
    options = next(filter(None, values), None)
    return UserQuestion(
        _first_text(fields, _TEXT_FIELDS),
        text_or_empty(fields.get("header")),
        str(fields.get("id") or ""),
        tuple(option for option in map(_option, _options_in(options)) if option.label),
    )


def _option(value: Any) -> Option:
    if isinstance(value, str):
        return Option(value)
    fields = fields_of(value)
    return Option(_first_text(fields, _LABEL_FIELDS), text_or_empty(fields.get("description")))


def _options_in(options: Any) -> list[Any]:
    """Returns a list of options, which some agents write as JSON in a text."""
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except (ValueError, RecursionError):
            return []
    return options if isinstance(options, list) else []


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    texts = (text_or_empty(fields.get(name)) for name in names)
    return next(filter(None, texts), "")
