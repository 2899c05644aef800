"""Codex CLI's rollouts, `~/.codex/sessions/**/rollout-*.jsonl`.

The dialog is in the lines `response_item`. The lines `event_msg`, for display, repeat most of it,
and are read for what only they have.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_blocks import CALL_TYPES, text_of
from holdfast.transcripts.json_fields import at, mapping
from holdfast.transcripts.reader import Format, Record, Unread, Values, file_of, objects
from holdfast.transcripts.readers.codex_shown_events import (
    identity_of,
    shown_call,
    shown_item,
    shown_message,
)
from holdfast.transcripts.readers.codex_user_messages import (
    events_of_user_message,
    without_whitespace,
)
from holdfast.transcripts.transcript import Event, Kind, Malformed, Transcript, Tree
from holdfast.validation.json_values import fields_of

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_NOT_MESSAGES = ("ghost_snapshot", "compaction_summary", "context_compaction", "other")
_REPEATED = 80_000  # characters of the user's messages that a compaction repeats


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    return (fields.get("type") in _KINDS and "payload" in fields) or _is_of_2025(fields)


def _is_of_2025(fields: Mapping[str, Any]) -> bool:
    """Whether a line is of the first rollouts, which had items and their header unwrapped."""
    if "record_type" in fields:
        return True
    if {"id", "timestamp", "instructions"} <= fields.keys():
        return fields.keys() <= {"id", "timestamp", "instructions", "git"}
    kind = fields.get("type")
    content = fields.get("content")
    parts = content if isinstance(content, list) else []
    is_message = kind == "message" and all(
        at(part, "type") in ("input_text", "output_text", "input_image") for part in parts
    )
    is_call = kind in (*CALL_TYPES, "function_call_output", "custom_tool_call_output")
    is_reasoning = kind == "reasoning" and "summary" in fields
    return bool(is_message and parts) or (is_call and "call_id" in fields) or is_reasoning


def _wrapped(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line as later versions write it."""
    if "payload" in fields or not _is_of_2025(fields):
        return fields
    kind = "response_item" if "type" in fields else "session_meta"
    return {"type": "state" if "record_type" in fields else kind, "payload": fields}


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    sessions = _by_session([Record(where, _wrapped(fields)) for where, fields in records])
    for number, session in enumerate(sessions, start=1):
        count = f", session {number}" if len(sessions) > 1 else ""
        yield from _session(f"{file_of(values[0][0])}{count}", session)


