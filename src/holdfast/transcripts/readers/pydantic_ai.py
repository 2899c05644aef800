"""Pydantic AI's messages, as its `ModelMessagesTypeAdapter` writes them.

A request and the response to it, shortened:

    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello"}]}
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.json_fields import at, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Located, Unread, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of


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
        try:
            yield linear_transcript(source, _events(value))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    events: list[Event] = []
    prompt: list[str] = []
    for source, value in single:
        try:
            events += _events_of_message(value, prompt)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if events:
        yield linear_transcript(file_of(single[0].source), events)


def _events(messages: list[Any]) -> list[Event]:
    prompt: list[str] = []
    return [event for message in messages for event in _events_of_message(message, prompt)]


def _events_of_message(message: Any, prompt: list[str]) -> list[Event]:
    """Returns the events of a request or a response.

    Args:
        prompt: the instructions that were sent last, which every request repeats.
    """
    fields = require_object(message)
    events: list[Event] = []
    instructions = fields.get("instructions")
    if isinstance(instructions, str) and [instructions] != prompt:
        prompt[:] = [instructions]
        events += message_events("system", instructions)
    for part in list_or_empty(fields.get("parts")):
        events += _events_of_part(require_object(part))
    if fields.get("kind") == "response" and events and is_cut(fields):
        last = events.pop()
        events.append(
            Event(last.kind, last.text, last.role, call=last.call, id=last.id, is_cut=True)
        )
    return events


def _events_of_part(part: Mapping[str, Any]) -> list[Event]:
    content = part.get("content")
    match part.get("part_kind"):
        case "system-prompt" | "instruction":
            return message_events("system", _text(content))
        case "user-prompt":
            return message_events("user", _text(content))
        case "text":
            return message_events("assistant", _text(content))
        case "tool-call" | "builtin-tool-call":
            call = read_call({**part, "name": part.get("tool_name")})
            return [Event(EventKind.TOOL_CALL, call=call)]
        case "tool-return" | "builtin-tool-return":
            is_refusal = part.get("outcome") in ("denied", "interrupted")
            return [_result(part, is_refusal=is_refusal)]
        case "retry-prompt" if part.get("tool_name"):
            # a list has what is wrong with the arguments; a text is what the tool answered
            return [_result(part, is_refusal=isinstance(content, list))]
        case "retry-prompt":
            return [Event(EventKind.REMINDER, _text(content))]
        case "compaction" if isinstance(content, str):
            return [Event(EventKind.COMPACTION, content)]
        case "speech":
            return message_events("assistant", _text(part.get("transcript")))
    return []


def _result(part: Mapping[str, Any], *, is_refusal: bool) -> Event:
    call_id = str(part.get("tool_call_id") or "")
    text = _text(part.get("content"))
    return Event(EventKind.TOOL_RESULT, text, call_id=call_id, is_refusal=is_refusal)


def _text(content: Any) -> str:
    """Returns a content as text: JSON, unless it is text or a list with texts and files."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(p, str) or "kind" in fields_of(p) for p in content
    ):
        texts = [p if isinstance(p, str) else at(p, "content") for p in content]
        is_shown = [isinstance(p, str) or at(p, "kind") == "text-content" for p in content]
        return text_of([text for text, shown in zip(texts, is_shown, strict=True) if shown])
    return "" if content is None else json.dumps(content, ensure_ascii=False)


FORMAT = Format("pydantic-ai", _recognises, _transcripts)
