"""A transcript: the events of a logged dialog, a tree of which one path is active.

Most logs are a single path. Where a session was rewound, a question edited or an answer
regenerated, an event has several successors; the path that the user went on with is active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.validation.json_values import fields_of


class Malformed(Exception):
    """An invalid message or line; the exception's text says why."""


class EventKind(Enum):
    """The kinds of events."""

    MESSAGE = "message"  # of the system, the user or the assistant
    TOOL_CALL = "tool call"  # by the assistant
    TOOL_RESULT = "tool result"
    COMPACTION = "compaction"  # a summary that replaced the context before it
    CLEARING = "clearing"  # the removal of events, such as old tool results, from the context
    REMINDER = "system reminder"  # text that a program put into the context, which nobody said
    ERROR = "error"  # a program's message in place of a reply; the model never saw it
    INTERRUPTION = "interruption"  # of the assistant by the user


@dataclass(frozen=True)
class Event:
    """An event of a transcript.

    Some fields belong to certain kinds of events only, and are empty in all others.

    Args:
        role: for messages: system, user or assistant.
        call: for tool calls: the call.
        call_id: for tool results: the id of the call that returned it, if logged.
        is_refusal: for tool results: whether the log says that the call never ran.
        keeps: for compactions: the ids of earlier events that stay in the context unchanged.
        clears: for clearings: the ids of the tool calls whose results leave the context, and of
            the other events that leave it.
        is_cut: for what the assistant wrote: whether the log says that it ended at the token
            limit.
        trace_span: for what the assistant wrote: the span that recorded the call of the model, as
            `TRACE_ID/SPAN_ID`; "" if the log has none.
        unread: the type of each of its parts that is not read, such as `image`.
        id: the event's id in the log.
        source: the value that the event was read from, such as `july.jsonl, line 3`; "" in formats
            whose values are whole dialogs.
        copy_ids: ids that copies of the event in other logs share: two events are copies of each
            other if they have one in common.
    """

    kind: EventKind
    text: str = ""
    role: str = ""
    call: ToolCall | None = None
    call_id: str = field(default="", compare=False)
    is_refusal: bool = field(default=False, compare=False)
    keeps: frozenset[str] = field(default=frozenset(), compare=False)
    clears: frozenset[str] = field(default=frozenset(), compare=False)
    is_cut: bool = field(default=False, compare=False)
    trace_span: str = field(default="", compare=False)
    unread: tuple[str, ...] = field(default=(), compare=False)
    id: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    copy_ids: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_by_assistant(self) -> bool:
        """Whether this is a message or a tool call of the assistant."""
        return self.kind is EventKind.TOOL_CALL or self.role == "assistant"

    @property
    def is_by_user(self) -> bool:
        """Whether this is a message of the user."""
        return self.kind is EventKind.MESSAGE and self.role == "user"

    @property
    def is_prompt(self) -> bool:
        """Whether this is a system prompt."""
        return self.kind is EventKind.MESSAGE and self.role == "system"


def message_events(
    role: str,
    text: str,
    calls: Sequence[ToolCall] = (),
    call_id: str = "",
    is_cut: bool = False,
    unread: tuple[str, ...] = (),
) -> list[Event]:
    """Returns the events of a message: its text, then its tool calls.

    A message with the role `tool` becomes a tool result.

    Args:
        unread: the types of its parts that are not read; the first event has them.
    """
    if role == "tool":
        return [Event(EventKind.TOOL_RESULT, text, call_id=call_id, unread=unread)]
    single_calls = [single for call in calls for single in _calls_in(call)]
    events = [Event(EventKind.TOOL_CALL, call=call, is_cut=is_cut) for call in single_calls]
    if text or not calls:
        events.insert(0, Event(EventKind.MESSAGE, text, role, is_cut=is_cut))
    return with_unread(events, unread)


def with_unread(events: Sequence[Event], unread: tuple[str, ...]) -> list[Event]:
    """Returns the events of a message, the first of which has the types of its unread parts."""
    if not (unread and events):
        return [*events]
    return [replace(events[0], unread=(*events[0].unread, *unread)), *events[1:]]


_PARALLEL = ("multi_tool_use.parallel", "parallel")


def _calls_in(call: ToolCall) -> list[ToolCall]:
    """Returns the calls that a call makes in parallel, as OpenAI's models write them
    (`multi_tool_use.parallel`); any other call alone.
    """
    uses = call.arguments.get("tool_uses")
    if call.name not in _PARALLEL or not isinstance(uses, list):
        return [call]
    return [
        ToolCall(
            str(fields_of(use).get("recipient_name")).removeprefix("functions."),
            fields_of(fields_of(use).get("parameters")),
            call.id,
        )
        for use in uses
    ]


