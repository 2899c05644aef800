"""Chats of VS Code, such as GitHub Copilot's: `chatSessions/*`, and the exported `chat.json`.

A session is one object, shortened:

    {"version": 3, "requests": [{"message": {"text": "Hi"}, "response": [{"value": "Hello."}]}]}

Its file has the object itself (`.json`), or a log of its changes (`.jsonl`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

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
    nodes: dict[str, list[Event]] = {}
    taken_back: list[str] = []
    unknown_kinds: set[str] = set()
    subagents: list[list[Event]] = []
    try:
        for number, request in enumerate(optional_list(require_field(session, "requests"))):
            try:
                response = read_response(require_object(request))
                nodes[str(number)] = _events(request, response)
                unknown_kinds |= response.unknown_kinds
                subagents += response.subagents.values()
            except Malformed as error:
                raise Malformed(f"request {number + 1}: {error}") from error
            if request.get("isHidden") is True or request.get("shouldBeRemovedOnSend"):
                taken_back.append(str(number))
    except Malformed as error:
        yield Unread(f"{source}: {error}")
        return
    if unknown_kinds:
        kinds = ", ".join(sorted(unknown_kinds))
        yield Unread(f"{source}: left out parts of responses of unknown kinds ({kinds})")
    if taken_back:
        count = count_of(len(taken_back), "request")
        yield Unread(f"{source}: left out {count} that a restored checkpoint took back")
    active = [name for name in nodes if name not in taken_back]
    parents = sequential_parents(nodes) | sequential_parents(active)
    yield branched_transcript(source, nodes, parents, active)
    for number, events in enumerate(subagents, start=1):
        dialog = linear_transcript(f"{source}, subagent {number}", events)
        yield replace(dialog, is_of_subagent=True)


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
    earlier = [text for name, text in summaries if name and name not in of_rounds]
    within = {name: text for name, text in summaries if name in of_rounds}
    later = [text for name, text in summaries if not name]
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


def _summaries(metadata: Any) -> list[tuple[str, str]]:
    """Returns the summaries that replaced the dialog, each with the id of the round it ends with.

    The id is "" if the log does not name the round.
    """
    summaries = at(metadata, "summaries")
    if not isinstance(summaries, list):
        summaries = [at(metadata, "summary")]
    return [
        (str(at(summary, "toolCallRoundId") or ""), text)
        for summary in summaries
        if isinstance(text := at(summary, "text"), str) and text
    ]


def _reaches_back(value: Any) -> bool:
    return "kind" in fields_of(value)


FORMAT = Format("copilot", _recognises, _read, reaches_back=_reaches_back)
