"""Chats of VS Code, such as GitHub Copilot's: `chatSessions/*`, and the exported `chat.json`.

A session is one object, shortened:

    {"version": 3, "requests": [{"message": {"text": "Hi"}, "response": [{"value": "Hello."}]}]}

Its file has the object itself (`.json`), or a log of its changes (`.jsonl`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Format, Located, Unread, Values, file_of, has_messages
from holdfast.transcripts.readers.vscode_change_log import INITIAL, logs_by_session, replay
from holdfast.transcripts.readers.vscode_responses import ShownResponse, read_response, read_rounds
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    branched_transcript,
    linear_transcript,
    message_events,
    sequential_parents,
)
from holdfast.validation.json_values import fields_of

_VERSIONS = (1, 2, 3)  # the known versions of a session
_CANCELLED = 2  # a state of a response
# fields of a request that the program made, such as the news that a command has ended
_BY_PROGRAM = (
    *("isSystemInitiated", "requestSource"),
    *("hiddenFromTranscript", "requestHiddenFromTranscript"),
)

# the part of a rendered message that repeats the user's words; "prompt" in older versions
_USERS_WORDS = re.compile(r"<(userRequest|prompt)>.*?</\1>", re.DOTALL)


class _Exchange(NamedTuple):
    """A request with its response.

    Args:
        is_taken_back: whether a restored checkpoint took it back.
    """

    response: ShownResponse
    events: list[Event]
    is_taken_back: bool


class _Summary(NamedTuple):
    """A summary that replaced the dialog.

    Args:
        round_id: the id of the round of calls that it ends with; "" if the log does not name it.
    """

    round_id: str
    text: str


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if isinstance(fields.get("requests"), list):
        marks = ("responderUsername", "initialLocation", "sessionId", "creationDate")
        return any(name in fields for name in marks)
    kind = fields.get("kind")
    if not isinstance(kind, int) or isinstance(kind, bool) or has_messages(value):
        return False
    if kind == INITIAL:
        return isinstance(fields.get("v"), Mapping)
    return isinstance(fields.get("k"), list)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    changes = [value for value in values if "requests" not in fields_of(value.value)]
    sessions = [value for value in values if "requests" in fields_of(value.value)]
    logs = logs_by_session(changes)
    for number, log in enumerate(logs, start=1):
        session, failures = replay(log)
        yield from failures
        count = f", session {number}" if len(logs) > 1 else ""
        sessions.append(Located(f"{file_of(log[0].source)}{count}", session))
    for source, session in sessions:
        yield from _transcript(source, session)


def _transcript(source: str, session: Any) -> Iterator[Transcript | Unread]:
    """Reads a session; requests that a restored checkpoint took back are an abandoned branch."""
    version = at(session, "version")
    if version is not None and version not in _VERSIONS:
        yield Unread(
            f"{source}: the version {shortened(version)} of VS Code's chats is not known; it is"
            f" read as version {_VERSIONS[-1]}"
        )
    try:
        exchanges = _read_requests(optional_list(require_field(session, "requests")))
    except Malformed as error:
        yield Unread(f"{source}: {error}")
        return
    unknown_kinds = set[str]().union(*(item.response.unknown_kinds for item in exchanges))
    if unknown_kinds:
        kinds = ", ".join(sorted(unknown_kinds))
        yield Unread(f"{source}: left out parts of responses of unknown kinds ({kinds})")
    if num_taken_back := sum(item.is_taken_back for item in exchanges):
        count = count_of(num_taken_back, "request")
        yield Unread(f"{source}: left out {count} that a restored checkpoint took back")
    nodes = {str(number): item.events for number, item in enumerate(exchanges)}
    active = [str(number) for number, item in enumerate(exchanges) if not item.is_taken_back]
    parents = sequential_parents(nodes) | sequential_parents(active)
    yield branched_transcript(source, nodes, parents, active)
    subagents = chain.from_iterable(item.response.subagents.values() for item in exchanges)
    for number, events in enumerate(subagents, start=1):
        dialog = linear_transcript(f"{source}, subagent {number}", events)
        yield replace(dialog, is_of_subagent=True)


def _read_requests(requests: Sequence[Any]) -> list[_Exchange]:
    """Reads the requests of a session, each with its response.

    Raises:
        Malformed: one cannot be read.
    """
    exchanges: list[_Exchange] = []
    for number, request in enumerate(requests, start=1):
        try:
            response = read_response(require_object(request))
            events = _events(request, response)
        except Malformed as error:
            raise Malformed(f"request {number}: {error}") from error
        is_hidden = request.get("isHidden") is True
        is_taken_back = is_hidden or bool(request.get("shouldBeRemovedOnSend"))
        exchanges.append(_Exchange(response, events, is_taken_back))
    return exchanges


def _events(request: Mapping[str, Any], response: ShownResponse) -> list[Event]:
    """Returns the events of a request: the user's message, the response, and how it ended."""
    message = require_field(request, "message")
    text = str(message if isinstance(message, str) else require_field(message, "text"))
    by_user = message_events("user", text, unread=tuple(_attached_images(request)))
    is_by_program = any(request.get(name) for name in _BY_PROGRAM)
    metadata = at(request, "result", "metadata")
    summaries = _summaries(metadata)
    rounds = optional_list(at(metadata, "toolCallRounds"))
    of_rounds = {str(at(tool_round, "id")) for tool_round in rounds}
    # a summary that ends with a round of an earlier request was written before this one
    earlier = [s.text for s in summaries if s.round_id and s.round_id not in of_rounds]
    within = {s.round_id: s.text for s in summaries if s.round_id in of_rounds}
    later = [s.text for s in summaries if not s.round_id]
    return [
        *(Event(EventKind.COMPACTION, text) for text in earlier),
        *_rendered_context(metadata, text.strip()),
        *([Event(EventKind.REMINDER, text)] if is_by_program else by_user),
        *_reply(request, response, within),
        *(Event(EventKind.COMPACTION, text) for text in later),
        *_ending(request),
    ]


