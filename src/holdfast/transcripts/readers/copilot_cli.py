"""Copilot CLI's sessions: `~/.copilot/session-state/*/events.jsonl`, an event per line.

A value, shortened:

    {"type": "user.message", "data": {"content": "Hi"}, "id": "event-2", "parentId": "event-1"}
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.plurals import count_of
from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.json_fields import (
    at,
    first_of,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import (
    Format,
    SourcedRecord,
    Unread,
    Values,
    file_of,
    separate_objects,
    unknown_lines,
)
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    Tree,
    WorkingFolder,
    call_events,
    message_events,
)
from holdfast.validation.json_values import fields_of, text_or_empty

# how the types of events outside the dialog begin: progress, usage, permissions and so on
_BOOKKEEPING = (
    *("session.", "assistant.", "tool.", "hook.", "permission.", "subagent.", "user_input."),
    *("elicitation.", "sampling.", "mcp.", "mcp_app.", "command.", "commands.", "tool_search."),
    *("external_tool.", "exit_plan_mode.", "capabilities.", "auto_mode_switch.", "ui.", "factory."),
    *("session_limits_exhausted.", "pending_messages.", "model."),
)
_DIALOG = (
    *("session.start", "session.error", "session.compaction_complete", "session.context_cleared"),
    *("session.snapshot_rewind", "session.truncation", "system.message", "system.notification"),
    *("user.message", "assistant.message", "tool.user_requested", "tool.execution_start"),
    *("tool.execution_complete", "skill.invoked", "abort"),
)
# the code and the text of the result of a call that the user or the permissions refused
_REFUSALS = ("rejected", "denied")
_REFUSED = re.compile(
    r"Permission denied and could not request permission|(?:Tool call )?[Dd]enied by "
    r"|The user rejected|The tool call (?:required approval|was (?:rejected|denied))"
)
_ATTACHED_PATHS = ("file", "directory")  # attachments of which the model sees the path
_WITHOUT_CONTENT = "shell_exit"  # a block in a result with the exit code of its command
_VERSION = 1  # the known version of the events


@dataclass(frozen=True)
class _LoggedEvent:
    """An event as the log has it.

    Args:
        id: "" if it has none.
        agent: the subagent that the event belongs to; "" for the session itself.
    """

    source: str
    kind: str
    data: Mapping[str, Any]
    id: str
    agent: str


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    kind = fields.get("type")
    if not (isinstance(kind, str) and isinstance(fields.get("data"), Mapping)):
        return False
    return kind in _DIALOG or ("." in kind and {"id", "parentId", "timestamp"} <= fields.keys())


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    file = file_of(values[0].source)
    source = file
    dialogs: dict[str, _Dialog] = {"": _Dialog()}
    unknown_kinds: Counter[str] = Counter()
    for event in _logged_events(records):
        if event.kind == "session.start" and event.data.get("sessionId"):
            name = f"{file_of(event.source)}, session {event.data['sessionId']}"
            if name != source and dialogs[""].tree.tip is not None:
                yield from _transcripts(dialogs, source)
                dialogs = {"": _Dialog()}
            source = name
        if event.kind in _DIALOG:
            try:
                dialog = dialogs.setdefault(event.agent, _Dialog(dialogs[""].folder))
                yield from dialog.add(event)
            except Malformed as error:
                yield Unread(f"{event.source}: {error}")
        elif not event.kind.startswith(_BOOKKEEPING):
            unknown_kinds[event.kind] += 1
    yield from unknown_lines(file, unknown_kinds)
    yield from _transcripts(dialogs, source)


def _logged_events(records: Sequence[SourcedRecord]) -> Iterator[_LoggedEvent]:
    """Reads the fields that all events have; each event once, as a history may be logged twice."""
    ids: set[str] = set()
    for source, fields in records:
        identity = str(fields.get("id") or "")
        if identity in ids:
            continue
        if identity:
            ids.add(identity)
        data = fields_of(fields.get("data"))
        agent = str(fields.get("agentId") or data.get("parentToolCallId") or "")
        yield _LoggedEvent(source, str(fields.get("type")), data, identity, agent)


@dataclass
class _Dialog:
    """The dialog of the session or of a subagent, under construction.

    Args:
        folder: the working folder of the session.
        tips: for each event of the log, the position of the event before it, by the event's id.
        call_ids: the calls in messages of the assistant, and the user's commands.
    """

    folder: WorkingFolder = field(default_factory=WorkingFolder)
    tree: Tree = field(default_factory=Tree)
    tips: dict[str, int | None] = field(default_factory=dict)
    call_ids: set[str] = field(default_factory=set)

    def add(self, logged: _LoggedEvent) -> Iterator[Unread]:
        """Adds an event of the log; yields notes on what is left out or not known."""
        self.tips[logged.id] = self.tree.tip
        if logged.kind == "session.start":
            yield from self._start(logged)
        elif logged.kind == "session.snapshot_rewind":
            yield from self._rewind(logged)
        elif logged.kind == "session.truncation":
            yield _note_on_truncation(logged)
        else:
            copy_ids = (logged.id,) if logged.id else ()
            self.tree.add(
                replace(
                    self.folder.of(event), id=logged.id, copy_ids=copy_ids, source=logged.source
                )
                for event in self._events(logged.kind, logged.data)
            )

    def _start(self, logged: _LoggedEvent) -> Iterator[Unread]:
        """Notes the working folder; yields a note if the version of the events is not known."""
        context = at(logged.data, "context")
        self.folder.note(at(context, "cwd"), at(context, "branch"))
        version = logged.data.get("version", _VERSION)
        if version != _VERSION:
            yield Unread(
                f"{logged.source}: the version {shortened(version)} of Copilot CLI's events is not"
                f" known; they are read as version {_VERSION}"
            )

    def _rewind(self, logged: _LoggedEvent) -> Iterator[Unread]:
        """Goes back to before an event, unless the program removed it from the file."""
        target = str(require_field(logged.data, "upToEventId"))
        if target in self.tips:
            self.tree.tip = self.tips[target]
            yield Unread(
                f"{logged.source}: Copilot CLI rewound the session to before the event"
                f" {shortened(target)}, so what followed it is left out"
            )

    def _events(self, kind: str, data: Mapping[str, Any]) -> list[Event]:
        """Reads an event of the log; the start of a call counts only if no message has the call."""
        match kind:
            case "system.message":
                return message_events("system", str(require_field(data, "content")))
            case "user.message":
                return _events_of_user(data)
            case "assistant.message":
                text = text_of(data.get("content"))
                requests = optional_list(data.get("toolRequests"))
                calls = [_call(require_object(request)) for request in requests]
                calls += _calls_by_provider(data.get("serverTools"))
                self.call_ids.update(call.id for call in calls)
                return message_events("assistant", text, calls) if text or calls else []
            case "tool.user_requested":  # a command of the user's; the event of its start follows
                self.call_ids.add(_call_id(data))
                return []
            case "tool.execution_start":
                return [] if _call_id(data) in self.call_ids else call_events(_call(data))
            case "tool.execution_complete":
                return [_result(data)]
            case "session.compaction_complete":
                summary = str(data.get("summaryContent") or "")
                return (
                    [] if data.get("success") is False else [Event(EventKind.COMPACTION, summary)]
                )
            case "session.context_cleared":
                return [Event(EventKind.COMPACTION, str(data.get("initialMessage") or ""))]
            case "abort":
                return [Event(EventKind.INTERRUPTION, str(data.get("reason") or ""))]
            case "session.error":
                return [Event(EventKind.ERROR, str(data.get("message") or ""))]
        return [Event(EventKind.REMINDER, str(data.get("content") or ""))]


def _note_on_truncation(logged: _LoggedEvent) -> Unread:
    count = logged.data.get("messagesRemovedDuringTruncation")
    messages = count_of(count, "message") if isinstance(count, int) else "messages"
    return Unread(
        f"{logged.source}: Copilot CLI removed {messages} from the model's context (a truncation);"
        " the log does not say which, so they are taken to be in it still"
    )


def _transcripts(dialogs: Mapping[str, _Dialog], source: str) -> Iterator[Transcript]:
    """Returns the transcripts of the session and its subagents that have events."""
    for agent, dialog in dialogs.items():
        transcript = dialog.tree.transcript(f"{source} {agent}" if agent else source)
        if transcript.events:
            yield replace(transcript, is_of_subagent=bool(agent))


def _events_of_user(data: Mapping[str, Any]) -> list[Event]:
    """Tells a message of the user from what Copilot or another agent writes in the user's place."""
    text = require_field(data, "content")
    if not isinstance(text, str):
        raise Malformed(f"the content {shortened(text)} is not text")
    source = data.get("source")
    is_empty = not (text.strip() or data.get("attachments"))  # autopilot sends such messages
    is_by_program = is_empty or data.get("isAutopilotContinuation") is True
    if is_by_program or source not in (None, "", "user"):
        return [Event(EventKind.REMINDER, text or str(data.get("transformedContent") or ""))]
    selections: list[Event] = []
    unread: list[str] = []
    for attachment in list_or_empty(data.get("attachments")):
        kind = at(attachment, "type")
        if kind == "selection" and (selected := text_or_empty(at(attachment, "text"))):
            selections.append(Event(EventKind.REMINDER, selected))
        elif kind not in _ATTACHED_PATHS:
            unread.append(str(kind or "attachment"))
    return [*selections, *message_events("user", text, unread=tuple(unread))]


