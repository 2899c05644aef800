"""The messages of Gemini CLI's sessions.

For example:

    {"type": "gemini", "content": "", "toolCalls": [{"name": "ls", "result": "README.md"}]}
    -> Event(TOOL_CALL, call=ToolCall("ls", {})), Event(TOOL_RESULT, "README.md")
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.injected import elements_in, remove_elements
from holdfast.transcripts.json_fields import optional_list, require_object
from holdfast.transcripts.refused_calls import is_refusal_by_gemini_cli
from holdfast.transcripts.transcript import Event, EventKind, Malformed, message_events, with_unread

_FOR_DISPLAY = ("info", "warning", "about", "help", "stats", "quit", "compression")
_INJECTED = ("session_context", "hook_context", "system-reminder")
# how messages begin that the program wrote in the user's place
_BY_PROGRAM = re.compile(
    r"System: (?:Please continue\.\Z|Potential loop detected\. )"
    r"|Here is (?:the user's editor context|a summary of changes in the user's editor context)"
    r"|I ran the following shell command:\n"
)
_NOT_SUCCESSFUL = ("cancelled", "error")  # the status of calls
# in the result of a call that the user stopped while it ran
_STOPPED = re.compile(r"cancelled tool execution|[Cc]ommand was (?:cancelled|aborted)")
# a command of the program's own, which the model does not see
_COMMAND = re.compile(r"[/?](?:[a-z][\w:.-]*)?(?!\S)")
# the line of a message after which the texts of files follow that the user named
_FILES = "--- Content from referenced files ---"


class Compression(NamedTuple):
    """The type of a message that stands for those that a compression put in place of others."""

    messages: Sequence[Mapping[str, Any]]
    keeps: frozenset[str]  # the ids of earlier messages that stay in the context


class Shortening(NamedTuple):
    """The type of a message that stands for the shortening of earlier results of tools."""

    call_ids: frozenset[str]


def events_of_record(record: Mapping[str, Any]) -> list[Event]:
    """Reads a message of a session, or a compression, which stands for the ones it replaced."""
    match kind := record.get("type"):
        case "user":
            return _events_of_user(record)
        case "gemini":
            return _events_of_reply(record)
        case "error":
            text = record.get("content")
            return [Event(EventKind.ERROR, text if isinstance(text, str) else "")]
        case Compression(messages, keeps):
            texts = [event.text for message in messages for event in events_of_record(message)]
            return [Event(EventKind.COMPACTION, "\n".join(texts), keeps=keeps)]
        case Shortening(call_ids):
            return [Event(EventKind.CLEARING, clears=call_ids)]
        case "info" if isinstance(record.get("content"), list):  # files that a tool returned
            files = read_messages([{"role": "user", "content": record["content"]}])
            return [replace(event, kind=EventKind.REMINDER, role="") for event in files]
        case str() if kind in _FOR_DISPLAY:
            return []
    raise Malformed(f"Gemini CLI's message has the unknown type {shortened(str(kind))}")


def _events_of_user(record: Mapping[str, Any]) -> list[Event]:
    events = read_messages([{"role": "user", "content": record.get("content") or ""}])
    text = "\n".join(event.text for event in events)
    unread = tuple(chain.from_iterable(event.unread for event in events))
    if _COMMAND.match(text):
        return []
    # what the user typed, without the texts of the files that it names
    typed_text = text_of(record.get("displayContent"))
    if typed_text.strip() and typed_text != text:
        typed = classify(Event(EventKind.MESSAGE, typed_text, "user"))
        return with_unread([typed, Event(EventKind.REMINDER, text)], unread)
    classified = [classify(event) for event in events]
    reminder = elements_in(text, _INJECTED)
    if reminder and any(event.is_by_user for event in classified):
        classified.insert(0, Event(EventKind.REMINDER, reminder))
    return with_unread(classified, unread)


def _events_of_reply(record: Mapping[str, Any]) -> list[Event]:
    messages = read_messages([{"role": "assistant", "content": record.get("content") or ""}])
    text = "\n".join(event.text for event in messages)
    unread = tuple(chain.from_iterable(event.unread for event in messages))
    records = [require_object(call) for call in optional_list(record.get("toolCalls"))]
    calls = [_call(call) for call in records]
    results = _results(records)
    recorded_ids = {call.id for call in calls}
    # calls that were stopped before they were recorded
    calls += [event.call for event in messages if event.call and event.call.id not in recorded_ids]
    return [*message_events("assistant", text, calls, unread=unread), *results]


def _call(call: Mapping[str, Any]) -> ToolCall:
    arguments = require_object(_arguments(call.get("args") or {}))
    return ToolCall(str(call.get("name")), arguments, str(call.get("id") or ""))


def _arguments(arguments: Any) -> Any:
    """Decodes arguments that a session has as text: JSON, or a dictionary as Python prints it."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(arguments)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return arguments


