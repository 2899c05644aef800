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
    Compression,
    Shortening,
    classify,
    events_of_record,
    is_in_history,
    is_reply,
    is_spoken,
    results_in,
    without_repeated_results,
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


class _Compressed(NamedTuple):
    """A message within a compression, and the id of the compression."""

    compression: str
    record: Mapping[str, Any]


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
        compressed: the messages within a compression, by their ids, with the compression's id.
        renamed: the first id of each message that Gemini CLI wrote again under another one.
    """

    name: str
    is_of_subagent: bool = False
    records: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    abandoned: list[_Abandoned] = field(default_factory=list)
    compressed: dict[str, _Compressed] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def add(self, records: Any, source: str) -> None:
        """Appends messages."""
        for record in optional_list(records):
            name = self._name_of(record) or f"message {len(self.records)}"
            if name in self.compressed:
                continue
            self.records[name] = record
            self.sources.setdefault(name, source)
            if name not in self.context:
                self.context.append(name)

    def set_context(self, records: Any, source: str) -> Unread | None:
        """Sets the messages in the model's context.

        Gemini CLI does this when it starts, when it compresses the dialog or shortens old results
        of tools, and when it takes back a turn that was aborted.
        """
        messages: dict[str, Mapping[str, Any]] = {}
        for number, record in enumerate(optional_list(records)):
            name = self._name_of(record) or f"message {number}"
            messages[name] = record if record.get("id") else {**record, "id": name}
        removed = [name for name in self.context if name not in messages]
        if not any(is_spoken(self._record(name)) for name in removed):  # a start
            self._refresh(messages, removed, source)
            return None
        if any(name not in self.context for name in messages):
            self._compress(messages, source)
            return None
        kept = [name for name in self.context if name in messages]
        if self.context[: len(kept)] == kept:  # replies are removed without a replacement
            return self.rewind(removed[0], source, by="$set")
        self._merge_copies(removed, kept, source)
        return None

    def _refresh(
        self, messages: Mapping[str, Mapping[str, Any]], removed: list[str], source: str
    ) -> None:
        """Writes the messages of the context again, in their order; some may have changed.

        Those from before a compression or a shortening stay before it.
        """
        names = list(self.records)
        kinds = [self.records[name].get("type") for name in names]
        changes = [n for n, kind in enumerate(kinds) if isinstance(kind, Compression | Shortening)]
        fixed = set(names[: changes[-1]]) & messages.keys() if changes else set()
        shortened: list[str] = []
        whole: dict[str, Mapping[str, Any]] = {}  # the messages, with their whole results
        for name, record in messages.items():
            before = self._record(name) if name in self.context else {}
            changed = _changed_results(results_in(before), record) if before else []
            shortened += changed
            whole[name] = _with_calls_of(before, changed, record)
        for name in self.context:
            if name not in fixed:
                self.records.pop(name, None)
        self.context = [name for name in messages if name in self.compressed]
        for record in whole.values():
            self.add([record], source)
        for name in removed:
            self.sources.pop(name, None)
        self._add_shortening(shortened, source)

    def _compress(self, messages: Mapping[str, Mapping[str, Any]], source: str) -> None:
        """Adds a compression, by which new messages replaced others in the context."""
        new = {name: record for name, record in messages.items() if name not in self.context}
        kept = [name for name in messages if name in self.records and name not in new]
        again = [record for name, record in messages.items() if name in self.compressed]
        compression = Compression((*again, *new.values()), frozenset(kept))
        number = f"compression {len(self.records)}"
        self.records[number] = {"type": compression}
        self.sources[number] = source
        for name, record in new.items():
            self.compressed[name] = _Compressed(number, record)
        self.context = list(messages)

    def _merge_copies(self, originals: list[str], copies: list[str], source: str) -> None:
        """Removes the copies of the context's messages that Gemini CLI appended under new ids, and
        adds what it shortened in them. Copies that are not like the originals are a compression.
        """
        records = {name: self.records.pop(name) for name in copies if name in self.records}
        before = [name for name in originals if is_in_history(self._record(name))]
        kinds = [self._record(name).get("type") for name in before]
        if kinds != [record.get("type") for record in records.values()]:
            self.context = originals
            self._compress(records, source)
            return
        self.renamed |= dict(zip(records, before, strict=True))
        results: dict[str, str] = {}
        for name in originals:
            results |= results_in(self._record(name))
        shortened = [
            call_id for record in records.values() for call_id in _changed_results(results, record)
        ]
        self.context = before
        self._add_shortening(shortened, source)

    def _add_shortening(self, call_ids: list[str], source: str) -> None:
        if call_ids:
            name = f"shortening {len(self.records)}"
            self.records[name] = {"type": Shortening(frozenset(call_ids))}
            self.sources[name] = source

    def rewind(self, target: Any, source: str, by: str) -> Unread:
        """Takes back the message `target` and those after it; `by` is the field that says so."""
        if not isinstance(target, str):
            raise Malformed(f"Gemini CLI rewound to {shortened(target)}, which is not a message")
        names = list(self.records)
        name = self.renamed.get(target, target)
        if name in self.compressed:
            first = names.index(self.compressed[name].compression) + 1
        else:
            first = names.index(name) if name in names else 0  # as Gemini CLI handles it
        parents = sequential_parents(names)
        for name in names[first:]:
            self.abandoned.append(_Abandoned(name, parents[name], self.records.pop(name)))
        self.compressed = {
            name: message
            for name, message in self.compressed.items()
            if message.compression in self.records
        }
        self.context = [
            name for name in self.context if name in self.records or name in self.compressed
        ]
        count = len(names) - first
        return Unread(
            f"{source}: Gemini CLI rewound the session to before the message {target!r} ({by}), so"
            f" {count_of(count, 'message')} {'is' if count == 1 else 'are'} left out"
        )

    def _name_of(self, record: Any) -> str:
        """Returns the id by which a message is known."""
        name = str(require_object(record).get("id") or "")
        return self.renamed.get(name, name)

    def _record(self, name: str) -> Mapping[str, Any]:
        """Returns a message of the context."""
        in_compression = self.compressed.get(name)
        return in_compression.record if in_compression else self.records.get(name, {})

    @property
    def has_reply(self) -> bool:
        return any(map(is_reply, self.records.values()))


def _with_calls_of(
    before: Mapping[str, Any], call_ids: list[str], record: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns a message in which the calls with these ids are as they were before."""
    if not call_ids:
        return record
    calls = {str(at(call, "id")): call for call in list_or_empty(before.get("toolCalls"))}
    return {
        **record,
        "toolCalls": [
            calls.get(str(at(call, "id")), call) if str(at(call, "id")) in call_ids else call
            for call in list_or_empty(record.get("toolCalls"))
        ],
    }


def _changed_results(before: Mapping[str, str], record: Mapping[str, Any]) -> list[str]:
    """Returns the ids of the calls whose results in a message are other ones than before."""
    after = results_in(record)
    return [call_id for call_id, text in after.items() if before.get(call_id, text) != text]


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
                    yield taken_back
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
    answered: set[str] = set()  # the ids of the calls whose results are with them
    for name, record in session.records.items():
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
