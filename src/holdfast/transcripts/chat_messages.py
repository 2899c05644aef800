"""Reads the messages and tools of several chat APIs into events.

One reader takes the messages of OpenAI's Chat Completions (with `tool_calls` and `tool` messages),
the items of its Responses API, Anthropic's messages with content blocks, messages with `parts`
(Gemini's API, Vercel's AI SDK, OpenTelemetry), LangChain's, and ShareGPT's turns: their fields do
not collide.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.chat.messages import Tool
from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.transcript import Event, message

ROLES = {  # of OpenAI, Anthropic, Gemini, LangChain and ShareGPT; case is ignored
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "model", "ai", "gpt", "chatgpt", "bing", "bard"), "assistant"),
    **dict.fromkeys(("bot", "chatbot"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), "tool"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
}
# LangChain writes its classes, such as AIMessage and HumanMessageChunk, or a `type` without a role
_LANGCHAIN_CLASS = re.compile(r"(system|human|ai|tool|function)message(?:chunk)?")
_LANGCHAIN_TYPES = ("system", "human", "ai", "tool", "function")
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "mcp_call")
HIDDEN_TYPES = ("reasoning", "item_reference", "thinking", "redacted_thinking", "compaction")


class Malformed(Exception):
    """An invalid message or line; the text of the exception says why."""


def read_messages(items: Any) -> list[Event]:
    """The events in a list of messages.

    Raises:
        Malformed: one of them cannot be read.
    """
    if not isinstance(items, list):
        raise Malformed(f"{shortened(items)} is not a list of messages")
    events: list[Event] = []
    for number, item in enumerate(items, start=1):
        try:
            events += _read_item(item)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    return events


def read_message(item: Any) -> list[Event]:
    """The events in a message: its text, and the tool calls or results in it.

    Raises:
        Malformed: it cannot be read.
    """
    return list(_read_item(item))


def _read_item(item: Any) -> Iterator[Event]:
    if not isinstance(item, Mapping):
        raise Malformed(f"{shortened(item)} is not an object")
    if "role" not in item and isinstance(item.get("message"), Mapping):
        item = item["message"]  # as OpenInference nests them
    item = _without_langchain(item)
    kind = item.get("type")
    if kind in CALLS:
        yield from message("assistant", "", [_read_call(item)])
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        yield from message("tool", _text_of(item.get("output")), call_id=_id_of(item))
    elif kind in HIDDEN_TYPES or (isinstance(kind, str) and kind.endswith("_call")):
        return  # reasoning, and tools that the provider runs itself
    else:
        yield from _read_message(item)


def _read_message(item: Mapping[str, Any]) -> Iterator[Event]:
    speaker = item.get("role", item.get("from"))
    role = _role_of(speaker)
    if role is None:
        known = ", ".join(ROLES)
        raise Malformed(f"it has the role {shortened(speaker)}; the known roles are {known}")
    if not item.keys() & _CONTENTS:
        raise Malformed(f"it has no content, only {', '.join(map(repr, item))}")
    content = item.get("content", item.get("contents", item.get("value")))
    if isinstance(item.get("parts"), list):  # of which `content` is the text, if it is there
        content = item["parts"]
    if role == "call":  # ShareGPT: a call as the text of a message
        yield from message("assistant", "", [_call_in_text(content)])
        return
    blocks = list(_as_blocks(content)) if isinstance(content, list) else []
    results = [block for block in blocks if _type_of(block) == "tool_result"]
    for result in results:
        yield from message("tool", _text_of(result.get("content")), call_id=_id_of(result))
    text = _text_of([block for block in blocks if block not in results] if blocks else content)
    calls = [_read_call(block) for block in blocks if _type_of(block) in ("tool_use", *CALLS)]
    tool_calls = item.get("tool_calls") or []
    if not isinstance(tool_calls, list):
        raise Malformed(f"its tool_calls are {shortened(tool_calls)}, which is no list")
    if not calls:  # LangChain repeats the calls of the blocks
        calls = [_read_call(_inner(call)) for call in tool_calls]
    if isinstance(item.get("function_call"), Mapping):
        calls.append(_read_call(item["function_call"]))
    if text or calls or not results:
        made = calls if role == "assistant" else []
        yield from message(role, text, made, _id_of(item), is_cut(item))


_ENDS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
_LIMITS = ("length", "max_tokens", "max_output_tokens", "model_length")


def is_cut(item: Any) -> bool:
    """Whether a message, or an API's answer with one, says that it ended at the token limit."""
    if not isinstance(item, Mapping):
        return False
    objects = (item, *(item.get(name) for name in ("response_metadata", "generation_info")))
    ends = [fields.get(name) for fields in objects if isinstance(fields, Mapping) for name in _ENDS]
    return any(isinstance(end, str) and end.lower() in _LIMITS for end in ends)


