"""Reads the content of a message: its texts, tool calls and tool results.

APIs and libraries write a content as text or as a list of parts, each with its own kinds of parts.
One function per API (`_READERS`) turns a part into blocks: texts, tool calls, tool results.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.json_fields import at
from holdfast.transcripts.refused_calls import (
    is_refusal_by_claude_code,
    is_refusal_by_framework,
)
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

# types of tool calls: items of the Responses API, and Anthropic's blocks
CALL_TYPES = (
    *("function_call", "custom_tool_call", "local_shell_call", "mcp_call", "shell_call"),
    *("apply_patch_call", "web_search_call", "file_search_call", "computer_call"),
    *("code_interpreter_call", "image_generation_call", "tool_search_call"),
)
CALL_BLOCK_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use", *CALL_TYPES)
# types of parts and items that are in a log but are not shown in the reply
HIDDEN_TYPES = (
    "reasoning",
    "thinking",
    "redacted_thinking",
    "think",
    "tool_reference",  # to a tool that a search for tools found
    *("flag", "token_budget"),  # of Claude.ai
    "step-start",  # of Vercel's AI SDK
    # items of the Responses API about the dialog itself, and about tools that its server runs
    "item_reference",
    "compaction",
    "compaction_trigger",
    "additional_tools",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "program_output",
    "tool_search_output",
)

_GEMINI_FIELDS = frozenset(
    (
        *("functionCall", "function_call", "functionResponse", "function_response"),
        *("executableCode", "executable_code", "codeExecutionResult", "code_execution_result"),
    )
)
_THOUGHT_SIGNATURES = {"thoughtSignature", "thought_signature"}
_PATCHES = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


@dataclass(frozen=True)
class TextBlock:
    """A text in a message.

    Args:
        continues: whether it continues the sentence of the text before it, as Anthropic's API
            splits a sentence at its citations.
    """

    text: str
    continues: bool = False


@dataclass(frozen=True)
class ToolResult:
    """A tool's result in a message."""

    text: str
    call_id: str  # of the call whose result it is; "" if the log does not say
    is_refusal: bool = False  # whether the log says that the call never ran
    unread: tuple[str, ...] = ()  # the types of its parts that are not read


@dataclass(frozen=True)
class SummaryBlock:
    """A text that replaces everything before its message, as Anthropic's API compacts."""

    text: str


@dataclass(frozen=True)
class UnreadPart:
    """A part without a text, such as an image, or of an unknown type.

    Args:
        kind: its type; if it names none, the name of its first field.
    """

    kind: str


ContentBlock = TextBlock | ToolCall | ToolResult | SummaryBlock | UnreadPart


def first_of(item: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """Returns the value of the first of these fields that is present and not null."""
    return next((item[name] for name in names if item.get(name) is not None), default)


def id_of(item: Mapping[str, Any]) -> str:
    """Returns the id of a tool call, from the call or from its result; "" without one."""
    return str(first_of(item, "call_id", "tool_call_id", "tool_use_id", "id", default=""))


def blocks_of(content: Any) -> Iterator[ContentBlock]:
    """Reads the blocks in a content.

    Raises:
        Malformed: a part cannot be read.
    """
    was_cited = False
    for part in _parts_of(content):
        is_cited = isinstance(part, Mapping) and bool(part.get("citations"))  # Anthropic's
        blocks = _blocks_in(part)
        for block in [UnreadPart(_kind_of(part))] if blocks is None else blocks:
            if isinstance(block, TextBlock):
                yield TextBlock(block.text, continues=is_cited or was_cited)
            else:
                yield block
        was_cited = is_cited


def first_unread(content: Any) -> Any:
    """Returns the first part that is not read, such as an image; None without one.

    Parts of a tool's result in the content count too.

    Raises:
        Malformed: a part cannot be read.
    """
    for part in _parts_of(content):
        if _blocks_in(part) is None:
            return part
        nested = fields_of(part).get("content")
        if isinstance(nested, list) and (unread := first_unread(nested)) is not None:
            return unread
    return None


def text_of(content: Any) -> str:
    """Returns the texts in a content, joined by line breaks.

    Raises:
        Malformed: it is neither text nor a list of parts.
    """
    texts = (_text_in(part) for part in _parts_of(content))
    return "\n".join(text for text in texts if text is not None)


def kinds_without_text(content: Any) -> tuple[str, ...]:
    """Returns the types of the parts that `text_of` leaves out, except those that are hidden.

    Raises:
        Malformed: it is neither text nor a list of parts.
    """
    parts = (part for part in _parts_of(content) if _text_in(part) is None)
    return tuple(_kind_of(part) for part in parts if _type_of(part) not in HIDDEN_TYPES)


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


def _parts_of(content: Any) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, list):
        return content
    if isinstance(content, (str, Mapping)):
        return [content]
    raise Malformed(f"{shortened(content)} is neither text nor a list of parts")


