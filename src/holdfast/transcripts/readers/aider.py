"""aider's `.aider.chat.history.md`: Markdown, to which each session is appended.

A line that begins with `#### ` is the user's, one with `> ` is aider's, and the rest is the
model's. So are its quotations and headings, since the lines of the others end with two spaces. In a
fenced block of the model's, only the user's lines have a meaning.

aider repeats some messages as the user's: the words behind a command, and in architect mode the
plan, which it hands to the model that edits.
"""

import re
from collections.abc import Iterator
from typing import Any

from holdfast.chat.reasoning import split_reasoning
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.reader import Format, Markdown, Unread, Values, file_of
from holdfast.transcripts.transcript import Event, Kind, Transcript, linear, message_events

_BEGINS = re.compile(r"^# aider chat started at (.+)$", re.MULTILINE)
_USER, _AIDER = "#### ", "> "
_FENCE = re.compile(r"\s*(```+|~~~+)")
_TO_THE_MODEL = ("/ask", "/code", "/architect", "/context")  # commands that send what follows them
_NOTHING = "<blank>"  # in place of an empty message
# a question of aider's with the user's answer, such as "Run it? (Y)es/(N)o/(A)ll [Yes]: all"
_CONFIRMED = re.compile(
    r"[^\n]+\? \(Y\)es/\(N\)o(?:/\(\w\)[\w' ]+)* \[\w+\]: ?(?:y|yes|n|no|a|all|s|skip|d|don't)?",
    re.IGNORECASE,
)
_EDITED = re.compile(r"Applied edit to (.+)")
_RUN = re.compile(r"Running (.+)")
_INTERRUPTED = "^C KeyboardInterrupt"


def _recognises(value: Any) -> bool:
    return isinstance(value, Markdown) and bool(_BEGINS.search(value.text))


def _read(values: Values) -> Iterator[Transcript | Unread]:
    for where, value in values:
        file = file_of(where)
        if not isinstance(value, Markdown):
            yield Unread(f"{where}: it is not Markdown, which aider writes")
            continue
        before, *sessions = _BEGINS.split(value.text)
        if before.strip():
            yield Unread(f"{file}: what stands before its first session is left out")
        for number, (start, text) in enumerate(
            zip(sessions[::2], sessions[1::2], strict=True), start=1
        ):
            events = list(_events(text))
            if events:
                yield linear(f"{file}, session {number} ({start.strip()})", events)


def _events(text: str) -> Iterator[Event]:
    """The events of a session: a block of lines by the same author is one."""
    called = False  # whether a command that the model proposed has just been run
    repeatable = ""  # what aider may repeat as the user's: words behind a command, or a plan
    for author, lines in _blocks(text):
        words = "\n".join(lines).strip()
        if author == _USER:
            event = _by_user(words)
            if event.is_by_user and event.text.split() == repeatable.split():
                event, repeatable = Event(Kind.REMINDER, event.text), ""
            elif event.is_by_user:
                repeatable = event.text if event.text != words else ""
            yield event
        elif author == _AIDER:
            for line in lines:
                event = _by_aider(line, called)
                called = event.kind is Kind.TOOL_CALL or (called and bool(line))
                repeatable = "" if event.kind is Kind.INTERRUPTION else repeatable
                yield event
            called = False
        else:
            repeatable = split_reasoning(words).reply
            yield from message_events("assistant", words)


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Runs of lines by the same author; an empty line alone is nobody's."""
    author, lines = "", list[str]()
    fence = ""  # what closes the block of code that the model opened
    ending = {mark for mark in (_USER, _AIDER) if _ends_lines_with_spaces(text, mark)}
    for line in text.split("\n"):
        if author == _USER and not line and lines:  # which ends a message of the user's
            yield author, lines
            author, lines = "", []
            continue
        by = next((mark for mark in (_USER, _AIDER) if line.startswith(mark)), "")
        if line in (_USER.strip(), _AIDER.strip()):  # an empty line of theirs
            by = f"{line} "
        is_by_model = author == "" and by in ending and not line.endswith("  ")
        is_code = bool(fence) and by != _USER
        by = "" if is_code or is_by_model else by
        if by != author and (by or line.strip()):
            if "".join(lines).strip():
                yield author, lines
            author, lines = by, []
        lines.append(line[len(by) :].rstrip() if by else line)
        fence = "" if by else _fence_after(line, fence)
    if "".join(lines).strip():
        yield author, lines


def _ends_lines_with_spaces(text: str, mark: str) -> bool:
    return any(line.startswith(mark) and line.endswith("  ") for line in text.split("\n"))


def _fence_after(line: str, fence: str) -> str:
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not line.strip().strip(fence[0]) else fence


def _by_user(text: str) -> Event:
    command, _, rest = text.partition(" ")
    if command in _TO_THE_MODEL and rest.strip():
        return Event(Kind.MESSAGE, rest.strip(), "user")
    is_to_aider = command.startswith(("/", "!")) or _CONFIRMED.fullmatch(text) is not None
    if is_to_aider or text == _NOTHING:
        return Event(Kind.REMINDER, text)
    return Event(Kind.MESSAGE, text, "user")


def _by_aider(line: str, called: bool) -> Event:
    """A line of aider's: an edit that it made for the model, a command that it ran, or a note."""
    if edited := _EDITED.fullmatch(line):
        return Event(Kind.TOOL_CALL, call=ToolCall("edit", {"path": edited[1].strip()}))
    if run := _RUN.fullmatch(line):
        return Event(Kind.TOOL_CALL, call=ToolCall("run", {"command": run[1].strip()}))
    if line.strip().startswith(_INTERRUPTED):
        return Event(Kind.INTERRUPTION, line)
    return Event(Kind.TOOL_RESULT if called else Kind.REMINDER, line)


FORMAT = Format("aider", _recognises, _read)
