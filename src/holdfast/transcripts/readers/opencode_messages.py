"""The messages of opencode's sessions, in the form of version 1.

For example:

    {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hi"}]}
    -> SessionMessage(events=[Event(MESSAGE, "Hi", "user")])
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    WorkingFolder,
    call_events,
    message_events,
    with_unread,
)
from holdfast.validation.json_values import fields_of

# the types of parts
_PARTS_OF_DIALOG = ("text", "tool", "subtask", "compaction")
_PARTS_FOR_DISPLAY = (
    *("step-start", "step-finish", "snapshot", "patch"),
    *("agent", "file", "reasoning", "retry"),
)
# the error of a call that the user or a rule refused, and what precedes the user's words in it
_REFUSED = re.compile(
    r"The user rejected permission to use|The user has specified a rule which prevents you"
)
_BY_USER = "The following tool was executed by the user"  # before a command that the user ran
_WORDS_OF_REFUSAL = "with the following feedback: "
_TYPES_WITHOUT_TEXT = ("image/", "audio/", "video/", "application/pdf")  # of attached files
_FINISHED_AT_LIMIT = ("length", "max_tokens")


@dataclass(frozen=True)
class SessionMessage:
    """A message of a session.

    Args:
        info: its fields as opencode writes them.
        parts: the fields of its parts.
        events: its events as far as they have been read.
    """

    id: str
    info: Mapping[str, Any]
    parts: Sequence[Mapping[str, Any]]
    events: Sequence[Event]

    @property
    def unknown_kinds(self) -> list[str]:
        """The types of its parts that are unknown."""
        kinds = (part.get("type") for part in self.parts)
        known_kinds = (*_PARTS_FOR_DISPLAY, *_PARTS_OF_DIALOG)
        return [shortened(kind) for kind in kinds if kind not in known_kinds]

    @property
    def runs_command(self) -> bool:
        """Whether the user ran a command with it, which opencode writes as a call of the model."""
        texts = [part.get("text") for part in self.parts if part.get("type") == "text"]
        return self.info.get("role") == "user" and texts == [_BY_USER]

    def is_newer_than(self, time: float) -> bool:
        """Whether the message was created after a time; False if it has no time."""
        created = at(self.info, "time", "created")
        return isinstance(created, (int, float)) and created > time

    def before_part(self, part_id: str) -> "SessionMessage":
        """Returns the message up to one of its parts, without that part."""
        ids = [part.get("id") for part in self.parts]
        parts = self.parts[: ids.index(part_id)]
        return replace(self, parts=parts, events=_events(self.info, parts))


def read_session_messages(values: Sequence[Any]) -> list[SessionMessage]:
    """Reads the messages in order; one that is written again replaces the first.

    Raises:
        Malformed: a message cannot be read.
    """
    messages: dict[str, SessionMessage] = {}
    for number, value in enumerate(values, start=1):
        name = str(at(value, "info", "id") or f"message {number}")
        try:
            info = require_object(require_field(require_object(value), "info"))
            parts = [require_object(part) for part in optional_list(require_field(value, "parts"))]
            message = SessionMessage(name, info, parts, _events(info, parts))
            asked = messages.get(str(info.get("parentID")))
            if asked is not None and asked.runs_command:
                message = replace(message, events=[*map(_reminder, message.events)])
            messages[name] = message
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    return [*messages.values()]


def _events(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Reads a message, given its fields and its parts."""
    match info.get("role"):
        case "user":
            unread = tuple(_types_without_text(parts))
            events = [*_events_of_user(parts)]
            if unread and not events:
                events = message_events("user", "")
            events = with_unread(events, unread)
        case "assistant":
            events = [*_events_of_assistant(info, parts)]
        case role:
            raise Malformed(f"it has the role {shortened(role)}; known are user and assistant")
    identity = str(info.get("id") or "")
    copy_ids = _copy_ids(info, parts)
    folder = WorkingFolder()
    folder.note(at(info, "path", "cwd"))
    events = [replace(folder.of(event), id=identity, copy_ids=copy_ids) for event in events]
    return [*_prompt(info), *events]