def _results(calls: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Returns the results of the calls of a message, each once.

    Where calls ran in parallel, the result of each may be that of all.
    """
    results: list[Event] = []
    shared: list[Any] = []
    for call in calls:
        own_id = str(call.get("id") or "")
        other_ids = {str(other.get("id") or "") for other in calls} - {own_id, ""}
        events = [event for event in _results_of(call) if event.call_id not in other_ids]
        if call.get("result") in shared:  # what is beside the results was read before
            events = [
                replace(event, unread=()) for event in events if event.call_id == own_id != ""
            ]
        elif isinstance(call.get("result"), list):
            shared.append(call["result"])
        results += events
    return results


def _results_of(call: Mapping[str, Any]) -> list[Event]:
    """Returns the results of a call as the model saw them: Gemini's parts, or text."""
    result = call.get("result")
    text = json.dumps(result)
    is_refusal = call.get("status") in _NOT_SUCCESSFUL and is_refusal_by_gemini_cli(text)
    is_refusal = is_refusal or (call.get("status") == "cancelled" and not _STOPPED.search(text))
    call_id = str(call.get("id") or "")
    if isinstance(result, str):
        return [Event(EventKind.TOOL_RESULT, result, call_id=call_id, is_refusal=is_refusal)]
    if not isinstance(result, list) or not result:
        return []
    events = read_messages([{"role": "tool", "parts": result}])
    results = [event for event in events if event.kind is EventKind.TOOL_RESULT]
    results = [event for event in results if event.text or event.unread or is_refusal]
    if is_refusal:  # the ids in the result may be missing
        results = [replace(event, call_id=call_id, is_refusal=True) for event in results]
    return results


def classify(event: Event) -> Event:
    """Removes what Gemini CLI wrote into a message of the user; other events stay as they are."""
    if not event.is_by_user:
        return event
    text = remove_elements(event.text, _INJECTED).partition(_FILES)[0].strip()
    if (text or not event.text) and not _BY_PROGRAM.match(text):
        return Event(EventKind.MESSAGE, text, "user")
    return Event(EventKind.REMINDER, event.text)


def is_reply(record: Mapping[str, Any]) -> bool:
    return record.get("type") == "gemini"


def is_spoken(record: Mapping[str, Any]) -> bool:
    """Whether a message is a reply, or has words of the user."""
    return is_reply(record) or any(event.is_by_user for event in _known_events(record))


def _known_events(record: Mapping[str, Any]) -> list[Event]:
    """Returns the events of a message; none if it is malformed, which is reported elsewhere."""
    try:
        return events_of_record(record)
    except Malformed:
        return []


def is_in_history(record: Mapping[str, Any]) -> bool:
    """Whether the model sees a message."""
    kind = record.get("type")
    return kind in ("user", "gemini") or (
        kind == "info" and isinstance(record.get("content"), list)
    )


def results_in(record: Mapping[str, Any]) -> dict[str, str]:
    """Returns the results in a message by the ids of their calls."""
    results = [event for event in _known_events(record) if event.kind is EventKind.TOOL_RESULT]
    return {event.call_id: event.text for event in results if event.call_id}


def without_repeated_results(events: Sequence[Event], answered: set[str]) -> list[Event]:
    """Returns the events of a message of the user's side without results that a reply has too."""
    return [
        event
        for event in events
        if event.kind is not EventKind.TOOL_RESULT or event.call_id not in answered
    ]
