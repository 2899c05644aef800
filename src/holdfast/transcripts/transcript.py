"""A transcript: the events of a logged dialog, a tree of which one path is active.

Most logs are one path. Where a session was rewound, a question edited or an answer regenerated, an
event has several successors; the path that the user went on with is active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from holdfast.measures.turns import ToolCall


class Malformed(Exception):
    """An invalid message or line; the text of the exception says why."""


class Kind(Enum):
    """The kinds of events."""

    MESSAGE = "message"  # of the system, the user or the assistant
    TOOL_CALL = "tool call"  # by the assistant
    TOOL_RESULT = "tool result"
    COMPACTION = "compaction"  # the text that replaced the context up to it
    CLEARING = "clearing"  # that took events, such as old tool results, out of the context
    REMINDER = "system reminder"  # text that a program put before the model, which nobody said
    ERROR = "error"  # that a program wrote in place of a reply; the model never saw it
    INTERRUPTION = "interruption"  # of the assistant by the user


@dataclass(frozen=True)
class Event:
    """An event of a transcript.

    A field that its kind does not have is empty.

    Args:
        role: of a message: system, user or assistant.
        call: of a tool call.
        call_id: of a tool result: the call whose result it is, if logged.
        keeps: of a compaction: the ids of earlier events that stay in the context as they are.
        clears: of a clearing: the ids of the calls whose results leave the context, and those of
            other events that do.
        is_cut: of what the assistant wrote: whether it ended at the token limit, as far as the log
            says how it ended.
        trace_span: of what the assistant wrote: the call of a model that it is an output of, as the
            ids of the trace and of the span in it, with a slash between; "" if the log has none.
        id: of any event: in the log.
        source: of any event: the value that it was read from, such as `july.jsonl, line 3`; "" in
            formats whose values are whole dialogs.
        copy_ids: of any event: the ids by which copies of it in other logs are known: a copy has at
            least one of them.
    """

    kind: Kind
    text: str = ""
    role: str = ""
    call: ToolCall | None = None
    call_id: str = field(default="", compare=False)
    keeps: frozenset[str] = field(default=frozenset(), compare=False)
    clears: frozenset[str] = field(default=frozenset(), compare=False)
    is_cut: bool = field(default=False, compare=False)
    trace_span: str = field(default="", compare=False)
    id: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    copy_ids: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_by_assistant(self) -> bool:
        """Whether it is a message or a tool call of the assistant."""
        return self.kind is Kind.TOOL_CALL or self.role == "assistant"

    @property
    def is_by_user(self) -> bool:
        """Whether it is a message of the user."""
        return self.kind is Kind.MESSAGE and self.role == "user"

    @property
    def is_prompt(self) -> bool:
        """Whether it is a system prompt."""
        return self.kind is Kind.MESSAGE and self.role == "system"


def message_events(
    role: str,
    text: str,
    calls: Sequence[ToolCall] = (),
    call_id: str = "",
    is_cut: bool = False,
) -> list[Event]:
    """A message as events: its text, then the tool calls in it; for the role `tool`, a result."""
    if role == "tool":
        return [Event(Kind.TOOL_RESULT, text, call_id=call_id)]
    events = [Event(Kind.TOOL_CALL, call=call, is_cut=is_cut) for call in calls]
    if text or not calls:
        events.insert(0, Event(Kind.MESSAGE, text, role, is_cut=is_cut))
    return events


def call_events(call: ToolCall, result: str | None = None) -> list[Event]:
    """A tool call of the assistant as events: the call, and its result unless that is None."""
    events = [Event(Kind.TOOL_CALL, call=call)]
    if result is not None:
        events.append(Event(Kind.TOOL_RESULT, result, call_id=call.id))
    return events


@dataclass(frozen=True)
class Transcript:
    """A logged dialog.

    Args:
        source: the file, and the line or the session in it.
        parents: of each event, the position of the event before it; None for a first one.
        last: the position of the last event of the active path; None if there are no events.
        format: the name of the log's format.
        is_of_subagent: whether it is the dialog of a subagent that a session started.
        history: the session whose history it records, by which copies of its events are known; ""
            if the log names none, or the events have `copy_ids`.
    """

    source: str
    events: tuple[Event, ...]
    parents: tuple[int | None, ...]
    last: int | None
    format: str = ""
    is_of_subagent: bool = False
    history: str = ""

    @cached_property
    def path(self) -> tuple[Event, ...]:
        """The events of the active path, from the first to the last."""
        return tuple(self.events[position] for position in _path_to(self.last, self.parents))


def linear(source: str, events: Iterable[Event]) -> Transcript:
    """A transcript without branches."""
    tree = Tree()
    tree.add(events)
    return tree.transcript(source)


class Tree:
    """A transcript that is being read; `tip` is the position of the last event of its path."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._parents: list[int | None] = []
        self.tip: int | None = None

    def add(self, events: Iterable[Event]) -> None:
        """Adds events behind the tip."""
        for event in events:
            self._events.append(event)
            self._parents.append(self.tip)
            self.tip = len(self._events) - 1

    def numbered_path(self) -> list[tuple[int, Event]]:
        """The events from the first to the tip, each with its position in the tree."""
        return [(n, self._events[n]) for n in _path_to(self.tip, self._parents)]

    def transcript(self, source: str) -> Transcript:
        """The transcript, whose active path ends at the tip."""
        return Transcript(source, tuple(self._events), tuple(self._parents), self.tip)


def _path_to(last: int | None, parents: Sequence[int | None]) -> list[int]:
    path = []
    while last is not None:
        path.append(last)
        last = parents[last]
    return path[::-1]


def branched(
    source: str,
    nodes: Mapping[str, Sequence[Event]],
    parents: Mapping[str, str | None],
    active: Iterable[str],
) -> Transcript:
    """A transcript from a log whose entries name their parents.

    Args:
        nodes: the events of each entry, by its id.
        parents: the id of each entry's parent.
        active: the ids of the active path, in order.
    """
    tree = Tree()
    ends: dict[str, int | None] = {}  # the position of the last event of each entry
    for name in active:
        tree.add(nodes.get(name, ()))
        ends[name] = tree.tip
    last = tree.tip
    for name in nodes:
        climb: dict[str, None] = {}  # from the entry up to the first that is in the tree
        above: str | None = name
        while above is not None and above in parents and not (above in ends or above in climb):
            climb[above] = None
            above = parents[above]
        tree.tip = None if above is None else ends.get(above)
        for entry in reversed(climb):
            tree.add(nodes.get(entry, ()))
            ends[entry] = tree.tip
    tree.tip = last
    return tree.transcript(source)


def each_after_the_other(names: Iterable[str]) -> dict[str, str | None]:
    """The parent of each entry of a log without branches: the entry before it."""
    parents: dict[str, str | None] = {}
    before: str | None = None
    for name in names:
        parents[name] = before
        before = name
    return parents


def path_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """The ids from the root to `leaf`; a parent that is unknown, or leads in a circle, ends it."""
    path: dict[str, None] = {}
    node: str | None = leaf
    while node is not None and node in parents and node not in path:
        path[node] = None
        node = parents[node]
    return list(reversed(path))
