"""Cursor's chats: the Markdown that it exports, its database `state.vscdb`, and the transcripts of
its agent (`~/.cursor/projects/*/agent-transcripts/`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.content_blocks import read_call
from holdfast.transcripts.injected import element_text, without_elements
from holdfast.transcripts.reader import (
    Format,
    Located,
    Markdown,
    Unread,
    Values,
    at,
    decoded,
    entries,
    fields_of,
    file_of,
    mapping,
)
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    linear,
    message_events,
)

_EXPORT = re.compile(r"\A\s*# [^\n]*\n_Exported on [^\n]* from Cursor \([^\n]*\)_\s*\n")
_SPEAKER = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n\n", re.MULTILINE)
_ROLES = {"User": "user", "Cursor": "assistant", 1: "user", 2: "assistant"}
_ROLES |= {"user": "user", "ai": "assistant"}
_INJECTED = (
    *("timestamp", "user_info", "system_reminder", "open_and_recently_viewed_files", "git_status"),
    *("attached_files", "cursor_rules", "rules", "agent_transcripts", "project_layout"),
)


def _recognises(value: Any) -> bool:
    if isinstance(value, Markdown):
        return bool(_EXPORT.match(value.text))
    fields = fields_of(value)
    if isinstance(fields.get("composerData"), Mapping):
        return True
    if isinstance(fields.get("tabs"), list):
        return any("bubbles" in fields_of(tab) for tab in fields["tabs"])
    return _is_of_agent(value)


def _is_of_agent(value: Any) -> bool:
    """Whether a value is a line of an agent's transcript."""
    fields = fields_of(value)
    names = fields.keys()
    is_message = "role" in names and isinstance(fields.get("message"), Mapping)
    return is_message and not names & {"type", "sessionId", "session_id", "uuid", "author"}


def _read(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    lines: Values = []
    for where, value in values:
        if _is_of_agent(value):
            lines.append(Located(where, value))
            continue
        try:
            if isinstance(value, Markdown):
                yield from _exported(where, value.text)
            elif "composerData" in fields_of(value):
                yield from _composer(where, value)
            else:
                yield from _tabs(where, mapping(value))
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    if lines:
        yield from _agent(lines)


def _exported(where: str, text: str) -> Iterator[Transcript | Unread]:
    before, *turns = _SPEAKER.split(_EXPORT.sub("", text.replace("\r\n", "\n")))
    if before.strip():
        yield Unread(f"{where}: what stands before its first message is left out")
    events: list[Event] = []
    for speaker, said in zip(turns[::2], turns[1::2], strict=True):
        events += message_events(_ROLES[speaker], said.strip().removesuffix("\n\n---").strip())
    yield linear(file_of(where), events)


def _agent(lines: Values) -> Iterator[Transcript | Unread]:
    events: list[Event] = []
    for where, line in lines:
        try:
            for event in read_message({"role": line.get("role"), **line["message"]}):
                events.append(_by_whom(event))
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    yield linear(file_of(lines[0].source), events)


def _by_whom(event: Event) -> Event:
    """A message of the user without what Cursor wrote into it."""
    if not event.is_by_user:
        return event
    words = element_text(event.text, "user_query") or without_elements(event.text, _INJECTED)
    return Event(Kind.MESSAGE, words, "user") if words else Event(Kind.REMINDER, event.text)


def _composer(where: str, value: Mapping[str, Any]) -> Iterator[Transcript | Unread]:
    """A dialog of the database: its messages ("bubbles") in the order that it lists."""
    data, bubbles = mapping(value["composerData"]), fields_of(value.get("bubbles"))
    headers = entries(data.get("fullConversationHeadersOnly")) or entries(data.get("conversation"))
    events: list[Event] = []
    missing = 0
    for header in headers:
        name = str(at(header, "bubbleId"))
        bubble = bubbles.get(name, header if "text" in fields_of(header) else None)
        if bubble is None:
            missing += 1
        else:
            events += _bubble(mapping(bubble))
    if missing:
        count = f"{missing} {'message' if missing == 1 else 'messages'}"
        yield Unread(f"{where}: {count} that the database does not have left out")
    listed = {str(at(header, "bubbleId")) for header in headers}
    if others := len(bubbles.keys() - listed):
        count = f"{others} {'message' if others == 1 else 'messages'}"
        yield Unread(f"{where}: {count} of abandoned branches (a restored checkpoint) left out")
    if events:
        yield linear(where, events)


def _tabs(where: str, value: Mapping[str, Any]) -> Iterator[Transcript | Unread]:
    """The chats of versions before the composer."""
    for number, tab in enumerate(entries(value.get("tabs")), start=1):
        try:
            bubbles = [_bubble(mapping(bubble)) for bubble in entries(at(tab, "bubbles"))]
        except Malformed as error:
            yield Unread(f"{where}, chat {number}: {error}")
            continue
        events = [*chain.from_iterable(bubbles)]
        if events:
            yield linear(f"{where}, chat {number}", events)


def _bubble(bubble: Mapping[str, Any]) -> list[Event]:
    kind = bubble.get("type")
    role = _ROLES.get(kind) if isinstance(kind, (int, str)) else None
    if role is None:
        raise Malformed(f"it has a message of the type {shortened(kind)}, which is not known")
    text = bubble.get("text") or bubble.get("rawText") or ""
    if not isinstance(text, str):
        raise Malformed(f"the text of a message is {shortened(text)}")
    tool = bubble.get("toolFormerData")
    if role == "user" or not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return message_events(role, text) if text else []
    call_id = str(tool.get("toolCallId") or "")
    arguments = decoded(tool.get("rawArgs")) or decoded(tool.get("params"))
    call = read_call({"name": tool["name"], "arguments": arguments, "id": call_id})
    events = message_events(role, text, [call])
    if tool.get("result") is not None:
        events.append(Event(Kind.TOOL_RESULT, str(tool["result"]), call_id=call_id))
    return events


FORMAT = Format("cursor", _recognises, _read, has_events=True, streams=True)
