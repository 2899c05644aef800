"""Reads the answers of an endpoint: whole, or piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from holdfast.chat.messages import shortened
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


@dataclass(frozen=True)
class Applied:
    """The steering that a server applied to an answer.

    Args:
        method: as it is spelled, or "none".
        why: why a method was not applied; "" where it says nothing.
    """

    method: str
    why: str = ""


class MalformedAnswer(ValueError):
    """An answer that is not one complete chat completion; the message says what is wrong in a few
    words.
    """


class FilteredReply(ValueError):
    """An answer whose reply a content filter withheld."""


def read_answer(text: str) -> dict[str, object]:
    """Reads the body of a chat completion.

    Raises:
        MalformedAnswer: it is not JSON.
    """
    try:
        return as_fields(json.loads(text))
    except (ValueError, RecursionError):
        raise MalformedAnswer("not JSON") from None


def read_applied(answer: dict[str, object]) -> Applied | None:
    """The steering that an answer says was applied; None where it says nothing."""
    fields = as_fields(answer.get("holdfast"))
    method = fields.get("steering")
    if not isinstance(method, str):
        return None
    return Applied(method if fields.get("applied") else "none", str(fields.get("why") or ""))


def read_reply(answer: dict[str, object]) -> Reply:
    """The reply in a chat completion.

    Raises:
        MalformedAnswer: anything but one complete answer.
    """
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedAnswer("no choices")
    if not choices:
        raise MalformedAnswer("an empty list of choices")
    choice = as_fields(choices[0])
    reason, message = choice.get("finish_reason"), choice.get("message")
    ending = read_ending(reason)
    if not isinstance(message, dict):
        raise MalformedAnswer("no message")
    text, stop_reason = _read_message(message, ending)
    usage = as_fields(answer.get("usage"))
    masses = read_masses(as_fields(choice.get("holdfast")))
    return Reply(
        text,
        None,
        stop_reason,
        forwarded=_count_forwarded(usage),
        masses=masses,
        billed=_billed(usage),
    )


def read_ending(reason: object) -> str:
    """Our stop reason for that of the wire.

    Raises:
        FilteredReply: a content filter.
        MalformedAnswer: none of the protocol's.
    """
    if reason == "content_filter":
        raise FilteredReply
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedAnswer(f"finish_reason {shortened(reason)}")
    return _STOP_REASONS[reason]


def read_masses(fields: dict[str, object]) -> tuple[float, ...] | None:
    """The mass per generated token that a choice, or a chunk of it, tells, with that of the token
    that ended the reply; None where none.

    Raises:
        MalformedAnswer: something else in its place.
    """
    tokens = fields.get("tokens")
    if tokens is None:
        return None
    if not isinstance(tokens, list):
        raise MalformedAnswer("no list of tokens in its trace")
    ending = [fields["end"]] if "end" in fields else []
    masses = [as_fields(token).get("mass") for token in [*tokens, *ending]]
    numbers = tuple(float(mass) for mass in masses if isinstance(mass, (int, float)))
    if len(numbers) < len(masses):
        raise MalformedAnswer("a token without a mass in its trace")
    return numbers


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
    models = as_fields(answer).get("data")
    if not isinstance(models, list):
        raise MalformedAnswer("no list of models")
    return [name for model in models if isinstance(name := as_fields(model).get("id"), str)]


def as_fields(value: object) -> dict[str, object]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _count_forwarded(usage: dict[str, object]) -> int:
    """Tokens read and written, less those the server had in its cache; 0 where it does not say."""
    billed = _billed(usage)
    cached = as_fields(usage.get("prompt_tokens_details")).get("cached_tokens")
    return 0 if billed is None else sum(billed) - (cached if isinstance(cached, int) else 0)


def _billed(usage: dict[str, object]) -> tuple[int, int] | None:
    """Tokens read and written; None where the server does not say."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return (read, written) if isinstance(read, int) and isinstance(written, int) else None


@dataclass
class Streamed:
    """A reply as far as it has arrived.

    Args:
        tell: takes each piece of its text.
        check: takes what the server says of its steering, before the first piece is told.
        text: so far.
        masses: of the tokens so far; None where the server tells none.
        ending: what ended it, once it has ended.
        name: of the reply at the server.
        content: what stands in place of a text: "refusal", "tool_calls", or "".
    """

    tell: Callable[[str], None]
    check: Callable[[Applied | None], None]
    text: str = ""
    masses: list[float] | None = None
    ending: str | None = None
    name: str = ""
    content: str = ""
    _checked: bool = field(default=False, repr=False)

    def read(self, chunks: Iterable[Any]) -> Reply:
        """Reads all chunks, as the official client gives them.

        Raises:
            MalformedAnswer: they are no complete reply.
            FilteredReply: a content filter withheld the rest.
        """
        for chunk in chunks:
            self._add(as_fields(chunk.to_dict()))
        if self.ending is None:
            raise MalformedAnswer("no end")
        empty = self.ending == "stop" and not self.text
        stop_reason = self.content or ("empty" if empty else self.ending)
        masses = None if self.masses is None else tuple(self.masses)
        return Reply(self.text, None, stop_reason, masses=masses)

    def _add(self, chunk: dict[str, object]) -> None:
        if not self._checked:
            self.check(read_applied(chunk))
            self._checked = True
            self.name = str(chunk.get("id"))
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:  # the last chunk may tell the usage alone
            return
        choice = as_fields(choices[0])
        delta = as_fields(choice.get("delta"))
        refused = delta.get("refusal")
        text = refused if isinstance(refused, str) else delta.get("content")
        if isinstance(refused, str):
            self.content = "refusal"
        elif delta.get("tool_calls") or delta.get("function_call"):
            self.content = "tool_calls"
        if isinstance(text, str) and text:
            self.text += text
            self.tell(text)
        if (masses := read_masses(as_fields(choice.get("holdfast")))) is not None:
            self.masses = [*(self.masses or ()), *masses]
        if (reason := choice.get("finish_reason")) is not None:
            self.ending = read_ending(reason)