def _text_in(part: Any) -> str | None:
    """Returns the text of a part; None if it has none, or its text is not shown in the reply."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise Malformed(f"{shortened(part)} is not a part of a message")
    if isinstance(part.get("message_content"), Mapping):  # OpenInference
        part = part["message_content"]
    text = first_of(part, "text", "refusal")
    if isinstance(text, Mapping):  # LibreChat, and OpenAI's Assistants
        text = text.get("value")
    return text if isinstance(text, str) and part.get("type") not in HIDDEN_TYPES else None


def _type_of(part: Mapping[str, Any]) -> Any:
    nested = part.get("message_content")  # OpenInference
    return at(nested, "type") if isinstance(nested, Mapping) else part.get("type")


def _kind_of(part: Mapping[str, Any]) -> str:
    """Returns the type of a part; the name of its first field if it has no type."""
    names = (name for name, value in part.items() if value is not None)
    return str(_type_of(part) or part.get("kind") or next(names, "empty"))


def _blocks_in(part: Any) -> list[ContentBlock] | None:
    """Returns the blocks of a part; None for parts that have none, such as images."""
    if isinstance(part, Mapping):
        for read in _READERS:
            blocks = read(part)
            if blocks is not None:
                return blocks
        if _type_of(part) in HIDDEN_TYPES:
            return []
    text = _text_in(part)
    return None if text is None else [TextBlock(text)]


# Readers of single parts. Each returns the blocks of a part, or None for parts of other APIs.


def _read_gemini(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads parts of Gemini's API."""
    if part.get("thought") is True or part.keys() <= _THOUGHT_SIGNATURES:
        return []
    if _GEMINI_FIELDS.isdisjoint(part):
        return None
    call = first_of(part, "functionCall", "function_call")
    if isinstance(call, Mapping):
        return [read_call(call)]
    response = first_of(part, "functionResponse", "function_response")
    if isinstance(response, Mapping):
        text = _text_of_response(response.get("response"))
        return [ToolResult(text, id_of(response), is_refusal_by_framework(text))]
    code = first_of(part, "executableCode", "executable_code")
    if isinstance(code, Mapping):
        arguments = {"code": code.get("code")}
        return [read_call({"name": "code_execution", "id": id_of(code), "input": arguments})]
    result = first_of(part, "codeExecutionResult", "code_execution_result")
    if isinstance(result, Mapping):
        return [ToolResult(_text_or_json(first_of(result, "output", default="")), id_of(result))]
    return None


def _text_of_response(response: Any) -> str:
    """Returns a function's response as text: JSON, unless it wraps a single text."""
    if isinstance(response, Mapping) and response.keys() <= {"output", "result"}:
        texts = [text for text in response.values() if isinstance(text, str)]
        if len(texts) == len(response) == 1:
            return texts[0]
    return _text_or_json(response)


