"""Lists of messages, which several APIs and data sets have in common.

They are read alike; their names are for `--format`. OpenAI's Chat Completions is what a list is
taken for if nothing tells it from the others.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, field_of, list_of
from holdfast.transcripts.reader import (
    Format,
    dialog_per_value,
    first_message,
    has_messages,
    is_item,
    is_message_list,
)
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _read(value: Any) -> list[Event]:
    """A list of messages, or an object that has them and perhaps the system prompt."""
    items = (
        value if isinstance(value, list) else field_of(value, "messages", "conversations", "items")
    )
    prompt = value.get("system") if isinstance(value, Mapping) else None
    return [*system_prompt(prompt), *read_messages(items)]


def _is_ai_sdk(value: Any) -> bool:
    has_list = has_messages(value) or (is_message_list(value) and "from" not in value[0])
    return has_list and isinstance(first_message(value).get("parts"), list)


def _is_sharegpt(value: Any) -> bool:
    fields = fields_of(value)
    items = list_of(fields.get("items"))
    if "conversations" in fields or (items and {"from", "value"} <= fields_of(items[0]).keys()):
        return True
    return (has_messages(value) or is_message_list(value)) and "from" in first_message(value)


def _is_anthropic(value: Any) -> bool:
    return has_messages(value) and ("system" in value or _has_blocks(value["messages"]))


def _has_blocks(messages: list[Any]) -> bool:
    blocks = chain.from_iterable(list_of(at(message, "content")) for message in messages)
    return any(at(block, "type") in ("tool_use", "tool_result", "thinking") for block in blocks)


def _is_openai(value: Any) -> bool:
    return has_messages(value) or (is_message_list(value) and not is_item(value[0]))


AI_SDK = Format("ai-sdk", _is_ai_sdk, dialog_per_value(_read), is_per_value=True)
SHAREGPT = Format("sharegpt", _is_sharegpt, dialog_per_value(_read), is_per_value=True)
ANTHROPIC = Format("anthropic", _is_anthropic, dialog_per_value(_read), is_per_value=True)
OPENAI = Format("openai", _is_openai, dialog_per_value(_read), is_per_value=True)
