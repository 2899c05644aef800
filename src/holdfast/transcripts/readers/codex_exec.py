"""The output of `codex exec --json`, which has no message of the user."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.json_fields import at, entries, field_of, fields_of, mapping
from holdfast.transcripts.reader import Format, Unread, Values, file_of, objects
from holdfast.transcripts.transcript import (
    Event,
    Kind,
    Malformed,
    Transcript,
    linear,
    message_events,
)

_KINDS = ("thread.", "turn.", "item.")


def _recognises(value: Any) -> bool:
    kind = fields_of(value).get("type")
    is_error = kind == "error" and fields_of(value).keys() == {"type", "message"}
    return is_error or (isinstance(kind, str) and kind.startswith(_KINDS))


@dataclass
class _Thread:
    """A thread that is being read; `begun` are the items that have not ended, by their ids."""

    events: list[Event] = field(default_factory=list)
    begun: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    threads: dict[str, _Thread] = {}
    thread = threads.setdefault(file_of(values[0][0]), _Thread())
    for where, fields in records:
        kind = fields.get("type")
        try:
            if kind == "thread.started":
                name = f"{file_of(where)}, session {field_of(fields, 'thread_id')}"
                thread = threads.setdefault(name, _Thread())
            elif kind == "turn.started":
                thread.events += message_events("user", "")  # which is not in the output
            elif kind in ("error", "turn.failed"):
                text = at(fields, "error", "message") or fields.get("message") or ""
                thread.events.append(Event(Kind.ERROR, str(text)))
            elif kind in ("item.started", "item.updated"):
                item = mapping(fields.get("item"))
                thread.begun[str(item.get("id"))] = item
            elif kind == "item.completed":
                item = mapping(fields.get("item"))
                thread.begun.pop(str(item.get("id")), None)
                thread.events += _item(item)
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    for name, thread in threads.items():
        for item in thread.begun.values():  # such as a command that was still running
            try:
                thread.events += _item(item)
            except Malformed as error:
                yield Unread(f"{name}: {error}")
        if thread.events:
            yield linear(name, thread.events)


def _item(item: Mapping[str, Any]) -> list[Event]:
    kind, call_id = item.get("type", item.get("item_type")), str(item.get("id", ""))
    match kind:
        case "agent_message" | "assistant_message":
            return message_events("assistant", str(field_of(item, "text")))
        case "command_execution":
            command = {"command": str(field_of(item, "command"))}
            return _called("shell", command, call_id, item.get("aggregated_output") or "")
        case "file_change":
            changes = [mapping(change) for change in entries(field_of(item, "changes"))]
            calls = [ToolCall("apply_patch", change, call_id) for change in changes]
            return message_events("assistant", "", calls)
        case "mcp_tool_call":
            result = at(item, "error", "message") or at(item, "result", "content")
            name, arguments = str(field_of(item, "tool")), fields_of(item.get("arguments"))
            return _called(name, arguments, call_id, result)
        case "collab_tool_call":  # of subagents
            asked = {"prompt": item["prompt"]} if item.get("prompt") else {}
            return _called(str(field_of(item, "tool")), asked, call_id)
        case "web_search":
            return _called("web_search", {"query": str(item.get("query") or "")}, call_id)
        case "todo_list":
            return _called("update_plan", {"plan": entries(item.get("items"))}, call_id)
        case "error":
            return [Event(Kind.ERROR, str(item.get("message") or ""))]
        case "reasoning":
            return []
    raise Malformed(f"it has an item of the type {shortened(kind)}, which is not read")


def _called(
    name: str, arguments: Mapping[str, Any], call_id: str, result: Any = None
) -> list[Event]:
    """A call, and its result unless that is None."""
    events = message_events("assistant", "", [ToolCall(name, arguments, call_id)])
    if result is not None:
        events.append(Event(Kind.TOOL_RESULT, text_of(result), call_id=call_id))
    return events


FORMAT = Format("codex-exec", _recognises, _read, has_events=True)
