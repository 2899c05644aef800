"""A user's own dialogs, which a run replays: one per line of a JSONL file (docs/conversations.md).

    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
    [{"role": "user", "content": "..."}, ...]

A dialog is read as rounds: what the user said and what was answered, including tool calls.
Consecutive messages of one speaker form one turn.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.chat.messages import Message, Tool
from holdfast.errors import UsageError, cut
from holdfast.files import read_json_lines
from holdfast.transcripts import Event, Kind, linear
from holdfast.transcripts.chat_messages import read_messages, read_tools
from holdfast.transcripts.content_blocks import CALL_TYPES, HIDDEN_TYPES
from holdfast.transcripts.transcript import Malformed

_NO_TEXT = ("tool_use", *CALL_TYPES, *HIDDEN_TYPES)  # kinds of parts that need no text


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

    line: int  # in its file, from 1
    system: str  # its system prompt; "" if it has none
    rounds: tuple[RecordedRound, ...]
    tools: tuple[Tool, ...] = ()  # declared by the dialog

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
    left_out: str = ""  # a sentence about dialogs that a model cannot be shown; "" if none

    @property
    def rounds(self) -> int:
        """The number of rounds of the longest dialog."""
        return max(len(dialog.rounds) for dialog in self.dialogs)


def read_dialogs(path: Path | str) -> Dialogs:
    """Reads a file of dialogs.

    Raises:
        UsageError: the file cannot be read, or a line is no dialog; the message names the line.
    """
    path = Path(path)
    dialogs = tuple(_read_dialog(value, n, f"Line {n} of {path}") for n, value in values_in(path))
    return Dialogs(path.name, fingerprint_of(path), dialogs)


def values_in(path: Path) -> list[tuple[int, Any]]:
    """The values of a JSON Lines file, each with its line number."""
    values = list(read_json_lines(path))
    if not values:
        raise UsageError(f"{path} holds no dialog; write one per line.")
    return values


def fingerprint_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_dialog(value: Any, number: int, where: str) -> RecordedDialog:
    items = _listed(value, where)
    declared = value.get("tools", value.get("functions")) if isinstance(value, dict) else None
    try:
        transcript, tools = linear(where, read_messages(items)), read_tools(declared)
    except Malformed as error:
        raise UsageError(f"{where}, {error}; fix it, or leave that dialog out.") from None
    messages = _as_chat(transcript.path)
    system = [m["content"] for m in messages if m["role"] == "system" and m["content"].strip()]
    exchanges = _exchanges(messages, where)
    user, last = exchanges[-1][0]["content"], exchanges[-1][-1]
    if last["role"] != "assistant" or last.get("tool_calls"):
        exchanges.pop()  # an unanswered message is not replayed
    if not exchanges:
        raise UsageError(
            f"{where} has no answer to {in_short(user)}; a dialog has one round or more."
        )
    rounds = (RecordedRound(user["content"], tuple(rest)) for user, *rest in exchanges)
    return RecordedDialog(number, "\n\n".join(system), tuple(rounds), tools)


def _listed(value: Any, where: str) -> list[Any]:
    """The checked messages of a dialog, after the system prompt if it has a field for one."""
    listed = value
    if isinstance(value, dict):
        field = next((name for name in ("messages", "conversations") if name in value), "")
        listed = value.get(field)
        if field and not isinstance(listed, list):
            raise UsageError(
                f"{where}: {field!r} is {in_short(listed)}; give a list of messages there."
            )
    if not isinstance(listed, list):
        raise UsageError(
            f"{where} is {in_short(value)}, and no dialog; write an object with 'messages' or"
            " 'conversations', or a list of messages."
        )
    for number, message in enumerate(listed, start=1):
        if isinstance(message, dict) and {"role", "from"} & message.keys():
            content = message.get("content", message.get("value"))
            calls = message.get("tool_calls") or message.get("function_call")
            if content is not None or not calls:
                _check_content(content, f"{where}, message {number}")
    beside = value.get("system") if isinstance(value, dict) else None
    return [{"role": "system", "content": beside}, *listed] if beside else listed


def _check_content(content: Any, where: str) -> None:
    for part in content if isinstance(content, list) else [content]:
        fields = part if isinstance(part, dict) else {}
        if fields.get("type") == "tool_result":
            _check_content(fields.get("content", ""), where)
        elif not isinstance(fields.get("text", part), str) and fields.get("type") not in _NO_TEXT:
            raise UsageError(
                f"{where} holds {in_short(content)}, not a text; leave that dialog out."
            )


def _as_chat(path: Sequence[Event]) -> list[Message]:
    """The events as a request has them; tool calls are renumbered to suit every template."""
    chat: list[Message] = []
    open_calls: list[tuple[str, str]] = []  # the id in the log, and ours
    number = 0
    for event in path:
        if event.kind is Kind.MESSAGE:
            chat.append({"role": event.role, "content": event.text})
        elif event.call is not None:
            number += 1
            name = f"call{number:05}"
            open_calls.append((event.call.id, name))
            function = {"name": event.call.name, "arguments": dict(event.call.arguments)}
            if not chat or chat[-1]["role"] != "assistant":
                chat.append({"role": "assistant", "content": ""})
            call = {"id": name, "type": "function", "function": function}
            chat[-1].setdefault("tool_calls", []).append(call)
        elif event.kind is Kind.TOOL_RESULT:
            entry: Message = {"role": "tool", "content": event.text}
            known = [pair for pair in open_calls if pair[0] == event.call_id] or open_calls
            if known:
                answered = known[0]  # `known` may be the list that it is removed from
                open_calls.remove(answered)
                entry["tool_call_id"] = answered[1]
            chat.append(entry)
    return chat


def _exchanges(messages: list[Message], where: str) -> list[list[Message]]:
    """The user's messages, each with everything that follows it until the next one."""
    # consecutive messages of one speaker are merged, unless a text follows a tool call
    exchanges: list[list[Message]] = []
    for message in messages:
        role, text, calls = message["role"], message["content"], message.get("tool_calls", [])
        if role == "system" or not (text.strip() or calls or role == "tool"):
            continue
        if not exchanges and role != "user":
            raise UsageError(
                f"{where} begins with {in_short(text)} of the {role}; a dialog begins with what the"
                " user said."
            )
        last: Message = exchanges[-1][-1] if exchanges else {"role": ""}
        if role == last["role"] != "tool" and not ("tool_calls" in last and text.strip()):
            last["content"] = "\n\n".join(filter(str.strip, (last["content"], text)))
            if calls:
                last["tool_calls"] = [*last.get("tool_calls", []), *calls]
        elif role == "user":
            exchanges.append([message])
        else:
            exchanges[-1].append(message)
    if not exchanges:
        raise UsageError(f"{where} says nothing; a dialog begins with what the user said.")
    return exchanges


def in_short(value: Any) -> str:
    """A value of a file as messages show it: its JSON, cut if it is long."""
    return cut(json.dumps(value, ensure_ascii=False), 80)
