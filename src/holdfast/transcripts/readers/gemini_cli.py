"""Gemini CLI's sessions: `~/.gemini/tmp/*/chats/session-*`, one JSON document or JSON lines.

Lines, shortened:

    {"sessionId": "s1", "projectHash": "f", "kind": "main"}       a session begins
    {"id": "1", "timestamp": "...", "type": "user", "content": [{"text": "Hi"}]}
    {"$set": {"messages": [...]}}                                 the context has these messages now
    {"$rewindTo": "1"}                                            takes back message 1 and the rest

A document is the first of these with its `messages`. A chat that was saved with `/chat save` is a
list of messages of Gemini's API instead.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, list_or_empty, optional_list, require_object
from holdfast.transcripts.reader import Format, Unread, Values, file_of, separate_objects
from holdfast.transcripts.readers.gemini_cli_messages import (
    COMPRESSED,
    classify,
    events_of_record,
    is_reply,
)
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


class _Abandoned(NamedTuple):
    """A message that was taken back, and the id of the message before it, if any."""

    name: str
    before: str | None
    record: Mapping[str, Any]


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


@dataclass
class _Session:
    """A session under construction.

    Args:
        records: the messages by id, in order; a message that is written again replaces the first.
        sources: the source of each message; of the first if it is written again.
        context: the ids of the messages in the model's context.
        abandoned: the messages that were taken back.
    """

    name: str
    is_of_subagent: bool = False
    records: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    abandoned: list[_Abandoned] = field(default_factory=list)

    def add(self, records: Any, source: str) -> None:
        """Appends messages."""
        for record in optional_list(records):
            name = str(require_object(record).get("id") or f"message {len(self.records)}")
            self.records[name] = record
            self.sources.setdefault(name, source)
            if name not in self.context:
                self.context.append(name)

    def set_context(self, records: Any, source: str) -> str | None:
        """Sets the messages in the model's context.

        Gemini CLI does this when it starts, when it compresses the dialog, and when it takes back a
        turn that was aborted.

        Returns:
            The id of the first message that was taken back; None if none was.
        """
        messages = {str(at(record, "id")): record for record in optional_list(records)}
        removed_ids = [name for name in self.context if name not in messages]
        if not any(is_reply(self.records[name]) for name in removed_ids):  # a start
            for name in removed_ids:
                del self.records[name]
            self.context = []
            self.add(records, source)
            return None
        new_messages = [record for name, record in messages.items() if name not in self.context]
        if not new_messages:  # replies are removed without a replacement
            return removed_ids[0]
        kept_ids = [name for name in messages if name in self.context]
        compression = {"type": COMPRESSED, "content": new_messages, "keeps": kept_ids}
        name = f"compression {len(self.records)}"
        self.records[name] = compression
        self.sources[name] = source
        self.context = kept_ids
        return None

    def rewind(self, target: Any, source: str, by: str) -> Unread:
        """Takes back the message `target` and those after it; `by` is the field that says so."""
        names = list(self.records)
        if not isinstance(target, str):
            raise Malformed(f"Gemini CLI rewound to {shortened(target)}, which is not a message")
        first = names.index(target) if target in names else 0  # as Gemini CLI handles it
        self.context = [name for name in self.context if name in names[:first]]
        parents = sequential_parents(names)
        for name in names[first:]:
            self.abandoned.append(_Abandoned(name, parents[name], self.records.pop(name)))
        count = len(names) - first
        return Unread(
            f"{source}: Gemini CLI rewound the session to before the message {target!r} ({by}), so"
            f" {count_of(count, 'message')} {'is' if count == 1 else 'are'} left out"
        )

    @property
    def has_reply(self) -> bool:
        return any(map(is_reply, self.records.values()))


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
    session = _Session(file_of(lines[0].source))
    for source, record in records:
        try:
            if "$rewindTo" in record:
                yield session.rewind(record["$rewindTo"], source, by="$rewindTo")
            elif "messages" in fields_of(record.get("$set")):
                taken_back = session.set_context(record["$set"]["messages"], source)
                if taken_back is not None:
                    yield session.rewind(taken_back, source, by="$set")
            elif "$set" in record:
                continue
            elif "sessionId" in record:
                if session.has_reply:
                    yield from _transcript(session)
                name = f"{file_of(source)}, session {record['sessionId']}"
                session = _Session(name, is_of_subagent=record.get("kind") == "subagent")
                session.add(record.get("messages") or [], source)
            else:
                session.add([record], source)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield from _transcript(session)


def _transcript(session: _Session) -> Iterator[Transcript | Unread]:
    """Returns the transcript of a session, with the messages taken back as branches."""
    nodes: dict[str, list[Event]] = {}
    for name, record in session.records.items():
        try:
            copy_ids = _copy_ids(record)
            nodes[name] = [
                replace(event, source=session.sources[name], id=name, copy_ids=copy_ids)
                for event in events_of_record(record)
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
