"""Codex CLI's rollouts, `~/.codex/sessions/**/rollout-*.jsonl`.

    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [...]}}

The dialog is in the lines `response_item`. The lines `event_msg`, for display, repeat most of it.
They are read only for what is nowhere else.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at, require_object
from holdfast.transcripts.reader import (
    Format,
    SourcedRecord,
    Unread,
    Values,
    file_of,
    separate_objects,
)
from holdfast.transcripts.readers.codex_headers import (
    base_of,
    inherited_questions,
    is_item,
    is_of_subagent,
    origin_of,
    split_by_session,
)
from holdfast.transcripts.readers.codex_items import (
    NOT_MESSAGES,
    communication_in,
    compaction_in,
    message_of_agent,
    read_item,
    with_delivered_text,
)
from holdfast.transcripts.readers.codex_scripts import ScriptCalls, calls_in_script
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
from holdfast.transcripts.tools import CALL_TYPES, id_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    Tree,
    WorkingFolder,
    call_events,
)
from holdfast.validation.json_values import fields_of

_KINDS = (
    *("session_meta", "response_item", "event_msg", "turn_context", "compacted"),
    "inter_agent_communication",
)
# kinds of lines that the model does not see
_OTHER_TYPES = frozenset(
    (
        *("world_state", "realtime_item", "token_usage_record", "security_risk_score"),
        *("inter_agent_communication_metadata", "retained_context"),
    )
)


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    return (fields.get("type") in _KINDS and "payload" in fields) or _lacks_wrapper(fields)


def _lacks_wrapper(fields: Mapping[str, Any]) -> bool:
    """Whether a line is from the first rollouts, in which items and the header had no wrapper."""
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


def _wrap(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Puts a line of the first rollouts into the form of later versions."""
    if "payload" in fields or not _lacks_wrapper(fields):
        return fields
    kind = "response_item" if "type" in fields else "session_meta"
    return {"type": "state" if "record_type" in fields else kind, "payload": fields}


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    sessions = split_by_session(
        [SourcedRecord(source, _wrap(fields)) for source, fields in records]
    )
    for number, session in enumerate(sessions, start=1):
        count = f", session {number}" if len(sessions) > 1 else ""
        yield from _read_session(f"{file_of(values[0].source)}{count}", session)


def _read_session(name: str, records: Sequence[SourcedRecord]) -> Iterator[Transcript | Unread]:
    session = _Session(records)
    for source, fields in records:
        try:
            yield from session.add(source, fields)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    base = base_of(records)
    if base:
        yield Unread(f"{name}: its beginning is in the rollout {base}, and is not read with it")
    yield replace(
        session.tree.transcript(name),
        is_of_subagent=is_of_subagent(records),
        history=origin_of(records),
        lacks_beginning=bool(base),
    )


@dataclass(frozen=True)
class _Display:
    """A summary of the events for display of a session.

    Args:
        typed_texts: the messages that the user typed, without white space.
        has_completed_messages: whether there are messages in the form of version 0.147 or later,
            which those in the older form then repeat.
        tools: the tools of the calls that are in no item.
    """

    typed_texts: Set[str]
    has_completed_messages: bool
    tools: Set[str]

    @classmethod
    def of(cls, records: Sequence[SourcedRecord], call_ids: Set[str]) -> "_Display":
        """Summarises the events among some lines; `call_ids` are the calls that are in items."""
        displayed = [fields for _, fields in records if fields.get("type") == "event_msg"]
        events = [fields_of(fields.get("payload")) for fields in displayed]
        messages = [message for event in events if (message := shown_message(event))]
        completed = (event for event in events if shown_item(event) is not event)
        calls = [
            shown.call
            for event in events
            if identity_of(event) not in call_ids
            for shown in shown_call(event)
            if shown.call is not None
        ]
        return cls(
            frozenset(without_whitespace(m.text) for m in messages if m.is_by_user),
            any(map(shown_message, completed)),
            frozenset(call.name for call in calls),
        )


