"""Open WebUI's export."""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.exports import Export, in_order, parents_in, transcripts_of_exports
from holdfast.transcripts.reader import Format, at, decoded, entries, field_of, mapping
from holdfast.transcripts.transcript import Event, Kind, message_events

# reasoning and calls, which Open WebUI puts into the text of a reply
_DETAILS = re.compile(
    r"<details\s+type=\"(reasoning|tool_calls|code_interpreter)\"([^>]*)>.*?(?:</details>|\Z)\s*",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")


def _recognises(value: Any) -> bool:
    messages = at(value, "chat", "history") or at(value, "chat", "messages")
    return isinstance(messages, (Mapping, list))


def _export(value: Mapping[str, Any]) -> Export:
    chat = mapping(field_of(value, "chat"))
    prompt = system_prompt(chat.get("system") or at(chat, "params", "system"))
    by_id = at(chat, "history", "messages")
    if not by_id:
        return in_order(entries(field_of(chat, "messages")), prompt)
    messages = {name: mapping(message) for name, message in mapping(by_id).items()}
    return Export(
        messages, parents_in(messages, "parentId"), at(chat, "history", "currentId"), prompt
    )


def _events(message: Mapping[str, Any]) -> list[Event]:
    """The events of a message, of which those of a reply are parted from one another."""
    text = message.get("content")
    if message.get("role") != "assistant" or not isinstance(text or "", str):
        return read_message(message)
    called = list(_calls_in_text(text or ""))
    said = _DETAILS.sub("", text or "").strip()
    output = _output_events(entries(message.get("output")))
    if not (said or called) or (not called and any(event.call for event in output)):
        called, said = output, "" if output else said
    if said:
        calls = message.get("tool_calls") or []
        made = [read_call(at(call, "function") or call) for call in entries(calls)]
        return [*called, *message_events("assistant", said, made, is_cut=is_cut(message))]
    if called:
        return called
    error = message.get("error")
    if error:
        return [Event(Kind.ERROR, str(at(error, "content") or error))]
    return read_message(message)


def _calls_in_text(text: str) -> Iterator[Event]:
    for found in _DETAILS.finditer(text):
        fields = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[2])}
        if found[1] == "tool_calls" and fields.get("name"):
            yield from _called(fields)


def _output_events(items: Sequence[Any]) -> list[Event]:
    """The events of a reply that is a list of items, as versions from 0.10 on have it: those of the
    Responses API, and the program's own.
    """
    events: list[Event] = []
    for item in map(mapping, items):
        kind = str(item.get("type"))
        if kind == "message":
            events += read_message({"role": "assistant", **item})
        elif kind == "open_webui:code_interpreter":
            call = ToolCall("code_interpreter", {"code": item.get("code")}, str(item.get("id")))
            events += message_events("assistant", "", [call])
        elif not kind.startswith("open_webui:"):
            events += read_message(item)
    return events


def _called(fields: Mapping[str, str]) -> list[Event]:
    """A call and its result, which are attributes."""
    call_id = fields.get("id", "")
    arguments = decoded(_unquoted(fields.get("arguments", "")))
    call: ToolCall = read_call({"name": fields["name"], "arguments": arguments, "id": call_id})
    events = message_events("assistant", "", [call])
    if "result" in fields:
        result = _unquoted(fields["result"])
        events.append(Event(Kind.TOOL_RESULT, text_of(result), call_id=call_id))
    return events


def _unquoted(value: str) -> str:
    """A value without the quotes of JSON around it."""
    try:
        text = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value


FORMAT = Format("open-webui", _recognises, transcripts_of_exports(_export, _events))
