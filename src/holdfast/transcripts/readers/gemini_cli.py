"""Gemini CLI's sessions: `~/.gemini/tmp/*/chats/session-*`, one JSON document or JSON lines."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.injected import without_elements
from holdfast.transcripts.json_fields import at, entries, fields_of, mapping
from holdfast.transcripts.reader import Format, Unread, Values, file_of, objects
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    branched,
    linear,
    message_events,
)

_ROLES = {"user": "user", "gemini": "assistant"}
_FOR_DISPLAY = ("info", "warning", "about", "help", "stats", "quit", "compression")
_INJECTED = ("session_context", "hook_context", "system-reminder")
_COMPRESSED = "compressed"  # the type, made up here, of what replaced the dialog
_TYPES = ("user", "gemini", "info", "warning", "error")
# the first message of a saved chat, and where the texts of named files begin in a message
_SETS_UP = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
_GOES_ON = "System: Please continue."  # of the program, where the model stopped too early
_FILES = "--- Content from referenced files ---"


def _recognises(value: Any) -> bool:
    if _saved_messages(value):
        return True
    fields = fields_of(value)
    if {"sessionId", "projectHash"} <= fields.keys() or {"$set", "$rewindTo"} & fields.keys():
        return True
    return fields.get("type") in _TYPES and {"id", "timestamp", "content"} <= fields.keys()


def _saved_messages(value: Any) -> list[Any]:
    """The messages of a chat that was saved with `/chat save`; [] for another value."""
    listed = at(value, "history") if isinstance(value, Mapping) else value
    parts = at(listed[0], "parts") if isinstance(listed, list) and listed else None
    text = at(parts[0], "text") if isinstance(parts, list) and parts else None
    is_saved = isinstance(text, str) and text.lstrip().startswith(_SETS_UP)
    return listed if is_saved and isinstance(listed, list) else []


def _saved(where: str, listed: list[Any]) -> Transcript:
    """A saved chat, which begins with what the program says of its surroundings."""
    first, *others = read_messages(listed)
    events = [Event(Kind.REMINDER, first.text)]
    if others and others[0].text.startswith("Got it. Thanks for the context"):
        events.append(Event(Kind.REMINDER, others.pop(0).text))  # an answer of the program's
    return linear(where, [*events, *(_classified(event) for event in others)])


class _Abandoned(NamedTuple):
    """A message that was taken back, and the id of the message before it."""

    name: str
    before: str | None
    record: Mapping[str, Any]


@dataclass
class _Session:
    """A session while it is read.

    Args:
        records: the messages by id, in order; one that is written again takes its place.
        sources: where each message began.
        context: the ids of the messages that the model has before it.
    """

    name: str
    is_of_subagent: bool = False
    records: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    abandoned: list[_Abandoned] = field(default_factory=list)

    def add(self, records: Any, where: str) -> None:
        for record in entries(records):
            name = str(mapping(record).get("id") or f"message {len(self.records)}")
            self.records[name] = record
            self.context += [name] if name not in self.context else []
            self.sources.setdefault(name, where)

    def set_context(self, listed: Any, where: str) -> str | None:
        """Sets the messages in the model's context; returns the first that this took back, if any.

        Gemini CLI does so when it begins, when it compresses the dialog, and when it takes back a
        turn that was aborted.
        """
        messages = {str(at(record, "id")): record for record in entries(listed)}
        removed = [name for name in self.context if name not in messages]
        if not any(_is_reply(self.records[name]) for name in removed):
            for name in removed:
                del self.records[name]
            self.context = []
            self.add(entries(listed), where)
        elif new := [record for name, record in messages.items() if name not in self.context]:
            kept = [name for name in messages if name in self.context]
            name = f"compression {len(self.records)}"
            self.records[name] = {"type": _COMPRESSED, "content": new, "keeps": kept}
            self.sources[name] = where
            self.context = kept
        else:
            return removed[0]
        return None

    def rewind(self, target: Any) -> int:
        """Takes back a message and those after it; returns how many."""
        names = list(self.records)
        if not isinstance(target, str):
            raise Malformed(f"Gemini CLI rewound to {shortened(target)}, which is not a message")
        first = names.index(target) if target in names else 0  # as Gemini CLI does
        self.context = [name for name in self.context if name in names[:first]]
        for before, name in zip([None, *names][first:], names[first:], strict=False):
            self.abandoned.append(_Abandoned(name, before, self.records.pop(name)))
        return len(names) - first

    @property
    def has_reply(self) -> bool:
        return any(map(_is_reply, self.records.values()))


def _is_reply(record: Mapping[str, Any]) -> bool:
    return record.get("type") == "gemini"


def _read(values: Values) -> Iterator[Transcript | Unread]:
    for where, value in values:
        if saved := _saved_messages(value):
            try:
                yield _saved(where, saved)
            except Malformed as error:
                yield Unread(f"{where}: {error}")
    values = [value for value in values if not _saved_messages(value.value)]
    if not values:
        return
    records, others = objects(values)
    yield from others
    session = _Session(file_of(values[0][0]))
    for where, record in records:
        try:
            target = record.get("$rewindTo")
            if "messages" in fields_of(record.get("$set")):
                target = session.set_context(record["$set"]["messages"], where)
            if "$rewindTo" in record or target is not None:
                count = session.rewind(target)
                by = "$rewindTo" if "$rewindTo" in record else "$set"
                yield Unread(
                    f"{where}: Gemini CLI rewound the session to before the message {target!r}"
                    f" ({by}), so {count} {'message is' if count == 1 else 'messages are'} left out"
                )
            elif "$set" in record:
                continue
            elif "sessionId" in record:
                if session.has_reply:  # another session, in a file that was put together
                    yield from _transcript(session)
                name = f"{file_of(where)}, session {record['sessionId']}"
                session = _Session(name, record.get("kind") == "subagent")
                session.add(record.get("messages") or [], where)
            else:
                session.add([record], where)
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    yield from _transcript(session)


def _transcript(session: _Session) -> Iterator[Transcript | Unread]:
    nodes: dict[str, list[Event]] = {}
    for name, record in session.records.items():
        try:
            copies = _copy_ids(record)
            nodes[name] = [
                replace(event, source=session.sources[name], id=name, copy_ids=copies)
                for event in _events(record)
            ]
        except Malformed as error:
            yield Unread(f"{session.name}: {error}")
    active = list(nodes)
    parents: dict[str, str | None] = dict(zip(active, [None, *active], strict=False))
    renamed: dict[str, str] = {}  # a message may be taken back, and written again
    for number, (name, before, record) in enumerate(session.abandoned):
        renamed[name] = f"taken back {number}"
        parents[renamed[name]] = renamed.get(before or "", before)
        try:
            nodes[renamed[name]] = _events(record)
        except Malformed:
            nodes[renamed[name]] = []
    transcript = branched(session.name, nodes, parents, active)
    yield replace(transcript, is_of_subagent=session.is_of_subagent)


def _copy_ids(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The id by which copies of a reply are known; its own may be a number."""
    if not _is_reply(record) or not record.get("timestamp"):
        return ()
    said = json.dumps([record.get("content"), record.get("toolCalls")], sort_keys=True)
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    return (f"{record.get('id')} {record['timestamp']} {digest}",)