class _Session:
    """A session under construction."""

    def __init__(self, records: Sequence[SourcedRecord]) -> None:
        items = [fields.get("payload") for _, fields in records if is_item(fields)]
        self.tree = Tree()
        self._folder = WorkingFolder()
        self._has_prompt = False
        self._inherited_sources = inherited_questions(records)
        self._call_ids = {str(at(item, "call_id")) for item in items}  # of calls that were read
        self._display = _Display.of(records, self._call_ids)
        typed_texts = self._display.typed_texts
        self._roles_without_items = {"user", "assistant"} - _roles(items, typed_texts)
        # the positions of events from which Codex counts a turn: messages of the user and of agents
        self._turn_starts: set[int] = set()
        self._items_with_id: set[str] = set()  # as JSON
        self._last_item: Any = None

    def add(self, source: str, fields: Mapping[str, Any]) -> Iterator[Unread]:
        """Adds the events of a line; yields notes on what is left out."""
        payload = fields.get("payload")
        if fields.get("type") in ("session_meta", "turn_context"):
            self._folder.note(at(payload, "cwd"), at(payload, "git", "branch"))
        if _reaches_back(fields):
            count = at(payload, "num_turns")
            if self._roll_back(count):
                yield Unread(
                    f"{source}: the last turns before it ({count}) were rewound and are left out"
                )
            return
        events = self._events_of_line(fields)
        if events and is_item(fields) and _is_script(payload):
            script = calls_in_script(text_of(at(payload, "input")))
            events += self._hidden_calls(script, id_of(require_object(payload)))
            if computed := sum(map(self._is_hidden, script.computed)):
                yield Unread(
                    f"{source}: left out {count_of(computed, 'tool call')} of a script that"
                    " computes the arguments"
                )
        if source in self._inherited_sources:
            events = [
                Event(EventKind.REMINDER, event.text) if event.is_by_user else event
                for event in events
            ]
        is_by_agent = _is_by_agent(fields)
        for event in events:
            self.tree.add([replace(self._folder.of(event), source=source)])
            if (event.is_by_user or is_by_agent) and self.tree.tip is not None:
                self._turn_starts.add(self.tree.tip)

    def _roll_back(self, count: Any) -> bool:
        """Removes the last `count` turns from the path; returns whether there were any."""
        if not isinstance(count, int) or count < 1:
            raise Malformed(f"it takes back {shortened(count)} turns, which is not a number")
        path = self.tree.numbered_path()
        starts = [n for n, (position, _) in enumerate(path) if position in self._turn_starts]
        if not starts:
            return False
        first = starts[-min(count, len(starts))]
        self.tree.tip = path[first - 1][0] if first else None
        self.tree.add(event for _, event in path[first:] if event.is_prompt)
        return True

    def _events_of_line(self, fields: Mapping[str, Any]) -> list[Event]:
        """Reads a line that takes nothing back, without the calls in a script."""
        payload = fields.get("payload")
        match fields.get("type"):
            case "session_meta" if isinstance(payload, Mapping):
                return self._read_prompt(payload)
            case "compacted":
                path = self.tree.numbered_path()
                user_texts = [event.text for _, event in path if event.is_by_user]
                return [compaction_in(require_object(payload), user_texts)]
            case "inter_agent_communication":
                return [message_of_agent(require_object(payload))]
            case "response_item" if at(payload, "type") not in NOT_MESSAGES:
                item = with_delivered_text(require_object(payload), fields.get("metadata"))
                return self._read_new_item(item)
            case "event_msg":
                return self._read_display_event(require_object(payload))
        return []

    def _read_prompt(self, header: Mapping[str, Any]) -> list[Event]:
        """Reads the system prompt; [] for the second header, which a fork has from its origin."""
        if self._has_prompt:
            return []
        self._has_prompt = True
        base = header.get("base_instructions") or header.get("instructions")
        return system_prompt(at(base, "text") or base)

    def _read_new_item(self, item: Mapping[str, Any]) -> list[Event]:
        """Reads an item; [] if it only repeats an earlier one."""
        is_repeat = item == self._last_item and item.get("call_id") is not None
        self._last_item = item
        if is_repeat or self._was_written(item):
            return []
        return read_item(item, self._display.typed_texts)

    def _hidden_calls(self, script: ScriptCalls, script_id: str) -> list[Event]:
        """Returns the calls of a script that no event shows."""
        calls = [call for call in script.calls if self._is_hidden(call.name)]
        if len(script.calls) == 1:  # the script's result says whether its call ran
            calls = [replace(call, id=script_id) for call in calls]
        return [event for call in calls for event in call_events(call)]

    def _is_hidden(self, tool: str) -> bool:
        """Whether the session's events do not show the calls of a tool that scripts make."""
        shown_as = tool if tool == "apply_patch" else "exec_command"
        return shown_as not in self._display.tools

    def _was_written(self, item: Mapping[str, Any]) -> bool:
        """Whether an item with the same id and content came before; notes it for the next ones."""
        if not item.get("id"):
            return False
        content = json.dumps(item, sort_keys=True)
        is_repeat = content in self._items_with_id
        self._items_with_id.add(content)
        return is_repeat

    def _read_display_event(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads what only events for display have: messages without an item, a script's calls."""
        if message := shown_message(event):
            is_completed = shown_item(event) is not event
            is_read = is_completed or not self._display.has_completed_messages
            return [message] if is_read and message.role in self._roles_without_items else []
        identity = identity_of(event)
        if identity and identity in self._call_ids:
            return []
        events = shown_call(event)
        if events:
            self._call_ids.add(identity)
        return events


def _is_script(item: Any) -> bool:
    """Whether an item is a script that calls other tools."""
    return bool(at(item, "type") == "custom_tool_call" and at(item, "name") == "exec")


def _is_by_agent(fields: Mapping[str, Any]) -> bool:
    """Whether a line is a message by another agent."""
    if fields.get("type") == "inter_agent_communication":
        return True
    return is_item(fields) and communication_in(fields.get("payload")) is not None


def _roles(items: Sequence[Any], typed_texts: Set[str]) -> set[str]:
    """Returns the roles that have messages among the items, except what Codex wrote as the user."""
    roles = {str(at(item, "role")) for item in items} - {"user"}
    for item in items:
        with suppress(Malformed):
            if at(item, "role") == "user" and "user" not in roles:
                roles |= {event.role for event in events_of_user_message(item, typed_texts)}
    return roles


def _reaches_back(value: Any) -> bool:
    """Whether a line removes turns before it."""
    kind = at(value, "payload", "type")
    return bool(at(value, "type") == "event_msg" and kind == "thread_rolled_back")


FORMAT = Format(
    "codex",
    _recognises,
    _read,
    has_events=True,
    other_types=_OTHER_TYPES,
    reaches_back=_reaches_back,
)