_CONTENTS = {
    *("content", "contents", "value", "parts", "tool_calls", "function_call", "refusal"),
}


def _role_of(speaker: Any) -> str | None:
    if not isinstance(speaker, str):
        return None
    name = speaker.lower()
    langchain = _LANGCHAIN_CLASS.fullmatch(name)
    return ROLES.get(langchain[1] if langchain else name)


def is_message(value: Any) -> bool:
    """Whether a value looks like a message, or an item of the Responses API."""
    if not isinstance(value, Mapping):
        return False
    value = _without_langchain(value)
    typed = str(value.get("type", "")).startswith(("message", "function_call", "reasoning"))
    return "role" in value or {"from", "value"} <= value.keys() or typed


def _without_langchain(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of LangChain, in one of its three forms, as a message with a role."""
    kind, path = item.get("type"), item.get("id")
    if kind == "constructor" and isinstance(item.get("kwargs"), Mapping):
        name = path[-1] if isinstance(path, list) and path else None
        message = {**item["kwargs"], "role": name}
    elif (
        "role" in item
        or not (isinstance(kind, str) and _is_langchain_type(kind))
        or "sessionId" in item
    ):
        return item
    elif isinstance(item.get("data"), Mapping):
        message = {**item["data"], "role": kind}
    elif "content" in item:
        message = {**item, "role": kind}
    else:
        return item
    more = message.get("additional_kwargs")
    if isinstance(more, Mapping) and not message.get("tool_calls"):
        message |= {name: more[name] for name in ("tool_calls", "function_call") if more.get(name)}
    return {name: value for name, value in message.items() if name != "type"}


def _is_langchain_type(kind: str) -> bool:
    return kind in _LANGCHAIN_TYPES or bool(_LANGCHAIN_CLASS.fullmatch(kind.lower()))


def _as_blocks(parts: Sequence[Any]) -> Iterator[Any]:
    """Parts of a message as content blocks: text, tool_use and tool_result."""
    for part in parts:
        kind = _type_of(part)
        if not isinstance(part, Mapping):
            yield part
        elif part.get("thought") is True:
            continue  # Gemini's reasoning
        elif isinstance(part.get("functionCall"), Mapping):  # Gemini's API
            yield {"type": "tool_use", **part["functionCall"]}
        elif isinstance(part.get("functionResponse"), Mapping):
            response = part["functionResponse"]
            yield _result_block(_id_of(response), response.get("response"))
        elif kind == "tool_call":  # OpenTelemetry, and LangChain's content
            nested = part.get("tool_call")  # LibreChat, with the result in it
            call = nested if isinstance(nested, Mapping) else part
            yield {**call, "type": "tool_use"}
            if "output" in call:
                yield _result_block(_id_of(call), call["output"])
        elif kind == "tool_call_response":
            yield _result_block(_id_of(part), part.get("response", part.get("result")))
        elif kind == "text" and "text" not in part and isinstance(part.get("content"), str):
            yield {"type": "text", "text": part["content"]}
        elif kind == "tool-invocation" and isinstance(part.get("toolInvocation"), Mapping):
            yield from _ui_tool(part["toolInvocation"])
        elif kind == "dynamic-tool" or (isinstance(kind, str) and kind.startswith("tool-")):
            yield from _ui_tool({"toolName": kind.removeprefix("tool-"), **part})
        else:
            yield part


def _ui_tool(part: Mapping[str, Any]) -> Iterator[Any]:
    """A tool's call and result, which are one part in Vercel's AI SDK."""
    call_id = str(part.get("toolCallId", ""))
    arguments = part.get("input", part.get("args"))
    yield {"type": "tool_use", "name": part.get("toolName"), "id": call_id, "input": arguments}
    result = next((part[key] for key in ("output", "result", "errorText") if key in part), None)
    if result is not None:
        yield _result_block(call_id, result)


def _result_block(call_id: str, result: Any) -> dict[str, Any]:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def _inner(call: Any) -> Any:
    """A tool call without what OpenAI (`function`) and OpenInference (`tool_call`) wrap it in."""
    if isinstance(call, Mapping) and "tool_call" in call:
        call = call["tool_call"]
    inner = call.get("function", call.get("custom")) if isinstance(call, Mapping) else None
    return {**inner, "id": _id_of(call)} if isinstance(inner, Mapping) else inner or call


def _id_of(item: Mapping[str, Any]) -> str:
    """The id of a tool call, in the call or in its result; "" without one."""
    names = ("call_id", "tool_call_id", "tool_use_id", "id")
    return next((str(item[name]) for name in names if item.get(name)), "")


def _read_call(call: Any) -> ToolCall:
    if not isinstance(call, Mapping):
        raise Malformed(f"{shortened(call)} is not a tool call")
    if call.get("type") == "local_shell_call":
        action = call.get("action")
        return ToolCall("local_shell", action if isinstance(action, Mapping) else {}, _id_of(call))
    name = call.get("name")
    if not isinstance(name, str):
        raise Malformed(f"the tool call {shortened(dict(call))} has no name")
    values = (call[key] for key in ("arguments", "input", "parameters", "args") if key in call)
    arguments: Any = next(values, {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"input": arguments}  # a free-form tool, or a call that was cut off
    if arguments is None:
        arguments = {}
    arguments = arguments if isinstance(arguments, Mapping) else {"input": arguments}
    return ToolCall(name, arguments, _id_of(call))


def _call_in_text(content: Any) -> ToolCall:
    try:
        return _read_call(json.loads(content) if isinstance(content, str) else content)
    except (ValueError, RecursionError):
        raise Malformed(f"the call {shortened(content)} is not JSON") from None


def _type_of(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _text_of(content: Any) -> str:
    """The text of a content: a string, or a list of blocks; blocks without text are left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        raise Malformed(f"{shortened(content)} is neither text nor a list of parts")
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, Mapping):
            raise Malformed(f"{shortened(part)} is no part of a message")
        else:
            if isinstance(part.get("message_content"), Mapping):  # OpenInference
                part = part["message_content"]
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str) and part.get("type") not in HIDDEN_TYPES:
                texts.append(text)
    return "\n".join(texts)


def read_tools(declared: Any) -> tuple[Tool, ...]:
    """Tools in OpenAI's form, read from that, Anthropic's, the Responses API's, or JSON text."""
    if isinstance(declared, str) and declared.strip():
        try:
            declared = json.loads(declared)
        except (ValueError, RecursionError):
            raise Malformed(f"the tools {shortened(declared)} are not JSON") from None
    if not isinstance(declared or [], list):
        raise Malformed(f"the tools are {shortened(declared)}, and no list")
    tools = []
    for tool in declared or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise Malformed(f"the tool {shortened(tool)} has no name")
        schema = function.get("parameters", function.get("input_schema"))
        described = {"description": function.get("description"), "parameters": schema}
        present = {name: value for name, value in described.items() if value is not None}
        tools.append({"type": "function", "function": {"name": function["name"], **present}})
    return tuple(tools)
