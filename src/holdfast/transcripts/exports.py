"""Exports of chat applications, in which a message names its parent.

An edited question or a regenerated answer begins a branch. The branch that the application shows is
the active one.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
                transcript, left_out = _read(where, export_of(mapping(value)), events_of)
            except Malformed as error:
                yield Unread(f"{where}: {error}")
                continue
            if left_out:
                yield Unread(
                    f"{where}: {left_out} {'message' if left_out == 1 else 'messages'} of abandoned"
                    " branches (an edited question, or another answer) left out"
                )
            yield transcript

    return transcripts


def parents_in(messages: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, str]:
    """The ids that a field of the messages names."""
    return {name: str(message.get(field)) for name, message in messages.items()}


def in_order(listed: Sequence[Any], prompt: Sequence[Event] = ()) -> Export:
    """A conversation whose messages are a list, without parents."""
    messages = {str(number): mapping(message) for number, message in enumerate(listed)}
    return Export(messages, {name: str(int(name) - 1) for name in messages}, prompt=prompt)


_UNIQUE = 32  # characters of an id, from which on it is one of its own
_PROMPT = ""  # the id of the system prompt, which is before every message


def _read(
    where: str, export: Export, events_of: Callable[[Mapping[str, Any]], list[Event]]
) -> tuple[Transcript, int]:
    """The transcript, and how many messages with content are not on its active path."""
    known = export.messages.keys()
    parents = {name: above if above in known else _PROMPT for name, above in export.parents.items()}
    leaf = export.leaf
    if not isinstance(leaf, str) or leaf not in known:
        leaf = next(reversed([*known]), _PROMPT)
    active = path_to(leaf, parents)
    nodes: dict[str, list[Event]] = {_PROMPT: [*export.prompt]}
    left_out = 0
    for number, name in enumerate(active, start=1):
        try:
            events = events_of(export.messages[name])
            nodes[name] = [replace(event, copy_ids=_copy_ids(name, event)) for event in events]
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    for name in known - {*active}:
        nodes[name] = _readable(export.messages[name], events_of)
        left_out += bool(nodes[name])
    ordered = {name: nodes[name] for name in (_PROMPT, *known)}
    tree: dict[str, str | None] = {_PROMPT: None, **parents}
    return branched(where, ordered, tree, [_PROMPT, *active]), left_out


def _copy_ids(name: str, event: Event) -> tuple[str, ...]:
    """The id by which copies of a message in another export are known."""
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
