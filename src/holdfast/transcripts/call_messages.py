"""Reads the messages of a model's call: those of its request, and those of its response.

    {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]} -> request_messages
    -> Event(MESSAGE, "Be brief.", "system"), Event(MESSAGE, "Hi", "user")

The request or response may be that of an API, or the messages alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.transcripts.chat_messages import is_cut, is_message, read_messages
from holdfast.transcripts.json_fields import at, decode_json, require_field, require_object
from holdfast.transcripts.transcript import Event, message_events
from holdfast.validation.json_values import fields_of

_PROMPT_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")
# labels of messages that an exporter joined into one text: roles, or LangChain's names of them
_LABELS = (
    re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE),
    re.compile(r"^(System|Human|AI|Tool): ", re.MULTILINE),
)
_FIRST_ROLES = {"system", "developer", "user", "System", "Human"}  # that begin a dialog


class _Answer(NamedTuple):
    """The messages in a response, and the object in it that says how the answer ended."""

    messages: Any
    ending: Any


def system_prompt(text: Any) -> list[Event]:
    """Returns the events of a system prompt, given as text or parts; [] if it is empty."""
    return read_messages([{"role": "system", "content": text}]) if text else []


def input_messages(value: Any) -> list[Event]:
    """Reads the input of a model's call: text, a message, or messages."""
    if isinstance(value, str):
        return _labelled_messages(value)
    return read_messages(value if isinstance(value, list) else [value])


def _labelled_messages(text: str) -> list[Event]:
    """Splits a text at its labels if these name two roles or more; else the user said all of it."""
    for label in _LABELS:
        if label.match(text):
            _, *parts = label.split(text)
            roles = parts[::2]
            if roles[0] in _FIRST_ROLES and len(set(roles)) > 1:
                pairs = zip(roles, parts[1::2], strict=True)
                messages = [{"role": role, "content": words.strip()} for role, words in pairs]
                return read_messages(messages)
    return message_events("user", text)


def request_messages(value: Any) -> list[Event]:
    """Reads the input of a model's call, in a form that `input_messages` takes or as a request.

    An API's request may have the system prompt outside of its messages.
    """
    value = decode_json(value)
    if not isinstance(value, Mapping) or is_message(value):
        return input_messages(value)
    messages = decode_json(require_field(value, "messages", "input", "prompt", "contents"))
    if "contents" in value and isinstance(messages, list):  # Gemini's, which may lack the role
        messages = [{"role": "user", **require_object(item)} for item in messages]
    return [*prompt_of(value), *input_messages(messages)]


def prompt_of(request: Mapping[str, Any]) -> list[Event]:
    """Returns the system prompt in the fields of an API's request; [] if it has none there."""
    for fields in (request, fields_of(request.get("config"))):  # Google's SDK has it there
        for name in _PROMPT_FIELDS:
            if prompt := decode_json(fields.get(name)):
                return system_prompt(at(prompt, "parts") or prompt)
    return []


def output_messages(value: Any) -> list[Event]:
    """Reads the output of a model's call: text, a message, or an API's whole response."""
    value = decode_json(value)
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


def _answer_in(response: Any) -> _Answer:
    """Finds the first answer in an API's response."""
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
    """Gives the assistant's role to a message that lacks one; unwraps the output of a response."""
    if not isinstance(answer, Mapping) or is_message(answer):
        return answer
    content = {"content": answer["completion"]} if "completion" in answer else {}  # LangChain
    return answer.get("output") or [{"role": "assistant", **answer, **content}]
