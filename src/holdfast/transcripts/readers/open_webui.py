"""Open WebUI's export."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.exports import Export, in_order, parents_in, transcripts_of_exports
from holdfast.transcripts.reader import Format, at, entries, field_of, mapping, system_prompt
from holdfast.transcripts.transcript import Event


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
    return read_message(message)


FORMAT = Format("open-webui", _recognises, transcripts_of_exports(_export, _events))
