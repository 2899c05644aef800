"""The settings of an endpoint, and why it gave no reply.

Each failure is explained in one sentence that says what to do, and never shows a key. For example:

    https://api.example.org/v1 has no model 'gpt-5-mimi' (404: ...); check its name there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.chat.chat_completions import MalformedResponse
from holdfast.errors import ModelError, RequestFailed, Unavailable, Unreachable, cut, reason_of
from holdfast.models.endpoint_answers import BrokenOff
from holdfast.plurals import count_of

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError

# "Unsupported value: 'temperature' does not support 0.7", "Extra inputs are not permitted: seed"
_REFUSES_FIELD = re.compile(
    r"unsupported|not support|unrecognized|unknown|unexpected|extra (field|input)|not"
    r" (permitted|allowed|available)|cannot both",
    re.I,
)
# Every vendor's keys are longer; a placeholder for a server that needs none ("x", "none") is not.
_MIN_KEY_CHARACTERS = 12
_RUN_FIELDS = ("steering", "system_as")  # equal in all requests of a run, so refused in all
_FILTER_CODES = ("content_filter", "content_policy_violation")
# "The response was filtered due to Azure's content management policy"
_FILTERS = re.compile(r"content.?filter|content (management )?policy|flagged by|moderation", re.I)
_TOO_LONG_CODES = (
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
)
# "maximum context length is 4096 tokens" (OpenAI, vLLM), "exceeds the available context size"
# (llama.cpp), "prompt is too long" (Anthropic), "`inputs` must have less than" (Text Generation
# Inference)
_TOO_LONG = re.compile(
    r"context (length|window|size)|maximum model length|max_model_len|prompt is too long"
    r"|input is too long|`inputs` (tokens|must have)",
    re.I,
)


@dataclass(frozen=True)
class Endpoint:
    """The address of a model, and the settings of its client."""

    url: str  # without credentials and query
    model: str  # the model's name at the endpoint
    key_variable: str  # the environment variable that the key is read from
    timeout: float  # seconds that the server may stay silent
    max_retries: int  # per request
    concurrency: int  # requests under way at once
    interval: float  # seconds from one request to the next, at least
    is_direct: bool  # bypasses any proxy, which cannot reach this machine's own ports
    key: str = field(default="", repr=False, compare=False)  # "" if none is needed


def failure_of(error: OpenAIError, endpoint: Endpoint) -> ModelError:
    """Returns the error to raise for an error of the official client, after its retries.

    It is a `RequestFailed` if other requests may still be answered, and otherwise another
    `ModelError`: a wrong key, address, model name or setting, an exhausted quota, or a lost server
    affects every request.
    """
    import openai

    sentence = explain(error, endpoint)
    if not isinstance(error, openai.APIStatusError):
        return Unreachable(sentence) if is_unreachable(error) else RequestFailed(sentence)
    if is_filtered(error):
        return RequestFailed(explain_filter(endpoint), "filter")
    if is_too_long(error):
        return RequestFailed(sentence, "context")
    if error.status_code == 429:
        return Unavailable(sentence)
    affects_all = error.status_code in (401, 404, 405) or error.param in _RUN_FIELDS
    if affects_all or _cure(_message_of(error), refused_fields(error)):
        return ModelError(sentence)
    return RequestFailed(sentence)


def explain(error: OpenAIError, endpoint: Endpoint) -> str:
    """The sentence about an error of the official client, after its retries."""
    import openai

    retries = f"up to {count_of(endpoint.max_retries, 'retry')}"
    if isinstance(error, openai.APIStatusError):
        return _explain_status(error, endpoint, retries)
    if is_unreachable(error):
        why = "timed out" if isinstance(error, openai.APITimeoutError) else ""
        return (
            f"Cannot reach {endpoint.url} ({why or _root_cause(error, endpoint)}); check the"
            " address and that the server is running."
        )
    if isinstance(error, openai.APITimeoutError):
        return (
            f"{endpoint.url} did not answer within {endpoint.timeout:g} s, with {retries}; allow a"
            " longer timeout or a lower concurrency."
        )
    if isinstance(error, openai.APIConnectionError):
        return (
            f"{endpoint.url} closed the connection before its answer was complete"
            f" ({_root_cause(error, endpoint)}); try again, or check the server's log."
        )
    return f"{endpoint.url} gave no answer: {_cut(str(error), endpoint)}."


def _explain_status(error: APIStatusError, endpoint: Endpoint, retries: str) -> str:
    """The sentence about an error with an HTTP status."""
    url = endpoint.url
    status = error.status_code
    message = server_message(error, endpoint)
    if status == 401:
        if endpoint.key:
            return (
                f"{url} refused the API key in {endpoint.key_variable} (401: {message}); check that"
                " it belongs there."
            )
        return (
            f"{url} asks for an API key (401); set the environment variable"
            f" {endpoint.key_variable} to it."
        )
    if status == 404 and "model" in message.lower():
        return f"{url} has no model {endpoint.model!r} (404: {message}); check its name there."
    if status in (404, 405):
        return (
            f"{url}/chat/completions does not exist ({status}); check the base URL, which usually"
            " ends in /v1."
        )
    if status == 429 and error.code == "insufficient_quota":
        return (
            f"{url} says that the account's quota is used up (429: {message}); add credit there, or"
            " use the key of another account."
        )
    if status == 429:
        return (
            f"{url} still limits requests (429: {message}), with {retries}; lower the concurrency,"
            " limit the requests per minute, or check the account's quota."
        )
    if status >= 500:
        return (
            f"{url} failed ({status}: {message}), with {retries}; check the server's log or try"
            " again later."
        )
    refusal = f"{url} refused the request for {endpoint.model!r} ({status}: {message})"
    cure = _cure(message, refused_fields(error))
    if is_too_long(error):
        cure = "use fewer rounds or fewer new tokens"
    return f"{refusal}; {cure}." if cure else f"{refusal}."


def _cure(message: str, refused: tuple[str, ...]) -> str:
    """The advice for a refusal that all requests of a run would meet; "" for another refusal."""
    settings = [f"{name}=1" for name in refused if name != "seed"]
    if settings:
        return f"set {' or '.join(settings)}, this server's own default"
    if "role" in message.lower() and "system" in message.lower():
        return "put the system prompt before the first user message"
    return ""


def explain_filter(endpoint: Endpoint) -> str:
    """The sentence about a reply that a content filter has withheld."""
    return (
        f"A content filter at {endpoint.url} withheld the reply; use other prompts or another"
        " endpoint."
    )


def explain_answer(error: MalformedResponse, text: str, endpoint: Endpoint) -> str:
    """The sentence about an answer that cannot be read."""
    excerpt = _cut(text, endpoint)
    why = _cut(str(error), endpoint)
    if not excerpt:
        return (
            f"{endpoint.url} gave an empty answer ({why}); check that it is an OpenAI-compatible"
            " base URL, which usually ends in /v1."
        )
    if isinstance(error, BrokenOff):
        return (
            f"{endpoint.url} broke off in the middle of its answer, after {excerpt!r}; try again."
        )
    return (
        f"{endpoint.url} gave no chat completion, but {excerpt!r} ({why}); check that it is an"
        " OpenAI-compatible base URL, which usually ends in /v1."
    )


def list_models(names: Sequence[str], endpoint: Endpoint) -> str:
    """The first ten of the names that a server lists, for a sentence."""
    listed = _cut(", ".join(_cut(name, endpoint) for name in names[:10]), endpoint)
    return f"{listed} and {len(names) - 10} more" if len(names) > 10 else listed


def server_message(error: APIStatusError, endpoint: Endpoint) -> str:
    """The server's own message, shortened for a sentence."""
    return _cut(_message_of(error), endpoint)


