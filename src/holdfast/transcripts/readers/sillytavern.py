"""SillyTavern's chats, `data/*/chats/CHARACTER/*.jsonl`: a header, then a message per line.

    {"name": "Ada", "is_user": true, "mes": "Hi", "send_date": "..."}

A message may have several versions ("swipes"), one of which is shown.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import at, decode_json, optional_list
from holdfast.transcripts.reader import (
    Format,
    SourcedRecord,
    Unread,
    Values,
    file_of,
    separate_objects,
)
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    branched_transcript,
    call_events,
    message_events,
)
from holdfast.validation.json_values import fields_of

_ATTACHMENTS = ("image", "media", "video", "audio", "file", "files")
_PROGRAM_NAMES = ("SillyTavern System", "System", "Note")  # in place of a character's name


def _recognises(value: Any) -> bool:
    names = fields_of(value).keys()
    return {"mes", "is_user"} <= names or {"user_name", "character_name"} <= names or _is_new(names)


def _is_new(names: Any) -> bool:
    """Whether a header is of the newer versions, which have only the chat's metadata in it."""
    return "chat_metadata" in names and "mes" not in names


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    chats: list[list[SourcedRecord]] = [[]]
    for record in records:
        if "mes" in record.fields:
            chats[-1].append(record)
        elif chats[-1]:  # the header of another chat, in a file that was joined
            chats.append([])
    file = file_of(values[0].source)
    for number, chat in enumerate(chats, start=1):
        yield from _chat(f"{file}, chat {number}" if len(chats) > 1 else file, chat)


def _chat(name: str, records: list[SourcedRecord]) -> Iterator[Transcript | Unread]:
    """Reads a chat; the versions of messages that are not shown become branches."""
    nodes: dict[str, list[Event]] = {}
    parents: dict[str, str | None] = {}
    active: list[str] = []
    hidden_versions = 0
    for source, fields in records:
        try:
            events = _events(fields)
            versions = _hidden_versions(fields)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
            continue
        before = active[-1] if active else None
        nodes[source] = events
        parents[source] = before
        active.append(source)
        for number, text in enumerate(versions):
            nodes[f"{source}, {number}"] = message_events("assistant", text)
            parents[f"{source}, {number}"] = before
        hidden_versions += len(versions)
    if hidden_versions:
        count = count_of(hidden_versions, "other version")
        yield Unread(f"{name}: left out {count} of messages (swipes) that are not shown")
    yield branched_transcript(name, nodes, parents, active)


def _hidden_versions(record: Mapping[str, Any]) -> list[str]:
    """Returns the versions of a message that are not shown."""
    return [
        text
        for number, text in enumerate(optional_list(record.get("swipes")))
        if isinstance(text, str) and number != record.get("swipe_id") and text != record["mes"]
    ]


def _events(record: Mapping[str, Any]) -> list[Event]:
    """Reads a message; notices of the program have no events."""
    text = record.get("mes")
    if not isinstance(text, str):
        raise Malformed(f"the message is {shortened(text)}, which is not text")
    is_user = record.get("is_user")
    extra = fields_of(record.get("extra"))
    if not isinstance(is_user, bool):
        raise Malformed(f"is_user is {shortened(is_user)}, which is neither true nor false")
    calls = extra.get("tool_invocations")
    if isinstance(calls, list):
        return [*chain.from_iterable(map(_call_with_result, calls))]
    if extra.get("type") == "narrator":
        return [Event(EventKind.REMINDER, text)]
    is_hidden = record.get("is_system") is True
    # The user may have hidden a message after it was said; notices of the program never were.
    is_notice = extra.get("type") or extra.get("isSmallSys") or record.get("name") in _PROGRAM_NAMES
    if is_hidden and is_notice:
        return []
    unread = tuple(name for name in _ATTACHMENTS if extra.get(name))
    return message_events("user" if is_user else "assistant", text, unread=unread)


def _call_with_result(invocation: Any) -> list[Event]:
    """Reads a tool call and its result."""
    arguments = decode_json(at(invocation, "parameters"))
    result = at(invocation, "result")
    identity = str(at(invocation, "id") or "")
    call = read_call({"name": at(invocation, "name"), "arguments": arguments, "id": identity})
    return call_events(call, None if result is None else str(result))


FORMAT = Format("sillytavern", _recognises, _read)