def _call(request: Mapping[str, Any]) -> ToolCall:
    """Reads a tool call, from a request in a message or from the event of its start."""
    name = request.get("name", request.get("toolName"))
    arguments = request.get("arguments")
    return read_call({"name": name, "arguments": arguments, "id": _call_id(request)})


def _calls_by_provider(server_tools: Any) -> list[ToolCall]:
    """Reads the calls that the provider of the model ran itself, such as a search."""
    details = fields_of(server_tools)
    items = [*list_or_empty(details.get("items")), *list_or_empty(details.get("rawContentBlocks"))]
    calls = [
        read_call(item)
        for item in items
        if str(at(item, "type")) == "server_tool_use" or str(at(item, "type")).endswith("_call")
    ]
    # both lists may have the same call
    return [*{call.id or number: call for number, call in enumerate(calls)}.values()]


def _call_id(data: Mapping[str, Any]) -> str:
    return str(data.get("toolCallId") or "")


def _result(data: Mapping[str, Any]) -> Event:
    """Reads a tool's result, or the output of a command that the user ran."""
    content = at(data, "result", "content")
    text = content if content is not None else at(data, "error", "message")
    if data.get("isUserRequested") is True:  # a command that the user ran
        return Event(EventKind.REMINDER, text_of(text))
    is_refusal = data.get("success") is False and (
        at(data, "error", "code") in _REFUSALS or bool(_REFUSED.match(text_of(text)))
    )
    blocks = list_or_empty(at(data, "result", "contents"))  # those of an MCP server's tool
    files = list_or_empty(at(data, "result", "binaryResultsForLlm"))
    unread = [kind for kind in kinds_without_text(blocks) if kind != _WITHOUT_CONTENT]
    if not unread:  # files that the blocks do not have
        unread = [
            str(first_of(fields_of(file), "mimeType", "type", default="file")) for file in files
        ]
    return Event(
        EventKind.TOOL_RESULT,
        text_of(text),
        call_id=_call_id(data),
        is_refusal=is_refusal,
        unread=tuple(unread),
    )


def _reaches_back(value: Any) -> bool:
    """Whether an event takes back events before it."""
    return bool(at(value, "type") == "session.snapshot_rewind")


FORMAT = Format("copilot-cli", _recognises, _read, has_events=True, reaches_back=_reaches_back)
