"""Copilot CLI's sessions: `~/.copilot/session-state/*/events.jsonl`, an event per line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.json_fields import at, entries, field_of, fields_of, mapping
from holdfast.transcripts.reader import Format, Unread, Values, file_of, objects
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    Tree,
    message_events,
)

# what an event's type begins with, of events outside the dialog: progress, usage, permissions
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
_VERSION = 1


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    kind = fields.get("type")
    if not (isinstance(kind, str) and isinstance(fields.get("data"), Mapping)):
        return False
    return kind in _DIALOG or ("." in kind and {"id", "parentId", "timestamp"} <= fields.keys())


@dataclass
class _Dialog:
    """The session, or a subagent of it, while it is read.

    Args:
        tips: the end of the path before each event, by the event's id.
        call_ids: of the calls that messages of the assistant or commands of the user have.
    """

    tree: Tree = field(default_factory=Tree)
    tips: dict[str, int | None] = field(default_factory=dict)
    call_ids: set[str] = field(default_factory=set)

    def events(self, kind: str, data: Mapping[str, Any]) -> list[Event]:
        """The events of an entry of the log; a call that starts counts unless a message had it."""
        match kind:
            case "system.message":
                return message_events("system", str(field_of(data, "content")))
            case "user.message":
                return _classified(data)
            case "assistant.message":
                text = text_of(data.get("content"))
                calls = [_call(mapping(request)) for request in entries(data.get("toolRequests"))]
                self.call_ids.update(call.id for call in calls)
                return message_events("assistant", text, calls) if text or calls else []
            case "tool.user_requested":  # a command of the user's, whose start follows
                self.call_ids.add(_call_id(data))
                return []
            case "tool.execution_start":
                is_new = _call_id(data) not in self.call_ids
                return message_events("assistant", "", [_call(data)]) if is_new else []
            case "tool.execution_complete":
                return [_result(data)]
            case "session.compaction_complete":
                summary = str(data.get("summaryContent") or "")
                return [Event(Kind.COMPACTION, summary)] if data.get("success") is not False else []
            case "session.context_cleared":
                return [Event(Kind.COMPACTION)]
            case "abort":
                return [Event(Kind.INTERRUPTION, str(data.get("reason") or ""))]
            case "session.error":
                return [Event(Kind.ERROR, str(data.get("message") or ""))]
        return [Event(Kind.REMINDER, str(data.get("content") or ""))]


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    dialogs: dict[str, _Dialog] = {"": _Dialog()}
    event_ids: set[str] = set()  # of the events so far: a history may be written again
    unknown_kinds: Counter[str] = Counter()
    source = file_of(values[0][0])
    for where, record in records:
        kind, data = str(record.get("type")), fields_of(record.get("data"))
        agent = str(record.get("agentId") or data.get("parentToolCallId") or "")
        identity = record.get("id")
        if isinstance(identity, str):
            if identity in event_ids:
                continue
            event_ids.add(identity)
        if kind == "session.start" and data.get("sessionId"):
            name = f"{file_of(where)}, session {data['sessionId']}"
            if name != source and dialogs[""].tree.tip is not None:
                yield from _transcripts(dialogs, source)
                dialogs = {"": _Dialog()}
            source = name
        if kind in _DIALOG:
            yield from _add(record, dialogs.setdefault(agent, _Dialog()), where)
        elif not kind.startswith(_BOOKKEEPING):
            unknown_kinds[kind] += 1
    file = file_of(values[0][0])
    for kind, count in unknown_kinds.items():
        which = "event is" if count == 1 else "events are"
        yield Unread(f"{file}: {count} {which} of the unknown type {shortened(kind)}, and left out")
    yield from _transcripts(dialogs, source)


def _add(record: Mapping[str, Any], dialog: _Dialog, where: str) -> Iterator[Unread]:
    """Adds an event to its dialog."""
    kind, data = str(record.get("type")), fields_of(record.get("data"))
    identity = str(record.get("id") or "")
    dialog.tips[identity] = dialog.tree.tip
    try:
        if kind == "session.start":
            version = data.get("version", _VERSION)
            if version != _VERSION:
                yield Unread(
                    f"{where}: the version {shortened(version)} of Copilot CLI's events is not"
                    f" known; they are read as version {_VERSION}"
                )
        elif kind == "session.snapshot_rewind":
            yield from _rewind(dialog, data, where)
        elif kind == "session.truncation":
            count = data.get("messagesRemovedDuringTruncation")
            messages = count_of(count, "message") if isinstance(count, int) else "messages"
            yield Unread(
                f"{where}: Copilot CLI removed {messages} from the model's context (a truncation);"
                " the log does not say which, so they are taken to be in it still"
            )
        else:
            events = dialog.events(kind, data)
            copies = (identity,) if identity else ()
            dialog.tree.add(
                replace(event, id=identity, copy_ids=copies, source=where) for event in events
            )
    except Malformed as error:
        yield Unread(f"{where}: {error}")


def _transcripts(dialogs: Mapping[str, _Dialog], source: str) -> Iterator[Transcript]:
    for agent, dialog in dialogs.items():
        transcript = dialog.tree.transcript(f"{source} {agent}" if agent else source)
        if transcript.events:
            yield replace(transcript, is_of_subagent=bool(agent))


def _rewind(dialog: _Dialog, data: Mapping[str, Any], where: str) -> Iterator[Unread]:
    """Takes back an event and those after it, unless the program removed them from the file."""
    target = str(field_of(data, "upToEventId"))
    if target in dialog.tips:
        dialog.tree.tip = dialog.tips[target]
        yield Unread(
            f"{where}: Copilot CLI rewound the session to before the event {shortened(target)}, so"
            " what followed it is left out"
        )


def _classified(data: Mapping[str, Any]) -> list[Event]:
    """A message of the user, or what Copilot or another agent put in its place."""
    text = field_of(data, "content")
    if not isinstance(text, str):
        raise Malformed(f"the content {shortened(text)} is not text")
    source = data.get("source")
    is_empty = not (text.strip() or data.get("attachments"))  # as autopilot goes on with one
    is_by_program = is_empty or data.get("isAutopilotContinuation") is True
    if is_by_program or source not in (None, "", "user"):
        return [Event(Kind.REMINDER, text or str(data.get("transformedContent") or ""))]
    return message_events("user", text)


def _call(request: Mapping[str, Any]) -> ToolCall:
    name = request.get("name", request.get("toolName"))
    arguments = request.get("arguments")
    return read_call({"name": name, "arguments": arguments, "id": _call_id(request)})


def _call_id(data: Mapping[str, Any]) -> str:
    return str(data.get("toolCallId") or "")


def _result(data: Mapping[str, Any]) -> Event:
    content = at(data, "result", "content")
    text = content if content is not None else at(data, "error", "message")
    if data.get("isUserRequested") is True:  # a command that the user ran
        return Event(Kind.REMINDER, text_of(text))
    return Event(Kind.TOOL_RESULT, text_of(text), call_id=_call_id(data))


def _reaches_back(value: Any) -> bool:
    return bool(at(value, "type") == "session.snapshot_rewind")


FORMAT = Format("copilot-cli", _recognises, _read, has_events=True, reaches_back=_reaches_back)