def _reminder(event: Event) -> Event:
    """Returns an event of a command that the user ran, which nobody said."""
    text = event.text if event.call is None else str(event.call.arguments.get("command") or "")
    return replace(event, kind=EventKind.REMINDER, text=text, role="", call=None)


def _prompt(info: Mapping[str, Any]) -> list[Event]:
    """Reads the system prompt, which is logged with replies; in later versions, with questions."""
    texts = info.get("system")
    return system_prompt("\n\n".join(map(str, texts)) if isinstance(texts, list) else texts)


def _copy_ids(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the ids by which copies of a reply are recognised.

    One is the reply's id. As the copies in a forked session have new ids, the other is the time
    with a digest of the content.
    """
    if info.get("role") != "assistant":
        return ()
    ids = [str(info["id"])] if info.get("id") else []
    if created := at(info, "time", "created"):
        content = [(at(part, "type"), at(part, "text"), at(part, "callID")) for part in parts]
        ids.append(f"{created} {hashlib.sha256(repr(content).encode()).hexdigest()[:16]}")
    return tuple(ids)


def _events_of_user(parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    for part in parts:
        kind = part.get("type")
        if kind == "compaction":
            yield Event(EventKind.COMPACTION)
        elif kind == "subtask":
            yield Event(EventKind.REMINDER, str(part.get("prompt") or ""))
        elif kind == "text" and part.get("ignored") is not True:
            text = text_of(require_field(part, "text"))
            if part.get("synthetic") is True:  # written by opencode, such as the text of a file
                yield Event(EventKind.REMINDER, text)
            else:
                yield from message_events("user", text)


def _types_without_text(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the types of the attached files whose text opencode does not log, such as images."""
    for part in parts:
        media_type = str(part.get("mime"))
        if part.get("type") == "file" and media_type.startswith(_TYPES_WITHOUT_TEXT):
            yield media_type


def _events_of_assistant(
    info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]
) -> Iterator[Event]:
    error = at(info, "error", "name")
    is_cut = info.get("finish") in _FINISHED_AT_LIMIT or error == "MessageOutputLengthError"
    for part in parts:
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True:
            text = text_of(require_field(part, "text"))
            if info.get("summary") is True:
                yield Event(EventKind.COMPACTION, text)
            elif part.get("synthetic") is True:
                yield Event(EventKind.REMINDER, text)
            else:
                yield from message_events("assistant", text, is_cut=is_cut)
        elif kind == "tool":
            yield from _events_of_tool(part)
    if error == "MessageAbortedError":
        yield Event(EventKind.INTERRUPTION)
    elif error is not None and not is_cut:
        yield Event(EventKind.ERROR, str(at(info, "error", "data", "message") or error))


def _events_of_tool(part: Mapping[str, Any]) -> list[Event]:
    """Reads a call and, if it has ended, its result."""
    name = require_field(part, "tool")
    state = require_object(require_field(part, "state"))
    if not isinstance(name, str):
        raise Malformed(f"the tool's name is {shortened(name)}")
    call = ToolCall(name, fields_of(state.get("input")), str(part.get("callID") or ""))
    match state.get("status"):
        case "completed":
            called, result = call_events(call, text_of(state.get("output")))
            files = list_or_empty(state.get("attachments"))
            types = tuple(str(at(file, "mime") or "file") for file in files)
            return [called, *with_unread([result], types)]
        case "error":
            failure = text_of(state.get("error"))
            is_refusal = state.get("isRefused") is True or bool(_REFUSED.match(failure))
            events = call_events(call, failure, is_refusal=is_refusal)
            words = failure.partition(_WORDS_OF_REFUSAL)[2] if events[-1].is_refusal else ""
            return [*events, *(message_events("user", words.strip()) if words.strip() else [])]
    return call_events(call)
