"""aider's `.aider.chat.history.md`: Markdown, to which each session is appended.

    # aider chat started at 2026-01-02 10:00:00
    > Model: gpt-4o
    #### Rename the function
    I renamed it.
    > Applied edit to cart.py

Lines that begin with `#### ` are the user's, those with `> ` are aider's, and the rest are the
model's. Quotations and headings by the model look the same, but lack the two spaces at the end of
the others' lines. In a fenced block of the model's, only the mark of the user has a meaning.

aider repeats some messages as if the user said them: the text of a command, and in architect mode
the plan, which it passes on to the model that edits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.chat.reasoning import split_reasoning
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.reader import Format, Markdown, Unread, Values, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Transcript,
    linear_transcript,
    message_events,
)

_BEGINNING = re.compile(r"^# aider chat started at (.+)$", re.MULTILINE)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_TO_THE_MODEL = ("/ask", "/code", "/architect", "/context")  # commands that send their text to it
_NOTHING = "<blank>"  # in place of an empty message
# a question of aider's and the user's answer, such as "Run it? (Y)es/(N)o/(A)ll [Yes]: all"
_CONFIRMATION = re.compile(
    r"[^\n]+\? \(Y\)es/\(N\)o(?:/\(\w\)[\w' ]+)* \[\w+\]: ?(?:y|yes|n|no|a|all|s|skip|d|don't)?",
    re.IGNORECASE,
)
_EDIT = re.compile(r"Applied edit to (.+)")
_RUN = re.compile(r"Running (.+)")
_INTERRUPTION = "^C KeyboardInterrupt"


class _Author(StrEnum):
    """Who wrote a line; the value is the mark that such lines begin with."""

    USER = "#### "
    AIDER = "> "
    MODEL = ""


def _recognises(value: Any) -> bool:
    return isinstance(value, Markdown) and bool(_BEGINNING.search(value.text))


def _read(values: Values) -> Iterator[Transcript | Unread]:
    for source, value in values:
        file = file_of(source)
        if not isinstance(value, Markdown):
            yield Unread(f"{source}: it is not Markdown, which aider writes")
            continue
        preface, *parts = _BEGINNING.split(value.text)
        if preface.strip():
            yield Unread(f"{file}: left out the text before its first session")
        sessions = zip(parts[::2], parts[1::2], strict=True)
        for number, (start, text) in enumerate(sessions, start=1):
            events = [*_events(text)]
            if events:
                yield linear_transcript(f"{file}, session {number} ({start.strip()})", events)


def _events(text: str) -> Iterator[Event]:
    """Reads the events of a session."""
    repeatable = ""  # what aider may repeat as if the user said it: a command's text, or a plan
    for block in _blocks(text):
        if block.author == _Author.MODEL:
            repeatable = split_reasoning(block.text).reply
            yield from message_events("assistant", block.text)
        elif block.author == _Author.AIDER:
            for event in _events_by_aider(block.lines):
                if event.kind is EventKind.INTERRUPTION:
                    repeatable = ""
                yield event
        else:
            event = _event_by_user(block.text)
            if event.is_by_user and event.text.split() == repeatable.split():
                event = Event(EventKind.REMINDER, event.text)
                repeatable = ""
            elif event.is_by_user:
                is_text_of_command = event.text != block.text
                repeatable = event.text if is_text_of_command else ""
            yield event


def _event_by_user(text: str) -> Event:
    """Reads a message of the user's, which may be a command or a confirmation for aider alone."""
    command, _, rest = text.partition(" ")
    if command in _TO_THE_MODEL and rest.strip():
        return Event(EventKind.MESSAGE, rest.strip(), "user")
    is_to_aider = command.startswith(("/", "!")) or _CONFIRMATION.fullmatch(text) is not None
    if is_to_aider or text == _NOTHING:
        return Event(EventKind.REMINDER, text)
    return Event(EventKind.MESSAGE, text, "user")


def _events_by_aider(lines: Sequence[str]) -> Iterator[Event]:
    """Reads lines of aider's: edits that it made for the model, commands that it ran, and notes.

    The output of a command goes up to an empty line.
    """
    is_output = False
    for line in lines:
        event = _event_by_aider(line)
        if is_output and event.kind is EventKind.REMINDER:
            event = Event(EventKind.TOOL_RESULT, line)
        is_output = event.kind is EventKind.TOOL_CALL or (is_output and bool(line))
        yield event


def _event_by_aider(line: str) -> Event:
    """Reads a line of aider's, apart from the lines before it."""
    if edit := _EDIT.fullmatch(line):
        return Event(EventKind.TOOL_CALL, call=ToolCall("edit", {"path": edit[1].strip()}))
    if run := _RUN.fullmatch(line):
        return Event(EventKind.TOOL_CALL, call=ToolCall("run", {"command": run[1].strip()}))
    if line.strip().startswith(_INTERRUPTION):
        return Event(EventKind.INTERRUPTION, line)
    return Event(EventKind.REMINDER, line)


@dataclass(frozen=True)
class _Block:
    """Consecutive lines by one author, without their marks."""

    author: _Author
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def _blocks(text: str) -> Iterator[_Block]:
    """Splits a session into runs of lines by the same author; empty lines extend any run."""
    authors = _Authors(text)
    block = _Block(_Author.MODEL)
    for line in text.split("\n"):
        if block.author == _Author.USER and block.lines and not line:  # ends the message
            yield block
            block = _Block(_Author.MODEL)
            continue
        author = authors.author_of(line, block.author)
        is_empty = author == _Author.MODEL and not line.strip()
        if author != block.author and not is_empty:
            if block.text:
                yield block
            block = _Block(author)
        block.lines.append(line if author == _Author.MODEL else line[len(author) :].rstrip())
    if block.text:
        yield block


class _Authors:
    """Tells the author of each line of a session, in order."""

    def __init__(self, text: str) -> None:
        self._fence = ""  # the fence that closes the block of code that is open; "" if none is
        # the authors whose lines end with two spaces in this session
        self._ending_with_spaces = {
            author
            for author in (_Author.USER, _Author.AIDER)
            if any(line.startswith(author) and line.endswith("  ") for line in text.split("\n"))
        }

    def author_of(self, line: str, before: _Author) -> _Author:
        """Returns the author of the next line, which follows a line by `before`."""
        authors = (_Author.USER, _Author.AIDER)
        author = next((author for author in authors if _has_mark(line, author)), _Author.MODEL)
        lacks_spaces = author in self._ending_with_spaces and not line.endswith("  ")
        is_quotation = before == _Author.MODEL and lacks_spaces
        is_code = self._fence != "" and author != _Author.USER
        if is_quotation or is_code:
            author = _Author.MODEL
        self._fence = _fence_after(line, self._fence) if author == _Author.MODEL else ""
        return author


def _has_mark(line: str, author: _Author) -> bool:
    return line.startswith(author) or line == author.strip()  # an empty line lacks the space


def _fence_after(line: str, fence: str) -> str:
    """Returns what closes the open block of code after a line; "" if none is open."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not line.strip().strip(fence[0]) else fence


FORMAT = Format("aider", _recognises, _read)
