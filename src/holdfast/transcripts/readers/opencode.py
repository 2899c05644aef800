"""opencode's sessions: `opencode export`, its folder `storage/` and its database `opencode.db`.

All three are read in the form of `opencode export`, shortened:

    {"info": {"id": "ses_1"}, "messages": [{"info": {"role": "user"}, "parts": [...]}, ...]}

`opencode_messages` reads the messages; those of version 2 are first converted to this form
(`opencode_v2`). This module finds what was taken back, compacted or cleared.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import at, decode_json, optional_list
from holdfast.transcripts.reader import Format, Unread, Values
from holdfast.transcripts.readers.opencode_messages import SessionMessage, read_session_messages
from holdfast.transcripts.readers.opencode_v2 import convert_to_version_1, is_of_version_2
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    branched_transcript,
    sequential_parents,
)
from holdfast.validation.json_values import fields_of


@dataclass(frozen=True)
class _Session:
    """A session in a file: what describes it, and its messages as JSON."""

    source: str
    info: Mapping[str, Any]
    messages: Any


@dataclass(frozen=True)
class _Revert:
    """The messages that count, and those that the user took back.

    Args:
        is_within_message: whether only a part of the first message was taken back.
    """

    active: Sequence[SessionMessage]
    taken_back: Sequence[SessionMessage] = ()
    is_within_message: bool = False

    def note(self, source: str) -> Iterator[Unread]:
        """Yields a note on the messages that are left out, if there are any."""
        number = len(self.taken_back) + self.is_within_message
        if not number:
            return
        count = count_of(number, "message")
        sentence = f"{source}: left out {count} that the user took back (revert)"
        if self.is_within_message:
            sentence += "; of the first, only a part"
        yield Unread(sentence)


@dataclass
class _Unanswered:
    """The last message of the user, until it is answered.

    Args:
        text: its text; "" if it was answered.
        was_compacted: whether the context was compacted since it was sent.
    """

    text: str = ""
    was_compacted: bool = False

    def next_event(self, event: Event) -> Event:
        """Returns the next event of the session; a reminder if it repeats the last message."""
        if event.kind is EventKind.COMPACTION:
            self.was_compacted = True
        elif event.is_by_assistant:
            self.text = ""
        elif event.is_by_user:
            is_replay = self.was_compacted and self.text != "" and event.text == self.text
            self.text = event.text
            self.was_compacted = False
            if is_replay:
                return replace(event, kind=EventKind.REMINDER, role="")
        return event


def _recognises(value: Any) -> bool:
    if _is_message(value):
        return True
    fields = fields_of(value)
    if isinstance(fields.get("info"), Mapping) and isinstance(fields.get("messages"), list):
        return not fields["messages"] or any(map(_is_of_session, fields["messages"]))
    if isinstance(value, list):
        return bool(value) and _is_message(value[0])
    return _is_piece(value)


def _is_message(value: Any) -> bool:
    """Whether a value is a message of version 1."""
    fields = fields_of(value)
    return isinstance(fields.get("parts"), list) and "role" in fields_of(fields.get("info"))


def _is_of_session(value: Any) -> bool:
    return _is_message(value) or is_of_version_2(value)


def _is_piece(value: Any) -> bool:
    """Whether a value is a single file of `storage/`: a session, a message or a part."""
    identity = fields_of(value).get("id")
    return (
        isinstance(identity, str)
        and identity.startswith(("ses_", "msg_", "prt_"))
        and not fields_of(value).keys().isdisjoint(("sessionID", "projectID", "messageID"))
    )


def _read(values: Values) -> Iterator[Transcript | Unread]:
    sessions: list[_Session] = []
    by_id: dict[str, _Session] = {}  # from answers of the API, which have a message per value
    for source, value in values:
        if _is_piece(value):
            yield Unread(
                f"{source}: it is a part of a session of opencode; give the folder `storage`, or"
                " the output of `opencode export`"
            )
        elif _is_message(value):
            name = str(at(value, "info", "sessionID") or "")
            by_id.setdefault(name, _Session(source, {}, [])).messages.append(value)
        elif isinstance(value, list):
            sessions.append(_Session(source, {}, value))
        elif isinstance(value, Mapping):
            sessions.append(_Session(source, fields_of(value.get("info")), value.get("messages")))
        else:
            yield Unread(f"{source}: {shortened(value)} is not an object")
    for session in (*sessions, *by_id.values()):
        try:
            yield from _transcript(session)
        except Malformed as error:
            yield Unread(f"{session.source}: {error}")


def _transcript(session: _Session) -> Iterator[Transcript | Unread]:
    """Reads a session into its transcript."""
    messages = read_session_messages([*convert_to_version_1(optional_list(session.messages))])
    yield from _unknown_parts(session.source, messages)
    revert = _revert(session.info, messages)
    yield from revert.note(session.source)
    active = _with_replays_marked(revert.active)
    for original, message in zip(revert.active, active, strict=True):
        if message is not original:
            yield Unread(
                f"{session.source}: the message {message.id} was sent again by opencode after a"
                " compaction, and counts once"
            )
    messages = _with_clearings(_with_kept_tails([*active, *revert.taken_back]))
    nodes = _with_prompts_first(messages, len(active))
    active_ids = [message.id for message in active]
    transcript = branched_transcript(session.source, nodes, sequential_parents(nodes), active_ids)
    info = session.info
    yield replace(transcript, is_of_subagent=bool(info.get("parentID") or info.get("parent_id")))


def _unknown_parts(source: str, messages: Sequence[SessionMessage]) -> Iterator[Unread]:
    """Yields a note on each unknown type of parts."""
    counts = Counter(kind for message in messages for kind in message.unknown_kinds)
    for kind, count in counts.items():
        parts = count_of(count, "part")
        yield Unread(f"{source}: left out {parts} of the unknown type {kind}")


def _revert(info: Mapping[str, Any], messages: Sequence[SessionMessage]) -> _Revert:
    """Separates the messages that the user took back: from one on, or from a part of one on."""
    revert = decode_json(info.get("revert"))
    message_id = at(revert, "messageID")
    part_id = at(revert, "partID")
    position = next((n for n, message in enumerate(messages) if message.id == message_id), None)
    if position is None:
        return _Revert(messages)
    before = messages[:position]
    first = messages[position]
    after = messages[position + 1 :]
    if part_id and any(part.get("id") == part_id for part in first.parts):
        return _Revert([*before, first.before_part(part_id)], after, is_within_message=True)
    return _Revert(before, [first, *after])


def _with_replays_marked(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """Turns messages that opencode sent again into reminders, as the user said them once.

    opencode removes the last message to make room for a compaction, and then sends it again.
    """
    unanswered = _Unanswered()
    marked: list[SessionMessage] = []
    for message in messages:
        events = [unanswered.next_event(event) for event in message.events]
        is_replay = events != [*message.events]
        marked.append(replace(message, events=events) if is_replay else message)
    return marked


def _with_kept_tails(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """Gives each compaction the ids of the messages that it left in the context."""
    ids = [message.id for message in messages]
    marked: list[SessionMessage] = []
    for position, message in enumerate(messages):
        if any(event.kind is EventKind.COMPACTION for event in message.events):
            keeps = _kept_by(message, ids[:position])
            events = [
                replace(event, keeps=keeps) if event.kind is EventKind.COMPACTION else event
                for event in message.events
            ]
            message = replace(message, events=events)
        marked.append(message)
    return marked


def _kept_by(message: SessionMessage, earlier_ids: Sequence[str]) -> frozenset[str]:
    """Returns the ids of the messages that a compaction left in the context.

    They begin with the one that its field `tail_start_id` names; without it, there are none.
    """
    keeps: frozenset[str] = frozenset()
    for part in message.parts:
        first = str(part.get("tail_start_id"))
        if part.get("type") == "compaction" and first in earlier_ids:
            keeps = frozenset(earlier_ids[earlier_ids.index(first) :])
    return keeps


def _with_clearings(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """Adds an event wherever opencode cleared the results of old calls.

    It does so at the end of a turn, so the event comes before the first message that is newer.
    """
    call_ids: dict[float, set[str]] = {}  # the calls whose results were cleared, by the time
    for part in chain.from_iterable(message.parts for message in messages):
        time = at(part, "state", "time", "compacted")
        call_id = str(part.get("callID") or "")
        if call_id and isinstance(time, (int, float)):
            call_ids.setdefault(time, set()).add(call_id)
    clearings: dict[str, list[Event]] = {}  # by the id of the message that comes after them
    for time, ids in call_ids.items():
        newer = next((message for message in messages if message.is_newer_than(time)), None)
        if newer is not None:
            clearing = Event(EventKind.CLEARING, clears=frozenset(ids))
            clearings.setdefault(newer.id, []).append(clearing)
    return [
        replace(message, events=[*clearings.get(message.id, ()), *message.events])
        for message in messages
    ]


def _with_prompts_first(
    messages: Sequence[SessionMessage], active_count: int
) -> dict[str, list[Event]]:
    """Returns the events of each message by its id.

    The system prompts of active messages, which these repeat, come once, before all other events.
    """
    active_events = chain.from_iterable(message.events for message in messages[:active_count])
    prompts = dict.fromkeys(event for event in active_events if event.is_prompt)
    nodes = {
        message.id: [event for event in message.events if not event.is_prompt]
        for message in messages
    }
    if active_count:
        first = messages[0].id
        nodes[first] = [*prompts, *nodes[first]]
    return nodes


FORMAT = Format("opencode", _recognises, _read)
