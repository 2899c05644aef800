"""Reads tools and the calls of them, in the form of any API.

For example:

    {"name": "ls", "input": {}, "id": "1"}                        a call of Anthropic's API
    {"type": "function", "function": {"name": "ls", "arguments": "{}"}, "id": "1"}     of OpenAI's
    -> ToolCall("ls", {}, "1")
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.chat.messages import Tool
from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.json_fields import first_of
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

# types of tool calls: items of the Responses API, and Anthropic's blocks
CALL_TYPES = (
    *("function_call", "custom_tool_call", "local_shell_call", "mcp_call", "shell_call"),
    *("apply_patch_call", "web_search_call", "file_search_call", "computer_call"),
    *("code_interpreter_call", "image_generation_call", "tool_search_call"),
)
CALL_BLOCK_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use", *CALL_TYPES)
# calls in the texts of models such as Hermes and Qwen
_CALL_IN_TEXT = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_PATCHES = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


def id_of(item: Mapping[str, Any]) -> str:
    """Returns the id of a tool call, from the call or from its result; "" without one."""
    return str(first_of(item, "call_id", "tool_call_id", "tool_use_id", "id", default=""))


def read_call(call: Any) -> ToolCall:
    """Reads a tool call in the form of any API, without an object around it.

    Raises:
        Malformed: it is not an object, or has no name.
    """
    if not isinstance(call, Mapping):
        raise Malformed(f"{shortened(call)} is not a tool call")
    name = call.get("name")
    kind = call.get("type")
    if name is None and isinstance(kind, str) and kind.endswith("_call"):
        return ToolCall(kind.removesuffix("_call"), _arguments_of_item(call), id_of(call))
    if not isinstance(name, str):
        raise Malformed(f"the tool call {shortened(dict(call))} has no name")
    arguments = first_of(call, "arguments", "input", "parameters", "args", default={})
    if isinstance(arguments, str):
        # free-form tools have no JSON, nor have calls that were cut
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    if arguments is None:
        arguments = {}
    elif not isinstance(arguments, Mapping):
        arguments = {"input": arguments}
    return ToolCall(name, arguments, id_of(call))


def _arguments_of_item(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the arguments of a call that the Responses API names by its type."""
    action = item.get("action")
    operation = item.get("operation")
    if isinstance(operation, Mapping):
        return {"input": _patch_of(operation)}
    if not isinstance(action, Mapping):
        names = ("code", "queries", "arguments")
        return {name: item[name] for name in names if item.get(name) is not None}
    commands = action.get("commands")
    if isinstance(commands, list) and all(isinstance(command, str) for command in commands):
        return {**action, "command": "\n".join(commands)}
    return action


def _patch_of(operation: Mapping[str, Any]) -> str:
    """Writes an operation on a file as a patch for the tool `apply_patch`."""
    verb = _PATCHES.get(str(operation.get("type")), "Update")
    header = f"*** Begin Patch\n*** {verb} File: {operation.get('path')}\n"
    diff = operation.get("diff")
    return f"{header}{diff}\n*** End Patch" if diff else f"{header}*** End Patch"


def read_wrapped_call(call: Any) -> ToolCall:
    """Reads a tool call that may have an object `tool_call` (OpenInference) or `function` (OpenAI)
    around it.

    Raises:
        Malformed: it is not an object, or has no name.
    """
    if isinstance(call, Mapping) and "tool_call" in call:
        call = call["tool_call"]
    function = first_of(call, "function", "custom") if isinstance(call, Mapping) else None
    if isinstance(function, Mapping):
        call = {**call, **function, "id": id_of(call)}
    return read_call(call)


def read_call_in_text(content: Any) -> ToolCall:
    """Reads a tool call that is the content of a message, as JSON text or an object.

    Raises:
        Malformed: it is not JSON, or has no name.
    """
    try:
        return read_call(json.loads(content) if isinstance(content, str) else content)
    except (ValueError, RecursionError):
        raise Malformed(f"the call {shortened(content)} is not JSON") from None


def separate_calls(text: str) -> tuple[str, list[ToolCall]]:
    """Separates the calls that some models write as JSON in elements `<tool_call>` from the rest of
    a text; a text with an element that is no call stays as it is.
    """
    calls: list[ToolCall] = []
    for element in _CALL_IN_TEXT.finditer(text):
        try:
            calls.append(read_call(json.loads(element[1])))
        except (ValueError, RecursionError, Malformed):
            return text, []
    return (_CALL_IN_TEXT.sub("", text).strip(), calls) if calls else (text, [])


def read_tools(declared: Any) -> tuple[Tool, ...]:
    """Reads the declarations of tools into OpenAI's form.

    They may have that form, Anthropic's, the Responses API's, or be JSON text in one of these.

    Raises:
        Malformed: they are not a list of tools, or a tool has no name.
    """
    if isinstance(declared, str) and declared.strip():
        try:
            declared = json.loads(declared)
        except (ValueError, RecursionError):
            raise Malformed(f"the tools {shortened(declared)} are not JSON") from None
    if declared and not isinstance(declared, list):
        raise Malformed(f"the tools {shortened(declared)} are not a list")
    return tuple(_read_tool(tool) for tool in declared or ())


def _read_tool(tool: Any) -> Tool:
    function = fields_of(fields_of(tool).get("function", tool))
    if not isinstance(function.get("name"), str):
        raise Malformed(f"the tool {shortened(tool)} has no name")
    schema = function.get("parameters", function.get("input_schema"))
    optional = {"description": function.get("description"), "parameters": schema}
    present = {name: value for name, value in optional.items() if value is not None}
    return {"type": "function", "function": {"name": function["name"], **present}}
