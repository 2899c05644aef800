"""opencode's sessions: `opencode export`, its folder `storage/` and its database `opencode.db`.

All three are read as what `opencode export` writes: the session's `info`, and its `messages`, each
with its own `info` and its `parts`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import at, decoded, entries
from holdfast.transcripts.reader import Format, Unread, Values
from holdfast.transcripts.readers.opencode_messages import SessionMessage, read_session_messages
from holdfast.transcripts.readers.opencode_v2 import in_version_1, is_of_version_2
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    branched,
    each_after_the_other,
)
from holdfast.validation.json_values import fields_of


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
    """Whether a value is a file of `storage/` by itself: a session, a message or a part."""
    identity = fields_of(value).get("id")
    return (
        isinstance(identity, str)
        and identity.startswith(("ses_", "msg_", "prt_"))
        and not fields_of(value).keys().isdisjoint(("sessionID", "projectID", "messageID"))
    )


@dataclass(frozen=True)
class _Session:
    """A session of a file: what is known of it, and its messages as JSON."""

    where: str
    info: Mapping[str, Any]
    messages: Any


def _read(values: Values) -> Iterator[Transcript | Unread]:
    sessions: list[_Session] = []
    by_id: dict[str, _Session] = {}  # of the API's answer, whose messages are a value each
    for where, value in values:
        if _is_piece(value):
            yield Unread(
                f"{where}: it is a part of a session of opencode; give the folder `storage`, or the"
                " output of `opencode export`"
            )
        elif _is_message(value):
            name = str(at(value, "info", "sessionID"))
            by_id.setdefault(name, _Session(where, {}, [])).messages.append(value)
        elif isinstance(value, list):
            sessions.append(_Session(where, {}, value))
        elif isinstance(value, Mapping):
            sessions.append(_Session(where, fields_of(value.get("info")), value.get("messages")))
        else:
            yield Unread(f"{where}: {shortened(value)} is not an object")
    for session in (*sessions, *by_id.values()):
        try:
            yield from _transcript(session)
        except Malformed as error:
            yield Unread(f"{session.where}: {error}")


def _transcript(session: _Session) -> Iterator[Transcript | Unread]:
    messages = read_session_messages([*in_version_1(entries(session.messages))])
    yield from _of_unknown_kinds(session.where, messages)
    revert = _revert(session.info, messages)
    yield from revert.note(session.where)
    active = _with_replays_marked(revert.active)
    for original, message in zip(revert.active, active, strict=True):
        if message is not original:
            yield Unread(
                f"{session.where}: the message {message.id} is what opencode sent again after a"
                " compaction, and counts once"
            )
    messages = _with_clearings(_with_kept_tails([*active, *revert.taken_back]))
    nodes = _with_prompts_first(messages, len(active))
    active_ids = [message.id for message in active]
    transcript = branched(session.where, nodes, each_after_the_other(nodes), active_ids)
    info = session.info
    yield replace(transcript, is_of_subagent=bool(info.get("parentID") or info.get("parent_id")))


def _of_unknown_kinds(where: str, messages: Sequence[SessionMessage]) -> Iterator[Unread]:
    counts = Counter(kind for message in messages for kind in message.unknown_kinds)
    for kind, count in counts.items():
        which = "part is" if count == 1 else "parts are"
        yield Unread(f"{where}: {count} {which} of the unknown type {kind}, and left out")


@dataclass(frozen=True)
class _Revert:
    """The messages that count, and those that the user took back.

    Args:
        is_within_message: whether the first message that was taken back counts in part.
    """

    active: Sequence[SessionMessage]
    taken_back: Sequence[SessionMessage] = ()
    is_within_message: bool = False

    def note(self, where: str) -> Iterator[Unread]:
        """Says how many messages are left out, if any are."""
        if number := len(self.taken_back) + self.is_within_message:
            count = count_of(number, "message")
            which = ", the first of them in part," if self.is_within_message else ""
            yield Unread(f"{where}: {count} that the user took back (revert){which} left out")


def _revert(info: Mapping[str, Any], messages: Sequence[SessionMessage]) -> _Revert:
    """Where the user took back messages: from one on, or from one of its parts on."""
    revert = decoded(info.get("revert"))
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
    """The messages; one that opencode sent again after a compaction, to make room for it, is a
    reminder, as the user said it once.
    """
    unanswered = _Unanswered()
    marked: list[SessionMessage] = []
    for message in messages:
        events = [unanswered.next_event(event) for event in message.events]
        is_replay = events != [*message.events]
        marked.append(replace(message, events=events) if is_replay else message)
    return marked


@dataclass
class _Unanswered:
    """The last message of the user, until it is answered.

    Args:
        text: "" if there is none.
        was_compacted: whether the context was compacted since it was sent.
    """

    text: str = ""
    was_compacted: bool = False

    def next_event(self, event: Event) -> Event:
        """The next event of the session: a reminder in place of the same message again."""
        if event.kind is Kind.COMPACTION:
            self.was_compacted = True
        elif event.is_by_assistant:
            self.text = ""
        elif event.is_by_user:
            is_replay = self.was_compacted and self.text != "" and event.text == self.text
            self.text = event.text
            self.was_compacted = False
            if is_replay:
                return replace(event, kind=Kind.REMINDER, role="")
        return event


def _with_kept_tails(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """The messages; each compaction names those that it left in the context."""
    ids = [message.id for message in messages]
    marked: list[SessionMessage] = []
    for position, message in enumerate(messages):
        if any(event.kind is Kind.COMPACTION for event in message.events):
            keeps = _kept_by(message, ids[:position])
            events = [
                replace(event, keeps=keeps) if event.kind is Kind.COMPACTION else event
                for event in message.events
            ]
            message = replace(message, events=events)
        marked.append(message)
    return marked


def _kept_by(message: SessionMessage, earlier_ids: Sequence[str]) -> frozenset[str]:
    """The ids of the messages that a compaction left in the context: from `tail_start_id` on."""
    keeps: frozenset[str] = frozenset()
    for part in message.parts:
        first = str(part.get("tail_start_id"))
        if part.get("type") == "compaction" and first in earlier_ids:
            keeps = frozenset(earlier_ids[earlier_ids.index(first) :])
    return keeps


def _with_clearings(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """The messages, with an event where opencode cleared the results of old calls: before the first
    message that is newer, as it does so at the end of a turn.
    """
    call_ids: dict[float, set[str]] = {}  # of the calls whose results were cleared, by the time
    for part in chain.from_iterable(message.parts for message in messages):
        time = at(part, "state", "time", "compacted")
        if isinstance(time, (int, float)):
            call_ids.setdefault(time, set()).add(str(part.get("callID")))
    clearings: dict[str, list[Event]] = {}  # by the message that they are before
    for time, ids in call_ids.items():
        newer = next((message for message in messages if message.is_newer_than(time)), None)
        if newer is not None:
            clearing = Event(Kind.CLEARING, clears=frozenset(ids))
            clearings.setdefault(newer.id, []).append(clearing)
    return [
        replace(message, events=[*clearings.get(message.id, ()), *message.events])
        for message in messages
    ]


def _with_prompts_first(
    messages: Sequence[SessionMessage], active_count: int
) -> dict[str, list[Event]]:
    """The events of each message by its id; the system prompts of those that are active, which
    messages repeat, are before all others.
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
