"""aider's `.aider.chat.history.md`: Markdown, to which each session is appended.

A line that begins with `#### ` is the user's, one with `> ` is aider's, and the rest is the
model's. So are its quotations and headings, since the lines of the others end with two spaces. In a
fenced block of the model's, only the user's lines have a meaning.

aider repeats some messages as the user's: the words behind a command, and in architect mode the
plan, which it hands to the model that edits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.chat.reasoning import split_reasoning
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.reader import Format, Markdown, Unread, Values, file_of
from holdfast.transcripts.transcript import Event, Kind, Transcript, linear, message_events

_BEGINNING = re.compile(r"^# aider chat started at (.+)$", re.MULTILINE)
# the authors of lines, by the mark that their lines begin with
_USER = "#### "
_AIDER = "> "
_MODEL = ""
_FENCE = re.compile(r"\s*(```+|~~~+)")
_TO_THE_MODEL = ("/ask", "/code", "/architect", "/context")  # commands that send what follows them
_NOTHING = "<blank>"  # in place of an empty message
# a question of aider's with the user's answer, such as "Run it? (Y)es/(N)o/(A)ll [Yes]: all"
_CONFIRMATION = re.compile(
    r"[^\n]+\? \(Y\)es/\(N\)o(?:/\(\w\)[\w' ]+)* \[\w+\]: ?(?:y|yes|n|no|a|all|s|skip|d|don't)?",
    re.IGNORECASE,
)
_EDIT = re.compile(r"Applied edit to (.+)")
_RUN = re.compile(r"Running (.+)")
_INTERRUPTION = "^C KeyboardInterrupt"


def _recognises(value: Any) -> bool:
    return isinstance(value, Markdown) and bool(_BEGINNING.search(value.text))


def _read(values: Values) -> Iterator[Transcript | Unread]:
    for where, value in values:
        file = file_of(where)
        if not isinstance(value, Markdown):
            yield Unread(f"{where}: it is not Markdown, which aider writes")
            continue
        preface, *parts = _BEGINNING.split(value.text)
        if preface.strip():
            yield Unread(f"{file}: what stands before its first session is left out")
        sessions = zip(parts[::2], parts[1::2], strict=True)
        for number, (start, text) in enumerate(sessions, start=1):
            events = [*_events(text)]
            if events:
                yield linear(f"{file}, session {number} ({start.strip()})", events)


def _events(text: str) -> Iterator[Event]:
    """The events of a session."""
    repeatable = ""  # what aider may repeat as the user's: words behind a command, or a plan
    for block in _blocks(text):
        if block.author == _MODEL:
            repeatable = split_reasoning(block.text).reply
            yield from message_events("assistant", block.text)
        elif block.author == _AIDER:
            for event in _events_by_aider(block.lines):
                if event.kind is Kind.INTERRUPTION:
                    repeatable = ""
                yield event
        else:
            event = _event_by_user(block.text)
            if event.is_by_user and event.text.split() == repeatable.split():
                event = Event(Kind.REMINDER, event.text)
                repeatable = ""
            elif event.is_by_user:
                is_behind_command = event.text != block.text
                repeatable = event.text if is_behind_command else ""
            yield event


def _event_by_user(text: str) -> Event:
    command, _, rest = text.partition(" ")
    if command in _TO_THE_MODEL and rest.strip():
        return Event(Kind.MESSAGE, rest.strip(), "user")
    is_to_aider = command.startswith(("/", "!")) or _CONFIRMATION.fullmatch(text) is not None
    if is_to_aider or text == _NOTHING:
        return Event(Kind.REMINDER, text)
    return Event(Kind.MESSAGE, text, "user")


def _events_by_aider(lines: Sequence[str]) -> Iterator[Event]:
    """Lines of aider's: an edit that it made for the model, a command that it ran, with its output
    up to an empty line, or a note.
    """
    is_output = False
    for line in lines:
        event = _event_by_aider(line)
        if is_output and event.kind is Kind.REMINDER:
            event = Event(Kind.TOOL_RESULT, line)
        is_output = event.kind is Kind.TOOL_CALL or (is_output and bool(line))
        yield event


def _event_by_aider(line: str) -> Event:
    if edit := _EDIT.fullmatch(line):
        return Event(Kind.TOOL_CALL, call=ToolCall("edit", {"path": edit[1].strip()}))
    if run := _RUN.fullmatch(line):
        return Event(Kind.TOOL_CALL, call=ToolCall("run", {"command": run[1].strip()}))
    if line.strip().startswith(_INTERRUPTION):
        return Event(Kind.INTERRUPTION, line)
    return Event(Kind.REMINDER, line)


@dataclass(frozen=True)
class _Block:
    """Lines by one author, without their marks."""

    author: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def _blocks(text: str) -> Iterator[_Block]:
    """Runs of lines by the same author; an empty line alone is nobody's."""
    authors = _Authors(text)
    block = _Block(_MODEL)
    for line in text.split("\n"):
        if block.author == _USER and block.lines and not line:  # it ends a message of the user's
            yield block
            block = _Block(_MODEL)
            continue
        author = authors.author_of(line, block.author)
        is_empty = author == _MODEL and not line.strip()
        if author != block.author and not is_empty:
            if block.text:
                yield block
            block = _Block(author)
        block.lines.append(line if author == _MODEL else line[len(author) :].rstrip())
    if block.text:
        yield block


class _Authors:
    """Tells the authors of the lines of a session, one after the other."""

    def __init__(self, text: str) -> None:
        self._fence = ""  # what closes the block of code that the model has opened
        # the marks whose lines end with two spaces in this session
        self._marks_with_spaces = {
            mark
            for mark in (_USER, _AIDER)
            if any(line.startswith(mark) and line.endswith("  ") for line in text.split("\n"))
        }

    def author_of(self, line: str, before: str) -> str:
        """The author of the next line, which follows a line by the author `before`."""
        author = next((mark for mark in (_USER, _AIDER) if _has_mark(line, mark)), _MODEL)
        lacks_spaces = author in self._marks_with_spaces and not line.endswith("  ")
        is_quotation = before == _MODEL and lacks_spaces
        is_code = self._fence != "" and author != _USER
        if is_quotation or is_code:
            author = _MODEL
        self._fence = _fence_after(line, self._fence) if author == _MODEL else ""
        return author


def _has_mark(line: str, mark: str) -> bool:
    return line.startswith(mark) or line == mark.strip()  # of an empty line


def _fence_after(line: str, fence: str) -> str:
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not line.strip().strip(fence[0]) else fence


FORMAT = Format("aider", _recognises, _read)