def _by_session(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each session; several are in one file if it was put together. A fork begins
    with the header of the session that it was forked from, behind its own.
    """
    sessions: list[list[Record]] = [[]]
    ids: set[str] = set()  # of the sessions whose header may follow without beginning another
    for record in records:
        if record.fields.get("type") == "session_meta":
            name = str(at(record.fields, "payload", "id"))
            has_items = any(_is_item(earlier.fields) for earlier in sessions[-1])
            if has_items and name not in ids:
                sessions.append([])
            ids |= {name, str(at(record.fields, "payload", "forked_from_id"))}
        sessions[-1].append(record)
    return sessions


def _session(name: str, records: Sequence[Record]) -> Iterator[Transcript | Unread]:
    session = _Session(records)
    for where, fields in records:
        try:
            yield from session.add(where, fields)
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    transcript = session.tree.transcript(name)
    yield replace(transcript, is_of_subagent=_is_of_subagent(records), history=_origin(records))


class _Session:
    """A session that is being read."""

    def __init__(self, records: Sequence[Record]) -> None:
        items = [fields.get("payload") for _, fields in records if _is_item(fields)]
        shown_records = [fields for _, fields in records if _is_shown(fields)]
        shown_events = [fields_of(fields.get("payload")) for fields in shown_records]
        self.tree = Tree()
        self._has_prompt = False
        self._typed_texts = _typed_by_the_user(shown_events)
        self._roles_without_items = {"user", "assistant"} - _roles(items, self._typed_texts)
        self._has_completed_messages = any(
            shown_item(event) is not event and shown_message(event) for event in shown_events
        )
        self._inherited_sources = _inherited_questions(records)
        self._call_ids = {str(at(item, "call_id")) for item in items}
        self._items_with_id: set[str] = set()  # the items that have an id
        self._last_item: Any = None

    def add(self, where: str, fields: Mapping[str, Any]) -> Iterator[Unread]:
        """Adds a line of the file."""
        kind = fields.get("type")
        payload = fields.get("payload")
        events: list[Event] = []
        if kind == "session_meta" and isinstance(payload, Mapping):
            events = self._prompt(payload)
        elif kind == "compacted":
            path = self.tree.numbered_path()
            user_texts = [event.text for _, event in path if event.is_by_user]
            events = [_compaction(mapping(payload), user_texts)]
        elif _reaches_back(fields):
            count = at(payload, "num_turns")
            if _roll_back(self.tree, count):
                yield Unread(
                    f"{where}: the last turns before it ({count}) were rewound, and are left out"
                )
        elif _is_item(fields) and at(payload, "type") not in _NOT_MESSAGES:
            events = self._item(mapping(payload))
        elif _is_shown(fields):
            events = self._shown(mapping(payload))
        if where in self._inherited_sources:
            events = [
                Event(Kind.REMINDER, event.text) if event.is_by_user else event for event in events
            ]
        self.tree.add(replace(event, source=where) for event in events)

    def _prompt(self, header: Mapping[str, Any]) -> list[Event]:
        """The system prompt; a fork repeats the header of the session that it was forked from."""
        if self._has_prompt:
            return []
        self._has_prompt = True
        base = header.get("base_instructions") or header.get("instructions")
        return system_prompt(at(base, "text") or base)

    def _item(self, item: Mapping[str, Any]) -> list[Event]:
        """The events of an item, unless it is in the file already."""
        is_repeat = item == self._last_item and item.get("call_id") is not None
        self._last_item = item
        if is_repeat or self._was_written(item):
            return []
        return _read_item(item, self._typed_texts)

    def _was_written(self, item: Mapping[str, Any]) -> bool:
        """Whether an item with an id is in the file already, as it is; it is noted for the next."""
        if not item.get("id"):
            return False
        content = json.dumps(item, sort_keys=True)
        is_repeat = content in self._items_with_id
        self._items_with_id.add(content)
        return is_repeat

    def _shown(self, event: Mapping[str, Any]) -> list[Event]:
        """Parts that only an event for display has: messages without an item, calls of a script."""
        if message := shown_message(event):
            is_completed = shown_item(event) is not event
            is_read = is_completed or not self._has_completed_messages
            return [message] if is_read and message.role in self._roles_without_items else []
        identity = identity_of(event)
        if identity and identity in self._call_ids:
            return []
        events = shown_call(event)
        if events:
            self._call_ids.add(identity)
        return events


def _is_item(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "response_item"


def _is_shown(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "event_msg"


def _typed_by_the_user(events: Sequence[Mapping[str, Any]]) -> set[str]:
    """The messages that the user typed, according to the events for display, without whitespace."""
    messages = [message for event in events if (message := shown_message(event))]
    return {without_whitespace(message.text) for message in messages if message.is_by_user}


def _roles(items: Sequence[Any], typed_texts: Set[str]) -> set[str]:
    """The roles that the items have messages in, apart from what Codex wrote as the user."""
    roles = {str(at(item, "role")) for item in items} - {"user"}
    for item in items:
        with suppress(Malformed):
            if at(item, "role") == "user" and "user" not in roles:
                roles |= {event.role for event in events_of_user_message(item, typed_texts)}
    return roles


def _inherited_questions(records: Sequence[Record]) -> frozenset[str]:
    """The sources of what a subagent has from the session that started it, if that is what the user
    asked there without the replies, so that nobody asks it here.
    """
    headers = _headers(records)
    start = headers[0].get("subagent_history_start_ordinal") if headers else None
    inherited = [(where, fields) for where, fields in records if _is_inherited(fields, start)]
    if any(at(fields, "payload", "role") == "assistant" for _, fields in inherited):
        return frozenset()
    return frozenset(where for where, _ in inherited)


def _is_inherited(fields: Mapping[str, Any], start: Any) -> bool:
    """Whether a subagent has a line from another session; `start` is the number of its own
    first one.
    """
    number = fields.get("ordinal")
    is_before = isinstance(start, int) and isinstance(number, int) and number < start
    return is_before or at(fields, "metadata", "inherited_user_message") is True


def _read_item(item: Any, typed_texts: Set[str] = frozenset()) -> list[Event]:
    if at(item, "type") == "agent_message":  # of another agent
        return [Event(Kind.REMINDER, text_of(item.get("content")))]
    if at(item, "role") == "user" and at(item, "type") in (None, "message"):
        return events_of_user_message(item, typed_texts)
    return read_messages([item])


def _headers(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """The payloads of `session_meta`."""
    headers = [fields for _, fields in records if fields.get("type") == "session_meta"]
    payloads = [fields.get("payload") for fields in headers]
    return [payload for payload in payloads if isinstance(payload, Mapping)]


def _is_of_subagent(records: Sequence[Record]) -> bool:
    """Whether a session was started by another one."""
    headers = _headers(records)
    return bool(headers) and "subagent" in fields_of(headers[0].get("source"))


def _origin(records: Sequence[Record]) -> str:
    """The id of the session; of a fork, that of the session whose history it begins with."""
    headers = _headers(records)
    last = headers[-1] if headers else {}
    return str(last.get("forked_from_id") or last.get("id") or "")


def _reaches_back(value: Any) -> bool:
    """Whether an event takes back turns."""
    kind = at(value, "payload", "type")
    return bool(at(value, "type") == "event_msg" and kind == "thread_rolled_back")


def _compaction(payload: Mapping[str, Any], user_texts: Sequence[str]) -> Event:
    """The context from a compaction on: what replaces the history; else the summary, before which
    Codex repeats the user's last messages (`build_compacted_history` in codex-rs/core).
    """
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        summary = str(payload.get("message") or "")
        return Event(Kind.COMPACTION, "\n".join([*_last_texts(user_texts), summary]))
    items = [item for item in history if at(item, "type") not in _NOT_MESSAGES]
    texts = [event.text for item in items for event in _read_item(item)]
    return Event(Kind.COMPACTION, "\n".join(texts))


def _last_texts(user_texts: Sequence[str]) -> list[str]:
    """The user's last messages, up to the 20,000 tokens that a compaction repeats."""
    count, size = 0, 0
    for text in reversed(user_texts):
        size += len(text)
        if size > _REPEATED:
            break
        count += 1
    return [*user_texts[len(user_texts) - count :]]


def _roll_back(tree: Tree, count: Any) -> bool:
    """Goes back to before the user's last `count` messages; returns whether there are any."""
    if not isinstance(count, int) or count < 1:
        raise Malformed(f"it takes back {shortened(count)} turns, which is not a number")
    path = tree.numbered_path()
    events = [event for _, event in path]
    questions = [number for number, event in enumerate(events) if event.is_by_user]
    # messages that follow each other begin one turn
    starts = [n for n in questions if not n or not events[n - 1].is_by_user]
    if not starts:
        return False
    first = starts[-min(count, len(starts))]
    tree.tip = path[first - 1][0] if first else None
    tree.add(event for event in events[first:] if event.is_prompt)
    return True


FORMAT = Format("codex", _recognises, _read, has_events=True, reaches_back=_reaches_back)
