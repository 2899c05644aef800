"""Lists of messages, in the forms of several APIs and data sets.

    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [...]}]}
    {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
    {"conversation": [{"role": "user", "content": "Hi"}, {"role": "assistant", ...}]}

All of them are read by the same function. They have separate names so that `--format` can select
one. A list that could be any of them counts as OpenAI's Chat Completions.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, list_or_empty, require_field
from holdfast.transcripts.reader import (
    dialog_format,
    first_message,
    has_messages,
    is_message_list,
    is_responses_item,
)
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _read(value: Any) -> list[Event]:
    """Reads a list of messages, or an object that has one and perhaps the system prompt."""
    items = value
    if not isinstance(value, list):
        items = require_field(value, "messages", "conversations", "conversation", "items")
    prompt = value.get("system") if isinstance(value, Mapping) else None
    return [*system_prompt(prompt), *read_messages(items)]


def _is_ai_sdk(value: Any) -> bool:
    has_list = has_messages(value) or (is_message_list(value) and "from" not in value[0])
    return has_list and isinstance(first_message(value).get("parts"), list)


def _is_sharegpt(value: Any) -> bool:
    fields = fields_of(value)
    items = list_or_empty(fields.get("items"))
    if items and {"from", "value"} <= fields_of(items[0]).keys():
        return True
    if "conversations" in fields:  # of turns; some exports have a dialog in each entry
        first = [*list_or_empty(fields["conversations"]), None][0]
        return not (isinstance(first, list) or has_messages(first))
    return (has_messages(value) or is_message_list(value)) and "from" in first_message(value)


def _is_anthropic(value: Any) -> bool:
    return has_messages(value) and ("system" in value or _has_blocks(value["messages"]))


def _has_blocks(messages: list[Any]) -> bool:
    """Whether messages have content blocks that only Anthropic's API has."""
    blocks = chain.from_iterable(list_or_empty(at(message, "content")) for message in messages)
    return any(at(block, "type") in ("tool_use", "tool_result", "thinking") for block in blocks)


def _is_openai(value: Any) -> bool:
    if is_message_list(fields_of(value).get("conversation")):  # LMSYS-Chat-1M and WildChat
        return True
    return has_messages(value) or (is_message_list(value) and not is_responses_item(value[0]))


AI_SDK = dialog_format("ai-sdk", _is_ai_sdk, _read)
SHAREGPT = dialog_format("sharegpt", _is_sharegpt, _read)
ANTHROPIC = dialog_format("anthropic", _is_anthropic, _read)
OPENAI = dialog_format("openai", _is_openai, _read)
