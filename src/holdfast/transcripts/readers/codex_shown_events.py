"""The events that Codex logs for display (`event_msg`): most repeat the dialog's messages; the
calls that a script of the model's made (the tool `exec` of code mode) are in no other line.

Since version 0.147 an event shows a completed item (`item_completed`), whose type tells what it is.
"""

from collections.abc import Mapping
from itertools import starmap
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import first_of, text_of
from holdfast.transcripts.json_fields import at, decoded
from holdfast.transcripts.transcript import Event, Kind, call_events
from holdfast.validation.json_values import fields_of

_ROLES = {
    **{"user_message": "user", "agent_message": "assistant"},
    **{"UserMessage": "user", "AgentMessage": "assistant"},
}
# the sources of commands that are not the model's: the user's, and more input for one
_NOT_BY_MODEL = ("user_shell", "userShell", "unified_exec_interaction", "unifiedExecInteraction")


def shown_item(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The completed item that an event shows; the event itself in older versions."""
    is_item = event.get("type") == "item_completed"
    return fields_of(event.get("item")) if is_item else event


def shown_message(event: Mapping[str, Any]) -> Event | None:
    """The message of the dialog that an event repeats; None if it shows something else."""
    item = shown_item(event)
    role = _ROLES.get(str(item.get("type")))
    if role is None:
        return None
    text = item["message"] if "message" in item else text_of(item.get("content"))
    return Event(Kind.MESSAGE, str(text or ""), role)


def identity_of(event: Mapping[str, Any]) -> str:
    """The id of the call that an event shows; "" if it has none."""
    return str(first_of(shown_item(event), "call_id", "id", default=""))


def shown_call(event: Mapping[str, Any]) -> list[Event]:
    """The call that an event shows, and its result; [] if it shows something else."""
    item = shown_item(event)
    call_id = identity_of(event)
    output = first_of(item, "aggregated_output", "aggregatedOutput", "stdout", default="")
    match item.get("type"):
        case "exec_command_end" | "CommandExecution" if item.get("source") not in _NOT_BY_MODEL:
            command = {"command": item.get("command")}
            return call_events(ToolCall("exec_command", command, call_id), str(output))
        case "patch_apply_end" | "FileChange":
            patch = "\n".join(starmap(_patch_of, _changes(item.get("changes"))))
            return call_events(ToolCall("apply_patch", {"input": patch}, call_id), str(output))
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
    return dict(fields_of(decoded(arguments)))


def _changes(changes: Any) -> list[tuple[str, Any]]:
    """The path of each changed file with its change: they are an object, or a list."""
    if isinstance(changes, list):
        return [(str(at(change, "path")), change) for change in changes]
    return [*fields_of(changes).items()]


def _patch_of(path: str, change: Any) -> str:
    """The change of a file as a patch."""
    fields = fields_of(change)
    kind = fields.get("type") or at(change, "kind", "type") or fields.get("kind")
    verb = {"add": "Add", "delete": "Delete"}.get(str(kind), "Update")
    diff = str(first_of(fields, "unified_diff", "unifiedDiff", "diff", default=""))
    if verb != "Update" and not diff.startswith("@@"):  # in a list, it is the file's whole text
        content = str(fields.get("content") or diff) if verb == "Add" else ""
        diff = "\n".join(f"+{line}" for line in content.splitlines())
    return f"*** Begin Patch\n*** {verb} File: {path}\n{diff}\n*** End Patch"
