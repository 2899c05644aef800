"""Codex's events for display (`event_msg`).

Most of them repeat messages of the dialog. But the calls that a script of the model's made (the
tool `exec` of code mode) are logged nowhere else. Since version 0.147 such an event has a completed
item (`item_completed`), whose type says what it shows.
"""

from collections.abc import Mapping
from itertools import starmap
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at, decode_json, first_of
from holdfast.transcripts.transcript import Event, EventKind, call_events
from holdfast.validation.json_values import fields_of

_ROLES = {
    **{"user_message": "user", "agent_message": "assistant"},
    **{"UserMessage": "user", "AgentMessage": "assistant"},
}
# sources of commands that the model did not give: the user's, and further input for a command
_NOT_BY_MODEL = ("user_shell", "userShell", "unified_exec_interaction", "unifiedExecInteraction")


def shown_item(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the completed item that an event shows; in older versions, the event itself."""
    is_item = event.get("type") == "item_completed"
    return fields_of(event.get("item")) if is_item else event


def shown_message(event: Mapping[str, Any]) -> Event | None:
    """Returns the message that an event repeats; None if it shows something else."""
    item = shown_item(event)
    role = _ROLES.get(str(item.get("type")))
    if role is None:
        return None
    text = item["message"] if "message" in item else text_of(item.get("content"))
    return Event(EventKind.MESSAGE, str(text or ""), role)


def identity_of(event: Mapping[str, Any]) -> str:
    """Returns the id of the call that an event shows; "" if it has none."""
    return str(first_of(shown_item(event), "call_id", "id", default=""))


def shown_call(event: Mapping[str, Any]) -> list[Event]:
    """Returns the call that an event shows, and its result; [] if it shows something else."""
    item = shown_item(event)
    call_id = identity_of(event)
    output = first_of(item, "aggregated_output", "aggregatedOutput", "stdout", default="")
    is_refusal = str(item.get("status")).lower() == "declined"
    match item.get("type"):
        case "exec_command_end" | "CommandExecution" if item.get("source") not in _NOT_BY_MODEL:
            command = {"command": item.get("command")}
            return call_events(ToolCall("exec_command", command, call_id), str(output), is_refusal)
        case "patch_apply_end" | "FileChange":
            patch = "\n".join(starmap(_patch_of, _changes(item.get("changes"))))
            return call_events(
                ToolCall("apply_patch", {"input": patch}, call_id), str(output), is_refusal
            )
        case "mcp_tool_call_end" | "McpToolCall":
            invocation = fields_of(item.get("invocation")) or item
            name = f"mcp__{invocation.get('server')}__{invocation.get('tool')}"
            result = at(item, "result", "Ok", "content") or at(item, "result", "content")
            call = ToolCall(name, _arguments(invocation.get("arguments")), call_id)
            return call_events(call, text_of(result))
        case "DynamicToolCall":
            result = first_of(item, "content_items", "contentItems")
            call = ToolCall(str(item.get("tool")), _arguments(item.get("arguments")), call_id)
            return call_events(call, text_of(result))
    return []


def _arguments(arguments: Any) -> dict[str, Any]:
    """Returns a call's arguments, which may be JSON text; {} if they are no object."""
    return dict(fields_of(decode_json(arguments)))


def _changes(changes: Any) -> list[tuple[str, Any]]:
    """Returns each changed file's path with its change; the log has them as an object or a list."""
    if isinstance(changes, list):
        return [(str(at(change, "path")), change) for change in changes]
    return [*fields_of(changes).items()]


def _patch_of(path: str, change: Any) -> str:
    """Writes the change of a file as a patch."""
    fields = fields_of(change)
    kind = fields.get("type") or at(change, "kind", "type") or fields.get("kind")
    verb = {"add": "Add", "delete": "Delete"}.get(str(kind), "Update")
    diff = str(first_of(fields, "unified_diff", "unifiedDiff", "diff", default=""))
    if verb != "Update" and not diff.startswith("@@"):  # a list has the whole text of a new file
        content = str(fields.get("content") or diff) if verb == "Add" else ""
        diff = "\n".join(f"+{line}" for line in content.splitlines())
    return f"*** Begin Patch\n*** {verb} File: {path}\n{diff}\n*** End Patch"
