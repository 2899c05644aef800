"""Gemini CLI's sessions: `~/.gemini/tmp/*/chats/session-*`, one JSON document or JSON lines.

Lines, shortened:

    {"sessionId": "s1", "projectHash": "f", "kind": "main"}       a session begins
    {"id": "1", "timestamp": "...", "type": "user", "content": [{"text": "Hi"}]}
    {"$set": {"messages": [...]}}                                 the context has these messages now
    {"$rewindTo": "1"}                                            takes back message 1 and the rest

A document is the first of these with its `messages`. A chat that was saved with `/chat save` is a
list of messages of Gemini's API instead. `gemini_cli_session` follows what the lines do to the
messages of a session, and `gemini_cli_messages` reads these.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, list_or_empty
from holdfast.transcripts.reader import Format, Unread, Values, file_of, separate_objects
from holdfast.transcripts.readers.gemini_cli_messages import (
    classify,
    events_of_record,
    is_reply,
    without_repeated_results,
)
from holdfast.transcripts.readers.gemini_cli_session import GeminiSession
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    branched_transcript,
    linear_transcript,
    sequential_parents,
)
from holdfast.validation.json_values import fields_of

_TYPES = ("user", "gemini", "info", "warning", "error")
# how the first message of a saved chat begins
_OPENINGS = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
_ANSWER_TO_OPENING = "Got it. Thanks for the context"  # which the program gives itself


def _recognises(value: Any) -> bool:
    if _saved_messages(value):
        return True
    fields = fields_of(value)
    if {"sessionId", "projectHash"} <= fields.keys() or {"$set", "$rewindTo"} & fields.keys():
        return True
    return fields.get("type") in _TYPES and {"id", "timestamp", "content"} <= fields.keys()


def _saved_messages(value: Any) -> list[Any]:
    """Returns the messages of a chat that was saved with `/chat save`; [] for other values."""
    messages = list_or_empty(at(value, "history") if isinstance(value, Mapping) else value)
    parts = list_or_empty(at(messages[0], "parts")) if messages else []
    text = at(parts[0], "text") if parts else None
    is_saved = isinstance(text, str) and text.lstrip().startswith(_OPENINGS)
    return messages if is_saved else []


def _read_saved_chat(source: str, messages: list[Any]) -> Transcript:
    """Reads a saved chat, which begins with the program's description of its surroundings."""
    first, *others = read_messages(messages)
    events = [Event(EventKind.REMINDER, first.text)]
    if others and others[0].text.startswith(_ANSWER_TO_OPENING):
        events.append(Event(EventKind.REMINDER, others.pop(0).text))
    return linear_transcript(source, [*events, *(classify(event) for event in others)])


def _read(values: Values) -> Iterator[Transcript | Unread]:
    lines: Values = []
    for value in values:
        messages = _saved_messages(value.value)
        if not messages:
            lines.append(value)
            continue
        try:
            yield _read_saved_chat(value.source, messages)
        except Malformed as error:
            yield Unread(f"{value.source}: {error}")
    if lines:
        yield from _sessions(lines)


def _sessions(lines: Values) -> Iterator[Transcript | Unread]:
    """Reads the sessions in a file; several are in one that was joined."""
    records, others = separate_objects(lines)
    yield from others
    session = GeminiSession(file_of(lines[0].source))
    for source, record in records:
        try:
            if "$rewindTo" in record:
                yield session.rewind(record["$rewindTo"], source, by="$rewindTo")
            elif "messages" in fields_of(record.get("$set")):
                taken_back = session.set_context(record["$set"]["messages"], source)
                if taken_back is not None:
                    yield taken_back
            elif "$set" in record:
                continue
            elif "sessionId" in record:
                if session.has_reply:
                    yield from _transcript(session)
                name = f"{file_of(source)}, session {record['sessionId']}"
                session = GeminiSession(name, is_of_subagent=record.get("kind") == "subagent")
                session.add(record.get("messages") or [], source)
            else:
                session.add([record], source)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield from _transcript(session)


def _transcript(session: GeminiSession) -> Iterator[Transcript | Unread]:
    """Returns the transcript of a session, with the messages taken back as branches."""
    nodes: dict[str, list[Event]] = {}
    answered: set[str] = set()  # the ids of the calls whose results are with them
    for name, record in session.messages.items():
        try:
            copy_ids = _copy_ids(record)
            events = events_of_record(record)
            if is_reply(record):
                answered |= {event.call_id for event in events} - {""}
            else:
                events = without_repeated_results(events, answered)
            nodes[name] = [
                replace(event, source=session.sources[name], id=name, copy_ids=copy_ids)
                for event in events
            ]
        except Malformed as error:
            yield Unread(f"{session.name}: {error}")
    active = list(nodes)
    parents = sequential_parents(active)
    # a message that was taken back may have been written again, so it gets another name
    new_names: dict[str, str] = {}
    for number, (name, before, record) in enumerate(session.abandoned):
        new_name = f"taken back {number}"
        new_names[name] = new_name
        parents[new_name] = new_names.get(before or "", before)
        try:
            nodes[new_name] = events_of_record(record)
        except Malformed:
            nodes[new_name] = []
    transcript = branched_transcript(session.name, nodes, parents, active)
    yield replace(transcript, is_of_subagent=session.is_of_subagent)


def _copy_ids(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns an id that copies of a reply share; the reply's own id may be just a number."""
    if not is_reply(record) or not record.get("timestamp"):
        return ()
    content = json.dumps([record.get("content"), record.get("toolCalls")], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return (f"{record.get('id')} {record['timestamp']} {digest}",)


def _reaches_back(value: Any) -> bool:
    """Whether a line removes messages before it, or replaces them."""
    return "$rewindTo" in fields_of(value) or "messages" in fields_of(at(value, "$set"))


FORMAT = Format("gemini-cli", _recognises, _read, has_events=True, reaches_back=_reaches_back)
