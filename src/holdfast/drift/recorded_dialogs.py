"""Reads the dialogs that a run replays: one per line of a JSONL file (docs/conversations.md).

    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
    [{"role": "user", "content": "..."}, ...]

A dialog is read as rounds: the user's message and the answer to it, including tool calls. Each of
these lines is one `RecordedRound("...", (the assistant's message,))`. Consecutive messages of one
speaker form one turn.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.chat.messages import Message, Tool
from holdfast.errors import UsageError, cut
from holdfast.files import digest_of, read_json_lines
from holdfast.transcripts import Event, EventKind
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.tools import read_tools
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

    @property
    def is_answered(self) -> bool:
        """Whether it ends with a text of the assistant, rather than with a call or a result."""
        last = self.messages[-1] if self.messages else {"role": "user"}
        return last["role"] == "assistant" and not last.get("tool_calls")


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
class RecordedDialogs:
    """The dialogs of a file, in order."""

    name: str  # of the file
    fingerprint: str  # SHA-256 of the file, in hexadecimal
    dialogs: tuple[RecordedDialog, ...]
    left_out: str = ""  # a sentence about dialogs that the model cannot be shown; "" if none

    @property
    def most_rounds(self) -> int:
        """The number of rounds of the longest dialog."""
        return max(len(dialog.rounds) for dialog in self.dialogs)


class _OpenCall(NamedTuple):
    """A tool call that has no result yet."""

    logged_id: str  # its id in the file
    id: str  # its id in the request


def read_dialogs(path: Path | str) -> RecordedDialogs:
    """Reads a file of dialogs.

    Raises:
        UsageError: the file cannot be read, or a line is not a dialog; the message names the line.
    """
    path = Path(path)
    dialogs = tuple(
        _read_dialog(value, line, f"Line {line} of {path}") for line, value in read_lines(path)
    )
    return RecordedDialogs(path.name, digest_of(path), dialogs)


def read_lines(path: Path) -> list[tuple[int, Any]]:
    """The values of a JSON Lines file, each with its line number; refuses an empty file."""
    values = list(read_json_lines(path))
    if not values:
        raise UsageError(f"{path} holds no dialog; write one per line.")
    return values


def _read_dialog(value: Any, line: int, where: str) -> RecordedDialog:
    """Reads a value of the file; `where` names its line in messages."""
    fields = fields_of(value)
    try:
        prompt = system_prompt(fields.get("system"))
        events = read_messages(_messages_in(value, where), is_strict=True)
        tools = read_tools(fields.get("tools", fields.get("functions")))
    except Malformed as error:
        raise UsageError(f"{where}, {error}; correct it, or leave out that dialog.") from None
    messages = _as_chat([*prompt, *events])
    system = [m["content"] for m in messages if m["role"] == "system" and m["content"].strip()]
    spoken = [message for message in messages if message["role"] != "system"]
    return RecordedDialog(line, "\n\n".join(system), _rounds_of(_turns_of(spoken), where), tools)


def _messages_in(value: Any, where: str) -> list[Any]:
    """The messages of a dialog, unread, from a value of the file."""
    fields = fields_of(value)
    for name in ("messages", "conversations"):
        if name in fields:
            if not isinstance(fields[name], list):
                raise UsageError(
                    f"{where}: {name!r} is {json_excerpt(fields[name])}; give a list of messages"
                    " there."
                )
            return list(fields[name])
    if not isinstance(value, list):
        raise UsageError(
            f"{where} is {json_excerpt(value)}, which is not a dialog; write an object with"
            " 'messages' or 'conversations', or a list of messages."
        )
    return value


def _as_chat(events: Sequence[Event]) -> list[Message]:
    """Converts events to the messages of a request; renumbers tool calls to suit any template."""
    chat: list[Message] = []
    open_calls: list[_OpenCall] = []
    numbers = count(1)
    for event in events:
        if event.kind is EventKind.MESSAGE:
            chat.append({"role": event.role, "content": event.text})
        elif event.call is not None:
            call_id = f"call{next(numbers):05}"
            open_calls.append(_OpenCall(event.call.id, call_id))
            function = {"name": event.call.name, "arguments": dict(event.call.arguments)}
            if not chat or chat[-1]["role"] != "assistant":
                chat.append({"role": "assistant", "content": ""})
            call = {"id": call_id, "type": "function", "function": function}
            chat[-1].setdefault("tool_calls", []).append(call)
        elif event.kind is EventKind.TOOL_RESULT:
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


def _turns_of(messages: Iterable[Message]) -> list[Message]:
    """Merges consecutive messages of one speaker, unless a text follows a tool call.

    Leaves out messages without a text or a call.
    """
    turns: list[Message] = []
    for message in messages:
        has_text = bool(message["content"].strip())
        if not (has_text or message.get("tool_calls") or message["role"] == "tool"):
            continue
        if turns and _continues(turns[-1], message):
            turns[-1] = _merged(turns[-1], message)
        else:
            turns.append(message)
    return turns


def _continues(before: Message, message: Message) -> bool:
    """Whether a message belongs to the turn of the message before it."""
    is_same_speaker = message["role"] == before["role"] and message["role"] != "tool"
    follows_call = "tool_calls" in before and bool(message["content"].strip())
    return is_same_speaker and not follows_call


def _merged(first: Message, second: Message) -> Message:
    """One message with the texts and the calls of two."""
    content = "\n\n".join(filter(str.strip, (first["content"], second["content"])))
    merged: Message = {**first, "content": content}
    if calls := [*first.get("tool_calls", []), *second.get("tool_calls", [])]:
        merged["tool_calls"] = calls
    return merged


def _rounds_of(turns: Sequence[Message], where: str) -> tuple[RecordedRound, ...]:
    """Groups turns into rounds: a turn of the user, and everything up to the user's next.

    A last turn of the user without an answer is left out, as it is not replayed.
    """
    if not turns:
        raise UsageError(f"{where} has no text; begin the dialog with a message of the user.")
    first = turns[0]
    if first["role"] != "user":
        raise UsageError(
            f"{where} begins with {json_excerpt(first['content'])} by the {first['role']}; begin"
            " the dialog with a message of the user."
        )
    starts = [position for position, turn in enumerate(turns) if turn["role"] == "user"]
    rounds = [
        RecordedRound(turns[start]["content"], tuple(turns[start + 1 : end]))
        for start, end in pairwise([*starts, len(turns)])
    ]
    if rounds[-1].is_answered:
        return tuple(rounds)
    if len(rounds) == 1:
        raise UsageError(
            f"{where} has no answer to {json_excerpt(rounds[0].user)}; give a dialog with at least"
            " one round."
        )
    return tuple(rounds[:-1])


def json_excerpt(value: Any) -> str:
    """A value of a file for error messages: its JSON, cut if it is long."""
    return cut(json.dumps(value, ensure_ascii=False), 80)
