"""Chats of VS Code, such as GitHub Copilot's: `chatSessions/*`, and the exported `chat.json`.

A session is one object, shortened:

    {"version": 3, "requests": [{"message": {"text": "Hi"}, "response": [{"value": "Hello."}]}]}

Its file has the object itself (`.json`), or a log of its changes (`.jsonl`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import (
    at,
    first_of,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Format, Located, Unread, Values, file_of, has_messages
from holdfast.transcripts.readers.vscode_change_log import INITIAL, logs_by_session, replay
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    branched_transcript,
    call_events,
    message_events,
    sequential_parents,
)
from holdfast.validation.json_values import fields_of

_VERSIONS = (1, 2, 3)  # the known versions of a session
_NOT_CONFIRMED = (0, 5)  # the kinds of confirmations by which a call is denied or skipped
_REFUSED = ("The user chose to skip the tool call", "The user cancelled the tool call")
_CANCELLED = 2  # a state of a response
# parts of a response that are not the model's text
_FOR_DISPLAY = (
    *("thinking", "codeblockUri", "undoStop", "command", "confirmation", "warning", "extensions"),
    *("progressMessage", "progressTask", "progressTaskSerialized", "prepareToolInvocation"),
    *("mcpServersStarting", "elicitation", "elicitationSerialized", "pullRequest", "treeData"),
    *("multiDiffData", "questionCarousel", "hook", "clearToPreviousToolInvocation", "treeData"),
    *("disabledClaudeHooks", "mcpAuthenticationRequired", "externalEdit", "references"),
    *("planReview", "autoModeResolution", "systemNotification", "info", "externalToolInvocation"),
)
_EDITS = ("textEditGroup", "notebookEditGroup", "workspaceEdit")


class _Response(NamedTuple):
    """A response as VS Code displays it.

    Args:
        texts: its texts, split where a call or an edit is between them.
        calls: its calls with their results, and its edits.
        unknown_kinds: the kinds of its parts that are not known.
    """

    texts: list[str]
    calls: list[Event]
    unknown_kinds: set[str]


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
    try:
        for number, request in enumerate(optional_list(require_field(session, "requests"))):
            try:
                response = _read_response(require_object(request))
                nodes[str(number)] = _events(request, response)
                unknown_kinds |= response.unknown_kinds
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


def _events(request: Mapping[str, Any], response: _Response) -> list[Event]:
    """Returns the events of a request: a message of the user, and the response to it."""
    message = require_field(request, "message")
    text = message if isinstance(message, str) else require_field(message, "text")
    events = message_events("user", str(text), unread=tuple(_attached_images(request)))
    result = request.get("result")
    rounds = optional_list(at(result, "metadata", "toolCallRounds"))
    calls = _read_rounds(rounds, fields_of(at(result, "metadata", "toolCallResults")), response)
    if not calls:  # the extension did not record them
        calls = response.calls
    answers = [Event(EventKind.MESSAGE, text, "assistant") for text in response.texts]
    # the log does not say what the calls came between: the last text is taken to follow them
    events += [*answers[:-1], *calls, *answers[-1:]]
    identity = str(request.get("responseId") or "")
    copy_ids = (identity,) if identity else ()
    events = [
        replace(event, id=identity, copy_ids=copy_ids) if event.is_by_assistant else event
        for event in events
    ]
    for summary in _summaries(at(result, "metadata")):
        events.append(Event(EventKind.COMPACTION, summary))
    failure = at(result, "errorDetails", "message")
    was_cancelled = at(request, "modelState", "value") == _CANCELLED
    if was_cancelled or request.get("isCanceled") is True:
        events.append(Event(EventKind.INTERRUPTION))
    elif failure:
        events.append(Event(EventKind.ERROR, str(failure)))
    return events


def _attached_images(request: Mapping[str, Any]) -> Iterator[str]:
    """Yields the type of each image that the user attached; the log has no text of other files."""
    for attached in list_or_empty(at(request, "variableData", "variables")):
        if at(attached, "kind") == "image" or at(attached, "isImage") is True:
            yield "image"


def _read_response(request: Mapping[str, Any]) -> _Response:
    """Reads the response in a request."""
    texts = [""]
    calls: list[Event] = []
    unknown_kinds: set[str] = set()
    for part in optional_list(request.get("response")):
        kind = at(part, "kind")
        if kind == "toolInvocationSerialized":
            calls += _read_displayed_call(part)
            texts.append("")
        elif kind in _EDITS:
            calls += message_events("assistant", "", _edits(part))
            texts.append("")
        elif (text := _text_of(part)) is not None:
            texts[-1] += text
        elif kind not in _FOR_DISPLAY:
            unknown_kinds.add(shortened(kind))
    return _Response([text.strip() for text in texts if text.strip()], calls, unknown_kinds)


def _text_of(part: Any) -> str | None:
    """Returns the text of a part of a response; None if it is of another kind."""
    kind = at(part, "kind")
    if isinstance(part, str):
        return part
    if kind == "inlineReference":
        reference = fields_of(at(part, "inlineReference"))
        path = _path_of(reference.get("uri")) or _path_of(reference)
        return str(at(part, "name") or reference.get("name") or path.rpartition("/")[2])
    if kind in ("markdownContent", "markdownVuln"):
        text = at(part, "content", "value") or at(part, "value", "value") or at(part, "value")
    elif kind is None:
        text = at(part, "value")
    else:
        return None
    return text if isinstance(text, str) else None


def _read_rounds(
    rounds: Sequence[Any], results: Mapping[str, Any], response: _Response
) -> list[Event]:
    """Reads the model's calls and their results, as the extension recorded them.

    The response may say that a call was not confirmed even if its result was not recorded.
    """
    events: list[Event] = []
    refused = {event.call_id for event in response.calls if event.is_refusal} - {""}
    shown = {event.call.id: event.call for event in response.calls if event.call is not None}
    for tool_round in rounds:
        asked = [read_call(call) for call in optional_list(at(tool_round, "toolCalls"))]
        calls = [_as_run(call, shown.get(call.id)) for call in asked]
        events += message_events("assistant", "", calls) if calls else []
        for call in calls:
            if call.id in results or call.id in refused:
                text = _result_text(results.get(call.id))
                is_refusal = text.startswith(_REFUSED) or call.id in refused
                result = Event(EventKind.TOOL_RESULT, text, call_id=call.id, is_refusal=is_refusal)
                events.append(result)
    return events


def _as_run(call: ToolCall, shown: ToolCall | None) -> ToolCall:
    """Returns a call with the command that ran, if the user or the tool edited the model's."""
    command = shown.arguments.get("command") if shown is not None and call.id else None
    if not isinstance(command, str) or not isinstance(call.arguments.get("command"), str):
        return call
    return replace(call, arguments={**call.arguments, "command": command})