# --- What a server refuses


def is_unreachable(error: OpenAIError) -> bool:
    """Whether the client could not connect to the server."""
    import httpx2

    return isinstance(error.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout))


def is_filtered(error: APIStatusError) -> bool:
    """Whether the server says that a content filter blocked this request."""
    if error.status_code not in (400, 403, 422):
        return False
    return error.code in _FILTER_CODES or bool(_FILTERS.search(_message_of(error)))


def is_too_long(error: APIStatusError) -> bool:
    """Whether the server says that the chat is longer than the model's context."""
    if error.status_code not in (400, 413, 422):
        return False
    return (
        error.code in _TOO_LONG_CODES
        or error.status_code == 413
        or bool(_TOO_LONG.search(_message_of(error)))
    )


def refused_fields(error: APIStatusError) -> tuple[str, ...]:
    """The sampling fields that the server refuses by name, as OpenAI's reasoning models do.

    () if it refuses none of them.
    """
    if error.status_code not in (400, 422):
        return ()
    message = _message_of(error)
    is_coded = error.code in ("unsupported_parameter", "unsupported_value")
    if not is_coded and not _REFUSES_FIELD.search(message):
        return ()
    return tuple(
        name
        for name in ("seed", "temperature", "top_p")
        if re.search(rf"\b{name}\b", message) or error.param == name
    )


def wants_other_limit(error: APIStatusError) -> bool:
    """Whether the server refuses max_tokens by name, as it does for OpenAI's reasoning models."""
    if error.status_code not in (400, 422) or is_too_long(error):
        return False
    message = _message_of(error)
    return "max_tokens" in message and (
        "max_completion_tokens" in message or error.code == "unsupported_parameter"
    )


# --- Texts from a server


def _message_of(error: APIStatusError) -> str:
    """The server's own message, wherever its error format has it."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail") or body
    if isinstance(body, dict):
        body = body.get("message") or body
    return str(body) if body else "no reason given"


def _cut(text: str, endpoint: Endpoint) -> str:
    """Shortens a text to 300 printable characters on one line, and hides the key in it."""
    if len(endpoint.key) >= _MIN_KEY_CHARACTERS:
        text = text.replace(endpoint.key, "***")
    text = "".join(ch if ch.isprintable() else " " for ch in text)
    return cut(" ".join(text.split()).rstrip("."), 300)


def _root_cause(error: Exception, endpoint: Endpoint) -> str:
    """The first error in the chain that led to this one, in words."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return _cut(reason_of(error), endpoint) or type(error).__name__