def _read_bedrock(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads parts of Amazon Bedrock's Converse API, whose only field is their type."""
    use = part.get("toolUse")
    if isinstance(use, Mapping):
        return [read_call({**use, "id": use.get("toolUseId")})]
    result = part.get("toolResult")
    if isinstance(result, Mapping):
        texts = [at(item, "text") or at(item, "json") for item in _parts_of(result.get("content"))]
        text = "\n".join(_text_or_json(item) for item in texts if item is not None)
        return [ToolResult(text, str(result.get("toolUseId") or ""))]
    return [] if {"reasoningContent", "cachePoint"} & part.keys() else None


def _read_opentelemetry(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads OpenTelemetry's parts; LangChain's and LibreChat's tool calls have the same type."""
    match part.get("type"):
        case "tool_call":
            nested = part.get("tool_call")  # LibreChat
            call = nested if isinstance(nested, Mapping) else part
            blocks: list[ContentBlock] = [read_call(call)]
            if "output" in call:
                blocks.append(ToolResult(_text_or_json(call["output"]), id_of(call)))
            return blocks
        case "tool_call_response":
            return [ToolResult(_text_or_json(first_of(part, "response", "result")), id_of(part))]
        case "server_tool_call":
            details = fields_of(part.get("server_tool_call"))
            arguments = first_of(details, "arguments", "input", default=_without_type(details))
            name = first_of(part, "name", default=details.get("type"))
            return [read_call({"name": name, "id": id_of(part), "input": arguments})]
        case "server_tool_call_response":
            details = fields_of(part.get("server_tool_call_response"))
            result = first_of(
                details, "response", "output", "content", default=_without_type(details)
            )
            return [ToolResult(_text_or_json(result), id_of(part))]
        case "text" if "text" not in part and isinstance(part.get("content"), str):
            return [TextBlock(part["content"])]
    return None


def _without_type(details: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the details of a call or result that are beside its type, without the type."""
    return {name: value for name, value in details.items() if name != "type"}


def _read_openinference(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads OpenInference's tool calls that are among the texts of a message, in their order."""
    if "message_content" not in part or not isinstance(part.get("tool_call"), Mapping):
        return None
    call = part["tool_call"]
    return [read_call({**fields_of(call.get("function")), "id": id_of(call)})]


def _read_vercel(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads parts of Vercel's AI SDK, in which a tool call and its result are one part."""
    kind = part.get("type")
    if not isinstance(kind, str):
        return None
    if kind == "tool-invocation" and isinstance(part.get("toolInvocation"), Mapping):
        part = part["toolInvocation"]
    elif kind == "dynamic-tool" or kind.startswith("tool-"):
        part = {"toolName": kind.removeprefix("tool-"), **part}
    else:
        return None
    name = part.get("toolName")
    call_id = str(first_of(part, "toolCallId", default=""))
    arguments = first_of(part, "input", "args")
    blocks: list[ContentBlock] = [read_call({"name": name, "id": call_id, "input": arguments})]
    result = first_of(part, "output", "result", "errorText")
    is_refusal = part.get("state") in ("output-denied", "approval-requested")
    if is_refusal:
        result = first_of(part, "output", "errorText", default=at(part, "approval", "reason"))
    if result is not None or is_refusal:
        text = "" if result is None else _text_or_json(result)
        blocks.append(ToolResult(text, call_id, is_refusal))
    return blocks


def _read_inspect(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads Inspect's parts for what a provider did itself: ran a tool, or compacted the dialog."""
    kind = part.get("type")
    if kind == "tool_use" and "tool_type" in part:
        result = part.get("error") or part.get("result") or ""
        return [read_call(part), ToolResult(_text_or_json(result), id_of(part))]
    if kind == "data":
        compaction = fields_of(at(part, "data", "compaction_metadata"))
        if isinstance(compaction.get("content"), str):
            return [SummaryBlock(compaction["content"])]
    return None


def _read_anthropic(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads blocks of Anthropic's API and of the Responses API."""
    kind = part.get("type")
    if kind in CALL_BLOCK_TYPES:
        return [read_call(part)]
    if kind == "compaction" and isinstance(part.get("content"), str):
        return [SummaryBlock(part["content"])]
    if isinstance(kind, str) and kind.endswith("tool_result"):  # also of the provider's own tools
        content = part.get("content")
        if isinstance(content, Mapping):
            return [ToolResult(_text_or_json(content), id_of(part))]
        text = text_of(content)
        is_refusal = part.get("is_error") is True and is_refusal_by_claude_code(text)
        return [ToolResult(text, id_of(part), is_refusal, kinds_without_text(content))]
    return None


_READERS: tuple[Callable[[Mapping[str, Any]], list[ContentBlock] | None], ...] = (
    _read_gemini,
    _read_bedrock,
    _read_opentelemetry,
    _read_openinference,
    _read_vercel,
    _read_inspect,
    _read_anthropic,
)


def _text_or_json(result: Any) -> str:
    """Returns a tool's result as text: JSON, unless it is text already."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
