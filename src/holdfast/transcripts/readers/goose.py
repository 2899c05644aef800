"""Goose's sessions: JSON lines, exports, and those in `sessions.db`.

A line, and a session, shortened:

    {"role": "user", "created": 1760000000, "content": [{"type": "text", "text": "Hi"}]}
    {"id": "20260101_1", "working_dir": "/home/me/app", "conversation": [...]}
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.injected import remove_elements
from holdfast.transcripts.json_fields import at, list_or_empty, optional_list, require_object
from holdfast.transcripts.reader import Format, Located, Unread, Values, file_of, separate_objects
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    WorkingFolder,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of, text_or_empty

_ROLES = ("user", "assistant")
_INJECTED = ("info-msg",)  # the time and the state of extensions
# parts that are not in the context, or not shown in the reply
_HIDDEN = (
    *("thinking", "redactedThinking", "reasoning", "systemNotification", "actionRequired"),
    *("toolConfirmationRequest", "conversationCompacted", "contextLengthExceeded"),
    "summarizationRequested",
)
# how the results of calls begin that never ran
_REFUSALS = (
    "The user has declined to run this tool",
    "Let the user know the tool call was skipped",
    "This tool call was blocked by",
)
# how the message of the assistant begins that follows the summary of a compaction
_CONTINUATION = "Your context was compacted"
# what the user types for a compaction; the model does not see it
_COMMANDS = ("/compact", "/summarize", "Please compact this conversation")
_SUBAGENT = "sub_agent"  # the type of its sessions


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if {"working_dir", "conversation"} <= fields.keys() or _is_header(fields):
        return True
    return _is_message(fields)


def _is_header(fields: Mapping[str, Any]) -> bool:
    """Whether an object is the first line of a file, which describes the session."""
    return {"description", "message_count"} <= fields.keys()


def _is_message(fields: Mapping[str, Any]) -> bool:
    content = fields.get("content")
    is_dated = isinstance(fields.get("created"), int)
    return is_dated and fields.get("role") in _ROLES and isinstance(content, list)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    """Reads each session, and the lines of a file as one."""
    records, others = separate_objects(values)
    yield from others
    lines: list[Located] = []
    folder = ""
    for source, fields in records:
        if _is_message(fields):
            lines.append(Located(source, fields))
        elif _is_header(fields):
            folder = text_or_empty(fields.get("working_dir"))
        else:
            try:
                entries = optional_list(fields.get("conversation"))
            except Malformed as error:
                yield Unread(f"{source}: {error}")
                continue
            messages = [Located("", entry) for entry in entries]
            is_of_subagent = fields.get("session_type") == _SUBAGENT
            for part in _session(source, messages, text_or_empty(fields.get("working_dir"))):
                if isinstance(part, Transcript):
                    part = replace(part, is_of_subagent=is_of_subagent)
                yield part
    if lines:
        yield from _session(file_of(lines[0].source), lines, folder)


def _session(
    source: str, messages: Sequence[Located], folder_path: str
) -> Iterator[Transcript | Unread]:
    """Reads the messages of a session.

    Args:
        messages: without a source of their own if they are entries of one value.
        folder_path: the working folder of the session.
    """
    folder = WorkingFolder()
    folder.note(folder_path)
    events: list[Event] = []
    hidden: list[str] = []  # the ids of the calls whose results a summary has replaced since
    for number, (line, message) in enumerate(messages):
        following = messages[number + 1].value if number + 1 < len(messages) else None
        try:
            new_events = _events_of(require_object(message), following, events)
        except Malformed as error:
            location = line or f"{source}: message {number + 1}"
            yield Unread(f"{location}: {error}")
            continue
        if any(event.kind is EventKind.COMPACTION for event in new_events):
            hidden = []
        if at(message, "metadata", "agentVisible") is False:
            hidden += [event.call_id for event in new_events if event.kind is EventKind.TOOL_RESULT]
        elif hidden and _is_for_model_alone(message) and new_events and _is_reminder(new_events[0]):
            # the summaries of calls are in the order of the calls
            new_events.insert(0, Event(EventKind.CLEARING, clears=frozenset([hidden.pop(0)])))
        name = str(at(message, "id") or f"message {number + 1}")
        ids = _copy_ids(message)
        events += [
            replace(folder.of(event), source=line, id=name, copy_ids=ids) for event in new_events
        ]
    if events:
        yield linear_transcript(source, events)


def _copy_ids(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns an id that copies of a message share, as of a line that is in the database too."""
    content = json.dumps([message.get("role"), message.get("content")], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return (f"{message.get('created')} {digest}",)


def _events_of(message: Mapping[str, Any], following: Any, before: Sequence[Event]) -> list[Event]:
    """Reads a message.

    A compaction adds three messages: the summary, with the user's role; an instruction to go on,
    with the assistant's; and a copy of the user's last message. Those before it stay in the log.

    Args:
        following: the next message of the session; None after the last.
        before: the events of the session so far.
    """
    content = optional_list(message.get("content"))
    text = _text_in(content)
    if message.get("role") == "assistant":
        if text.startswith(_CONTINUATION):
            return [Event(EventKind.REMINDER, text)]
        return _reply(content, text)
    if _text_in(list_or_empty(at(following, "content"))).startswith(_CONTINUATION):
        return [Event(EventKind.COMPACTION, text)]
    if at(message, "metadata", "agentVisible") is False and text.strip() in _COMMANDS:
        return []
    results = [_result(part) for part in content if at(part, "type") == "toolResponse"]
    if text and _is_for_model_alone(message):
        return [*results, Event(EventKind.REMINDER, text)]
    typed = remove_elements(text, _INJECTED)
    unread = _unread_in(content)
    if not typed and not unread:
        return [*results, *([Event(EventKind.REMINDER, text)] if text else [])]
    if _is_copy(typed, before):
        return [*results, Event(EventKind.REMINDER, text)]
    return [*results, *message_events("user", typed, unread=unread)]


def _is_for_model_alone(message: Any) -> bool:
    """Whether Goose wrote a message that it does not show, such as the summary of an old call."""
    metadata = fields_of(at(message, "metadata"))
    is_of_user = at(message, "role") == "user"
    return (
        is_of_user and metadata.get("userVisible") is False and metadata.get("agentVisible") is True
    )


def _is_reminder(event: Event) -> bool:
    return event.kind is EventKind.REMINDER


def _is_copy(text: str, before: Sequence[Event]) -> bool:
    """Whether a message directly after a compaction repeats the user's last one."""
    kinds = [event.kind for event in before[-2:]]
    if kinds != [EventKind.COMPACTION, EventKind.REMINDER]:
        return False
    last = next((event.text for event in reversed(before) if event.is_by_user), None)
    return text == last


def _reply(content: Sequence[Any], text: str) -> list[Event]:
    calls: list[ToolCall] = []
    for part in content:
        if at(part, "type") in ("toolRequest", "frontendToolRequest"):
            call = at(part, "toolCall", "value")  # without one, its arguments were not valid
            if call is not None:
                calls.append(read_call({**require_object(call), "id": at(part, "id")}))
    unread = _unread_in(content)
    return message_events("assistant", text, calls, unread=unread) if text or calls else []


def _result(part: Any) -> Event:
    value = at(part, "toolResult", "value")
    content = at(value, "content") if isinstance(value, Mapping) else value
    if isinstance(content, list):
        content = [item for item in content if _is_for_model(item)]
    text = text_or_empty(at(part, "toolResult", "error")) or text_of(content)
    return Event(
        EventKind.TOOL_RESULT,
        text,
        call_id=str(at(part, "id") or ""),
        is_refusal=text.startswith(_REFUSALS),
        unread=kinds_without_text(content),
    )


def _is_for_model(item: Any) -> bool:
    """Whether the model sees a part of a result; a tool may repeat its output for the user."""
    audience = at(item, "annotations", "audience")
    return not isinstance(audience, list) or "assistant" in audience


def _text_in(content: Sequence[Any]) -> str:
    texts = (at(part, "text") for part in content if at(part, "type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _unread_in(content: Sequence[Any]) -> tuple[str, ...]:
    known = ("text", "toolRequest", "frontendToolRequest", "toolResponse", *_HIDDEN)
    kinds = (at(part, "type") for part in content)
    return tuple(str(kind) for kind in kinds if kind not in known)


FORMAT = Format("goose", _recognises, _read, has_events=True)
