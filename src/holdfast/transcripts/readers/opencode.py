"""opencode's sessions: `opencode export`, its folder `storage/` and its database `opencode.db`.

All three are read as what `opencode export` writes: the session's `info`, and its `messages`, each
with its own `info` and its `parts`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.reader import (
    Format,
    Unread,
    Values,
    at,
    decoded,
    entries,
    field_of,
    mapping,
)
from holdfast.transcripts.readers.opencode_v2 import in_version_1, is_of_version_2
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    branched,
    message_events,
)
from holdfast.validation.json_values import fields_of

# the types of parts
_OF_DIALOG = ("text", "tool", "subtask", "compaction")
_OF_DISPLAY = (
    *("step-start", "step-finish", "snapshot", "patch", "agent", "file", "reasoning", "retry"),
)
_CUT = ("length", "max_tokens")


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


def _read(values: Values) -> Iterator[Transcript | Unread]:
    by_session: dict[str, tuple[str, list[Any]]] = {}  # the messages that are a value each
    sessions: list[tuple[str, Any]] = []
    for where, value in values:
        if _is_piece(value):
            yield Unread(
                f"{where}: it is a part of a session of opencode; give the folder `storage`, or the"
                " output of `opencode export`"
            )
        elif _is_message(value):  # of the API's answer
            name = str(at(value, "info", "sessionID"))
            by_session.setdefault(name, (where, []))[1].append(value)
        else:
            sessions.append((where, value))
    sessions += by_session.values()
    for where, session in sessions:
        info = {} if isinstance(session, list) else fields_of(session.get("info"))
        try:
            listed = session if isinstance(session, list) else entries(session.get("messages"))
            yield from _transcript(where, info, [*in_version_1(listed)])
        except Malformed as error:
            yield Unread(f"{where}: {error}")


@dataclass(frozen=True)
class _Message:
    """A message of a session.

    Args:
        info, parts: its fields, and those of its parts, as opencode has them.
        events: as far as they are read.
    """

    id: str
    info: Mapping[str, Any]
    parts: Sequence[Mapping[str, Any]]
    events: Sequence[Event]

    @property
    def unknown_kinds(self) -> list[str]:
        """The types of its parts that are not known."""
        kinds = (part.get("type") for part in self.parts)
        return [shortened(kind) for kind in kinds if kind not in (*_OF_DISPLAY, *_OF_DIALOG)]


def _transcript(
    where: str, info: Mapping[str, Any], values: Sequence[Any]
) -> Iterator[Transcript | Unread]:
    messages = _messages(values)
    for kind, number in Counter(kind for m in messages for kind in m.unknown_kinds).items():
        which = "part is" if number == 1 else "parts are"
        yield Unread(f"{where}: {number} {which} of the unknown type {kind}, and left out")
    active = _active(info, messages)
    is_cut = bool(active) and active[-1] is not messages[len(active) - 1]
    if left_out := len(messages) - len(active) + is_cut:
        count = f"{left_out} {'message' if left_out == 1 else 'messages'}"
        whole = ", the first of them in part," if is_cut else ""
        yield Unread(f"{where}: {count} that the user took back (revert){whole} left out")
    active, replayed = _without_replays(active)
    for name in replayed:
        yield Unread(
            f"{where}: the message {name} is what opencode sent again after a compaction, and"
            " counts once"
        )
    whole_session = [*active, *messages[len(active) :]]
    whole_session = _with_clearings(_with_kept_tails(whole_session))
    names = [message.id for message in whole_session]
    nodes = _with_prompts_first(whole_session, len(active))
    parents: dict[str, str | None] = dict(zip(names, [None, *names], strict=False))
    transcript = branched(where, nodes, parents, names[: len(active)])
    yield replace(transcript, is_of_subagent=bool(info.get("parentID") or info.get("parent_id")))


def _messages(values: Sequence[Any]) -> list[_Message]:
    """The messages in order; one that is written again takes the place of the first."""
    messages: dict[str, _Message] = {}
    for number, value in enumerate(values, start=1):
        name = str(at(value, "info", "id") or f"message {number}")
        try:
            info = mapping(field_of(mapping(value), "info"))
            parts = [mapping(part) for part in entries(field_of(value, "parts"))]
            messages[name] = _Message(name, info, parts, _events(info, parts))
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    return list(messages.values())


def _active(info: Mapping[str, Any], messages: Sequence[_Message]) -> list[_Message]:
    """The messages before the first that the user took back; of that one, if only some of its parts
    were, the parts before these.
    """
    revert = decoded(info.get("revert"))
    target, part = at(revert, "messageID"), at(revert, "partID")
    position = next((n for n, message in enumerate(messages) if message.id == target), None)
    if position is None:
        return [*messages]
    message = messages[position]
    ids = [listed.get("id") for listed in message.parts]
    if not part or part not in ids:
        return [*messages[:position]]
    kept = message.parts[: ids.index(part)]
    return [*messages[:position], _Message(target, message.info, kept, _events(message.info, kept))]


def _without_replays(messages: Sequence[_Message]) -> tuple[list[_Message], list[str]]:
    """The messages, of which one that opencode sent again after a compaction, to make room for it,
    is a reminder, as the user said it once; and the ids of those that are.
    """
    heard: list[_Message] = []
    replayed: list[str] = []
    last, was_compacted = "", False
    for message in messages:
        events = [*message.events]
        for number, event in enumerate(events):
            if event.kind is Kind.COMPACTION:
                was_compacted = True
            elif event.is_by_assistant:
                last = ""  # it was answered
            elif event.is_by_user:
                if was_compacted and last and event.text == last:
                    events[number] = replace(event, kind=Kind.REMINDER, role="")
                    replayed.append(message.id)
                last, was_compacted = event.text, False
        heard.append(replace(message, events=events))
    return heard, replayed


def _with_kept_tails(messages: Sequence[_Message]) -> list[_Message]:
    """The messages; each compaction names those that it left in the context, from `tail_start_id`
    on.
    """
    ids = [message.id for message in messages]
    marked: list[_Message] = []
    for position, message in enumerate(messages):
        compactions = (part for part in message.parts if part.get("type") == "compaction")
        tails = [str(part.get("tail_start_id")) for part in compactions]
        for tail in (tail for tail in tails if tail in ids[:position]):
            kept = frozenset(ids[ids.index(tail) : position])
            events = [
                replace(event, keeps=kept) if event.kind is Kind.COMPACTION else event
                for event in message.events
            ]
            message = replace(message, events=events)
        marked.append(message)
    return marked


def _with_clearings(messages: Sequence[_Message]) -> list[_Message]:
    """The messages, with an event where opencode cleared the results of old calls: before the first
    message that is newer, as it does so at the end of a turn.
    """
    calls: dict[float, set[str]] = {}
    for part in (part for message in messages for part in message.parts):
        time = at(part, "state", "time", "compacted")
        if isinstance(time, (int, float)):
            calls.setdefault(time, set()).add(str(part.get("callID")))
    cleared = [*messages]
    for time, ids in calls.items():
        position = next((n for n, m in enumerate(messages) if _is_newer(m, time)), None)
        if position is not None:
            clearing = Event(Kind.CLEARING, clears=frozenset(ids))
            message = cleared[position]
            cleared[position] = replace(message, events=[clearing, *message.events])
    return cleared


def _is_newer(message: _Message, time: float) -> bool:
    created = at(message.info, "time", "created")
    return isinstance(created, (int, float)) and created > time


def _with_prompts_first(messages: Sequence[_Message], active: int) -> dict[str, list[Event]]:
    """The events of each message by its id; the system prompts of those that are active, which
    messages repeat, are before all others.
    """
    spoken = chain.from_iterable(message.events for message in messages[:active])
    prompts = dict.fromkeys(event for event in spoken if event.is_prompt)
    nodes = {m.id: [event for event in m.events if not event.is_prompt] for m in messages}
    if active:
        nodes[messages[0].id] = [*prompts, *nodes[messages[0].id]]
    return nodes


def _events(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> list[Event]:
    role = info.get("role")
    if role not in ("user", "assistant"):
        raise Malformed(f"it has the role {shortened(role)}; known are user and assistant")
    said = _of_user(parts) if role == "user" else _of_assistant(info, parts)
    identity, copy_ids = str(info.get("id") or ""), _copy_ids(info, parts)
    events = [replace(event, id=identity, copy_ids=copy_ids) for event in said]
    return [*_prompt(info), *events]


def _copy_ids(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The ids by which copies of a reply are known; those in a forked session have ids of their
    own.
    """
    if info.get("role") != "assistant":
        return ()
    own = (str(info["id"]),) if info.get("id") else ()
    created = at(info, "time", "created")
    if not created:
        return own
    said = [(at(part, "type"), at(part, "text"), at(part, "callID")) for part in parts]
    return (
        *own,
        f"{created} {hashlib.sha256(repr(said).encode()).hexdigest()[:16]}",
    )


