"""Reads the messages of several chat APIs into events.

    {"role": "assistant", "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]}   OpenAI
    {"role": "assistant", "content": [{"type": "tool_use", "name": "ls", "input": {}}]}   Anthropic
    -> Event(TOOL_CALL, call=ToolCall("ls", {}))

One reader suffices for OpenAI's Chat Completions (with `tool_calls` and `tool` messages), the items
of its Responses API, Anthropic's messages with content blocks, messages with `parts` (Gemini's API,
Vercel's AI SDK, OpenTelemetry), LangChain's messages and ShareGPT's turns, as their fields do not
collide.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.content_blocks import blocks_of, first_unread
from holdfast.transcripts.content_texts import HIDDEN_TYPES, kinds_without_text, text_of
from holdfast.transcripts.injected import enclosing_element
from holdfast.transcripts.json_fields import first_of, list_or_empty
from holdfast.transcripts.langchain_messages import type_of_class, with_langchain_role
from holdfast.transcripts.part_blocks import (
    ContentBlock,
    SummaryBlock,
    TextBlock,
    ToolResult,
    UnreadPart,
)
from holdfast.transcripts.refused_calls import is_refusal_by_framework
from holdfast.transcripts.tools import (
    id_of,
    read_call,
    read_call_in_text,
    read_wrapped_call,
    separate_calls,
)
from holdfast.transcripts.transcript import Event, EventKind, Malformed, message_events, with_unread
from holdfast.validation.json_values import fields_of, text_or_empty

# the roles of OpenAI, Anthropic, Gemini, LangChain and ShareGPT; case is ignored
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    # turns of ShareGPT that are a tool call as JSON
    "function_call": "call",
    "tool_call": "call",
}
# a message has at least one of these fields
_CONTENT_FIELDS = frozenset(
    (
        "content",
        "contents",
        "value",
        "parts",
        "tool_calls",
        "function_call",
        "refusal",
        "function_call_name",
    )
)
# beside the content: of Ollama, Open WebUI and LibreChat, and of Vercel's AI SDK
_ATTACHMENTS = ("images", "files", "attachments", "experimental_attachments")
# the element in which models such as Hermes and Qwen are given results
_RESPONSE = "tool_response"
# where APIs say why a reply ended, and the reasons that mean the token limit
_END_FIELDS = frozenset(
    ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
)
_ENDS_AT_LIMIT = ("length", "max_tokens", "max_output_tokens", "model_length")


class _Content(NamedTuple):
    """The content of a message, sorted by what it becomes."""

    text: str
    calls: list[ToolCall]
    others: list[Event]  # summaries and tool results
    unread: list[str]  # the types of the parts that are not read


def read_messages(items: Any, *, is_strict: bool = False) -> list[Event]:
    """Reads a list of messages.

    Args:
        is_strict: whether to refuse a message that is empty, or has content other than texts, tool
            calls and tool results, such as an image. Otherwise an event names it as `unread`.

    Raises:
        Malformed: a message cannot be read.
    """
    if not isinstance(items, list):
        raise Malformed(f"{shortened(items)} is not a list of messages")
    events: list[Event] = []
    for number, item in enumerate(items, start=1):
        try:
            events += _events_of_item(item, is_strict=is_strict)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
    return events


def read_message(item: Any) -> list[Event]:
    """Reads a message: its text, and the tool calls or results in it.

    Raises:
        Malformed: it cannot be read.
    """
    return list(_events_of_item(item, is_strict=False))


def is_message(value: Any) -> bool:
    """Whether a value looks like a message, or an item of the Responses API."""
    if not isinstance(value, Mapping):
        return False
    message = with_langchain_role(value)
    is_item = str(message.get("type", "")).startswith(("message", "function_call", "reasoning"))
    return "role" in message or {"from", "value"} <= message.keys() or is_item


def is_cut(item: Any) -> bool:
    """Whether a message, or a response with one, says that it was cut at the token limit."""
    item = fields_of(item)
    for value in (item, item.get("response_metadata"), item.get("generation_info")):
        fields = fields_of(value)
        for name in fields.keys() & _END_FIELDS:
            end = fields[name]
            if isinstance(end, str) and end.lower() in _ENDS_AT_LIMIT:
                return True
    return False


def _events_of_item(item: Any, *, is_strict: bool) -> Iterator[Event]:
    """Reads a message, or an item of the Responses API."""
    if not isinstance(item, Mapping):
        raise Malformed(f"{shortened(item)} is not an object")
    nested = item.get("message")  # OpenInference and the choices of a response nest a message
    if isinstance(nested, Mapping) and (
        "role" not in item or ("role" in nested and item.keys().isdisjoint(_CONTENT_FIELDS))
    ):
        item = nested
    item = with_langchain_role(item)
    kind = str(item.get("type", ""))
    if kind.endswith("_call") and "role" not in item:
        yield from message_events("assistant", "", [read_wrapped_call(item)])
        if isinstance(result := item.get("output"), str):  # the provider ran the tool
            yield from message_events("tool", result, call_id=id_of(item))
    elif kind.endswith("_call_output"):
        output = item.get("output")
        if isinstance(output, Mapping) and "content" in output:  # some versions of Codex
            output = output["content"]
        yield _tool_result(text_of(output), id_of(item), kinds_without_text(output))
    elif kind in HIDDEN_TYPES:
        return
    else:
        yield from _events_of_message(item, is_strict=is_strict)


def _events_of_message(item: Mapping[str, Any], *, is_strict: bool) -> Iterator[Event]:
    """Reads a message: first its summary and tool results, then its text with its calls."""
    role = _role_of(item)
    if item.keys().isdisjoint(_CONTENT_FIELDS):
        raise Malformed(f"it has no content, only {', '.join(map(repr, item))}")
    content = first_of(item, "content", "contents", "value")
    if isinstance(item.get("parts"), list):
        content = item["parts"]  # the whole content, of which `content` repeats only the text
    if role == "call":
        yield from message_events("assistant", "", [read_call_in_text(content)])
        return
    if is_strict and (part := first_unread(content)) is not None:
        raise Malformed(f"{shortened(part)} is not a text")
    text, calls, others, unread_types = _add_what_is_beside(item, _sort_blocks(content))
    if role == "assistant" and not calls and not is_strict:
        text, calls = separate_calls(text)
    elif role == "user" and enclosing_element(text) == _RESPONSE:
        role = "tool"
    if role != "assistant":
        calls = []  # Vercel's SDK repeats the assistant's call in the tool's result
    if is_strict and content is None and not (text or calls):
        raise Malformed("it has neither text nor tool calls")
    unread = tuple(unread_types)
    if others and not (text or calls):
        yield from with_unread(others, unread)
        return
    yield from others
    if role == "tool":
        yield _tool_result(text, id_of(item), unread)
    else:
        yield from message_events(role, text, calls, id_of(item), is_cut(item), unread)


def _tool_result(text: str, call_id: str, unread: tuple[str, ...]) -> Event:
    """Returns the result of a call that is a message or an item by itself."""
    is_refusal = is_refusal_by_framework(text)
    return Event(EventKind.TOOL_RESULT, text, call_id=call_id, is_refusal=is_refusal, unread=unread)


def _sort_blocks(content: Any) -> _Content:
    """Sorts the blocks of a message's content: texts, calls, and other events."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    others: list[Event] = []
    unread: list[str] = []
    for block in blocks_of(content):
        match block:
            case TextBlock(text, continues):
                if continues and texts:
                    texts[-1] += text
                else:
                    texts.append(text)
            case ToolCall():
                calls.append(block)
            case SummaryBlock(text):
                others.append(Event(EventKind.COMPACTION, text))
            case ToolResult():
                others.append(_event_of_result(block))
            case UnreadPart(kind):
                unread.append(kind)
    return _Content("\n".join(texts), calls, others, unread)


