"""Dialogs of one's own, which a run replays: one per line of a JSONL file (docs/conversations.md).

    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
    [{"role": "user", "content": "..."}, ...]

A dialog is read as rounds: what the user said, and what was answered. Messages of one speaker that
follow one another are one turn.

Scripts are the user's messages alone, which a run sends in place of a user model's: a JSON list of
strings per line.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.files import read_json_lines

RECORDED = "recorded"  # the stop reason of a turn that is replayed
SCRIPTED = "scripted"  # that of a user turn from a script
GIVEN = (RECORDED, SCRIPTED)  # stop reasons of turns that no model wrote in this run
SHIPPED_SCRIPTS = "everyday"
_ROLES = {  # of OpenAI's messages, and of ShareGPT's
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bing", "bard"), "assistant"),
}
_FORMS = (  # the field of a list of messages, and in each message those of its role and its text
    ("messages", "role", "content"),
    ("conversations", "from", "value"),
)


@dataclass(frozen=True)
class RecordedDialog:
    """A dialog of a file: of each round, the user's message and the answer."""

    line: int  # in its file, from 1
    system: str  # its system prompt; "" where it has none
    rounds: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Dialogs:
    """The dialogs of a file, in their order."""

    name: str  # of the file
    fingerprint: str  # SHA-256 of the file, in hexadecimal
    dialogs: tuple[RecordedDialog, ...]

    @property
    def rounds(self) -> int:
        """Of the longest."""
        return max(len(dialog.rounds) for dialog in self.dialogs)


@dataclass(frozen=True)
class Script:
    """The user's messages of a conversation, one for each round."""

    line: int  # in its file, from 1
    messages: tuple[str, ...]


@dataclass(frozen=True)
class UserTurns:
    """The scripts of a file, in their order."""

    name: str  # of the file
    fingerprint: str  # SHA-256 of the file, in hexadecimal
    scripts: tuple[Script, ...]

    @property
    def shortest(self) -> Script:
        """The script with the fewest messages."""
        return min(self.scripts, key=lambda script: len(script.messages))


def read_user_turns(path: Path | str) -> UserTurns:
    """Reads a file of scripts; "everyday" is the one that ships.

    Raises:
        UsageError: it cannot be read, holds no script, or a line is none; names the line, the value
            and the cure.
    """
    if str(path) == SHIPPED_SCRIPTS:
        path = Path(str(files("holdfast") / "assets" / "user_turns" / f"{SHIPPED_SCRIPTS}.jsonl"))
    path = Path(path)
    scripts = []
    for number, value in _values_in(path):
        texts = value if isinstance(value, list) else []
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise UsageError(
                f"Line {number} of {path} is {_short(value)}, not a list of user messages; write"
                ' one dialog per line, such as ["Hi!", "What is for dinner?"].'
            )
        scripts.append(Script(number, tuple(texts)))
    return UserTurns(path.name, _fingerprint(path), tuple(scripts))


def read_dialogs(path: Path | str) -> Dialogs:
    """Reads a file of dialogs.

    Raises:
        UsageError: it cannot be read, holds no dialog, or a line is none; names the line, the value
            and the cure.
    """
    path = Path(path)
    dialogs = tuple(_read_dialog(value, n, f"Line {n} of {path}") for n, value in _values_in(path))
    return Dialogs(path.name, _fingerprint(path), dialogs)


def _values_in(path: Path) -> list[tuple[int, Any]]:
    """The values of a file of JSON lines, each with the number of its line."""
    values = list(read_json_lines(path))
    if not values:
        raise UsageError(f"{path} holds no dialog; write one per line.")
    return values


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_dialog(value: Any, number: int, where: str) -> RecordedDialog:
    messages = [message for message in _messages(value, where) if message[1].strip()]
    system = [text for role, text in messages if role == "system"]
    turns = _turns([message for message in messages if message[0] != "system"])
    if not turns or turns[0][0] != "user":
        begins = f"begins with {_short(turns[0][1])} of the assistant" if turns else "says nothing"
        raise UsageError(f"{where} {begins}; a dialog begins with what the user said.")
    texts = [text for _, text in turns]
    rounds = tuple(zip(texts[::2], texts[1::2], strict=False))  # what got no answer is not replayed
    if not rounds:
        raise UsageError(
            f"{where} has no answer to {_short(texts[0])}; a dialog has one round or more."
        )
    return RecordedDialog(number, "\n\n".join(system), rounds)


def _messages(value: Any, where: str) -> list[tuple[str, str]]:
    """The messages of a dialog: role and text of each."""
    listed, role, content = value, "role", "content"
    if isinstance(value, dict):
        field, role, content = next((form for form in _FORMS if form[0] in value), ("", "", ""))
        listed = value.get(field)
        if field and not isinstance(listed, list):
            raise UsageError(
                f"{where}: {field!r} is {_short(listed)}; give a list of messages there."
            )
    if not isinstance(listed, list):
        raise UsageError(
            f"{where} is {_short(value)}, and no dialog; write an object with 'messages' or"
            " 'conversations', or a list of messages."
        )
    read = []
    for number, message in enumerate(listed, start=1):
        named = f"{where}, message {number}"
        if not isinstance(message, dict) or not {role, content} <= message.keys():
            raise UsageError(f"{named} is {_short(message)}; give it {role!r} and {content!r}.")
        speaker = message[role]
        if not isinstance(speaker, str) or speaker not in _ROLES:
            raise UsageError(
                f"{named} has the {role} {_short(speaker)}; known are {', '.join(_ROLES)}: leave"
                " out a dialog that calls tools."
            )
        read.append((_ROLES[speaker], _text(message[content], named)))
    return read


def _text(content: Any, where: str) -> str:
    """A message's text; parts that are texts are joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [
        part["text"]
        for part in parts
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    if not parts or len(texts) < len(parts):
        raise UsageError(f"{where} holds {_short(content)}, not a text; leave that dialog out.")
    return "\n".join(texts)


def _turns(messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Messages of one speaker that follow one another are one turn."""
    turns: list[tuple[str, str]] = []
    for role, text in messages:
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{text}")
        else:
            turns.append((role, text))
    return turns


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