def _prompt(info: Mapping[str, Any]) -> list[Event]:
    """The system prompt, which early versions log with replies, and later ones with questions."""
    texts = info.get("system")
    return system_prompt("\n\n".join(map(str, texts)) if isinstance(texts, list) else texts)


def _of_user(parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    for part in parts:
        kind = part.get("type")
        if kind == "compaction":
            yield Event(Kind.COMPACTION)
        elif kind == "subtask":
            yield Event(Kind.REMINDER, str(part.get("prompt") or ""))
        elif kind == "text" and part.get("ignored") is not True:
            text = text_of(field_of(part, "text"))
            if part.get("synthetic") is True:  # opencode's own, such as the text of a file
                yield Event(Kind.REMINDER, text)
            else:
                yield from message_events("user", text)


def _of_assistant(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    error = at(info, "error", "name")
    is_cut = info.get("finish") in _CUT or error == "MessageOutputLengthError"
    for part in parts:
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True:
            text = text_of(field_of(part, "text"))
            if info.get("summary") is True:
                yield Event(Kind.COMPACTION, text)
            elif part.get("synthetic") is True:
                yield Event(Kind.REMINDER, text)
            else:
                yield from message_events("assistant", text, is_cut=is_cut)
        elif kind == "tool":
            yield from _call(part)
    if error == "MessageAbortedError":
        yield Event(Kind.INTERRUPTION)
    elif error is not None and not is_cut:
        yield Event(Kind.ERROR, str(at(info, "error", "data", "message") or error))


def _call(part: Mapping[str, Any]) -> Iterator[Event]:
    """A call and, if it ended, its result."""
    name, call_id = field_of(part, "tool"), str(part.get("callID") or "")
    state = mapping(field_of(part, "state"))
    arguments = state.get("input")
    if not isinstance(name, str):
        raise Malformed(f"the tool's name is {shortened(name)}")
    call = ToolCall(name, arguments if isinstance(arguments, Mapping) else {}, call_id)
    yield from message_events("assistant", "", [call])
    if state.get("status") == "completed":
        yield Event(Kind.TOOL_RESULT, text_of(state.get("output")), call_id=call_id)
    elif state.get("status") == "error":
        yield Event(Kind.TOOL_RESULT, text_of(state.get("error")), call_id=call_id)


FORMAT = Format("opencode", _recognises, _read)
