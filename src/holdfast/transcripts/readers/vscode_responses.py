"""The responses in VS Code's chats: texts, tool calls, edits of files.

For example:

    [{"value": "Let me look."}, {"kind": "toolInvocationSerialized", "toolId": "ls", ...}]
    -> ShownResponse(texts=["Let me look."], calls=[Event(TOOL_CALL, ...), ...])
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.json_fields import at, first_of, list_or_empty, optional_list
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import Event, EventKind, call_events, message_events
from holdfast.validation.json_values import fields_of

_NOT_CONFIRMED = (0, 5)  # the kinds of confirmations by which a call is denied or skipped
_REFUSED = ("The user chose to skip the tool call", "The user cancelled the tool call")
# parts of a response that are not the model's text
_FOR_DISPLAY = (
    *("thinking", "codeblockUri", "undoStop", "command", "confirmation", "warning", "extensions"),
    *("progressMessage", "progressTask", "progressTaskSerialized", "prepareToolInvocation"),
    *("mcpServersStarting", "elicitation", "elicitationSerialized", "pullRequest", "treeData"),
    *("multiDiffData", "questionCarousel", "hook", "clearToPreviousToolInvocation", "references"),
    *("disabledClaudeHooks", "mcpAuthenticationRequired", "mcpServersStartingSlow"),
    *("planReview", "autoModeResolution", "systemNotification", "info", "externalToolInvocation"),
    *("voiceProgress", "externalToolInvocationUpdate"),
)
_EDITS = ("textEditGroup", "notebookEditGroup", "workspaceEdit", "externalEdit")


class ShownResponse(NamedTuple):
    """A response as VS Code displays it.

    Args:
        texts: its texts, split where a call or an edit is between them.
        calls: its calls with their results, and its edits.
        unknown_kinds: the kinds of its parts that are not known.
        subagents: the dialog of each subagent that it started, by the id of the call.
    """

    texts: list[str]
    calls: list[Event]
    unknown_kinds: set[str]
    subagents: dict[str, list[Event]]


class _ResultContent(NamedTuple):
    """The content of a tool's result: its texts, joined, and the types of its other parts."""

    text: str
    unread: tuple[str, ...]


def read_response(request: Mapping[str, Any]) -> ShownResponse:
    """Reads the response in a request."""
    texts = [""]
    calls: list[Event] = []
    unknown_kinds: set[str] = set()
    of_subagents: dict[str, list[Event]] = {}
    parts = optional_list(request.get("response"))
    for part in parts:
        kind = at(part, "kind")
        if kind == "toolInvocationSerialized" or kind in _EDITS:
            is_call = kind == "toolInvocationSerialized"
            events = _read_displayed_call(part) if is_call else _edit_events(part, parts)
            if subagent := at(part, "subAgentInvocationId"):
                of_subagents.setdefault(str(subagent), []).extend(events)
                continue
            calls += events
            texts.append("")
        elif (text := _text_of(part)) is not None:
            texts[-1] += text
        elif kind not in _FOR_DISPLAY:
            unknown_kinds.add(shortened(kind))
    stripped_texts = [text.strip() for text in texts if text.strip()]
    subagents = {name: _dialog_of(name, events, parts) for name, events in of_subagents.items()}
    return ShownResponse(stripped_texts, calls, unknown_kinds, subagents)


def _dialog_of(subagent: str, events: list[Event], parts: Sequence[Any]) -> list[Event]:
    """Returns the dialog of a subagent: what it was asked, its calls, and what it answered."""
    started_by = next((part for part in parts if at(part, "toolCallId") == subagent), None)
    details = at(started_by, "toolSpecificData")
    return [
        *message_events("user", str(at(details, "prompt") or "")),
        *events,
        *message_events("assistant", str(at(details, "result") or "")),
    ]


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


def read_rounds(
    rounds: Sequence[Any],
    results: Mapping[str, Any],
    response: ShownResponse,
    summaries: Mapping[str, str],
) -> list[Event]:
    """Reads the model's calls and their results, as the extension recorded them.

    The response may say that a call was not confirmed even if its result was not recorded.

    Args:
        summaries: by the id of a round, what replaced the dialog up to its end.
    """
    events: list[Event] = []
    refused = {event.call_id for event in response.calls if event.is_refusal} - {""}
    shown = {event.call.id: event.call for event in response.calls if event.call is not None}
    for tool_round in rounds:
        requested = [read_call(call) for call in optional_list(at(tool_round, "toolCalls"))]
        calls = [_as_run(call, shown.get(call.id)) for call in requested]
        events += message_events("assistant", "", calls) if calls else []
        for call in calls:
            if call.id in results or call.id in refused:
                text, unread = _read_result(results.get(call.id))
                is_refusal = text.startswith(_REFUSED) or call.id in refused
                result = Event(EventKind.TOOL_RESULT, text, call_id=call.id, unread=unread)
                events.append(replace(result, is_refusal=is_refusal))
        if hook := at(tool_round, "hookContext"):
            events.append(Event(EventKind.REMINDER, str(hook)))
        summary = summaries.get(str(at(tool_round, "id"))) or at(tool_round, "summary")
        if isinstance(summary, str) and summary:
            events.append(Event(EventKind.COMPACTION, summary))
    return events