def _rendered_context(metadata: Any, user_text: str) -> Iterator[Event]:
    """Yields what the extension put around the user's words: instructions, files, the date."""
    for name in ("renderedGlobalContext", "renderedUserMessage"):
        text = _USERS_WORDS.sub("", text_of(at(metadata, name))).strip()
        if text and text != user_text:
            yield Event(EventKind.REMINDER, text)


def _reply(
    request: Mapping[str, Any], response: ShownResponse, summaries: Mapping[str, str]
) -> list[Event]:
    """Returns the texts of a response with the calls that came between them.

    Args:
        summaries: by the id of a round of calls, what replaced the dialog up to its end.
    """
    metadata = at(request, "result", "metadata")
    rounds = optional_list(at(metadata, "toolCallRounds"))
    results = fields_of(at(metadata, "toolCallResults"))
    calls = read_rounds(rounds, results, response, summaries)
    if not any(event.call for event in calls):  # the extension did not record them
        calls = [*response.calls, *calls]
    answers = [Event(EventKind.MESSAGE, text, "assistant") for text in response.texts]
    identity = str(request.get("responseId") or "")
    copy_ids = (identity,) if identity else ()
    # the log does not say what the calls came between: the last text is taken to follow them
    return [
        replace(event, id=identity, copy_ids=copy_ids) if event.is_by_assistant else event
        for event in (*answers[:-1], *calls, *answers[-1:])
    ]


def _ending(request: Mapping[str, Any]) -> Iterator[Event]:
    """Yields how a response ended, if the user interrupted it or it failed."""
    failure = at(request, "result", "errorDetails", "message")
    was_cancelled = at(request, "modelState", "value") == _CANCELLED
    if was_cancelled or request.get("isCanceled") is True:
        yield Event(EventKind.INTERRUPTION)
    elif failure:
        yield Event(EventKind.ERROR, str(failure))


def _attached_images(request: Mapping[str, Any]) -> Iterator[str]:
    """Yields the type of each image that the user attached; the log has no text of other files."""
    for attached in list_or_empty(at(request, "variableData", "variables")):
        if at(attached, "kind") == "image" or at(attached, "isImage") is True:
            yield "image"


def _summaries(metadata: Any) -> list[_Summary]:
    summaries = at(metadata, "summaries")
    if not isinstance(summaries, list):
        summaries = [at(metadata, "summary")]
    return [
        _Summary(str(at(summary, "toolCallRoundId") or ""), text)
        for summary in summaries
        if isinstance(text := at(summary, "text"), str) and text
    ]


def _reaches_back(value: Any) -> bool:
    return "kind" in fields_of(value)


FORMAT = Format("copilot", _recognises, _read, reaches_back=_reaches_back)