def _result_text(result: Any) -> str:
    """Joins the texts in a tool's result; parts of other types are written as JSON."""
    values = [at(part, "value") for part in list_or_empty(at(result, "content"))]
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "\n".join(texts)


def _read_displayed_call(part: Mapping[str, Any]) -> list[Event]:
    """Reads a call as VS Code displays it: a command, or the input of a server's tool."""
    details = fields_of(part.get("toolSpecificData"))
    command = details.get("commandLine", details.get("command"))
    if isinstance(command, Mapping):
        edited_command = command.get("userEdited") or command.get("toolEdited")
        command = edited_command or command.get("original")
    result_details = fields_of(part.get("resultDetails"))
    arguments: Any = {"command": command}
    if not isinstance(command, str):
        arguments = first_of(details, "rawInput", default=result_details.get("input"))
    identity = str(part.get("toolCallId") or "")
    call = read_call({"name": part.get("toolId") or "", "arguments": arguments, "id": identity})
    confirmation = part.get("isConfirmed")  # a flag, or an object with its kind
    is_refusal = confirmation is False or at(confirmation, "type") in _NOT_CONFIRMED
    output = result_details.get("output")
    if isinstance(output, list):
        texts = [at(item, "value") for item in output]
        result = "\n".join(text for text in texts if isinstance(text, str))
        return call_events(call, result, is_refusal)
    is_complete = bool(part.get("isComplete"))  # a flag, or since 1.132 an object
    return call_events(call, "" if is_complete else None, is_refusal)


def _edits(part: Mapping[str, Any]) -> list[ToolCall]:
    """Reads edits of files that the response made itself, without a tool of the model's."""
    edits = optional_list(part.get("edits")) if part.get("kind") == "workspaceEdit" else [part]
    paths = [_path_of(at(edit, "uri") or at(edit, "newResource")) for edit in edits]
    return [ToolCall("edit", {"path": path}) for path in paths if path]


def _path_of(uri: Any) -> str:
    """Returns the path of a file, given as text or as an object; "" if there is none."""
    if isinstance(uri, str):
        return uri.removeprefix("file://")
    return str(at(uri, "fsPath") or at(uri, "path") or "")


def _summaries(metadata: Any) -> list[str]:
    """Returns the summaries that replaced the dialog up to this request."""
    summaries = at(metadata, "summaries")
    if not isinstance(summaries, list):
        summaries = [at(metadata, "summary")]
    texts = [at(summary, "text") for summary in summaries]
    return [text for text in texts if isinstance(text, str) and text]


def _reaches_back(value: Any) -> bool:
    return "kind" in fields_of(value)


FORMAT = Format("copilot", _recognises, _read, reaches_back=_reaches_back)