def _as_run(call: ToolCall, shown: ToolCall | None) -> ToolCall:
    """Returns a call with the command that ran, if the user or the tool edited the model's."""
    command = shown.arguments.get("command") if shown is not None and call.id else None
    if not isinstance(command, str) or not isinstance(call.arguments.get("command"), str):
        return call
    return replace(call, arguments={**call.arguments, "command": command})


def _read_result(result: Any) -> _ResultContent:
    """Returns what the extension recorded of a tool's result."""
    texts: list[str] = []
    unread: list[str] = []
    for part in list_or_empty(at(result, "content")):
        value = at(part, "value")
        if isinstance(value, str):
            texts.append(value)
        elif (node := at(value, "node")) is not None:
            texts.append("".join(_texts_in(node)).strip("\n"))
        elif value is not None:
            texts.append(json.dumps(value))
        else:
            unread.append(str(at(part, "mimeType") or "file"))
    return _ResultContent("\n".join(texts), tuple(unread))


def _texts_in(node: Any) -> Iterator[str]:
    """Yields the texts in a tree of a prompt, where an element has others as its children."""
    text = at(node, "text")
    if isinstance(text, str):
        yield "\n" + text if at(node, "lineBreakBefore") else text
    for child in list_or_empty(at(node, "children")):
        yield from _texts_in(child)


def _read_displayed_call(part: Mapping[str, Any]) -> list[Event]:
    """Reads a call as VS Code displays it, with its result if that is displayed."""
    identity = str(part.get("toolCallId") or "")
    arguments = _displayed_arguments(part)
    call = read_call({"name": part.get("toolId") or "", "arguments": arguments, "id": identity})
    confirmation = part.get("isConfirmed")  # a flag, or an object with its kind
    is_refusal = confirmation is False or at(confirmation, "type") in _NOT_CONFIRMED
    result = _displayed_result(part)
    if result is None and part.get("isComplete"):  # a flag, or since 1.132 an object
        result = _ResultContent("", ())
    if result is None:
        return call_events(call, None, is_refusal)
    return [
        replace(event, unread=result.unread) if event.kind is EventKind.TOOL_RESULT else event
        for event in call_events(call, result.text, is_refusal)
    ]


def _displayed_arguments(part: Mapping[str, Any]) -> Any:
    """Returns what a displayed call was given: a command, a subagent's task, or another input."""
    details = fields_of(part.get("toolSpecificData"))
    command = details.get("commandLine", details.get("command"))
    if isinstance(command, Mapping):
        edited_command = command.get("userEdited") or command.get("toolEdited")
        command = edited_command or command.get("original")
    if isinstance(command, str):
        return {"command": command}
    if details.get("kind") == "subagent":
        fields = ("agentName", "description", "prompt")
        return {name: details[name] for name in fields if details.get(name)}
    return first_of(details, "rawInput", "input", default=at(part.get("resultDetails"), "input"))


def _displayed_result(part: Mapping[str, Any]) -> _ResultContent | None:
    """Returns what is displayed of a result; None if nothing is."""
    details = fields_of(part.get("toolSpecificData"))
    output = at(part, "resultDetails", "output")
    text = first_of(
        details, "output", "result", default=at(details, "terminalCommandOutput", "text")
    )
    error = part.get("resultError")
    texts = [value for value in (text, output, error) if isinstance(value, str)]
    unread: list[str] = []
    items = output if isinstance(output, list) else filter(None, [output])
    for item in items:
        if isinstance(value := at(item, "value"), str) and at(item, "isText") is not False:
            texts.append(value)
        elif isinstance(item, Mapping):
            unread.append(str(item.get("mimeType") or item.get("type") or "file"))
    if not (texts or unread):
        return None
    # an output may be displayed in two places
    return _ResultContent("\n".join(dict.fromkeys(texts)), tuple(unread))


def _edit_events(part: Mapping[str, Any], parts: Sequence[Any]) -> list[Event]:
    """Reads edits of files, unless the call that made them is displayed with its arguments."""
    identity = part.get("undoStopId") if part.get("kind") == "externalEdit" else None
    made_by = next(
        (call for call in parts if identity and at(call, "toolCallId") == identity), None
    )
    if made_by is not None and _displayed_arguments(made_by):
        return []
    return message_events("assistant", "", _edits(part))


def _edits(part: Mapping[str, Any]) -> list[ToolCall]:
    """Reads edits of files that the response made itself, without a tool of the model's."""
    edits = optional_list(part.get("edits")) if part.get("kind") == "workspaceEdit" else [part]
    paths = [
        _path_of(at(edit, name))
        for edit in edits
        for name in ("uri", "newResource", "oldResource", "originalUri")
    ]
    return [ToolCall("edit", {"path": path}) for path in paths if path]


def _path_of(uri: Any) -> str:
    """Returns the path of a file, given as text or as an object; "" if there is none."""
    if isinstance(uri, str):
        return uri.removeprefix("file://")
    return str(at(uri, "fsPath") or at(uri, "path") or "")
