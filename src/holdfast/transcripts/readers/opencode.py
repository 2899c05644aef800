"""opencode's sessions: `opencode export`, its folder `storage/` and its database `opencode.db`.

All three are read as what `opencode export` writes: the session's `info`, and its `messages`, each
with its own `info` and its `parts`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.reader import (
    Format,
    Unread,
    Values,
    at,
    decoded,
    entries,
    field_of,
    fields_of,
    mapping,
    system_prompt,
)
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    branched,
    message_events,
)

_OF_DISPLAY = (
    *("step-start", "step-finish", "snapshot", "patch", "agent", "file", "reasoning", "retry"),
)
_CUT = ("length", "max_tokens")


def _recognises(value: Any) -> bool:
    if _is_message(value):
        return True
    fields = fields_of(value)
    if isinstance(fields.get("info"), Mapping) and isinstance(fields.get("messages"), list):
        return not fields["messages"] or any(map(_is_message, fields["messages"]))
    if isinstance(value, list):
        return bool(value) and _is_message(value[0])
    return _is_piece(value)


def _is_message(value: Any) -> bool:
    fields = fields_of(value)
    return isinstance(fields.get("parts"), list) and "role" in fields_of(fields.get("info"))


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
            yield from _transcript(where, info, listed)
        except Malformed as error:
            yield Unread(f"{where}: {error}")


def _transcript(
    where: str, info: Mapping[str, Any], messages: list[Any]
) -> Iterator[Transcript | Unread]:
    nodes: dict[str, list[Event]] = {}
    by_id: dict[str, Any] = {}
    strange: Counter[str] = Counter()
    for number, message in enumerate(messages, start=1):
        name = str(at(message, "info", "id") or f"message {number}")
        try:
            nodes[name] = _events(mapping(message), strange)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        by_id[name] = message
    names, messages = [*by_id], [*by_id.values()]
    end, kept = _revert(info, messages, names)
    active = names[:end]
    if kept is not None:  # of a message whose last parts were taken back
        nodes[names[end]] = _events(kept, Counter())
        active = names[: end + 1]
    parents: dict[str, str | None] = dict(zip(names, [None, *names], strict=False))
    for kind, number in strange.items():
        which = "part is" if number == 1 else "parts are"
        yield Unread(f"{where}: {number} {which} of the unknown type {kind}, and left out")
    if left_out := len(names) - end:
        count = f"{left_out} {'message' if left_out == 1 else 'messages'}"
        whole = "" if kept is None else ", the first of them in part,"
        yield Unread(f"{where}: {count} that the user took back (revert){whole} left out")
    yield from _mark_replays(where, nodes, active)
    _keep_tails(messages, nodes, names)
    _clear_results(messages, nodes, names)
    spoken = chain.from_iterable(nodes[name] for name in active)
    prompts = [event for event in spoken if event.is_prompt]
    for name in names:
        nodes[name] = [event for event in nodes[name] if not event.is_prompt]
    if active:
        nodes[active[0]] = [*dict.fromkeys(prompts), *nodes[active[0]]]
    transcript = branched(where, nodes, parents, active)
    yield replace(transcript, is_of_subagent=bool(info.get("parentID") or info.get("parent_id")))


def _revert(
    info: Mapping[str, Any], messages: Sequence[Any], names: Sequence[str]
) -> tuple[int, Mapping[str, Any] | None]:
    """The position of the first message that the user took back, or the count if none was; and what
    is left of that message if only some of its parts were.
    """
    revert = decoded(info.get("revert"))
    target, part = at(revert, "messageID"), at(revert, "partID")
    if target not in names:
        return len(names), None
    position = names.index(target)
    message = mapping(messages[position])
    parts = entries(message.get("parts"))
    ids = [at(listed, "id") for listed in parts]
    if not part or part not in ids:
        return position, None
    return position, {**message, "parts": parts[: ids.index(part)]}


def _mark_replays(
    where: str, nodes: dict[str, list[Event]], active: Sequence[str]
) -> Iterator[Unread]:
    """Finds the user's last message where opencode sent it again, after the compaction that made
    room for it. The user said it once.
    """
    last, was_compacted = "", False
    for name in active:
        for number, event in enumerate(nodes[name]):
            if event.kind is Kind.COMPACTION:
                was_compacted = True
            elif event.is_by_assistant:
                last = ""  # it was answered
            elif event.is_by_user:
                if was_compacted and last and event.text == last:
                    nodes[name][number] = replace(event, kind=Kind.REMINDER, role="")
                    yield Unread(
                        f"{where}: the message {name} is what opencode sent again after a"
                        " compaction, and counts once"
                    )
                last, was_compacted = event.text, False


def _keep_tails(
    messages: Sequence[Any], nodes: dict[str, list[Event]], names: Sequence[str]
) -> None:
    """Marks the messages that a compaction left in the context: those from `tail_start_id` on."""
    for position, message in enumerate(messages):
        parts = entries(at(message, "parts"))
        tails = {at(part, "tail_start_id") for part in parts if at(part, "type") == "compaction"}
        for tail in tails.intersection(names[:position]):
            kept = frozenset(names[names.index(tail) : position])
            events = nodes[names[position]]
            nodes[names[position]] = [
                replace(event, keeps=kept) if event.kind is Kind.COMPACTION else event
                for event in events
            ]


def _clear_results(
    messages: Sequence[Any], nodes: dict[str, list[Event]], names: Sequence[str]
) -> None:
    """Adds when opencode cleared the results of old calls: before the first message that is newer,
    as it does so at the end of a turn.
    """
    calls: dict[float, set[str]] = {}
    for part in (part for message in messages for part in entries(at(message, "parts"))):
        time = at(part, "state", "time", "compacted")
        if isinstance(time, (int, float)):
            calls.setdefault(time, set()).add(str(part.get("callID")))
    for time, cleared in calls.items():
        created = [at(message, "info", "time", "created") for message in messages]
        newer = (n for n, at_ in enumerate(created) if isinstance(at_, (int, float)) and at_ > time)
        position = next(newer, None)
        if position is not None:
            clearing = Event(Kind.CLEARING, clears=frozenset(cleared))
            nodes[names[position]] = [clearing, *nodes[names[position]]]


def _events(message: Mapping[str, Any], strange: Counter[str]) -> list[Event]:
    info = mapping(field_of(message, "info"))
    parts = [mapping(part) for part in entries(field_of(message, "parts"))]
    for part in parts:
        kind = part.get("type")
        if kind not in (*_OF_DISPLAY, "text", "tool", "subtask", "compaction"):
            strange[shortened(kind)] += 1
    role = info.get("role")
    if role not in ("user", "assistant"):
        raise Malformed(f"it has the role {shortened(role)}; known are user and assistant")
    said = _of_user(parts) if role == "user" else _of_assistant(info, parts)
    identity, copy_ids = str(info.get("id") or ""), _copy_ids(info, parts)
    events = [replace(event, id=identity, copy_ids=copy_ids) for event in said]
    return [*_prompt(info), *events]


def _copy_ids(info: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> tuple[str, ...]:
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


def _of_user(parts: list[Mapping[str, Any]]) -> Iterator[Event]:
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


def _of_assistant(info: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> Iterator[Event]:
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