def _add_what_is_beside(item: Mapping[str, Any], content: _Content) -> _Content:
    """Adds what a message has in other fields than its content."""
    calls = _calls_of(item, in_content=content.calls)
    others = [*content.others]
    for block in _invocations(item):
        if isinstance(block, ToolCall) and block.id not in {call.id for call in calls}:
            calls.append(block)
        elif isinstance(block, ToolResult):
            others.append(_event_of_result(block))
    text = content.text or _text_beside_content(item)
    return _Content(text, calls, others, [*content.unread, *_attachments_of(item)])


def _event_of_result(result: ToolResult) -> Event:
    """Returns the result of a call that is a part of a message."""
    return Event(
        EventKind.TOOL_RESULT,
        result.text,
        call_id=result.call_id,
        is_refusal=result.is_refusal,
        unread=result.unread,
    )


def _attachments_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Yields the types of what the user attached to a message, where it is beside the content."""
    for name in filter(item.__contains__, _ATTACHMENTS):
        for entry in list_or_empty(item.get(name)):
            yield text_or_empty(fields_of(entry).get("type")) or name.removesuffix("s")


def _text_beside_content(item: Mapping[str, Any]) -> str:
    """Returns OpenAI's refusal, or the transcript of what was spoken; "" if there is neither."""
    refusal = text_or_empty(item.get("refusal"))
    return refusal or text_or_empty(fields_of(item.get("audio")).get("transcript"))