def _reaches_back(value: Any) -> bool:
    """Whether a line takes back messages, or replaces them."""
    return "$rewindTo" in fields_of(value) or "messages" in fields_of(at(value, "$set"))


def _events(record: Mapping[str, Any]) -> list[Event]:
    kind = str(record.get("type"))
    if kind in _FOR_DISPLAY:
        return []
    if kind == _COMPRESSED:
        texts = [event.text for new in record["content"] for event in _events(new)]
        return [Event(Kind.COMPACTION, "\n".join(texts), keeps=frozenset(record["keeps"]))]
    if kind == "error":
        text = record.get("content")
        return [Event(Kind.ERROR, text if isinstance(text, str) else "")]
    if kind not in _ROLES:
        raise Malformed(f"Gemini CLI's message of the type {shortened(kind)} is not known")
    messages = read_messages([{"role": _ROLES[kind], "content": record.get("content") or ""}])
    if kind == "user":
        shown = text_of(record.get("displayContent"))  # what was typed, without the named files
        if shown.strip() and (whole := "\n".join(event.text for event in messages)) != shown:
            return [_classified(Event(Kind.MESSAGE, shown, "user")), Event(Kind.REMINDER, whole)]
        return [_classified(event) for event in messages]
    calls = entries(record.get("toolCalls"))
    made = [
        ToolCall(str(mapping(c).get("name")), mapping(c.get("args") or {}), str(c.get("id", "")))
        for c in calls
    ]
    text = "\n".join(event.text for event in messages)
    return [*message_events("assistant", text, made), *chain.from_iterable(map(_results, calls))]


def _results(call: Mapping[str, Any]) -> list[Event]:
    """The results of a call: what the model saw of them, in Gemini's parts or as text."""
    result = call.get("result")
    if isinstance(result, str):
        return [Event(Kind.TOOL_RESULT, result, call_id=str(call.get("id") or ""))]
    if not isinstance(result, list) or not result:
        return []
    events = read_messages([{"role": "tool", "parts": result}])
    return [event for event in events if event.kind is Kind.TOOL_RESULT and event.text]


def _classified(event: Event) -> Event:
    """A message of the user without what Gemini CLI wrote into it."""
    if not event.is_by_user:
        return event
    text = without_elements(event.text, _INJECTED).partition(_FILES)[0].strip()
    if (text or not event.text) and text != _GOES_ON:
        return Event(Kind.MESSAGE, text, "user")
    return Event(Kind.REMINDER, event.text)


FORMAT = Format("gemini-cli", _recognises, _read, has_events=True, reaches_back=_reaches_back)
