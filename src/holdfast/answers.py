"""What an endpoint answers: the reply, or in one sentence why there is none and what to do; keys are never shown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.chat import Reply

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError

_REFUSES = re.compile(
    r"unsupported|not support|unrecognized|unknown|unexpected|extra (field|input)|not (permitted|allowed|available)|cannot both", re.I
)
_STOP_REASONS = {  # finish_reason of the wire to ours; the later names are those of other servers
    "stop": "stop",
    "length": "length",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
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
    """An answer that is not one complete chat completion; the message says what is wrong in a few words."""


def read_reply(text: str) -> Reply:
    """Reads the body of a chat completion.

    Raises:
        MalformedAnswer: anything but one complete answer.
    """
    try:
        answer = _fields(json.loads(text))
    except ValueError:
        raise MalformedAnswer("not JSON") from None
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedAnswer("no choices")
    if not choices:
        raise MalformedAnswer("an empty list of choices")
    choice = _fields(choices[0])
    message = _fields(choice.get("message"))
    reason = choice.get("finish_reason")
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedAnswer(f"finish_reason {reason!r}")
    content = message.get("content")
    if content is None:
        content = message.get("refusal")
    if content is None and _STOP_REASONS[reason] == "length":
        content = ""  # a reasoning model that was cut off before its first word
    if not isinstance(content, str):
        raise MalformedAnswer("no text in the message")
    return Reply(content, None, _STOP_REASONS[reason], forwarded=_count_forwarded(_fields(answer.get("usage"))))


def explain(error: OpenAIError, endpoint: Endpoint) -> str:
    """The sentence for an error of the official client, after its retries."""
    import openai

    retries = f"up to {endpoint.max_retries} {'retry' if endpoint.max_retries == 1 else 'retries'}"
    if isinstance(error, openai.APIStatusError):
        return _explain_status(error, endpoint, retries)
    if isinstance(error, openai.APITimeoutError):
        return (
            f"{endpoint.url} did not answer within {endpoint.timeout:g} s, with {retries}; allow a longer timeout or a"
            " lower concurrency."
        )
    if isinstance(error, openai.APIConnectionError):
        return (
            f"Cannot reach {endpoint.url} ({_root_of(error, endpoint)}), with {retries}; check the address and that the"
            " server is running."
        )
    return f"{endpoint.url} gave no answer: {_cut(str(error), endpoint)}."


def explain_answer(error: MalformedAnswer, text: str, endpoint: Endpoint) -> str:
    """The sentence for an answer that cannot be read."""
    if "content_filter" in str(error):
        return f"A content filter at {endpoint.url} withheld the reply; use other prompts or another endpoint."
    shown = _cut(text, endpoint)
    return (
        f"{endpoint.url} gave a malformed answer with {error}: {shown!r}; check that it is an OpenAI-compatible base"
        " URL, which usually ends in /v1."
    )


def refused_fields(error: APIStatusError) -> tuple[str, ...]:
    """Fields of the sampling that the server refuses by name, as OpenAI's reasoning models do; () for other complaints."""
    if error.status_code not in (400, 422):
        return ()
    said = _said(error)
    if error.code not in ("unsupported_parameter", "unsupported_value") and not _REFUSES.search(said):
        return ()
    return tuple(name for name in ("seed", "temperature", "top_p") if re.search(rf"\b{name}\b", said) or error.param == name)


def wants_other_limit(error: APIStatusError) -> bool:
    """Whether the server refuses the field max_tokens by name, as it does for OpenAI's reasoning models."""
    if error.status_code not in (400, 422):
        return False
    said = _said(error)
    return "max_tokens" in said and ("max_completion_tokens" in said or error.code == "unsupported_parameter")


def _fields(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _count_forwarded(usage: dict[str, object]) -> int:
    """Tokens read and written, less those the server had in its cache; 0 where it does not say."""
    cached = _fields(usage.get("prompt_tokens_details")).get("cached_tokens")
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(read, int) or not isinstance(written, int):
        return 0
    return read + written - (cached if isinstance(cached, int) else 0)


def _explain_status(error: APIStatusError, endpoint: Endpoint, retries: str) -> str:
    url, status, said = endpoint.url, error.status_code, _cut(_said(error), endpoint)
    if status == 401:
        if endpoint.key:
            return f"{url} refused the API key in {endpoint.key_variable} (401: {said}); check that it belongs there."
        return f"{url} wants an API key (401); put it into the environment variable {endpoint.key_variable}."
    if status == 404 and "model" in said.lower():
        return f"{url} has no model {endpoint.model!r} (404: {said}); check its name there."
    if status in (404, 405):
        return f"{url}/chat/completions does not exist ({status}); check the base URL, which usually ends in /v1."
    if status == 429:
        return (
            f"{url} still limits requests (429: {said}), with {retries}; lower concurrency, set requests_per_minute,"
            " or check the account's quota."
        )
    if status >= 500:
        return f"{url} failed ({status}: {said}), with {retries}; look into the server's log or try again later."
    return f"{url} refused the request for {endpoint.model!r} ({status}: {said}){_cure(said, refused_fields(error))}."


def _cure(said: str, refused: tuple[str, ...]) -> str:
    words = said.lower()
    if settings := [f"{name}=1" for name in refused if name != "seed"]:
        return f"; set {' or '.join(settings)}, which this server takes as its own default"
    if "context" in words and ("length" in words or "window" in words):
        return "; use fewer rounds or fewer new tokens"
    if "role" in words and "system" in words:
        return "; put the system prompt before the first user message"
    return ""


def _said(error: APIStatusError) -> str:
    """What the server said, without its wrapping."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail") or body
    if isinstance(body, dict):
        body = body.get("message") or body
    return str(body) if body else "no reason given"


def _cut(text: str, endpoint: Endpoint) -> str:
    """At most 300 characters on one line; the key goes first, so that no part of it is left."""
    if endpoint.key:
        text = text.replace(endpoint.key, "***")
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= 300 else text[:299] + "…"


def _root_of(error: BaseException, endpoint: Endpoint) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return _cut(str(error), endpoint) or type(error).__name__
