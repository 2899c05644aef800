"""Reads traces and logs of single calls of a model, each with its whole input and its answer.

    call 1: [Hi] -> Hello;  call 2: [Hi, Hello, Bye] -> Ciao
    -> one transcript: Hi, Hello, Bye, Ciao

Every call repeats the dialog so far. A call that continues an earlier call of its session therefore
replaces that one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.transcripts.reader import Located, StreamingReader, Unread, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
)


@dataclass(frozen=True)
class Call:
    """A call of a model: its whole input, and its output.

    Args:
        session: the id of its session; "" if the log names none.
        start: the time at which it began, as logged.
        trace_span: the span that recorded the call, as `TRACE_ID/SPAN_ID`; "" if there is none.
        is_agent_run: whether it is a run of an agent, whose calls may be in the trace as well.
    """

    source: str
    session: str
    start: str
    input: list[Event]
    output: list[Event]
    trace_span: str = ""
    is_agent_run: bool = False

    @property
    def events(self) -> list[Event]:
        return [*self.input, *self.output]


class _Occurrence(NamedTuple):
    """The position of a message in a dialog, whose system prompts are left out and not counted."""

    messages: list[Event]
    position: int


def call_reader(
    calls_in: Callable[[str, Any], Iterable[Call | Unread]], description: str
) -> StreamingReader:
    """Makes the reader of a format whose values are calls of a model.

    Args:
        calls_in: finds the calls in a value, given its source and the value.
        description: completes "none of its values is ..." if a file has no calls.
    """

    def calls_of(values: Iterable[Located]) -> Iterator[Call | Unread]:
        for source, value in values:
            try:
                yield from calls_in(source, value)
            except Malformed as error:
                yield Unread(f"{source}: {error}")

    return grouped_call_reader(calls_of, description)


def grouped_call_reader(
    calls_of: Callable[[Iterable[Located]], Iterable[Call | Unread]], description: str
) -> StreamingReader:
    """Makes the reader of a format in which a call may be spread over several values of a file.

    Args:
        calls_of: finds the calls in the values of a file.
        description: completes "none of its values is ..." if a file has no calls.
    """

    def transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
        """Reads the dialogs of calls that repeat the dialog so far."""
        counted_values = _CountedValues(values)
        shared_events = _SharedEvents()
        calls: list[Call] = []
        has_unread = False
        for call in calls_of(counted_values):
            if isinstance(call, Unread):
                yield call
                has_unread = True
            else:
                calls.append(shared_events.share(call))
        if counted_values.number and not calls and not has_unread:
            yield counted_values.rejection(description)
        for call in _last_calls_of_dialogs(_without_repeating_runs(calls)):
            file = file_of(call.source)
            source = f"{file}, session {call.session}" if call.session else call.source
            yield replace(linear_transcript(source, call.events), history=call.session)

    return transcripts


class _CountedValues:
    """The values of a file, counted while they are iterated over, once."""

    def __init__(self, values: Iterable[Located]) -> None:
        self._values = values
        self._last_source = ""
        self.number = 0

    def __iter__(self) -> Iterator[Located]:
        for value in self._values:
            self.number += 1
            self._last_source = value.source
            yield value

    def rejection(self, description: str) -> Unread:
        """Reports that none of the values fits a description."""
        subject = f"none of its {self.number} values is"
        if self.number == 1:
            subject = "its only value is not"
        return Unread(f"{file_of(self._last_source)}: {subject} {description}")


class _SharedEvents:
    """The messages of calls, most of which repeat earlier ones: each is kept once, in memory."""

    def __init__(self) -> None:
        self._events: dict[Any, Event] = {}

    def share(self, call: Call) -> Call:
        """Returns a call in which messages that earlier calls had are the same objects."""
        output = call.output
        if call.trace_span:
            output = [replace(event, trace_span=call.trace_span) for event in output]
        return replace(
            call,
            input=[*map(self._first_copy, call.input)],
            output=[*map(self._first_copy, output)],
        )

    def _first_copy(self, event: Event) -> Event:
        if event.call is not None:  # its arguments are not hashable
            return event
        fields = (event.kind, event.role, event.text, event.call_id, event.id, event.is_cut)
        return self._events.setdefault((*fields, event.trace_span), event)


def _without_repeating_runs(calls: list[Call]) -> list[Call]:
    """Returns the calls without the runs of agents in whose trace there are calls of a model."""
    traces = {_trace_of(call) for call in calls if not call.is_agent_run}
    return [call for call in calls if not call.is_agent_run or _trace_of(call) not in traces]


def _trace_of(call: Call) -> str:
    return call.trace_span.partition("/")[0]


def _last_calls_of_dialogs(calls: list[Call]) -> Iterator[Call]:
    """Returns the last call of each dialog, which has the whole of it."""
    by_session: dict[str, list[Call]] = {}
    for call in sorted(calls, key=lambda call: _sort_key(call.start)):
        _add_to_session(call, by_session.setdefault(call.session, []))
    for session, dialogs in by_session.items():
        yield from _with_copy_ids(dialogs) if session and len(dialogs) > 1 else dialogs


def _add_to_session(call: Call, dialogs: list[Call]) -> None:
    """Puts a call in place of the dialog that it continues, or else adds it as a new dialog."""
    call = _with_input_before_results(call, dialogs)
    if any(_is_duplicate(call, dialog) for dialog in dialogs):
        return  # it was logged twice
    continued = [n for n, dialog in enumerate(dialogs) if _continues(call, dialog)]
    if not continued:
        dialogs.append(call)
        return
    position = next((n for n in continued if _repeats(call, dialogs[n])), continued[0])
    dialogs[position] = _with_earlier_marks(call, dialogs[position])


def _with_copy_ids(dialogs: Sequence[Call]) -> Iterator[Call]:
    """Gives ids to the replies in the dialogs of a session, by which copies are recognised.

    A later dialog may repeat replies without what preceded them, if only the last messages are sent
    to the model. These get the ids of the earlier dialog.
    """
    latest: dict[Event, _Occurrence] = {}  # by messages of the user, except the first of a dialog
    for number, call in enumerate(dialogs):
        new_messages = [
            replace(event, copy_ids=(f"{call.session} {number} {position}",))
            if event.is_by_assistant
            else event
            for position, event in enumerate(_without_prompts(call.events))
        ]
        messages = _reuse_ids(latest, new_messages)
        for position, message in enumerate(messages):
            if position and message.is_by_user:
                latest[message] = _Occurrence(messages, position)
        remaining = iter(messages)
        events = [event if event.is_prompt else next(remaining) for event in call.events]
        yield replace(call, input=events, output=[])


def _reuse_ids(latest: Mapping[Event, _Occurrence], messages: list[Event]) -> list[Event]:
    """Puts the end of an earlier dialog, with its ids, in place of the same messages at the start.

    Args:
        latest: where each message of the user occurred last.
    """
    occurrence = latest.get(messages[0]) if messages and messages[0].is_by_user else None
    if occurrence is None:
        return messages
    end = occurrence.messages[occurrence.position :]
    is_repeated = len(end) > 1 and messages[: len(end)] == end
    return [*end, *messages[len(end) :]] if is_repeated else messages


def _with_input_before_results(call: Call, earlier: list[Call]) -> Call:
    """Returns a call with its whole input.

    Where a server keeps the dialog, the input that is logged has only the results of tool calls;
    what precedes them is taken from the earlier call that made these.
    """
    results = _without_prompts(call.input)
    ids = {event.call_id for event in results}
    if not results or any(event.kind is not EventKind.TOOL_RESULT for event in results):
        return call
    for other in reversed(earlier):
        if ids <= {event.call.id for event in other.output if event.call} - {""}:
            return replace(call, input=[*other.events, *results])
    return call


def _sort_key(start: str) -> tuple[float, str]:
    """Returns a sort key for the start of a call, which is a number or a time with its zone."""
    try:
        return float(start), ""
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(start).timestamp(), ""
    except (ValueError, OverflowError):
        return 0.0, start


def _is_duplicate(call: Call, other: Call) -> bool:
    """Whether two calls are the same: one span, or an equal call that began at the same time."""
    if call.trace_span and other.trace_span:
        return call.trace_span == other.trace_span
    is_at_once = bool(call.start) and call.start == other.start and bool(call.session)
    return is_at_once and (call.input, call.output) == (other.input, other.output)


def _continues(call: Call, other: Call) -> bool:
    """Whether a call continues the dialog of an earlier call, or repeats one without an answer."""
    if not any(event.text or event.call for event in other.output):
        return _begins_with(call.events, other.input[:-1])
    return _begins_with(call.input, other.input)


def _repeats(call: Call, other: Call) -> bool:
    """Whether a call's input repeats an earlier call, its answer included and unchanged."""
    return _begins_with(call.input, other.events)


def _begins_with(events: list[Event], others: list[Event]) -> bool:
    """Whether `events` begin with `others` and go on after them; system prompts do not count."""
    messages = _without_prompts(events)
    beginning = _without_prompts(others)
    return len(messages) > len(beginning) and messages[: len(beginning)] == beginning


def _with_earlier_marks(call: Call, other: Call) -> Call:
    """Copies what the log says only of an earlier call's outputs, their trace spans and whether
    they were cut, to where a call's input repeats them.
    """
    earlier = _without_prompts(other.events)
    if not any(event.trace_span or event.is_cut for event in earlier):
        return call
    earlier_events = iter(earlier)
    events: list[Event] = []
    for event in call.input:
        old = None if event.is_prompt else next(earlier_events, None)
        if old is not None and (old.trace_span or old.is_cut) and old == event:
            trace_span = old.trace_span or event.trace_span
            event = replace(event, trace_span=trace_span, is_cut=old.is_cut or event.is_cut)
        events.append(event)
    return replace(call, input=events)


def _without_prompts(events: list[Event]) -> list[Event]:
    return [event for event in events if not event.is_prompt]
