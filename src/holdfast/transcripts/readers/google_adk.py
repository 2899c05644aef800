"""Sessions and events of Google's Agent Development Kit, and the dialogs of its evaluation sets.

A session, shortened:

    {"appName": "shop", "events": [{"author": "user", "content": {"parts": [{"text": "Hi"}]}}, ...]}
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_blocks import first_of, text_of
from holdfast.transcripts.json_fields import at, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Located, Unread, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
)
from holdfast.validation.json_values import fields_of

_RESPONSES = ("functionResponse", "function_response")


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
    single: list[Located] = []
    for source, value in values:
        if _is_event(value):
            single.append(Located(source, value))
            continue
        try:
            cases = _cases_of(value)
            if cases is None:
                yield linear_transcript(source, _events(require_object(value).get("events")))
            for number, case in enumerate(list_or_empty(cases), 1):
                yield linear_transcript(f"{source}, case {number}", list(_events_of_case(case)))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if single:
        try:
            yield linear_transcript(
                file_of(single[0].source), _events([value for _, value in single])
            )
        except Malformed as error:
            yield Unread(f"{file_of(single[0].source)}: {error}")


def _events(items: Any) -> list[Event]:
    return [event for item in list_or_empty(items) for event in _events_of_item(item)]


def _events_of_item(item: Any) -> list[Event]:
    """Returns the events of an event; a part of a reply that streams is left out, as the whole
    reply follows.
    """
    fields = require_object(item)
    if fields.get("partial") is True:
        return []
    summary = at(fields, "actions", "compaction")
    if isinstance(summary, Mapping):
        content = first_of(summary, "compactedContent", "compacted_content")
        return [Event(EventKind.COMPACTION, text_of(at(content, "parts")))]
    content = fields_of(fields.get("content"))
    parts = list_or_empty(content.get("parts"))
    error = first_of(fields, "errorMessage", "error_message")
    if error and not parts:
        return [Event(EventKind.ERROR, str(error))]
    if not parts:
        return []
    by_user = fields.get("author") == "user" or any(
        name in fields_of(part) for part in parts for name in _RESPONSES
    )
    return read_messages([{"role": "user" if by_user else "model", "parts": parts}])


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
