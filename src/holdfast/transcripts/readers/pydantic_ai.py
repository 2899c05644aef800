"""Pydantic AI's messages, as its `ModelMessagesTypeAdapter` writes them.

A request and the response to it, shortened:

    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}]}
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Located, Unread, file_of
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of

# kinds of parts that are not in the dialog
_HIDDEN = ("thinking", "tool-availability-delta")
_NEVER_RAN = ("denied", "interrupted")  # outcomes of a tool call
# kinds of entries in a content: those that have a text, and those that the model does not see
_TEXT = "text-content"
_MARKS = ("cache-point",)


def _is_message(value: Any) -> bool:
    parts = list_or_empty(fields_of(value).get("parts"))
    is_named = fields_of(value).get("kind") in ("request", "response")
    return is_named and all("part_kind" in fields_of(part) for part in parts)


def _recognises(value: Any) -> bool:
    return _is_message(value[0] if isinstance(value, list) and value else value)


def _transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    """Reads a dialog from each list of messages, and one from all messages that are in no list."""
    single: list[Located] = []
    for source, value in values:
        if not isinstance(value, list):
            single.append(Located(source, value))
            continue
        dialog = _Dialog()
        try:
            for message in value:
                dialog.add(message)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
        else:
            yield linear_transcript(source, dialog.events)
    dialog = _Dialog()
    for source, value in single:
        try:
            dialog.add(value)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if dialog.events:
        yield linear_transcript(file_of(single[0].source), dialog.events)


class _Dialog:
    """A dialog under construction."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._prompt: Event | None = None  # the instructions, which every request repeats

    def add(self, message: Any) -> None:
        """Adds the events of a request or a response.

        Raises:
            Malformed: it cannot be read; nothing is added.
        """
        fields = require_object(message)
        parts = map(require_object, list_or_empty(fields.get("parts")))
        new_events = [event for part in parts for event in _events_of_part(part)]
        if fields.get("kind") == "response" and new_events and is_cut(fields):
            new_events[-1] = replace(new_events[-1], is_cut=True)
        instructions = fields.get("instructions")
        if isinstance(instructions, str):
            self._instruct(instructions)
        self.events += new_events

    def _instruct(self, instructions: str) -> None:
        """Puts the instructions of a request in the place of those before it."""
        if self._prompt is not None and self._prompt.text == instructions:
            return
        if self._prompt is not None:
            cleared = frozenset({self._prompt.id})
            self.events.append(Event(EventKind.CLEARING, clears=cleared))
        identity = f"instructions {len(self.events)}"
        self._prompt = Event(EventKind.MESSAGE, instructions, "system", id=identity)
        self.events.append(self._prompt)


def _events_of_part(part: Mapping[str, Any]) -> list[Event]:
    """Reads a part of a request or a response; one of an unknown kind has no text.

    Raises:
        Malformed: it is a call without a name.
    """
    content = part.get("content")
    unread = _kinds_without_text(content)
    match kind := part.get("part_kind"):
        case "system-prompt" | "instruction":
            return message_events("system", _text(content))
        case "user-prompt":
            return message_events("user", _text(content), unread=unread)
        case "text":
            return message_events("assistant", _text(content))
        case "speech":
            role = "user" if part.get("speaker") == "user" else "assistant"
            return message_events(role, _text(part.get("transcript")))
        case "file":  # that the model made
            return message_events("assistant", "", unread=("file",))
        case "tool-call" | "builtin-tool-call":
            call = read_call({**part, "name": part.get("tool_name")})
            return [Event(EventKind.TOOL_CALL, call=call)]
        case "tool-return" | "builtin-tool-return":
            return [_result(part, is_refusal=part.get("outcome") in _NEVER_RAN)]
        case "retry-prompt" if part.get("tool_name"):
            # a list has what is wrong with the arguments; a text is what the tool answered
            return [_result(part, is_refusal=isinstance(content, list))]
        case "retry-prompt":
            return [Event(EventKind.REMINDER, _text(content))]
        case "compaction" if isinstance(content, str):
            return [Event(EventKind.COMPACTION, content)]
        case "compaction":  # the provider keeps its text to itself
            return [Event(EventKind.REMINDER, unread=("compaction",))]
        case str() if kind in _HIDDEN:
            return []
    return [Event(EventKind.REMINDER, unread=(str(kind),))]


def _result(part: Mapping[str, Any], *, is_refusal: bool) -> Event:
    content = part.get("content")
    return Event(
        EventKind.TOOL_RESULT,
        _text(content),
        call_id=str(part.get("tool_call_id") or ""),
        is_refusal=is_refusal,
        unread=_kinds_without_text(content),
    )


def _text(content: Any) -> str:
    """Returns a content as text: JSON, unless it is text or a list with texts and files."""
    if isinstance(content, str):
        return content
    if _is_of_entries(content):
        texts = (entry if isinstance(entry, str) else _text_of_entry(entry) for entry in content)
        return "\n".join(text for text in texts if text is not None)
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def _kinds_without_text(content: Any) -> tuple[str, ...]:
    """Returns the kinds of the entries that `_text` leaves out, such as images."""
    entries = content if _is_of_entries(content) else []
    others = [entry for entry in entries if not isinstance(entry, str)]
    kinds = [str(entry["kind"]) for entry in others if _text_of_entry(entry) is None]
    return tuple(kind for kind in kinds if kind not in _MARKS)


def _is_of_entries(content: Any) -> bool:
    """Whether a content is a list of texts and files, rather than a tool's own JSON."""
    return isinstance(content, list) and all(
        isinstance(entry, str) or "kind" in fields_of(entry) for entry in content
    )


def _text_of_entry(entry: Mapping[str, Any]) -> str | None:
    """Returns the text of an entry of a content that is no text itself; None for a file."""
    text = at(entry, "content") if at(entry, "kind") == _TEXT else None
    return text if isinstance(text, str) else None


FORMAT = Format("pydantic-ai", _recognises, _transcripts)
