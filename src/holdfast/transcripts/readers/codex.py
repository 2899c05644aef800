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
from holdfast.transcripts.json_fields import at, fields_of, mapping
from holdfast.transcripts.reader import Format, Unread, Values, file_of, objects
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
    kind, content = fields.get("type"), fields.get("content")
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
    records = [(where, _wrapped(fields)) for where, fields in records]
    yield from others
    sessions = _by_session(records)
    for number, session in enumerate(sessions, start=1):
        count = f", session {number}" if len(sessions) > 1 else ""
        yield from _session(f"{file_of(values[0][0])}{count}", session)


_Records = Sequence[tuple[str, Mapping[str, Any]]]


def _by_session(records: _Records) -> list[_Records]:
    """The records of each session; several are in one file if it was put together. A fork begins
    with the header of the session that it was forked from, behind its own.
    """
    sessions: list[list[tuple[str, Mapping[str, Any]]]] = [[]]
    known: set[str] = set()
    has_items = False
    for where, fields in records:
        if fields.get("type") == "session_meta":
            name = str(at(fields, "payload", "id"))
            if has_items and name not in known:
                sessions.append([])
                has_items = False
            known |= {name, str(at(fields, "payload", "forked_from_id"))}
        has_items = has_items or fields.get("type") == "response_item"
        sessions[-1].append((where, fields))
    return [*sessions]


def _session(name: str, records: _Records) -> Iterator[Transcript | Unread]:
    session = _Session(records)
    for where, fields in records:
        try:
            yield from session.add(where, fields)
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    transcript = session.tree.transcript(name)
    is_of_subagent, history = _is_of_subagent(records), _origin(records)
    yield replace(transcript, is_of_subagent=is_of_subagent, history=history)


class _Session:
    """A session that is being read."""

    def __init__(self, records: _Records) -> None:
        items = [fields.get("payload") for _, fields in records if _is_item(fields)]
        shown = [fields_of(fields.get("payload")) for _, fields in records if _is_shown(fields)]
        self.tree = Tree()
        self._has_prompt = False
        self._typed = _typed_by_the_user(shown)
        self._only_shown = {"user", "assistant"} - _roles(items, self._typed)
        self._has_completed_messages = any(
            shown_item(event) is not event and shown_message(event) for event in shown
        )
        self._inherited = _inherited_questions(records)
        self._calls = {str(at(item, "call_id")) for item in items}
        self._written: set[str] = set()  # the items that have an id
        self._last: Any = None

    def add(self, where: str, fields: Mapping[str, Any]) -> Iterator[Unread]:
        """Adds a line of the file."""
        kind, payload = fields.get("type"), fields.get("payload")
        events: list[Event] = []
        if kind == "session_meta" and isinstance(payload, Mapping):
            events = self._prompt(payload)
        elif kind == "compacted":
            said = [event.text for _, event in self.tree.path() if event.is_by_user]
            events = [_compaction(mapping(payload), said)]
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
        if where in self._inherited:
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
        is_repeat = item == self._last and item.get("call_id") is not None
        self._last = item
        return [] if is_repeat or self._was_written(item) else _read_item(item, self._typed)

    def _was_written(self, item: Mapping[str, Any]) -> bool:
        """Whether an item with an id is in the file already, as it is; it is noted for the next."""
        if not item.get("id"):
            return False
        content = json.dumps(item, sort_keys=True)
        is_repeat = content in self._written
        self._written.add(content)
        return is_repeat

    def _shown(self, event: Mapping[str, Any]) -> list[Event]:
        """Parts that only an event for display has: messages without an item, calls of a script."""
        if message := shown_message(event):
            is_completed = shown_item(event) is not event
            is_read = is_completed or not self._has_completed_messages
            return [message] if is_read and message.role in self._only_shown else []
        identity = identity_of(event)
        if identity and identity in self._calls:
            return []
        call = shown_call(event)
        self._calls |= {identity} if call else set()
        return call


def _is_item(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "response_item"


def _is_shown(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "event_msg"


def _typed_by_the_user(shown: Sequence[Mapping[str, Any]]) -> set[str]:
    """The messages that the user typed, according to the events for display, without whitespace."""
    messages = [message for event in shown if (message := shown_message(event))]
    return {without_whitespace(message.text) for message in messages if message.is_by_user}


def _roles(items: Sequence[Any], typed: Set[str]) -> set[str]:
    """The roles that the items have messages in, apart from what Codex wrote as the user."""
    roles = {str(at(item, "role")) for item in items} - {"user"}
    for item in items:
        with suppress(Malformed):
            if at(item, "role") == "user" and "user" not in roles:
                roles |= {event.role for event in events_of_user_message(item, typed)}
    return roles


def _inherited_questions(records: _Records) -> frozenset[str]:
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


def _read_item(item: Any, typed: Set[str] = frozenset()) -> list[Event]:
    if at(item, "type") == "agent_message":  # of another agent
        return [Event(Kind.REMINDER, text_of(item.get("content")))]
    if at(item, "role") == "user" and at(item, "type") in (None, "message"):
        return events_of_user_message(item, typed)
    return read_messages([item])


def _headers(records: _Records) -> list[Mapping[str, Any]]:
    """The payloads of `session_meta`."""
    found = (fields.get("payload") for _, fields in records if fields["type"] == "session_meta")
    return [payload for payload in found if isinstance(payload, Mapping)]


def _is_of_subagent(records: _Records) -> bool:
    """Whether a session was started by another one."""
    headers = _headers(records)
    return bool(headers) and "subagent" in fields_of(headers[0].get("source"))


def _origin(records: _Records) -> str:
    """The id of the session; of a fork, that of the session whose history it begins with."""
    headers = _headers(records)
    return str(headers[-1].get("forked_from_id") or headers[-1].get("id") or "") if headers else ""


def _reaches_back(value: Any) -> bool:
    """Whether an event takes back turns."""
    kind = at(value, "payload", "type")
    return bool(at(value, "type") == "event_msg" and kind == "thread_rolled_back")


def _compaction(payload: Mapping[str, Any], said: Sequence[str]) -> Event:
    """The context from a compaction on: what replaces the history; else the summary, before which
    Codex repeats the user's last messages (`build_compacted_history` in codex-rs/core).
    """
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        summary = str(payload.get("message") or "")
        return Event(Kind.COMPACTION, "\n".join([*_last_messages(said), summary]))
    items = [item for item in history if at(item, "type") not in _NOT_MESSAGES]
    texts = [event.text for item in items for event in _read_item(item)]
    return Event(Kind.COMPACTION, "\n".join(texts))


def _last_messages(said: Sequence[str]) -> list[str]:
    """The last messages, of which a compaction repeats 20,000 tokens."""
    kept: list[str] = []
    left = _REPEATED
    for text in reversed(said):
        left -= len(text)
        if left < 0:
            break
        kept.insert(0, text)
    return kept


def _roll_back(tree: Tree, count: Any) -> bool:
    """Goes back to before the user's last `count` messages; returns whether there are any."""
    if not isinstance(count, int) or count < 1:
        raise Malformed(f"it takes back {shortened(count)} turns, which is not a number")
    path = tree.path()
    events = [event for _, event in path]
    starts = [number for number, event in enumerate(events) if event.is_by_user]
    starts = [n for n in starts if not n or not events[n - 1].is_by_user]  # one turn each
    if not starts:
        return False
    first = starts[-min(count, len(starts))]
    tree.tip = path[first - 1][0] if first else None
    tree.add(event for event in events[first:] if event.is_prompt)
    return True


FORMAT = Format("codex", _recognises, _read, has_events=True, reaches_back=_reaches_back)
