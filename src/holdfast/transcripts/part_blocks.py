"""Reads a part of a message's content into blocks: texts, tool calls, tool results.

    {"functionCall": {"name": "ls"}}                           Gemini's API
    {"type": "tool_use", "name": "ls", "input": {}, ...}       Anthropic's API
    -> [ToolCall("ls", {})]

Every API and library has its own kinds of parts; one function each (`_READERS`) reads them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_texts import (
    HIDDEN_TYPES,
    kinds_without_text,
    parts_of,
    text_of,
    text_of_part,
    type_of_part,
)
from holdfast.transcripts.json_fields import at, first_of
from holdfast.transcripts.refused_calls import is_refusal_by_claude_code, is_refusal_by_framework
from holdfast.transcripts.tools import CALL_BLOCK_TYPES, id_of, read_call
from holdfast.validation.json_values import fields_of

_GEMINI_FIELDS = frozenset(
    (
        *("functionCall", "function_call", "functionResponse", "function_response"),
        *("executableCode", "executable_code", "codeExecutionResult", "code_execution_result"),
    )
)
_THOUGHT_SIGNATURES = {"thoughtSignature", "thought_signature"}


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


def blocks_in(part: Any) -> list[ContentBlock] | None:
    """Returns the blocks of a part; None for parts that have none, such as images."""
    if isinstance(part, Mapping):
        for read in _READERS:
            blocks = read(part)
            if blocks is not None:
                return blocks
        if type_of_part(part) in HIDDEN_TYPES:
            return []
    text = text_of_part(part)
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
        files = kinds_without_text(response.get("parts"))  # of Gemini 3
        return [ToolResult(text, id_of(response), is_refusal_by_framework(text), files)]
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
        texts = [at(item, "text") or at(item, "json") for item in parts_of(result.get("content"))]
        text = "\n".join(_text_or_json(item) for item in texts if item is not None)
        return [ToolResult(text, str(result.get("toolUseId") or ""))]
    return [] if {"reasoningContent", "cachePoint"} & part.keys() else None


def _read_opentelemetry(part: Mapping[str, Any]) -> list[ContentBlock] | None:
    """Reads OpenTelemetry's parts; LangChain's and LibreChat's tool calls have the same type."""
    match part.get("type"):
        case "tool_call":
            nested = part.get("tool_call")  # LibreChat
            call = _call_of_assistant(nested) if isinstance(nested, Mapping) else part
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


def _call_of_assistant(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a call with its name and output; those of OpenAI's Assistants are in an object that
    is named by the call's type, as LibreChat writes them too.

        {"type": "code_interpreter", "code_interpreter": {"input": "1 + 1", "outputs": [...]}}
    """
    kind = call.get("type")
    if call.get("name") is not None or not isinstance(kind, str):
        return call
    details = fields_of(call.get(kind))
    arguments = first_of(details, "arguments", "input", default={})
    unwrapped = {"name": details.get("name", kind), "id": id_of(call), "arguments": arguments}
    outputs = first_of(details, "output", "outputs")
    if isinstance(outputs, list):
        texts = [at(output, "logs") for output in outputs]
        outputs = "\n".join(text for text in texts if isinstance(text, str))
    return unwrapped if outputs is None else {**unwrapped, "output": outputs}


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
    if kind == "summary":  # of LibreChat
        return [SummaryBlock(text_of(part.get("content", part.get("text"))))]
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
