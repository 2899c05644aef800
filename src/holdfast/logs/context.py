"""The context of a model: the events of a transcript that it has before it at some point.

For example:

    system, user, assistant, compaction, user  -> before the last: system, compaction
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import sub

from holdfast.transcripts.transcript import Event, EventKind

# Formats that never record the system prompt, or only a part of what comes before the dialog.
WITHOUT_PROMPTS = frozenset(
    (
        *("claude-code", "gemini-cli", "gemini-cli-stream", "codex-exec", "chatgpt", "claude-ai"),
        *("cline", "copilot", "copilot-cli", "opencode", "aider", "cursor", "goose"),
        *("sillytavern", "google-adk", "openai-agents"),
    )
)
# Formats whose agent puts a file of rules into every context; the transcript does not show it.
AUTOMATIC_FILES = {
    "claude-code": "CLAUDE.md",
    "gemini-cli": "GEMINI.md",
    "gemini-cli-stream": "GEMINI.md",
}
AGENTS = {  # names of these agents
    "claude-code": "Claude Code",
    "gemini-cli": "Gemini CLI",
    "gemini-cli-stream": "Gemini CLI",
}


def size_of(event: Event) -> int:
    """The size of an event in the context, in bytes: its text and the arguments of its call."""
    arguments = json.dumps(dict(event.call.arguments)) if event.call is not None else ""
    return len(event.text.encode("utf-8", "replace")) + len(arguments.encode("utf-8", "replace"))


def compactions(path: Sequence[Event]) -> list[int]:
    """The positions on a path where the context begins again: of each compaction, its first event,
    as a compaction may have several.
    """
    begins: list[int] = []
    before: EventKind | None = None
    for position, event in enumerate(path):
        if event.kind is EventKind.COMPACTION and before is not EventKind.COMPACTION:
            begins.append(position)
        before = event.kind
    return begins


class Contexts:
    """The context at every position on a path of events."""

    def __init__(self, path: Sequence[Event]) -> None:
        self.path = path
        self._kept: dict[int, frozenset[int]] = {}

    def before(self, position: int) -> "Context":
        """The context before an event."""
        earlier = bisect_left(self.compactions, position)
        start = self.compactions[earlier - 1] if earlier else 0
        return Context(self, position, start)

    @cached_property
    def compactions(self) -> list[int]:
        return compactions(self.path)

    def kept(self, start: int) -> frozenset[int]:
        """The positions of the events that a compaction kept as they are, by its own position."""
        if start not in self._kept:
            self._kept[start] = frozenset(self._kept_by(start))
        return self._kept[start]

    def _kept_by(self, start: int) -> Iterator[int]:
        ids: set[str] = set()
        for event in self.path[start:]:
            if event.kind is not EventKind.COMPACTION:
                break
            ids |= event.keeps
        if not ids:
            return
        before = self.before(start)
        for position, event in enumerate(self.path[:start]):
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
        """The size of all events before each one. A clearing takes off the size of what it removed
        from its context.
        """
        cleared_sizes = [0] * len(self.path)  # the size that each clearing removed
        for number, clearing in self.cleared.items():
            if number >= self.before(clearing).start:
                cleared_sizes[clearing] += self.sizes[number]
        return [0, *accumulate(map(sub, self.sizes, cleared_sizes))]


@dataclass(frozen=True)
class Context:
    """The context before an event: the system prompts, and everything since the last compaction,
    with what the compaction put there and what it kept, and without what was cleared.

    Args:
        position: the position of the event.
        start: where the context begins; system prompts and kept events may stand before that.
    """

    contexts: Contexts
    position: int
    start: int

    def shows(self, number: int) -> bool:
        """Whether the event with this position is in the context."""
        if number >= self.position or self._was_cleared(number):
            return False
        if number >= self.start or self.contexts.path[number].is_prompt:
            return True
        return number in self._kept

    def cleared_by(self, number: int) -> int | None:
        """The position of the clearing that removed the event with this position; None if none has
        since the context began.
        """
        clearing = self.contexts.cleared.get(number)
        if clearing is None or not self.start <= clearing < self.position:
            return None
        return clearing

    @property
    def events(self) -> list[Event]:
        """The events in the context, in order."""
        path = self.contexts.path[: self.position]
        return [event for number, event in enumerate(path) if self.shows(number)]

    def size_since(self, number: int) -> int:
        """The size in bytes of the context from a position on, without prompts."""
        contexts = self.contexts
        first = min(max(number, self.start), self.position)
        size = contexts.total_sizes[self.position] - contexts.total_sizes[first]
        for earlier in range(self.start, first):  # its clearing took off what was not counted here
            if first <= contexts.cleared.get(earlier, -1) < self.position:
                size += contexts.sizes[earlier]
        kept_positions = [n for n in self._kept if number <= n and self.shows(n)]
        return size + sum(contexts.sizes[n] for n in kept_positions)

    @property
    def _kept(self) -> frozenset[int]:
        return self.contexts.kept(self.start)

    def _was_cleared(self, number: int) -> bool:
        return self.contexts.cleared.get(number, self.position) < self.position
