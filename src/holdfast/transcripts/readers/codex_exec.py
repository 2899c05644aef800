"""The output of `codex exec --json`, which has no message of the user."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.reader import (
    Format,
    Unread,
    Values,
    field_of,
    fields_of,
    file_of,
    mapping,
    objects,
)
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
    return isinstance(kind, str) and kind.startswith(_KINDS)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    threads: dict[str, list[Event]] = {}
    events = threads.setdefault(file_of(values[0][0]), [])
    for where, fields in records:
        kind = fields.get("type")
        try:
            if kind == "thread.started":
                name = f"{file_of(where)}, session {field_of(fields, 'thread_id')}"
                events = threads.setdefault(name, [])
            elif kind == "turn.started":
                events += message_events("user", "")  # which is not in the output
            elif kind == "item.completed":
                events += _item(mapping(fields.get("item")))
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    yield from (linear(name, events) for name, events in threads.items() if events)


def _item(item: Mapping[str, Any]) -> list[Event]:
    kind, call_id = item.get("type"), str(item.get("id", ""))
    if kind == "agent_message":
        return message_events("assistant", str(field_of(item, "text")))
    if kind == "command_execution":
        call = ToolCall("shell", {"command": str(field_of(item, "command"))}, call_id)
        output = str(item.get("aggregated_output") or "")
        return [*message_events("assistant", "", [call]), Event(Kind.TOOL_RESULT, output)]
    if kind == "file_change":
        changes = field_of(item, "changes")
        calls = [ToolCall("apply_patch", mapping(change), call_id) for change in changes]
        return message_events("assistant", "", calls)
    if kind == "mcp_tool_call":
        tool_input = item.get("arguments")
        arguments = tool_input if isinstance(tool_input, Mapping) else {}
        return message_events(
            "assistant", "", [ToolCall(str(field_of(item, "tool")), arguments, call_id)]
        )
    if kind == "error":
        return [Event(Kind.ERROR, str(item.get("message") or ""))]
    if kind in ("reasoning", "web_search", "todo_list"):
        return []
    raise Malformed(f"it has an item of the type {shortened(kind)}, which is not read")


FORMAT = Format("codex-exec", _recognises, _read, has_events=True)
