"""Open WebUI's export: a list of messages, each of which may name its parent.

A value, shortened:

    {"chat": {"system": "...", "history": {"currentId": "m2", "messages": {"m1": {...}, ...}}}}
"""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.exports import Export, export_reader, parent_ids, sequential_export
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Format
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import Event, EventKind, call_events, message_events

# elements for reasoning and calls, which Open WebUI writes into the text of a reply
_DETAILS = re.compile(
    r"<details\s+type=\"(?P<type>reasoning|tool_calls|code_interpreter)\"(?P<attributes>[^>]*)>"
    r".*?(?:</details>|\Z)\s*",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")


def _recognises(value: Any) -> bool:
    messages = at(value, "chat", "history") or at(value, "chat", "messages")
    return isinstance(messages, (Mapping, list))


def _export(value: Mapping[str, Any]) -> Export:
    chat = require_object(require_field(value, "chat"))
    prompt = system_prompt(chat.get("system") or at(chat, "params", "system"))
    by_id = at(chat, "history", "messages")
    if not by_id:
        return sequential_export(optional_list(require_field(chat, "messages")), prompt)
    messages = {name: require_object(message) for name, message in require_object(by_id).items()}
    leaf = at(chat, "history", "currentId")
    return Export(messages, parent_ids(messages, "parentId"), leaf, prompt)


def _events(message: Mapping[str, Any]) -> list[Event]:
    """Reads a message, and the summary of what came before it, which later contexts begin with."""
    summary = message.get("contextSummary") or message.get("context_summary")
    summaries = [Event(EventKind.COMPACTION, text_of(summary))] if summary else []
    return [*summaries, *_message_events(message)]


def _message_events(message: Mapping[str, Any]) -> list[Event]:
    """Reads a message; for a reply, first its calls with their results, and then its words."""
    content = message.get("content") or ""
    if message.get("role") != "assistant" or not isinstance(content, str):
        return read_message(message)
    words = _DETAILS.sub("", content).strip()
    calls = [*_calls_in_text(content)]
    output = _output_events(optional_list(message.get("output")))
    # since version 0.10, `output` has the whole reply; the text may be empty, or lack the calls
    text_is_empty = not words and not calls
    text_lacks_calls = not calls and any(event.call for event in output)
    if output and (text_is_empty or text_lacks_calls):
        return output
    if words:
        tool_calls = optional_list(message.get("tool_calls") or [])
        calls_beside = [read_call(at(call, "function") or call) for call in tool_calls]
        reply = message_events("assistant", words, calls_beside, is_cut=is_cut(message))
        return [*calls, *reply]
    if calls:
        return calls
    if error := message.get("error"):
        return [Event(EventKind.ERROR, str(at(error, "content") or error))]
    return read_message(message)


def _calls_in_text(text: str) -> Iterator[Event]:
    """Reads the calls that are elements in a text, with their results."""
    for details in _DETAILS.finditer(text):
        attributes = {
            name: html.unescape(value) for name, value in _ATTRIBUTE.findall(details["attributes"])
        }
        if details["type"] == "tool_calls" and attributes.get("name"):
            yield from _call_with_result(attributes)


def _call_with_result(attributes: Mapping[str, str]) -> list[Event]:
    """Reads a call and its result, which are attributes of the same element."""
    arguments = decode_json(_unquote(attributes.get("arguments", "")))
    identity = attributes.get("id", "")
    call = read_call({"name": attributes["name"], "arguments": arguments, "id": identity})
    result = attributes.get("result")
    return call_events(call, None if result is None else text_of(_unquote(result)))


def _unquote(value: str) -> str:
    """Returns the text in a JSON string; other values as they are."""
    try:
        text = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def _output_events(items: Sequence[Any]) -> list[Event]:
    """Reads a reply that is a list of items: the Responses API's, and Open WebUI's own."""
    events: list[Event] = []
    for item in map(require_object, items):
        kind = str(item.get("type"))
        if kind == "message":
            events += read_message({"role": "assistant", **item})
        elif kind == "open_webui:code_interpreter":
            code = {"code": item.get("code")}
            identity = str(item.get("id") or "")
            events += call_events(ToolCall("code_interpreter", code, identity))
        elif kind.startswith("open_webui:"):
            events.append(Event(EventKind.REMINDER, unread=(kind,)))
        else:
            events += read_message(item)
    return events


FORMAT = Format("open-webui", _recognises, export_reader(_export, _events))
