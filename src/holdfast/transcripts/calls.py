"""Traces, and logs of single calls of a model: each call has its whole input and its answer.

Every call repeats the dialog so far, so one that continues an earlier one of its session replaces
it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from holdfast.transcripts.reader import Located, StreamingReader, Unread, file_of
from holdfast.transcripts.transcript import Event, Kind, Malformed, Transcript, linear


@dataclass(frozen=True)
class Call:
    """A call of a model: its whole input, and its output."""

    where: str
    session: str  # "" if the log names none
    start: str
    input: list[Event]
    output: list[Event]
    span: str = ""  # as in `Event`


def transcripts_of_calls(
    calls_in: Callable[[str, Any], Iterable[Call | Unread]], description: str
) -> StreamingReader:
    """A reader of a format whose values are calls; `description` names one of them."""

    def calls_of(values: Iterable[Located]) -> Iterator[Call | Unread]:
        for where, value in values:
            try:
                yield from calls_in(where, value)
            except Malformed as error:
                yield Unread(f"{where}: {error}")

    return transcripts_of_file(calls_of, description)


def transcripts_of_file(
    calls_of: Callable[[Iterable[Located]], Iterable[Call | Unread]], description: str
) -> StreamingReader:
    """A reader of a format in which the values of a file make calls together; `description` names
    a value with a call.
    """

    def transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
        calls: list[Call] = []
        known: dict[Any, Event] = {}
        count, where, failed = 0, "", False

        def counted() -> Iterator[Located]:
            nonlocal count, where
            for value in values:
                count, where = count + 1, value.source
                yield value

        for call in calls_of(counted()):
            if isinstance(call, Unread):
                yield call
                failed = True
            else:
                calls.append(_sharing_events(call, known))
        if count and not calls and not failed:
            rejected = f"none of its {count} values is" if count > 1 else "its only value is not"
            yield Unread(f"{file_of(where)}: {rejected} {description}")
        for call in _last_of_each_dialog(calls):
            file = file_of(call.where)
            source = f"{file}, session {call.session}" if call.session else call.where
            transcript = linear(source, [*call.input, *call.output])
            yield replace(transcript, history=call.session)

    return transcripts


def _sharing_events(call: Call, known: dict[Any, Event]) -> Call:
    """A call whose messages are those of earlier calls where it repeats them, to save memory."""

    def shared(event: Event) -> Event:
        if event.call is not None:
            return event
        fields = (event.kind, event.role, event.text, event.call_id, event.id, event.is_cut)
        return known.setdefault((*fields, event.span), event)

    output = [replace(event, span=call.span) for event in call.output] if call.span else call.output
    return replace(call, input=[*map(shared, call.input)], output=[*map(shared, output)])


def _last_of_each_dialog(calls: list[Call]) -> Iterator[Call]:
    by_session: dict[str, list[Call]] = {}
    for call in sorted(calls, key=lambda call: _moment(call.start)):
        kept = by_session.setdefault(call.session, [])
        call = _with_what_it_answers(call, kept)
        if any(_is_same(call, other) for other in kept):
            continue  # it was written twice
        continued = [n for n, other in enumerate(kept) if _continues(call, other)]
        if continued:
            earlier = next((n for n in continued if _repeats(call, kept[n])), continued[0])
            kept[earlier] = _with_spans(call, kept[earlier])
        else:
            kept.append(call)
    for session, kept in by_session.items():
        yield from _with_copy_ids(kept) if session and len(kept) > 1 else kept


def _with_copy_ids(dialogs: Sequence[Call]) -> Iterator[Call]:
    """The dialogs of a session, with ids for the replies that a later one repeats although it
    lacks what was before them, as where only the last messages are sent.
    """
    # for each message of the user's but the first: the latest dialog that has it, and where
    latest: dict[Event, tuple[list[Event], int]] = {}
    for number, call in enumerate(dialogs):
        events = [
            replace(event, copy_ids=(f"{call.session} {number} {n}",))
            if event.is_by_assistant
            else event
            for n, event in enumerate([*call.input, *call.output])
        ]
        spoken = [n for n, event in enumerate(events) if not event.is_prompt]
        said = [events[n] for n in spoken]
        is_asked = bool(said) and said[0].is_by_user
        other, start = latest.get(said[0], ([], 0)) if is_asked else ([], 0)
        repeated = other[start:]
        if len(repeated) > 1 and said[: len(repeated)] == repeated:
            said[: len(repeated)] = repeated
        latest |= {event: (said, n) for n, event in enumerate(said) if n and event.is_by_user}
        for n, event in zip(spoken, said, strict=True):
            events[n] = event
        yield replace(call, input=events, output=[])


def _with_what_it_answers(call: Call, earlier: list[Call]) -> Call:
    """A call with the whole input, if the log has only the results of calls that were made before
    it, as where a server keeps the dialog.
    """
    spoken = _spoken(call.input)
    ids = {event.call_id for event in spoken if event.kind is Kind.TOOL_RESULT}
    if not ids or len(spoken) != sum(event.kind is Kind.TOOL_RESULT for event in spoken):
        return call
    for other in reversed(earlier):
        if ids <= {event.call.id for event in other.output if event.call} - {""}:
            return replace(call, input=[*other.input, *other.output, *spoken])
    return call


def _moment(start: str) -> tuple[float, str]:
    """When a call began, as it sorts: a number, or a time with its zone."""
    try:
        return float(start), ""
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(start).timestamp(), ""
    except (ValueError, OverflowError):
        return 0.0, start


def _is_same(call: Call, other: Call) -> bool:
    """Whether two calls are one: that of a span, or two that began at once with all in common."""
    if call.span and other.span:
        return call.span == other.span
    is_at_once = bool(call.start) and call.start == other.start and bool(call.session)
    return is_at_once and (call.input, call.output) == (other.input, other.output)


def _continues(call: Call, other: Call) -> bool:
    """Whether a call's input extends that of an earlier call, or repeats one without an answer."""
    if not any(event.text or event.call for event in other.output):
        return _begins_with([*call.input, *call.output], other.input[:-1])
    return _begins_with(call.input, other.input)


def _repeats(call: Call, other: Call) -> bool:
    """Whether a call's input has the answer of an earlier call, and has it as it was."""
    return _begins_with(call.input, [*other.input, *other.output])


def _begins_with(events: list[Event], others: list[Event]) -> bool:
    """Whether more is said in `events` than in `others`, which is the beginning of it."""
    now, before = _spoken(events), _spoken(others)
    return len(now) > len(before) and now[: len(before)] == before


def _with_spans(call: Call, other: Call) -> Call:
    """A call whose input names the spans of an earlier call's outputs where it repeats them."""
    before = _spoken([*other.input, *other.output])
    if not any(event.span for event in before):
        return call
    repeated = iter(before)
    input_events = []
    for event in call.input:
        old = None if event.is_prompt else next(repeated, None)
        is_same = old is not None and old.span and old == event
        input_events.append(replace(event, span=old.span) if old and is_same else event)
    return replace(call, input=input_events)


def _spoken(events: list[Event]) -> list[Event]:
    return [event for event in events if not event.is_prompt]
