"""Reads the dialogs that a run replays: one per line of a JSONL file (docs/conversations.md).

    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
    [{"role": "user", "content": "..."}, ...]

A dialog is read as rounds: the user's message and the answer to it, including tool calls.
Consecutive messages of one speaker form one turn.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.chat.messages import Message, Tool
from holdfast.errors import UsageError, cut
from holdfast.files import read_json_lines
from holdfast.transcripts import Event, Kind
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages, read_tools
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of


@dataclass(frozen=True)
class RecordedRound:
    """A round of a recorded dialog."""

    user: str
    messages: tuple[Message, ...]  # of the assistant and its tools

    @property
    def answer(self) -> str:
        """All texts of the assistant."""
        texts = (m["content"] for m in self.messages if m["role"] == "assistant")
        return "\n\n".join(filter(str.strip, texts))


@dataclass(frozen=True)
class RecordedDialog:
    """A dialog read from a file."""

    line: int  # its line in the file, from 1
    system: str  # its system prompt; "" if it has none
    rounds: tuple[RecordedRound, ...]
    tools: tuple[Tool, ...] = ()  # the tools that the dialog declares

    @property
    def messages(self) -> list[Message]:
        """All messages but the system prompt."""
        chat: list[Message] = []
        for recorded in self.rounds:
            chat += [{"role": "user", "content": recorded.user}, *recorded.messages]
        return chat


@dataclass(frozen=True)
class Dialogs:
    """The dialogs of a file, in order."""

    name: str  # of the file
    fingerprint: str  # SHA-256 of the file, in hexadecimal
    dialogs: tuple[RecordedDialog, ...]
    left_out: str = ""  # a sentence about dialogs that the model cannot be shown; "" if none

    @property
    def rounds(self) -> int:
        """The number of rounds of the longest dialog."""
        return max(len(dialog.rounds) for dialog in self.dialogs)


class _OpenCall(NamedTuple):
    """A tool call that has no result yet."""

    logged_id: str  # its id in the file
    id: str  # its id in the request


def read_dialogs(path: Path | str) -> Dialogs:
    """Reads a file of dialogs.

    Raises:
        UsageError: the file cannot be read, or a line is not a dialog; the message names the line.
    """
    path = Path(path)
    dialogs = tuple(_read_dialog(value, n, f"Line {n} of {path}") for n, value in values_in(path))
    return Dialogs(path.name, fingerprint_of(path), dialogs)


def values_in(path: Path) -> list[tuple[int, Any]]:
    """The values of a JSON Lines file, each with its line number; refuses an empty file."""
    values = list(read_json_lines(path))
    if not values:
        raise UsageError(f"{path} holds no dialog; write one per line.")
    return values


def fingerprint_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_dialog(value: Any, number: int, where: str) -> RecordedDialog:
    fields = fields_of(value)
    try:
        prompt = system_prompt(fields.get("system"))
        events = read_messages(_messages_in(value, where), is_strict=True)
        tools = read_tools(fields.get("tools", fields.get("functions")))
    except Malformed as error:
        raise UsageError(f"{where}, {error}; correct it, or leave out that dialog.") from None
    messages = _as_chat([*prompt, *events])
    system = [m["content"] for m in messages if m["role"] == "system" and m["content"].strip()]
    exchanges = _exchanges(messages, where)
    last_exchange = exchanges[-1]
    last = last_exchange[-1]
    if last["role"] != "assistant" or last.get("tool_calls"):
        exchanges.pop()  # a message without an answer is not replayed
    if not exchanges:
        raise UsageError(
            f"{where} has no answer to {in_short(last_exchange[0]['content'])}; give a dialog with"
            " at least one round."
        )
    rounds = (RecordedRound(user["content"], tuple(rest)) for user, *rest in exchanges)
    return RecordedDialog(number, "\n\n".join(system), tuple(rounds), tools)


def _messages_in(value: Any, where: str) -> list[Any]:
    """The messages of a dialog, unread, from a value of the file."""
    fields = fields_of(value)
    for name in ("messages", "conversations"):
        if name in fields:
            if not isinstance(fields[name], list):
                raise UsageError(
                    f"{where}: {name!r} is {in_short(fields[name])}; give a list of messages there."
                )
            return list(fields[name])
    if not isinstance(value, list):
        raise UsageError(
            f"{where} is {in_short(value)}, which is not a dialog; write an object with 'messages'"
            " or 'conversations', or a list of messages."
        )
    return value


def _as_chat(events: Sequence[Event]) -> list[Message]:
    """Converts events to the messages of a request; renumbers tool calls to suit any template."""
    chat: list[Message] = []
    open_calls: list[_OpenCall] = []
    numbers = count(1)
    for event in events:
        if event.kind is Kind.MESSAGE:
            chat.append({"role": event.role, "content": event.text})
        elif event.call is not None:
            call_id = f"call{next(numbers):05}"
            open_calls.append(_OpenCall(event.call.id, call_id))
            function = {"name": event.call.name, "arguments": dict(event.call.arguments)}
            if not chat or chat[-1]["role"] != "assistant":
                chat.append({"role": "assistant", "content": ""})
            call = {"id": call_id, "type": "function", "function": function}
            chat[-1].setdefault("tool_calls", []).append(call)
        elif event.kind is Kind.TOOL_RESULT:
            result: Message = {"role": "tool", "content": event.text}
            answered = _answered_by(event, open_calls)
            if answered is not None:
                open_calls.remove(answered)
                result["tool_call_id"] = answered.id
            chat.append(result)
    return chat


def _answered_by(result: Event, open_calls: Sequence[_OpenCall]) -> _OpenCall | None:
    """The call that a result answers: the call that it names, else the earliest; None if none."""
    named = [call for call in open_calls if call.logged_id == result.call_id]
    return next(chain(named, open_calls), None)


def _exchanges(messages: list[Message], where: str) -> list[list[Message]]:
    """Splits messages into exchanges: a user's message, and everything up to the user's next.

    Consecutive messages of one speaker are merged, unless a text follows a tool call.
    """
    exchanges: list[list[Message]] = []
    for message in messages:
        role = message["role"]
        text = message["content"]
        calls = message.get("tool_calls", [])
        if role == "system" or not (text.strip() or calls or role == "tool"):
            continue
        if not exchanges and role != "user":
            raise UsageError(
                f"{where} begins with {in_short(text)} by the {role}; begin the dialog with a"
                " message of the user."
            )
        last: Message = exchanges[-1][-1] if exchanges else {"role": ""}
        is_same_speaker = role == last["role"] and role != "tool"
        follows_call = "tool_calls" in last and bool(text.strip())
        if is_same_speaker and not follows_call:
            last["content"] = "\n\n".join(filter(str.strip, (last["content"], text)))
            if calls:
                last["tool_calls"] = [*last.get("tool_calls", []), *calls]
        elif role == "user":
            exchanges.append([message])
        else:
            exchanges[-1].append(message)
    if not exchanges:
        raise UsageError(f"{where} has no text; begin the dialog with a message of the user.")
    return exchanges


def in_short(value: Any) -> str:
    """A value of a file, for error messages: its JSON, cut if it is long."""
    return cut(json.dumps(value, ensure_ascii=False), 80)
