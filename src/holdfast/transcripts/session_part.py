"""Reads the log of a coding agent's session from a given byte on.

An agent appends to its log while it works. A hook that asks about the last turn, again and again,
reads only the part that begins with that turn.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.errors import UsageError, shortened
from holdfast.transcripts.parsing import is_bookkeeping_event, may_be_document, parse
from holdfast.transcripts.reader import Format, Located, Unread, Values
from holdfast.transcripts.readers import claude_code, codex, gemini_cli
from holdfast.transcripts.transcript import Event, Transcript

# in the order in which they are tried on a value
_SESSIONS: tuple[Format, ...] = (gemini_cli.FORMAT, codex.FORMAT, claude_code.FORMAT)


@dataclass(frozen=True)
class SessionPart:
    """A part of the log of a session.

    Args:
        start: the byte where it begins.
        end: the byte after its last whole line.
        events: the active path of the session itself, without its subagents.
        offsets: the byte where each line begins, by the `source` of the line's events; {} if the
            log is a single JSON document.
        reaches_back: whether it changes events before it, so that it cannot be read alone.
    """

    start: int
    end: int
    events: tuple[Event, ...] = ()
    offsets: Mapping[str, int] = field(default_factory=dict)
    reaches_back: bool = False

    def offset_of(self, event: Event) -> int:
        """Returns the byte where the line of an event begins; `start` if it is not known."""
        return self.offsets.get(event.source, self.start)


def read_session_part(path: Path, start: int = 0) -> SessionPart:
    """Reads the log of a session from the byte `start` on, where a line has to begin.

    A last line that is still being written is left for the next time.

    Raises:
        UsageError: the file cannot be read, or is not the log of a known coding agent.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read()
    except OSError as error:
        raise UsageError(
            f"The transcript {path} cannot be read ({error.strerror}); check the path in the hook's"
            " input.",
            option="transcript_path",
            value=path,
        ) from error
    if may_be_document(path):
        return _read_values(path, [*parse(path, _text(content))], SessionPart(0, len(content)))
    lines = content[: _end_of_lines(content)]
    offsets: dict[str, int] = {}
    parsed: list[Located | Unread] = []
    position = start
    # lines are numbered from the start of the part: the number serves only as a name
    for number, line in enumerate(lines.split(b"\n"), start=1):
        if line.strip():
            source = f"{path}, line {number}"
            offsets[source] = position
            parsed.append(_parse_line(source, line))
        position += len(line) + 1
    return _read_values(path, parsed, SessionPart(start, start + len(lines), offsets=offsets))


def _end_of_lines(content: bytes) -> int:
    """Returns where the last whole line ends; a last line that is JSON needs no line break."""
    end = content.rfind(b"\n") + 1
    try:
        json.loads(content[end:])
    except (ValueError, RecursionError):
        return end
    return len(content)


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


def _parse_line(source: str, line: bytes) -> Located | Unread:
    try:
        return Located(source, json.loads(_text(line)))
    except (ValueError, RecursionError):
        return Unread(f"{source}: it is not JSON")


def _read_values(path: Path, parsed: Sequence[Located | Unread], part: SessionPart) -> SessionPart:
    """Returns the part with the events in its values."""
    located = [value for value in parsed if isinstance(value, Located)]
    form = _format_of(path, located, is_empty=not parsed)
    if form is None:
        return part
    values: Values = [value for value in located if form.recognises(value.value)]
    try:
        transcripts = [item for item in form.read(values) if isinstance(item, Transcript)]
    except RecursionError as error:
        raise UsageError(
            f"The transcript {path} is nested too deeply to be read; leave it out.",
            option="transcript_path",
            value=path,
        ) from error
    sessions = [session for session in transcripts if not session.is_of_subagent]
    # of several sessions in a file, the one that was written to last is the current one
    order = {value.source: number for number, value in enumerate(values)}

    def last_line(session: Transcript) -> int:
        return max((order.get(event.source, 0) for event in session.path), default=-1)

    last = max(sessions, key=last_line, default=None)
    return replace(
        part,
        events=last.path if last is not None else (),
        reaches_back=any(form.reaches_back(value.value) for value in values),
    )


def _format_of(path: Path, located: Values, is_empty: bool) -> Format | None:
    """Returns the format of the first value that has one; None if there are no events yet."""
    for value in located:
        for form in _SESSIONS:
            if form.recognises(value.value):
                return form
    unknown = [value for value in located if not is_bookkeeping_event(value.value)]
    if is_empty or (located and not unknown):
        return None
    reason = shortened(unknown[0].value) if unknown else "it is not JSON"
    raise UsageError(
        f"The transcript {path} is in no known format ({reason}); it has to be that of Claude Code,"
        " Codex or Gemini CLI.",
        option="transcript_path",
        value=path,
        allowed=tuple(form.name for form in _SESSIONS),
    )
