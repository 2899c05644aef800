"""The output of `codex exec --json`, which lacks the user's messages.

For example:

    {"type": "item.completed", "item": {"type": "command_execution", "command": "ls src", ...}}
    -> Event(TOOL_CALL, shell), Event(TOOL_RESULT)
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import (
    Format,
    Unread,
    Values,
    file_of,
    separate_objects,
    unknown_lines,
)
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    call_events,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of

_KINDS = ("thread.", "turn.", "item.")  # how the types of events begin
_NOT_MESSAGES = ("turn.completed",)


@dataclass
class _Thread:
    """A thread under construction; `unfinished` are the items that have not ended, by id."""

    events: list[Event] = field(default_factory=list)
    unfinished: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, kind: str, fields: Mapping[str, Any]) -> bool:
        """Adds an event of the log; returns whether its type is known.

        Raises:
            Malformed: it cannot be read.
        """
        if kind == "turn.started":
            self.events += message_events("user", "")  # the output lacks the user's text
        elif kind in ("error", "turn.failed"):
            text = at(fields, "error", "message") or fields.get("message") or ""
            self.events.append(Event(EventKind.ERROR, str(text)))
        elif kind in ("item.started", "item.updated"):
            item = require_object(fields.get("item"))
            self.unfinished[str(item.get("id"))] = item
        elif kind == "item.completed":
            item = require_object(fields.get("item"))
            self.unfinished.pop(str(item.get("id")), None)
            self.events += _events_of_item(item)
        else:
            return kind in _NOT_MESSAGES
        return True


def _recognises(value: Any) -> bool:
    kind = fields_of(value).get("type")
    is_error = kind == "error" and fields_of(value).keys() == {"type", "message"}
    return is_error or (isinstance(kind, str) and kind.startswith(_KINDS))


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    threads: dict[str, _Thread] = {}
    file = file_of(values[0].source)
    thread = threads.setdefault(file, _Thread())
    unknown_types: Counter[str] = Counter()
    for source, fields in records:
        kind = str(fields.get("type"))
        try:
            if kind == "thread.started":
                name = f"{file_of(source)}, session {require_field(fields, 'thread_id')}"
                thread = threads.setdefault(name, _Thread())
            elif not thread.add(kind, fields):
                unknown_types[kind] += 1
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield from unknown_lines(file, unknown_types)
    for name, thread in threads.items():
        for item in thread.unfinished.values():  # such as commands that were still running
            try:
                thread.events += _events_of_item(item)
            except Malformed as error:
                yield Unread(f"{name}: {error}")
        if thread.events:
            yield linear_transcript(name, thread.events)


def _events_of_item(item: Mapping[str, Any]) -> list[Event]:
    """Reads an item of a thread."""
    call_id = str(item.get("id", ""))
    is_refusal = item.get("status") == "declined"
    match kind := item.get("type", item.get("item_type")):
        case "agent_message" | "assistant_message":
            return message_events("assistant", str(require_field(item, "text")))
        case "command_execution":
            command = {"command": str(require_field(item, "command"))}
            output = text_of(item.get("aggregated_output") or "")
            return call_events(ToolCall("shell", command, call_id), output, is_refusal)
        case "file_change":
            changes = optional_list(require_field(item, "changes"))
            calls = [ToolCall("apply_patch", require_object(entry), call_id) for entry in changes]
            return [event for call in calls for event in call_events(call, None, is_refusal)]
        case "mcp_tool_call":
            tool = str(require_field(item, "tool"))
            arguments = fields_of(item.get("arguments"))
            result = at(item, "error", "message") or at(item, "result", "content")
            call = ToolCall(tool, arguments, call_id)
            return call_events(call, None if result is None else text_of(result))
        case "collab_tool_call":  # calls that concern subagents
            prompt = {"prompt": item["prompt"]} if item.get("prompt") else {}
            return call_events(ToolCall(str(require_field(item, "tool")), prompt, call_id))
        case "web_search":
            query = {"query": str(item.get("query") or "")}
            return call_events(ToolCall("web_search", query, call_id))
        case "todo_list":
            plan = {"plan": optional_list(item.get("items"))}
            return call_events(ToolCall("update_plan", plan, call_id))
        case "error":
            return [Event(EventKind.ERROR, str(item.get("message") or ""))]
        case "reasoning":
            return []
    raise Malformed(f"it has an item of the type {shortened(kind)}, which is not read")


FORMAT = Format("codex-exec", _recognises, _read, has_events=True)
