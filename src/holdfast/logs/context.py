"""The events of a transcript that are in the model's context at a place in it."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.transcripts.transcript import Event, Kind

# Formats that never record the system prompt, or only a part of what precedes the dialog.
WITHOUT_PROMPTS = frozenset(
    (
        *("claude-code", "gemini-cli", "codex-exec", "chatgpt", "claude-ai", "cline", "copilot"),
        *("copilot-cli", "opencode", "aider", "cursor", "sillytavern"),
    )
)
# Formats whose agent puts a file of rules into every context, which the transcript does not show.
AUTOMATIC_FILES = {"claude-code": "CLAUDE.md", "gemini-cli": "GEMINI.md"}
AGENTS = {"claude-code": "Claude Code", "gemini-cli": "Gemini CLI"}  # the names of these


def size_of(event: Event) -> int:
    """The size of an event in the context, in bytes."""
    arguments = json.dumps(dict(event.call.arguments)) if event.call is not None else ""
    return len(event.text.encode("utf-8", "replace")) + len(arguments.encode("utf-8", "replace"))


def compactions(path: Sequence[Event]) -> list[int]:
    """Where the context begins again, on a path of events: each compaction may be several events,
    of which this is the first.
    """
    begins: list[int] = []
    before: Kind | None = None
    for position, event in enumerate(path):
        if event.kind is Kind.COMPACTION and before is not Kind.COMPACTION:
            begins.append(position)
        before = event.kind
    return begins


class Contexts:
    """The context at every place on a path of events."""

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
        """The positions of the events that the compaction at a position kept as they are."""
        if start not in self._kept:
            ids = self._kept_ids(start)
            shown = self.before(start).shows
            earlier = enumerate(self.path[:start]) if ids else ()
            self._kept[start] = frozenset(n for n, event in earlier if event.id in ids and shown(n))
        return self._kept[start]

    def _kept_ids(self, start: int) -> set[str]:
        ids: set[str] = set()
        for event in self.path[start:]:
            if event.kind is not Kind.COMPACTION:
                break
            ids |= event.keeps
        return ids

    @cached_property
    def cleared(self) -> dict[int, int]:
        """The events that a clearing removed, each with the position of the clearing."""
        cleared: dict[int, int] = {}
        for position, event in enumerate(self.path):
            if event.kind is not Kind.CLEARING or not event.clears:
                continue
            for number, other in enumerate(self.path[:position]):
                is_result = other.kind is Kind.TOOL_RESULT
                if (other.call_id if is_result else other.id) in event.clears:
                    cleared.setdefault(number, position)
        return cleared

    @cached_property
    def sizes(self) -> list[int]:
        """The size of all before each event but prompts and errors, in bytes."""
        sizes = [0]
        for event in self.path:
            counts = not (event.is_prompt or event.kind is Kind.ERROR)
            sizes.append(sizes[-1] + (size_of(event) if counts else 0))
        return sizes

    def size(self, position: int) -> int:
        """The size of an event, which is 0 for a prompt and an error."""
        return self.sizes[position + 1] - self.sizes[position]


@dataclass(frozen=True)
class Context:
    """The context before an event: the system prompts, and all since the last compaction, with what
    that put in place of the context and what it kept; without what a clearing removed.

    Args:
        position: of the event.
        start: where the context begins, but for system prompts and what a compaction kept.
    """

    contexts: Contexts
    position: int
    start: int

    def shows(self, number: int) -> bool:
        """Whether the event at a position is in the context."""
        if number >= self.position or self._was_cleared(number):
            return False
        is_in = number >= self.start or self.contexts.path[number].is_prompt
        return is_in or number in self._kept

    def cleared_by(self, number: int) -> int | None:
        """The position of the clearing that removed the event at a position; None if none did since
        the context began.
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
        """The size of the events in the context from a position on, without prompts, in bytes."""
        sizes, since = self.contexts.sizes, max(number, self.start)
        size = sizes[self.position] - sizes[min(since, self.position)]
        for other in self._kept:
            size += self.contexts.size(other) if number <= other and self.shows(other) else 0
        for other in self.contexts.cleared:
            is_counted = since <= other < self.position and self._was_cleared(other)
            size -= self.contexts.size(other) if is_counted else 0
        return size

    @property
    def _kept(self) -> frozenset[int]:
        return self.contexts.kept(self.start)

    def _was_cleared(self, number: int) -> bool:
        return self.contexts.cleared.get(number, self.position) < self.position
