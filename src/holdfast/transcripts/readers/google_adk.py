"""Sessions and events of Google's Agent Development Kit, and the dialogs of its evaluation sets.

A session, shortened:

    {"appName": "shop", "events": [{"author": "user", "content": {"parts": [{"text": "Hi"}]}}, ...]}
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at, first_of, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Located, Unread, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    Tree,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of, text_or_empty

_RESPONSES = ("functionResponse", "function_response")
_REWINDS = ("rewindBeforeInvocationId", "rewind_before_invocation_id")


def _is_event(value: Any) -> bool:
    fields = fields_of(value)
    has_invocation = not {"invocationId", "invocation_id"}.isdisjoint(fields)
    return "author" in fields and (has_invocation or {"content", "actions"} <= fields.keys())


def _is_session(value: Any) -> bool:
    fields = fields_of(value)
    is_named = not {"appName", "app_name", "userId", "user_id"}.isdisjoint(fields)
    events = list_or_empty(fields.get("events"))
    return is_named and "events" in fields and all("author" in fields_of(e) for e in events)


def _cases_of(value: Any) -> Any:
    return first_of(fields_of(value), "eval_cases", "evalCases")


def _recognises(value: Any) -> bool:
    return _is_event(value) or _is_session(value) or isinstance(_cases_of(value), list)


def _transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    """Reads a dialog from each session and each case, and one from all events outside of these."""
    single: list[Any] = []
    file = ""
    for source, value in values:
        if _is_event(value):
            single.append(value)
            file = file or file_of(source)
            continue
        try:
            cases = _cases_of(value)
            if cases is None:
                yield from _session(source, list_or_empty(require_object(value).get("events")))
            for number, case in enumerate(list_or_empty(cases), 1):
                yield linear_transcript(f"{source}, case {number}", list(_events_of_case(case)))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if single:
        try:
            yield from _session(file, single)
        except Malformed as error:
            yield Unread(f"{file}: {error}")


def _session(source: str, items: Sequence[Any]) -> Iterator[Transcript | Unread]:
    """Reads the events of a session; those that were rewound become a branch."""
    tree = Tree()
    times: dict[str, _TimeSpan] = {}  # of each event, or of what its summary covers
    tips: dict[str, int | None] = {}  # where the path ended before each invocation
    for number, item in enumerate(items):
        fields = require_object(item)
        actions = fields_of(fields.get("actions"))
        target = str(first_of(actions, *_REWINDS, default=""))
        if target in tips:
            tree.tip = tips[target]
            yield Unread(
                f"{source}: the session was rewound to before the invocation {shortened(target)},"
                " so what followed it is left out"
            )
        if invocation := first_of(fields, "invocationId", "invocation_id"):
            tips.setdefault(str(invocation), tree.tip)
        identity = str(fields.get("id") or number)
        if isinstance(summary := actions.get("compaction"), Mapping):
            events = [_compaction(summary, times)]
            times[identity] = _TimeSpan.of_summary(summary)
        else:
            events = _events_of_item(fields)
            times[identity] = _TimeSpan(fields.get("timestamp"), fields.get("timestamp"))
        tree.add(replace(event, id=identity) for event in events)
    yield tree.transcript(source)


def _compaction(summary: Mapping[str, Any], times: "Mapping[str, _TimeSpan]") -> Event:
    """Reads a summary; earlier events whose times it does not cover stay in the context."""
    covered = _TimeSpan.of_summary(summary)
    keeps = frozenset(name for name, time in times.items() if not covered.covers(time))
    content = first_of(summary, "compactedContent", "compacted_content")
    return Event(EventKind.COMPACTION, text_of(at(content, "parts")), keeps=keeps)


class _TimeSpan(NamedTuple):
    """The time of an event, or of all events that a summary replaces; None if it is not known."""

    start: Any
    end: Any

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> "_TimeSpan":
        start = first_of(summary, "startTimestamp", "start_timestamp")
        return cls(start, first_of(summary, "endTimestamp", "end_timestamp"))

    def covers(self, other: "_TimeSpan") -> bool:
        """Whether the other span is within this one; True if a time is not known."""
        times = (self.start, other.start, other.end, self.end)
        if not all(isinstance(time, int | float) for time in times):
            return True
        return bool(self.start <= other.start and other.end <= self.end)


def _events_of_item(fields: Mapping[str, Any]) -> list[Event]:
    """Reads an event; a part of a reply that streams is left out, as the whole reply follows."""
    if fields.get("partial") is True:
        return []
    content = fields_of(fields.get("content"))
    parts = list_or_empty(content.get("parts"))
    if not parts:
        return _spoken(fields) or _error(fields)
    by_user = fields.get("author") == "user" or any(
        name in fields_of(part) for part in parts for name in _RESPONSES
    )
    return read_messages([{"role": "user" if by_user else "model", "parts": parts}])


def _spoken(fields: Mapping[str, Any]) -> list[Event]:
    """Reads the transcript of what the user or the model said aloud; [] if there is none."""
    by_user = first_of(fields, "inputTranscription", "input_transcription")
    by_model = first_of(fields, "outputTranscription", "output_transcription")
    events: list[Event] = []
    for role, transcription in (("user", by_user), ("assistant", by_model)):
        if text := text_or_empty(at(transcription, "text")):
            events += message_events(role, text)
    return events


def _error(fields: Mapping[str, Any]) -> list[Event]:
    message = first_of(fields, "errorMessage", "error_message")
    return [Event(EventKind.ERROR, str(message))] if message else []


def _events_of_case(case: Any) -> Iterator[Event]:
    """Yields the events of the dialog of an evaluation case."""
    for invocation in list_or_empty(require_object(case).get("conversation")):
        fields = require_object(invocation)
        data = fields_of(first_of(fields, "intermediate_data", "intermediateData"))
        calls = list_or_empty(first_of(data, "tool_uses", "toolUses"))
        turn = [
            ("user", at(first_of(fields, "user_content", "userContent"), "parts")),
            ("model", [{"functionCall": call} for call in calls]),
            ("model", at(first_of(fields, "final_response", "finalResponse"), "parts")),
        ]
        yield from read_messages([{"role": role, "parts": parts} for role, parts in turn if parts])


FORMAT = Format("google-adk", _recognises, _transcripts)
