"""The context of a model: the events of a transcript that it has before it at some point.

For example:

    position   0       1     2          3           4     5
    event      system  user  assistant  compaction  user  assistant
    Contexts(path).before(5)  -> Context(start=3, end=5): 0, 3 and 4, but not 1 and 2

A compaction may keep some of the events before it, and a clearing may remove single events.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import sub

from holdfast.transcripts.transcript import Event, EventKind


def size_of(event: Event) -> int:
    """The size of an event in the context, in bytes: its text and the arguments of its call."""
    arguments = json.dumps(dict(event.call.arguments)) if event.call is not None else ""
    return len(event.text.encode("utf-8", "replace")) + len(arguments.encode("utf-8", "replace"))


def compaction_starts(path: Sequence[Event]) -> list[int]:
    """The positions on a path where the context begins again: the first event of each compaction,
    which may have several in a row.
    """
    starts: list[int] = []
    before: EventKind | None = None
    for position, event in enumerate(path):
        if event.kind is EventKind.COMPACTION and before is not EventKind.COMPACTION:
            starts.append(position)
        before = event.kind
    return starts


class Contexts:
    """The context at every position on a path of events."""

    def __init__(self, path: Sequence[Event]) -> None:
        self.path = path
        self._kept: dict[int, frozenset[int]] = {}  # by the position of the compaction

    def before(self, position: int) -> "Context":
        """The context before an event."""
        earlier = bisect_left(self.compaction_starts, position)
        start = self.compaction_starts[earlier - 1] if earlier else 0
        return Context(self, start, position)

    @cached_property
    def compaction_starts(self) -> list[int]:
        """The positions where the context begins again."""
        return compaction_starts(self.path)

    def kept_by(self, compaction: int) -> frozenset[int]:
        """The positions of the events that the compaction at a position kept as they are."""
        if compaction not in self._kept:
            self._kept[compaction] = frozenset(self._find_kept(compaction))
        return self._kept[compaction]

    def _find_kept(self, compaction: int) -> Iterator[int]:
        """Yields the positions of the events that a compaction names, if they were in context."""
        ids: set[str] = set()
        for event in self.path[compaction:]:
            if event.kind is not EventKind.COMPACTION:
                break
            ids |= event.keeps
        if not ids:
            return
        before = self.before(compaction)
        for position, event in enumerate(self.path[:compaction]):
            if event.id in ids and before.shows(position):
                yield position

    @cached_property
    def cleared(self) -> dict[int, int]:
        """The position of the clearing that removed an event, by the position of the event."""
        cleared: dict[int, int] = {}
        positions: dict[str, list[int]] = {}  # of events, by the ids that clearings name
        for position, event in enumerate(self.path):
            for name in event.clears:
                cleared |= dict.fromkeys(positions.pop(name, ()), position)
            is_result = event.kind is EventKind.TOOL_RESULT
            name = (event.call_id if is_result else "") or event.id
            positions.setdefault(name, []).append(position)
        return cleared

    @cached_property
    def sizes(self) -> list[int]:
        """The size of each event in bytes; 0 for a prompt and an error."""
        return [
            0 if event.is_prompt or event.kind is EventKind.ERROR else size_of(event)
            for event in self.path
        ]

    @cached_property
    def total_sizes(self) -> list[int]:
        """The size of all events before each position, less the size of what clearings before it
        removed from their contexts.
        """
        cleared_sizes = [0] * len(self.path)  # the size that the clearing at a position removed
        for position, clearing in self.cleared.items():
            if position >= self.before(clearing).start:
                cleared_sizes[clearing] += self.sizes[position]
        return [0, *accumulate(map(sub, self.sizes, cleared_sizes))]


@dataclass(frozen=True)
class Context:
    """The context before an event: the system prompts, and everything since the last compaction,
    with what the compaction put there and what it kept, and without what was cleared.

    Args:
        start: the position where the context begins, a compaction or 0; system prompts and kept
            events may stand before it.
        end: the position of the event.
    """

    contexts: Contexts
    start: int
    end: int

    def shows(self, position: int) -> bool:
        """Whether the event at a position is in the context."""
        if position >= self.end or self._was_cleared(position):
            return False
        if position >= self.start or self.contexts.path[position].is_prompt:
            return True
        return position in self._kept

    def cleared_by(self, position: int) -> int | None:
        """The position of the clearing that removed the event at a position; None if none has since
        the context began.
        """
        clearing = self.contexts.cleared.get(position)
        if clearing is None or not self.start <= clearing < self.end:
            return None
        return clearing

    @property
    def events(self) -> list[Event]:
        """The events in the context, in order."""
        path = self.contexts.path[: self.end]
        return [event for position, event in enumerate(path) if self.shows(position)]

    def size_since(self, position: int) -> int:
        """The size in bytes of the context from a position on, without prompts."""
        contexts = self.contexts
        first = min(max(position, self.start), self.end)
        size = contexts.total_sizes[self.end] - contexts.total_sizes[first]
        # clearings from `first` on have also subtracted earlier events, which were never added
        for earlier in range(self.start, first):
            if first <= contexts.cleared.get(earlier, -1) < self.end:
                size += contexts.sizes[earlier]
        kept = [event for event in self._kept if position <= event and self.shows(event)]
        return size + sum(contexts.sizes[event] for event in kept)

    @property
    def _kept(self) -> frozenset[int]:
        return self.contexts.kept_by(self.start)

    def _was_cleared(self, position: int) -> bool:
        return self.contexts.cleared.get(position, self.end) < self.end
