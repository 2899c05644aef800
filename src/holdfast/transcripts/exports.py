"""Exports of chat applications, in which a message names its parent.

An edited question or a regenerated answer begins a branch. The branch that the application shows is
the active one.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import mapping
from holdfast.transcripts.reader import Reader, Unread, Values
from holdfast.transcripts.transcript import Event, Malformed, Transcript, branched, path_to


@dataclass(frozen=True)
class Export:
    """A conversation of an export.

    Args:
        messages: by their ids, in the file's order.
        parents: the id of the message before each; one that is in no message is ignored.
        leaf: the id of the last message that is shown; anything else: the last one in the file.
        prompt: the system prompt.
    """

    messages: Mapping[str, Mapping[str, Any]]
    parents: Mapping[str, str]
    leaf: Any = None
    prompt: Sequence[Event] = ()


def transcripts_of_exports(
    export_of: Callable[[Mapping[str, Any]], Export],
    events_of: Callable[[Mapping[str, Any]], list[Event]],
) -> Reader:
    """A reader of an application's exports.

    Args:
        export_of: finds the messages of a conversation.
        events_of: reads one of them.
    """

    def transcripts(values: Values) -> Iterator[Transcript | Unread]:
        for where, value in values:
            try:
                conversation = _conversation(export_of(mapping(value)), events_of)
            except Malformed as error:
                yield Unread(f"{where}: {error}")
                continue
            if abandoned := conversation.abandoned:
                yield Unread(
                    f"{where}: {count_of(len(abandoned), 'message')} of abandoned branches (an"
                    " edited question, or another answer) left out"
                )
            yield conversation.transcript(where)

    return transcripts


def parents_in(messages: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, str]:
    """The ids that a field of the messages names."""
    return {name: str(message.get(field)) for name, message in messages.items()}


def in_order(messages: Sequence[Any], prompt: Sequence[Event] = ()) -> Export:
    """A conversation whose messages are a list, without parents."""
    by_number = {str(number): mapping(message) for number, message in enumerate(messages)}
    parents = {name: str(int(name) - 1) for name in by_number}
    return Export(by_number, parents, prompt=prompt)


_UNIQUE = 32  # characters of an id, from which on no other message has it
_PROMPT = ""  # the id of the system prompt, which is before every message


@dataclass(frozen=True)
class _Conversation:
    """A conversation whose messages are read.

    Args:
        nodes: the events of each message, and of the system prompt, in the file's order.
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
        return branched(source, self.nodes, self.parents, self.active)


def _conversation(
    export: Export, events_of: Callable[[Mapping[str, Any]], list[Event]]
) -> _Conversation:
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
        nodes[name] = events[name] if name in events else _readable(message, events_of)
    return _Conversation(nodes, {_PROMPT: None, **parents}, [_PROMPT, *path])


def _copy_ids(name: str, event: Event) -> tuple[str, ...]:
    """The id that identifies copies of a message in other exports."""
    if len(name) < _UNIQUE:
        return ()
    return (f"{name} {hashlib.sha256(repr((event.text, event.call)).encode()).hexdigest()[:16]}",)


def _readable(
    message: Mapping[str, Any], events_of: Callable[[Mapping[str, Any]], list[Event]]
) -> list[Event]:
    """The events of a message that was abandoned; none if it cannot be read."""
    try:
        return events_of(message)
    except Malformed:
        return []
