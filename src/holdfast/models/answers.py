"""What an endpoint answers, read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from holdfast.models.requests import Reply

_STOP_REASONS = {  # finish_reason of the wire to ours; the later names are those of other servers
    "stop": "stop",
    "length": "length",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


@dataclass(frozen=True)
class Endpoint:
    """Where a model stands and how it is asked.

    Args:
        url: without credentials and query.
        model: its name there.
        key_variable: the environment variable the key is read from.
        timeout: seconds for one answer.
        max_retries: per request.
        key: empty where none is needed.
    """

    url: str
    model: str
    key_variable: str
    timeout: float
    max_retries: int
    key: str = field(default="", repr=False, compare=False)


class MalformedAnswer(ValueError):
    """An answer that is not one complete chat completion; the message says what is wrong in a few
    words.
    """


class FilteredReply(ValueError):
    """An answer whose reply a content filter withheld."""


def read_reply(text: str) -> Reply:
    """Reads the body of a chat completion.

    Raises:
        MalformedAnswer: anything but one complete answer.
    """
    try:
        answer = _fields(json.loads(text))
    except (ValueError, RecursionError):
        raise MalformedAnswer("not JSON") from None
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedAnswer("no choices")
    if not choices:
        raise MalformedAnswer("an empty list of choices")
    choice = _fields(choices[0])
    reason, message = choice.get("finish_reason"), choice.get("message")
    if reason == "content_filter":
        raise FilteredReply
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedAnswer(f"finish_reason {_shown(reason)}")
    if not isinstance(message, dict):
        raise MalformedAnswer("no message")
    text, stop_reason = _read_message(message, _STOP_REASONS[reason])
    return Reply(text, None, stop_reason, forwarded=_count_forwarded(_fields(answer.get("usage"))))


def _read_message(message: dict[str, object], stop_reason: str) -> tuple[str, str]:
    """The text and the stop reason; a message without content says why there is none."""
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise MalformedAnswer("no text in the message")
    if message.get("tool_calls") or message.get("function_call"):
        stop_reason = "tool_calls"
    if content is not None:
        return content, stop_reason
    if isinstance(refusal := message.get("refusal"), str):
        return refusal, "refusal"
    # "length": a reasoning model that was cut off before its first word
    return "", "empty" if stop_reason == "stop" else stop_reason


def read_models(text: str) -> list[str]:
    """Reads the body of a list of models.

    Raises:
        MalformedAnswer: it is none.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedAnswer("not JSON") from None
    models = _fields(answer).get("data")
    if not isinstance(models, list):
        raise MalformedAnswer("no list of models")
    return [name for model in models if isinstance(name := _fields(model).get("id"), str)]


def _shown(value: object) -> str:
    """A value in a sentence, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _fields(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _count_forwarded(usage: dict[str, object]) -> int:
    """Tokens read and written, less those the server had in its cache; 0 where it does not say."""
    cached = _fields(usage.get("prompt_tokens_details")).get("cached_tokens")
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(read, int) or not isinstance(written, int):
        return 0
    return read + written - (cached if isinstance(cached, int) else 0)
