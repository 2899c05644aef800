"""opencode's sessions: `opencode export`, its folder `storage/` and its database `opencode.db`.

All three are read as what `opencode export` writes: the session's `info`, and its `messages`, each
with its own `info` and its `parts`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
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
    messages = [value.value for value in values if _is_message(value.value)]
    sessions: list[tuple[str, Any]] = []
    for where, value in values:
        if _is_piece(value):
            yield Unread(
                f"{where}: it is a part of a session of opencode; give the folder `storage`, or the"
                " output of `opencode export`"
            )
        elif not _is_message(value):
            sessions.append((where, value))
    if messages:  # the messages of the API's answer, one value each
        sessions.append((values[0].source, messages))
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
    strange: Counter[str] = Counter()
    for number, message in enumerate(messages, start=1):
        try:
            events = _events(mapping(message), strange)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        nodes[str(at(message, "info", "id") or f"message {number}")] = events
    names = [*nodes]
    active = names[: _reverted_from(info, names)]
    parents: dict[str, str | None] = dict(zip(names, [None, *names], strict=False))
    for kind, number in strange.items():
        which = "part is" if number == 1 else "parts are"
        yield Unread(f"{where}: {number} {which} of the unknown type {kind}, and left out")
    if left_out := len(names) - len(active):
        count = f"{left_out} {'message' if left_out == 1 else 'messages'}"
        yield Unread(f"{where}: {count} that the user took back (revert) left out")
    spoken = chain.from_iterable(nodes[name] for name in active)
    prompts = [event for event in spoken if event.is_prompt]
    for name in names:
        nodes[name] = [event for event in nodes[name] if not event.is_prompt]
    if active:
        nodes[active[0]] = [*dict.fromkeys(prompts), *nodes[active[0]]]
    transcript = branched(where, nodes, parents, active)
    yield replace(transcript, is_of_subagent=bool(info.get("parentID") or info.get("parent_id")))


def _reverted_from(info: Mapping[str, Any], names: list[str]) -> int:
    """The position of the first message that the user took back; the count if none was."""
    target = at(decoded(info.get("revert")), "messageID")
    return names.index(target) if target in names else len(names)


def _events(message: Mapping[str, Any], strange: Counter[str]) -> list[Event]:
    info = mapping(field_of(message, "info"))
    parts = [mapping(part) for part in entries(field_of(message, "parts"))]
    for part in parts:
        kind = part.get("type")
        if kind not in (*_OF_DISPLAY, "text", "tool", "subtask", "compaction"):
            strange[shortened(kind)] += 1
    role = info.get("role")
    if role == "user":
        return [*_prompt(info), *_of_user(parts)]
    if role == "assistant":
        return [*_prompt(info), *_of_assistant(info, parts)]
    raise Malformed(f"it has the role {shortened(role)}; known are user and assistant")


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
    identity = str(info.get("id") or "")
    for part in parts:
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True:
            text = text_of(field_of(part, "text"))
            if info.get("summary") is True:
                yield Event(Kind.COMPACTION, text)
            elif part.get("synthetic") is True:
                yield Event(Kind.REMINDER, text)
            else:
                events = message_events("assistant", text, is_cut=is_cut)
                yield from (replace(event, id=identity) for event in events)
        elif kind == "tool":
            yield from (
                replace(event, id=identity) if event.is_by_assistant else event
                for event in _call(part)
            )
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
