"""Reads the answers of an endpoint: whole, or piece by piece."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.models.requests import Reply

Fields = dict[str, Any]

_STOP_REASONS = {  # the wire's finish_reason to ours; the later names are those of other servers
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool_calls"),
}


class MalformedResponse(ValueError):
    """An answer that is not one complete chat completion; says in a few words what is wrong."""


class BrokenOff(MalformedResponse):
    """A stream that ended before its reply did."""


class FilteredReply(ValueError):
    """An answer whose reply a content filter withheld."""


def read_json(content: str | bytes) -> Fields:
    """The object in an answer, or {}; raises `MalformedResponse` if it is not JSON in Unicode."""
    try:
        return as_fields(json.loads(content))
    except (ValueError, RecursionError):
        raise MalformedResponse("not JSON") from None


def read_reply(answer: Fields) -> Reply:
    """The reply in a chat completion; raises `MalformedResponse` or `FilteredReply` without one."""
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedResponse("no choices")
    if not choices:
        raise MalformedResponse("an empty list of choices")
    choice = as_fields(choices[0])
    ending, message = _read_ending(choice.get("finish_reason")), choice.get("message")
    if not isinstance(message, dict):
        raise MalformedResponse("no message")
    content = _read_message(message, ending)
    usage = as_fields(answer.get("usage"))
    prompt_tokens, reply_tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    cached = as_fields(usage.get("prompt_tokens_details")).get("cached_tokens")
    billed, forwarded = None, 0
    if isinstance(prompt_tokens, int) and isinstance(reply_tokens, int):
        billed = (prompt_tokens, reply_tokens)
        forwarded = sum(billed) - (cached if isinstance(cached, int) else 0)
    masses = _read_masses(choice)
    reply = Reply(
        content.text,
        None,
        content.stop_reason,
        forwarded=forwarded,
        masses=masses,
        billed=billed,
        reasoning=content.reasoning,
    )
    return _as_read(reply)


class StreamReader:
    """Reads a reply chunk by chunk; `check` gets the first chunk.

    Reasoning in the text is part of the pieces, as it comes, and not of the reply.
    """

    def __init__(self, check: Callable[[Fields], None]):
        self.name: object = None  # the answer's id
        self._check = check
        self._text = self._content = self._ending = self._reasoning = ""
        self._masses: tuple[float, ...] | None = None
        self._is_first = True

    def add(self, chunk: object) -> str:
        """Reads a chunk; returns its text."""
        fields = as_fields(chunk)
        if self._is_first:
            self._is_first = False
            self._check(fields)
            self.name = fields.get("id")
        choices = fields.get("choices")
        if not isinstance(choices, list) or not choices:  # the last chunk may have only the usage
            return ""
        choice = as_fields(choices[0])
        delta = as_fields(choice.get("delta"))
        piece = delta.get("content")
        self._reasoning += _reasoning_in(delta)
        if isinstance(piece, list):
            parts = _read_parts(piece)
            piece = parts.text
            self._reasoning += parts.reasoning
        if isinstance(refusal := delta.get("refusal"), str):
            piece, self._content = refusal, "refusal"
        elif delta.get("tool_calls") or delta.get("function_call"):
            self._content = "tool_calls"
        if (masses := _read_masses(choice)) is not None:
            self._masses = (*(self._masses or ()), *masses)
        if (reason := choice.get("finish_reason")) is not None:
            self._ending = _read_ending(reason)
        if not isinstance(piece, str):
            return ""
        self._text += piece
        return piece

    def reply(self) -> Reply:
        """The whole reply; raises `BrokenOff` if it has not ended."""
        if not self._ending:
            raise BrokenOff("a stream without an end")
        stop_reason = self._content or self._ending
        return _as_read(
            Reply(self._text, None, stop_reason, masses=self._masses, reasoning=self._reasoning)
        )


def read_models(text: str) -> list[str]:
    """The names in a list of models; raises `MalformedResponse` if it is not one."""
    models = read_json(text).get("data")
    if not isinstance(models, list):
        raise MalformedResponse("no list of models")
    return [name for model in models if isinstance(name := as_fields(model).get("id"), str)]


def as_fields(value: object) -> Fields:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _read_ending(reason: object) -> str:
    if reason == "content_filter":
        raise FilteredReply
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedResponse(f"finish_reason {shortened(reason)}")
    return _STOP_REASONS[reason]


def _read_masses(choice: Fields) -> tuple[float, ...] | None:
    """The mass at each token of a choice, or of a chunk of one, and at the token that ended it."""
    trace = as_fields(choice.get("holdfast"))
    tokens = trace.get("tokens")
    if tokens is None:
        return None
    if not isinstance(tokens, list):
        raise MalformedResponse("no list of tokens in its trace")
    ending = [trace["end"]] if "end" in trace else []
    masses = [as_fields(token).get("mass") for token in [*tokens, *ending]]
    numbers = tuple(float(mass) for mass in masses if isinstance(mass, (int, float)))
    if len(numbers) < len(masses):
        raise MalformedResponse("a token without a mass in its trace")
    return numbers


class _MessageContent(NamedTuple):
    """The text of a message, its reasoning, and why it ended."""

    text: str
    stop_reason: str
    reasoning: str


class _Parts(NamedTuple):
    """The parts of a message, each kind joined."""

    text: str
    reasoning: str


def _read_message(message: Fields, stop_reason: str) -> _MessageContent:
    content, reasoning = message.get("content"), _reasoning_in(message)
    if isinstance(content, list):
        parts = _read_parts(content)
        content, reasoning = parts.text, reasoning or parts.reasoning
    if content is not None and not isinstance(content, str):
        raise MalformedResponse("no text in the message")
    if message.get("tool_calls") or message.get("function_call"):
        stop_reason = "tool_calls"
    if not content and isinstance(refusal := message.get("refusal"), str) and refusal:
        return _MessageContent(refusal, "refusal", reasoning)
    return _MessageContent(content or "", stop_reason, reasoning)


def _read_parts(parts: Sequence[Any]) -> _Parts:
    """The text and the reasoning in a list of content parts, which Mistral sends."""
    text, reasoning = "", ""
    for part in map(as_fields, parts):
        if isinstance(part.get("text"), str):
            text += part["text"]
        elif isinstance(thoughts := part.get("thinking"), str):
            reasoning += thoughts
        elif isinstance(thoughts, list):
            reasoning += _read_parts(thoughts).text
        else:
            raise MalformedResponse("no text in a part of the message")
    return _Parts(text, reasoning)


def _reasoning_in(message: Fields) -> str:
    """The reasoning in a field of a message or of a piece of one: vLLM and OpenRouter call it
    `reasoning`; DeepSeek, SGLang, llama.cpp and earlier versions of vLLM `reasoning_content`.
    """
    texts = (message.get(name) for name in ("reasoning_content", "reasoning"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _as_read(reply: Reply) -> Reply:
    """The reply without reasoning in its text. A reply that ended by itself and has no visible
    character is "empty"; "length" may be reasoning that was cut off before the first word.
    """
    reply = reply.without_reasoning()
    is_empty = reply.stop_reason == "stop" and not reply.text.strip()
    return replace(reply, stop_reason="empty") if is_empty else reply
