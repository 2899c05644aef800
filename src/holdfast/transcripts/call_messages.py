"""The messages of a model's call: those of its request, and those of its response.

An API's whole request or response is read as well as the messages alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.chat_messages import is_cut, is_message, read_messages
from holdfast.transcripts.json_fields import at, decoded, field_of, fields_of, mapping
from holdfast.transcripts.transcript import Event, message_events


def system_prompt(text: Any) -> list[Event]:
    """A system prompt, given by its text or its parts, as events; none if it is empty."""
    return read_messages([{"role": "system", "content": text}]) if text else []


def input_messages(value: Any) -> list[Event]:
    """The input of a model's call: text, a message, or messages."""
    if isinstance(value, str):
        return _labelled_messages(value)
    return read_messages(value if isinstance(value, list) else [value])


# how messages begin that an exporter joined to one text: in lower case, or as LangChain's names
_LABELS = (
    re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE),
    re.compile(r"^(System|Human|AI|Tool): ", re.MULTILINE),
)


_FIRST = {"system", "developer", "user", "System", "Human"}  # roles that begin a dialog


def _labelled_messages(text: str) -> list[Event]:
    """A text as a message of the user, or as those that it labels by two roles or more."""
    for label in _LABELS:
        if label.match(text):
            _, *parts = label.split(text)
            roles = parts[::2]
            if roles[0] in _FIRST and len(set(roles)) > 1:
                pairs = zip(roles, parts[1::2], strict=True)
                messages = [{"role": role, "content": words.strip()} for role, words in pairs]
                return read_messages(messages)
    return message_events("user", text)


_PROMPT_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")


def request_messages(value: Any) -> list[Event]:
    """The input of a model's call as `input_messages` takes it, or an API's whole request, whose
    system prompt may stand beside the messages.
    """
    value = decoded(value)
    if not isinstance(value, Mapping) or is_message(value):
        return input_messages(value)
    messages = decoded(field_of(value, "messages", "input", "prompt", "contents"))
    if "contents" in value and isinstance(messages, list):  # of Gemini, without a role perhaps
        messages = [{"role": "user", **mapping(item)} for item in messages]
    return [*prompt_of(value), *input_messages(messages)]


def prompt_of(request: Mapping[str, Any]) -> list[Event]:
    """The system prompt that stands beside the messages of an API's request; [] without one."""
    for fields in (request, fields_of(request.get("config"))):  # Google's SDK has it there
        for name in _PROMPT_FIELDS:
            if prompt := decoded(fields.get(name)):
                return system_prompt(at(prompt, "parts") or prompt)
    return []


def output_messages(value: Any) -> list[Event]:
    """The output of a model's call: text, a message, or an API's whole response."""
    value = decoded(value)
    if value is None:
        return []
    if isinstance(value, str):
        return message_events("assistant", value)
    answer: Any = value
    if isinstance(value, Mapping) and isinstance(value.get("choices"), list):
        answer = value["choices"][0] if value["choices"] else None
        whole = at(answer, "message") or at(answer, "delta")  # the latter in a stream
        value = whole or {"role": "assistant", "content": at(answer, "text")}
    elif isinstance(value, Mapping) and isinstance(value.get("candidates"), list):  # Gemini's API
        answer = value["candidates"][0] if value["candidates"] else None
        value = at(answer, "content") or []
    elif at(value, "incomplete_details", "reason") == "max_output_tokens":  # the Responses API
        answer = {"finish_reason": "max_output_tokens"}
    elif isinstance(value, list) and value and all(at(part, "toolName") for part in value):
        parts = [{"type": "tool-call", **part} for part in value]  # of Vercel's AI SDK
        value = {"role": "assistant", "content": parts}
    elif isinstance(at(value, "content"), Mapping) and not is_message(value):  # Google's ADK
        value = value["content"]
    if isinstance(value, Mapping) and not is_message(value):
        content = {"content": value["completion"]} if "completion" in value else {}  # LangChain
        value = value.get("output") or [{"role": "assistant", **value, **content}]
    if isinstance(value, str):
        return message_events("assistant", value)
    messages = read_messages(value if isinstance(value, list) else [value])
    if messages and is_cut(answer):  # an API says it beside the message
        messages[-1] = replace(messages[-1], is_cut=True)
    return messages