def call_events(call: ToolCall, result: str | None = None, is_refusal: bool = False) -> list[Event]:
    """Returns the events of a tool call: the call, and its result unless that is None.

    Args:
        is_refusal: whether the log says that the call never ran; it then has a result.
    """
    events = [Event(EventKind.TOOL_CALL, call=call)]
    if result is not None or is_refusal:
        text = result or ""
        events.append(Event(EventKind.TOOL_RESULT, text, call_id=call.id, is_refusal=is_refusal))
    return events


class WorkingFolder:
    """The working folder of a session and its branch of Git, as far as its log names them, while
    the session is read.
    """

    def __init__(self) -> None:
        self._first = ""
        self._current = ""
        self._branch = ""

    def note(self, folder: Any, branch: Any = None) -> None:
        """Takes note of the folder and the branch from here on; of nothing that is no name."""
        if isinstance(folder, str) and folder:
            self._current = folder
            self._first = self._first or folder
        if isinstance(branch, str) and branch:
            self._branch = branch

    def of(self, event: Event) -> Event:
        """Returns an event whose call, if it has one, has the working folder and the branch."""
        if event.call is None or not self._current:
            return event
        call = replace(
            event.call, folder=self._current, first_folder=self._first, branch=self._branch
        )
        return replace(event, call=call)


@dataclass(frozen=True)
class Transcript:
    """A logged dialog.

    Args:
        source: the file, and the line or the session in it.
        parents: for each event, the position of the event before it; None if it is the first.
        last: the position of the last event of the active path; None if there are no events.
        format: the name of the log's format.
        is_of_subagent: whether it is the dialog of a subagent that a session started.
        history: the id of the session whose history this is, by which copies of its events are
            recognised; "" if the log names no session, or its events have `copy_ids`.
        lacks_beginning: whether the log says that the dialog began in another file.
    """

    source: str
    events: tuple[Event, ...]
    parents: tuple[int | None, ...]
    last: int | None
    format: str = ""
    is_of_subagent: bool = False
    history: str = ""
    lacks_beginning: bool = False

    @cached_property
    def path(self) -> tuple[Event, ...]:
        """The events of the active path, from the first to the last."""
        return tuple(self.events[position] for position in _path_to(self.last, self.parents))


def linear_transcript(source: str, events: Iterable[Event]) -> Transcript:
    """Builds a transcript without branches."""
    tree = Tree()
    tree.add(events)
    return tree.transcript(source)


class Tree:
    """A transcript under construction.

    `tip` is the position of the event that the next one follows; None before the first event.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._parents: list[int | None] = []
        self.tip: int | None = None

    def add(self, events: Iterable[Event]) -> None:
        """Appends events after the tip, and moves the tip to the last of them."""
        for event in events:
            self._events.append(event)
            self._parents.append(self.tip)
            self.tip = len(self._events) - 1

    def numbered_path(self) -> list[tuple[int, Event]]:
        """Returns the events from the first to the tip, each with its position in the tree."""
        return [(n, self._events[n]) for n in _path_to(self.tip, self._parents)]

    def transcript(self, source: str) -> Transcript:
        """Returns the transcript, whose active path ends at the tip."""
        return Transcript(source, tuple(self._events), tuple(self._parents), self.tip)


def _path_to(last: int | None, parents: Sequence[int | None]) -> list[int]:
    """Returns the positions from the root to `last`; [] if `last` is None."""
    path = []
    while last is not None:
        path.append(last)
        last = parents[last]
    return path[::-1]


def branched_transcript(
    source: str,
    nodes: Mapping[str, Sequence[Event]],
    parents: Mapping[str, str | None],
    active: Iterable[str],
) -> Transcript:
    """Builds a transcript from a log whose entries name their parents.

    Args:
        nodes: the events of each entry, by the entry's id.
        parents: the id of each entry's parent.
        active: the ids of the entries on the active path, in order.
    """
    tree = Tree()
    ends: dict[str, int | None] = {}  # where each entry ends: the position of its last event
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


def sequential_parents(names: Iterable[str]) -> dict[str, str | None]:
    """Returns the parent of each entry of a log without branches: the entry before it."""
    parents: dict[str, str | None] = {}
    before: str | None = None
    for name in names:
        parents[name] = before
        before = name
    return parents


def path_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """Returns the ids from the root to `leaf`.

    The path begins below a parent that is unknown, or that closes a circle.
    """
    path: dict[str, None] = {}
    node: str | None = leaf
    while node is not None and node in parents and node not in path:
        path[node] = None
        node = parents[node]
    return list(reversed(path))
