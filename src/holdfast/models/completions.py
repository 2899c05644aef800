"""Reads the answers of an endpoint: whole, or piece by piece."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.chat.chat_completions import AssistantMessage, MalformedResponse, choices_in
from holdfast.errors import shortened
from holdfast.models.requests import Reply
from holdfast.validation.json_values import fields_of

_STOP_REASONS = {  # the wire's finish_reason to ours; the later names are those of other servers
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool_calls"),
}


class BrokenOff(MalformedResponse):
    """A stream that ended before its reply did."""


class FilteredReply(ValueError):
    """An answer whose reply a content filter withheld."""


def read_json(content: str | bytes) -> Mapping[str, Any]:
    """The object in an answer, or {}; raises `MalformedResponse` if it is not JSON in Unicode."""
    try:
        return fields_of(json.loads(content))
    except (ValueError, RecursionError):
        raise MalformedResponse("not JSON") from None


def read_reply(answer: Mapping[str, Any]) -> Reply:
    """The reply in a chat completion; raises `MalformedResponse` or `FilteredReply` without one."""
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedResponse("no choices")
    if not choices:
        raise MalformedResponse("an empty list of choices")
    choice = fields_of(choices[0])
    ending = _read_ending(choice.get("finish_reason"))
    if not isinstance(choice.get("message"), Mapping):
        raise MalformedResponse("no message")
    message = AssistantMessage(is_strict=True)
    message.add(choice["message"])
    reply = _reply_of(message, ending, _read_masses(choice))
    usage = fields_of(answer.get("usage"))
    read = usage.get("prompt_tokens")
    written = usage.get("completion_tokens")
    if not isinstance(read, int) or not isinstance(written, int):
        return reply
    cached = fields_of(usage.get("prompt_tokens_details")).get("cached_tokens")
    computed = read - (cached if isinstance(cached, int) else 0)
    return replace(reply, forwarded=computed + written, billed=(read, written))


class StreamReader:
    """Reads a reply chunk by chunk; `check` gets the first chunk.

    Reasoning in the text is part of the pieces, as it comes, and not of the reply.
    """

    def __init__(self, check: Callable[[Mapping[str, Any]], None]):
        self.name: object = None  # the answer's id
        self._check = check
        self._message = AssistantMessage(is_strict=True)
        self._ending = ""
        self._masses: tuple[float, ...] | None = None
        self._is_first = True

    def add(self, chunk: object) -> str:
        """Reads a chunk; returns its text."""
        fields = fields_of(chunk)
        if self._is_first:
            self._is_first = False
            self._check(fields)
            self.name = fields.get("id")
        choices = choices_in(fields)
        if not choices:
            return ""
        choice = choices[0]
        text = self._message.add(fields_of(choice.get("delta")))
        masses = _read_masses(choice)
        if masses is not None:
            self._masses = (*(self._masses or ()), *masses)
        if choice.get("finish_reason") is not None:
            self._ending = _read_ending(choice["finish_reason"])
        return text

    def reply(self) -> Reply:
        """The whole reply; raises `BrokenOff` if it has not ended."""
        if not self._ending:
            raise BrokenOff("a stream without an end")
        return _reply_of(self._message, self._ending, self._masses)


def read_models(text: str) -> list[str]:
    """The names in a list of models; raises `MalformedResponse` if it is not one."""
    models = read_json(text).get("data")
    if not isinstance(models, list):
        raise MalformedResponse("no list of models")
    names = (fields_of(model).get("id") for model in models)
    return [name for name in names if isinstance(name, str)]


def _read_ending(reason: object) -> str:
    if reason == "content_filter":
        raise FilteredReply
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedResponse(f"finish_reason {shortened(reason)}")
    return _STOP_REASONS[reason]


def _read_masses(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The mass at each token of a choice, or of a chunk of one, and at the token that ended it."""
    trace = fields_of(choice.get("holdfast"))
    tokens = trace.get("tokens")
    if tokens is None:
        return None
    if not isinstance(tokens, list):
        raise MalformedResponse("no list of tokens in its trace")
    ending = [trace["end"]] if "end" in trace else []
    masses = [fields_of(token).get("mass") for token in [*tokens, *ending]]
    numbers = tuple(float(mass) for mass in masses if isinstance(mass, (int, float)))
    if len(numbers) < len(masses):
        raise MalformedResponse("a token without a mass in its trace")
    return numbers


def _reply_of(message: AssistantMessage, ending: str, masses: tuple[float, ...] | None) -> Reply:
    """A whole message as a reply, without reasoning in its text.

    A reply that ended by itself and has no visible character is "empty"; "length" may be reasoning
    that was cut off before the first word.
    """
    stop_reason = ending
    if message.is_refusal:
        stop_reason = "refusal"
    elif message.calls_tools:
        stop_reason = "tool_calls"
    reply = Reply(message.text, None, stop_reason, masses=masses, reasoning=message.reasoning)
    reply = reply.without_reasoning()
    is_empty = reply.stop_reason == "stop" and not reply.text.strip()
    return replace(reply, stop_reason="empty") if is_empty else reply
