"""Shared by the readers of all formats: values with their places, and required fields.

A value in a file is a dialog, a call of a model, or an event; a reader turns the values of one file
into dialogs, as messages, and names in `problems` what it leaves out.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, is_cut, is_message, read_messages
from holdfast.errors import shortened

Values = list[tuple[str, Any]]  # each with its place: the file, and the line or entry in it
Dialogs = Iterator[tuple[str, list[LoggedMessage]]]
Reader = Callable[[Values, list[str]], Dialogs]


def dialog_per_value(read: Callable[[Any], list[LoggedMessage]]) -> Reader:
    """A reader of a format in which every value is a dialog."""

    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        for where, value in values:
            try:
                yield where, read(value)
            except Malformed as error:
                problems.append(f"{where}: {error}")

    return dialogs


def objects(values: Values, problems: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for where, value in values:
        if isinstance(value, Mapping):
            yield where, value
        else:
            problems.append(f"{where}: {shortened(value)} is not an object")


def file_of(where: str) -> str:
    return where.rpartition(", ")[0]


def place_of(where: str) -> str:
    """The line or entry of a place, without its file."""
    return where.rpartition(", ")[2]


def field_of(value: Any, *names: str) -> Any:
    if isinstance(value, Mapping):
        for name in names:
            if name in value:
                return value[name]
    raise Malformed(f"{shortened(value)} has no {' or '.join(map(repr, names))}")


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Malformed(f"{shortened(value)} is not an object")
    return value


def entries(value: Any) -> list[Any]:
    """A list that may be missing."""
    if value is not None and not isinstance(value, list):
        raise Malformed(f"{shortened(value)} is not a list")
    return value or []


def at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def decoded(value: Any) -> Any:
    """Decodes a value that may be JSON in a string, as exports write it."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def system_prompt(text: Any) -> list[LoggedMessage]:
    return read_messages([{"role": "system", "content": text}]) if text else []


def given_messages(value: Any) -> list[LoggedMessage]:
    """The input of a model's call: text, a message, or messages."""
    if isinstance(value, str):
        return [LoggedMessage("user", value)]
    return read_messages(value if isinstance(value, list) else [value])


def answer_messages(value: Any) -> list[LoggedMessage]:
    """The output of a model's call: text, a message, or an API's whole response."""
    value = decoded(value)
    if value is None:
        return []
    if isinstance(value, str):
        return [LoggedMessage("assistant", value)]
    answer: Any = value
    if isinstance(value, Mapping) and isinstance(value.get("choices"), list):
        answer = value["choices"][0] if value["choices"] else None
        value = at(answer, "message") or {"role": "assistant", "content": at(answer, "text")}
    elif isinstance(value, Mapping) and isinstance(value.get("candidates"), list):  # Gemini's API
        answer = value["candidates"][0] if value["candidates"] else None
        value = at(answer, "content") or []
    elif at(value, "incomplete_details", "reason") == "max_output_tokens":  # the Responses API
        answer = {"finish_reason": "max_output_tokens"}
    if isinstance(value, Mapping) and not is_message(value):
        value = value.get("output") or [{"role": "assistant", **value}]
    messages = read_messages(value if isinstance(value, list) else [value])
    if messages and is_cut(answer):  # an API says it beside the message
        messages[-1] = replace(messages[-1], is_cut=True)
    return messages
