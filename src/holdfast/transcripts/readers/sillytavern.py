"""SillyTavern's chats, `data/*/chats/CHARACTER/*.jsonl`: a header, and then a message per line.

A message may have several versions ("swipes"), of which one is shown.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.content_blocks import read_call
from holdfast.transcripts.json_fields import at, decoded, entries, fields_of
from holdfast.transcripts.reader import Format, Unread, Values, file_of, objects
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    branched,
    message_events,
)

_PROGRAMS = ("SillyTavern System", "System", "Note")  # the names of what no model was asked for


def _recognises(value: Any) -> bool:
    names = fields_of(value).keys()
    return {"mes", "is_user"} <= names or {"user_name", "character_name"} <= names or _is_new(names)


def _is_new(names: Any) -> bool:
    """Whether a header is of the versions that have only the chat's data in it."""
    return "chat_metadata" in names and "mes" not in names


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    chats: list[list[tuple[str, Mapping[str, Any]]]] = [[]]
    for where, record in records:
        if "mes" in record:
            chats[-1].append((where, record))
        elif chats[-1]:  # the header of another chat, in a file that was put together
            chats.append([])
    file = file_of(values[0][0])
    for number, chat in enumerate(chats, start=1):
        yield from _chat(f"{file}, chat {number}" if len(chats) > 1 else file, chat)


def _chat(
    source: str, records: list[tuple[str, Mapping[str, Any]]]
) -> Iterator[Transcript | Unread]:
    nodes: dict[str, list[Event]] = {}
    parents: dict[str, str | None] = {}
    active: list[str] = []
    not_shown = 0
    for where, record in records:
        try:
            events = _events(record)
            versions = [text for text in entries(record.get("swipes")) if isinstance(text, str)]
        except Malformed as error:
            yield Unread(f"{where}: {error}")
            continue
        before = active[-1] if active else None
        nodes[where], parents[where] = events, before
        active.append(where)
        shown = record.get("swipe_id")
        for number, text in enumerate(versions):
            if number != shown and text != record["mes"]:
                nodes[f"{where}, {number}"] = message_events("assistant", text)
                parents[f"{where}, {number}"] = before
                not_shown += 1
    if not_shown:
        count = f"{not_shown} other {'version' if not_shown == 1 else 'versions'}"
        yield Unread(f"{source}: {count} of messages (swipes) that are not shown left out")
    yield branched(source, nodes, parents, active)


def _events(record: Mapping[str, Any]) -> list[Event]:
    text = record.get("mes")
    if not isinstance(text, str):
        raise Malformed(f"the message is {shortened(text)}, which is not text")
    is_user, extra = record.get("is_user"), fields_of(record.get("extra"))
    if not isinstance(is_user, bool):
        raise Malformed(f"is_user is {shortened(is_user)}, which is neither true nor false")
    calls = extra.get("tool_invocations")
    if isinstance(calls, list):
        return [*chain.from_iterable(map(_called, calls))]
    if extra.get("type") == "narrator":
        return [Event(Kind.REMINDER, text)]
    is_hidden = record.get("is_system") is True
    # a message that the user hid from the model later was said; a notice of the program was not
    if is_hidden and (extra.get("type") or record.get("name") in _PROGRAMS):
        return []
    return message_events("user" if is_user else "assistant", text)


def _called(call: Any) -> list[Event]:
    """A call of a tool and its result."""
    call_id, result = str(at(call, "id") or ""), at(call, "result")
    made = {"name": at(call, "name"), "arguments": decoded(at(call, "parameters")), "id": call_id}
    events = message_events("assistant", "", [read_call(made)])
    if result is not None:
        events.append(Event(Kind.TOOL_RESULT, str(result), call_id=call_id))
    return events


FORMAT = Format("sillytavern", _recognises, _read)
