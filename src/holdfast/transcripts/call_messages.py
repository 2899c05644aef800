"""The messages of a model's call: those of its request, and those of its response.

An API's whole request or response is read as well as the messages alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.transcripts.chat_messages import is_cut, is_message, read_messages
from holdfast.transcripts.json_fields import at, decoded, field_of, mapping
from holdfast.transcripts.transcript import Event, message_events
from holdfast.validation.json_values import fields_of


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
_FIRST_ROLES = {"system", "developer", "user", "System", "Human"}  # that begin a dialog


def _labelled_messages(text: str) -> list[Event]:
    """A text as a message of the user, or as those that it labels by two roles or more."""
    for label in _LABELS:
        if label.match(text):
            _, *parts = label.split(text)
            roles = parts[::2]
            if roles[0] in _FIRST_ROLES and len(set(roles)) > 1:
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
    answer = _answer_in(value)
    messages = _with_role(answer.messages)
    if isinstance(messages, str):
        return message_events("assistant", messages)
    events = read_messages(messages if isinstance(messages, list) else [messages])
    if events and is_cut(answer.ending):
        events[-1] = replace(events[-1], is_cut=True)
    return events


class _Answer(NamedTuple):
    """A message or messages in a response, and the part of it that says how the answer ended."""

    messages: Any
    ending: Any


def _answer_in(response: Any) -> _Answer:
    choices = at(response, "choices")
    if isinstance(choices, list):  # OpenAI's Chat Completions, and its older Completions
        choice = choices[0] if choices else None
        message = at(choice, "message") or at(choice, "delta")  # the latter in a stream
        return _Answer(message or {"role": "assistant", "content": at(choice, "text")}, choice)
    candidates = at(response, "candidates")
    if isinstance(candidates, list):  # Gemini's API
        candidate = candidates[0] if candidates else None
        return _Answer(at(candidate, "content") or [], candidate)
    if at(response, "incomplete_details", "reason") == "max_output_tokens":  # the Responses API
        return _Answer(response, {"finish_reason": "max_output_tokens"})
    if isinstance(response, list) and response and all(at(part, "toolName") for part in response):
        parts = [{"type": "tool-call", **part} for part in response]  # of Vercel's AI SDK
        return _Answer({"role": "assistant", "content": parts}, None)
    if isinstance(at(response, "content"), Mapping) and not is_message(response):  # Google's ADK
        return _Answer(response["content"], response)
    return _Answer(response, response)


def _with_role(answer: Any) -> Any:
    """A message that lacks a role with the assistant's, or what an API's response has in place of
    one.
    """
    if not isinstance(answer, Mapping) or is_message(answer):
        return answer
    content = {"content": answer["completion"]} if "completion" in answer else {}  # LangChain
    return answer.get("output") or [{"role": "assistant", **answer, **content}]
