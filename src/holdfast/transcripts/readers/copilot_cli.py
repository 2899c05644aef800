"""Copilot CLI's sessions: `~/.copilot/session-state/*/events.jsonl`, an event per line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.plurals import count_of
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.json_fields import at, entries, field_of, mapping
from holdfast.transcripts.reader import Format, Record, Unread, Values, file_of, objects
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    Tree,
    call_events,
    message_events,
)
from holdfast.validation.json_values import fields_of

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


@dataclass(frozen=True)
class _LoggedEvent:
    """An event as the log has it.

    Args:
        id: "" if it has none.
        agent: the subagent whose event it is; "" for the session's.
    """

    where: str
    kind: str
    data: Mapping[str, Any]
    id: str
    agent: str


def _logged_event(record: Record) -> _LoggedEvent:
    fields = record.fields
    data = fields_of(fields.get("data"))
    agent = str(fields.get("agentId") or data.get("parentToolCallId") or "")
    identity = str(fields.get("id") or "")
    return _LoggedEvent(record.source, str(fields.get("type")), data, identity, agent)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    file = file_of(values[0].source)
    source = file
    dialogs: dict[str, _Dialog] = {"": _Dialog()}
    event_ids: set[str] = set()
    unknown_kinds: Counter[str] = Counter()
    for event in map(_logged_event, records):
        if event.id in event_ids:  # a history may be written again
            continue
        if event.id:
            event_ids.add(event.id)
        if event.kind == "session.start" and event.data.get("sessionId"):
            name = f"{file_of(event.where)}, session {event.data['sessionId']}"
            if name != source and dialogs[""].tree.tip is not None:
                yield from _transcripts(dialogs, source)
                dialogs = {"": _Dialog()}
            source = name
        if event.kind in _DIALOG:
            try:
                yield from dialogs.setdefault(event.agent, _Dialog()).add(event)
            except Malformed as error:
                yield Unread(f"{event.where}: {error}")
        elif not event.kind.startswith(_BOOKKEEPING):
            unknown_kinds[event.kind] += 1
    for kind, count in unknown_kinds.items():
        which = "event is" if count == 1 else "events are"
        yield Unread(f"{file}: {count} {which} of the unknown type {shortened(kind)}, and left out")
    yield from _transcripts(dialogs, source)


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

    def add(self, logged: _LoggedEvent) -> Iterator[Unread]:
        """Adds an event of the log, and says what of it cannot be read."""
        self.tips[logged.id] = self.tree.tip
        if logged.kind == "session.start":
            version = logged.data.get("version", _VERSION)
            if version != _VERSION:
                yield Unread(
                    f"{logged.where}: the version {shortened(version)} of Copilot CLI's events is"
                    f" not known; they are read as version {_VERSION}"
                )
        elif logged.kind == "session.snapshot_rewind":
            yield from self._rewind(logged)
        elif logged.kind == "session.truncation":
            count = logged.data.get("messagesRemovedDuringTruncation")
            messages = count_of(count, "message") if isinstance(count, int) else "messages"
            yield Unread(
                f"{logged.where}: Copilot CLI removed {messages} from the model's context (a"
                " truncation); the log does not say which, so they are taken to be in it still"
            )
        else:
            copy_ids = (logged.id,) if logged.id else ()
            self.tree.add(
                replace(event, id=logged.id, copy_ids=copy_ids, source=logged.where)
                for event in self._events(logged.kind, logged.data)
            )

    def _rewind(self, logged: _LoggedEvent) -> Iterator[Unread]:
        """Takes back an event and those after it, unless the program removed them from the file."""
        target = str(field_of(logged.data, "upToEventId"))
        if target in self.tips:
            self.tree.tip = self.tips[target]
            yield Unread(
                f"{logged.where}: Copilot CLI rewound the session to before the event"
                f" {shortened(target)}, so what followed it is left out"
            )

    def _events(self, kind: str, data: Mapping[str, Any]) -> list[Event]:
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
                return [] if _call_id(data) in self.call_ids else call_events(_call(data))
            case "tool.execution_complete":
                return [_result(data)]
            case "session.compaction_complete":
                summary = str(data.get("summaryContent") or "")
                return [] if data.get("success") is False else [Event(Kind.COMPACTION, summary)]
            case "session.context_cleared":
                return [Event(Kind.COMPACTION)]
            case "abort":
                return [Event(Kind.INTERRUPTION, str(data.get("reason") or ""))]
            case "session.error":
                return [Event(Kind.ERROR, str(data.get("message") or ""))]
        return [Event(Kind.REMINDER, str(data.get("content") or ""))]


def _transcripts(dialogs: Mapping[str, _Dialog], source: str) -> Iterator[Transcript]:
    for agent, dialog in dialogs.items():
        transcript = dialog.tree.transcript(f"{source} {agent}" if agent else source)
        if transcript.events:
            yield replace(transcript, is_of_subagent=bool(agent))


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
