"""Reads exports of chat applications, in which each message names its parent.

An edited question or a regenerated answer begins a branch. The active branch is the one that the
application shows.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import require_object
from holdfast.transcripts.reader import Reader, Unread, Values
from holdfast.transcripts.transcript import (
    Event,
    Malformed,
    Transcript,
    branched_transcript,
    path_to,
)

_MIN_UNIQUE_ID = 32  # the length from which on an id is unique among all conversations
_PROMPT = ""  # the id of the system prompt, which precedes every message


@dataclass(frozen=True)
class Export:
    """A conversation in an export.

    Args:
        messages: by their ids, in the file's order.
        parents: for each message, the id of the one before it; ids of no message are ignored.
        leaf: the id of the last message that the application shows; if it is the id of no message,
            the last one in the file is taken.
        prompt: the system prompt; empty if the export has none.
    """

    messages: Mapping[str, Mapping[str, Any]]
    parents: Mapping[str, str]
    leaf: Any = None
    prompt: Sequence[Event] = ()


@dataclass(frozen=True)
class _Conversation:
    """A conversation whose messages have been read.

    Args:
        nodes: the events of each message by its id, and those of the system prompt, in the file's
            order.
        parents: the id of the message before each.
        active: the ids on the path that the application shows.
    """

    nodes: Mapping[str, Sequence[Event]]
    parents: Mapping[str, str | None]
    active: Sequence[str]

    @property
    def abandoned(self) -> list[str]:
        """The ids of the messages with content that are not on the active path."""
        active = {*self.active}
        return [name for name, events in self.nodes.items() if events and name not in active]

    def transcript(self, source: str) -> Transcript:
        return branched_transcript(source, self.nodes, self.parents, self.active)


def export_reader(
    export_of: Callable[[Mapping[str, Any]], Export],
    events_of: Callable[[Mapping[str, Any]], list[Event]],
) -> Reader:
    """Makes the reader of an application's exports.

    Args:
        export_of: finds the messages of a conversation.
        events_of: reads a message.
    """

    def transcripts(values: Values) -> Iterator[Transcript | Unread]:
        for source, value in values:
            try:
                conversation = _conversation(export_of(require_object(value)), events_of)
            except Malformed as error:
                yield Unread(f"{source}: {error}")
                continue
            if abandoned := conversation.abandoned:
                yield Unread(
                    f"{source}: left out {count_of(len(abandoned), 'message')} of abandoned"
                    " branches (an edited question, or another answer)"
                )
            yield conversation.transcript(source)

    return transcripts


def parent_ids(messages: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, str]:
    """Returns for each message the id in the field that names its parent."""
    return {name: str(message.get(field)) for name, message in messages.items()}


def sequential_export(messages: Sequence[Any], prompt: Sequence[Event] = ()) -> Export:
    """Returns a conversation whose messages are a plain list, without parents."""
    by_number = {str(number): require_object(message) for number, message in enumerate(messages)}
    parents = {name: str(int(name) - 1) for name in by_number}
    return Export(by_number, parents, prompt=prompt)


def _conversation(
    export: Export, events_of: Callable[[Mapping[str, Any]], list[Event]]
) -> _Conversation:
    """Reads the messages of a conversation; only those on the active path have to be readable."""
    ids = export.messages.keys()
    parents = {
        name: parent if parent in ids else _PROMPT for name, parent in export.parents.items()
    }
    leaf = export.leaf
    if not isinstance(leaf, str) or leaf not in ids:
        leaf = next(reversed([*ids]), _PROMPT)
    path = path_to(leaf, parents)
    events: dict[str, list[Event]] = {}
    for number, name in enumerate(path, start=1):
        try:
            events[name] = [
                replace(event, copy_ids=_copy_ids(name, event))
                for event in events_of(export.messages[name])
            ]
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    nodes: dict[str, Sequence[Event]] = {_PROMPT: export.prompt}
    for name, message in export.messages.items():
        nodes[name] = events[name] if name in events else _events_if_readable(message, events_of)
    return _Conversation(nodes, {_PROMPT: None, **parents}, [_PROMPT, *path])


def _copy_ids(name: str, event: Event) -> tuple[str, ...]:
    """Returns ids by which copies of an event in other exports are recognised.

    They are made of the message's id and a digest, as a message may have several events.
    """
    if len(name) < _MIN_UNIQUE_ID:
        return ()
    return (f"{name} {hashlib.sha256(repr((event.text, event.call)).encode()).hexdigest()[:16]}",)


def _events_if_readable(
    message: Mapping[str, Any], events_of: Callable[[Mapping[str, Any]], list[Event]]
) -> list[Event]:
    """Returns the events of an abandoned message; [] if it cannot be read."""
    try:
        return events_of(message)
    except Malformed:
        return []