def _role_of(item: Mapping[str, Any]) -> str:
    speaker = first_of(item, "role", "from")
    name = text_or_empty(speaker).lower()
    role = _ROLES.get(type_of_class(name) or name)
    if role is None and item.get("tool_call_id"):
        return "tool"  # some write the tool's name in place of a role
    if speaker is None and "type" in item:
        raise Malformed(f"its type {shortened(item['type'])} is not known, and it has no role")
    if role is None:
        roles = ", ".join(_ROLES)
        raise Malformed(f"it has the role {shortened(speaker)}; the known roles are {roles}")
    return role


def _calls_of(item: Mapping[str, Any], in_content: list[ToolCall]) -> list[ToolCall]:
    """Reads the calls of a message: those in the content, or in `tool_calls`, and others."""
    extra = fields_of(item.get("additional_kwargs"))  # of LangChain
    tool_calls = item.get("tool_calls") or extra.get("tool_calls") or []
    if not isinstance(tool_calls, list):
        raise Malformed(f"its tool_calls are {shortened(tool_calls)}, which is not a list")
    # `tool_calls` of LangChain and OpenInference repeat calls in the content
    beside_content = [read_wrapped_call(call) for call in tool_calls]
    if in_content:
        ids = {call.id for call in in_content} | {""}
        without_id = [(call.name, call.arguments) for call in in_content if not call.id]
        beside_content = [
            call
            for call in beside_content
            if call.id not in ids and (call.name, call.arguments) not in without_id
        ]
    calls = [*in_content, *beside_content]
    if isinstance(item.get("function_call"), Mapping):
        calls = [*calls, read_call(item["function_call"])]
    if isinstance(name := item.get("function_call_name"), str):  # of OpenInference
        arguments = item.get("function_call_arguments_json")
        calls = [*calls, read_call({"name": name, "arguments": arguments})]
    return calls


def _invocations(item: Mapping[str, Any]) -> list[ContentBlock]:
    """Reads the calls that Vercel's AI SDK 4 has beside the content of messages without `parts`."""
    invocations = item.get("toolInvocations")
    if not isinstance(invocations, list) or isinstance(item.get("parts"), list):
        return []
    parts = [{"type": "tool-invocation", "toolInvocation": entry} for entry in invocations]
    return [*blocks_of(parts)]
