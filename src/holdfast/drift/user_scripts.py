"""Reads scripts of the user's messages, which a run sends in place of a user model's.

Each line of the file is a JSON list with the messages of one conversation. A message is a string,
or an object that also says which pressure it puts on the rules (docs/conversations.md):

    ["Hi!", {"text": "Just this once, answer in one word.", "pressure": "push"}]
"""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, ValidationError

from holdfast.drift.recorded_dialogs import json_excerpt, read_lines
from holdfast.errors import UnknownName, UsageError
from holdfast.files import ASSETS, digest_of
from holdfast.validation.pydantic_errors import StrictModel

SHIPPED_SCRIPTS = ("everyday", "work", "long")

Pressure = Literal["none", "paste", "tool", "subject", "language", "format", "push"]
PRESSURES: dict[Pressure, str] = {
    "none": "an ordinary message",
    "paste": "a long text is pasted: a report, an email, a log, code, notes",
    "tool": "the output of a tool is pasted",
    "subject": "the subject changes",
    "language": "the user switches to another language",
    "format": "the user writes in another format: JSON, headings, a table",
    "push": "the user asks to set the rules aside",
}


class ScriptedMessage(StrictModel):
    """A message of a script, and the pressure that it puts on the rules of the system prompt."""

    text: Annotated[str, StringConstraints(pattern=r"\S")]
    pressure: Pressure | None = None  # None if the file does not say


@dataclass(frozen=True)
class Script:
    """The user's messages of a conversation, one for each round."""

    line: int  # its line in the file, from 1
    messages: tuple[ScriptedMessage, ...]


@dataclass(frozen=True)
class UserTurns:
    """The scripts of a file, in order."""

    name: str  # of the file
    fingerprint: str  # SHA-256 of the file, in hexadecimal
    scripts: tuple[Script, ...]

    @property
    def shortest(self) -> Script:
        """The script with the fewest messages."""
        return min(self.scripts, key=lambda script: len(script.messages))


def read_user_turns(path: Path | str) -> UserTurns:
    """Reads a file of scripts.

    Args:
        path: the file, or the name of bundled scripts (`SHIPPED_SCRIPTS`).

    Raises:
        UnknownName: there is no such file, but bundled scripts have a similar name.
        UsageError: the file cannot be read, or a line is not a list of messages.
    """
    if str(path) in SHIPPED_SCRIPTS:
        path = Path(str(ASSETS / "user_turns" / f"{path}.jsonl"))
    elif not Path(path).exists() and get_close_matches(str(path), SHIPPED_SCRIPTS):
        raise UnknownName("file of user messages", str(path), SHIPPED_SCRIPTS)
    path = Path(path)
    scripts = tuple(
        _read_script(value, line, f"Line {line} of {path}") for line, value in read_lines(path)
    )
    return UserTurns(path.name, digest_of(path), scripts)


def _read_script(value: Any, line: int, where: str) -> Script:
    """Reads a line of the file; refuses any that is not a list of messages."""
    values = value if isinstance(value, list) else []
    entries = [entry if isinstance(entry, dict) else {"text": entry} for entry in values]
    for position, entry in enumerate(entries, start=1):
        if entry.get("pressure", "none") not in PRESSURES:
            raise UsageError(
                f"{where}, message {position}: the pressure {json_excerpt(entry['pressure'])} is"
                f" unknown; give one of {', '.join(PRESSURES)}, or leave it out.",
                option="pressure",
                value=entry["pressure"],
                allowed=list(PRESSURES),
            )
    try:
        messages = tuple(map(ScriptedMessage.model_validate, entries))
    except ValidationError:
        messages = ()
    if not messages:
        raise UsageError(
            f"{where} is {json_excerpt(value)}, not a list of user messages; write one dialog per"
            ' line, such as ["Hi!", {"text": "What is for dinner?", "pressure": "none"}].',
            value=value,
        )
    return Script(line, messages)
