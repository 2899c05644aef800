"""The fields of `/v1/chat/completions` and `/v1/completions`, in one table each."""

from __future__ import annotations

from typing import Any

from holdfast.chat.messages import shortened
from holdfast.serve.fields import (
    Field,
    Schema,
    Table,
    flag,
    neutral,
    number,
    read_fields,
    read_list,
    read_text,
    table,
    text,
    unheeded,
    whole,
)
from holdfast.serve.limits import Limits
from holdfast.serve.messages import messages_field
from holdfast.serve.refusals import refused_field
from holdfast.serve.steering_fields import steering_fields

_SEEDS = 2**63 - 1
_STOPS = 4
_TOP = 20  # likeliest tokens told beside a drawn one, as OpenAI's
_NAME = 1_000  # characters of names, stop strings and the like


def chat_fields(limits: Limits) -> Table:
    """What `/v1/chat/completions` takes."""
    return table(
        messages_field(limits.messages),
        *_sampling(limits),
        whole("max_completion_tokens", 1, limits.tokens, None, "The same as `max_tokens`."),
        flag("logprobs", False, "Whether the log-probability of each token is told."),
        whole("top_logprobs", 0, _TOP, None, "Likeliest tokens told per place; needs `logprobs`."),
        *steering_fields(),
        *_unheeded(),
        neutral("tools", []),
        neutral("tool_choice", "none", "auto"),
        unheeded(
            "parallel_tool_calls",
            {"type": "boolean"},
            flag("", False, "").read,
            "there are no tool calls",
        ),
        neutral("functions", []),
        neutral("function_call", "none", "auto"),
        neutral("response_format", {"type": "text"}),
        neutral("modalities", ["text"]),
        neutral("audio"),
        neutral("prediction"),
        neutral("reasoning_effort"),
        neutral("verbosity"),
        neutral("web_search_options"),
        *_penalties(),
    )


def completion_fields(limits: Limits) -> Table:
    """What `/v1/completions` takes."""
    return table(
        prompt_field(limits, required=True),
        *_sampling(limits),
        whole("logprobs", 0, 5, None, "Likeliest tokens told per place, beside the drawn one's."),
        *steering_fields(),
        *_unheeded(),
        neutral("echo", False),
        neutral("suffix", ""),
        neutral("best_of", 1),
        *_penalties(),
    )


def tokenize_fields(limits: Limits) -> Table:
    """What `/tokenize` takes."""
    messages = messages_field(limits.messages)
    return table(
        _model(),
        Field("messages", messages.read, messages.schema, "A chat; or else `prompt`."),
        text("prompt", None, "A text, without a chat template."),
        *(field for field in steering_fields() if field.name in ("emphasis", "marks", "system_as")),
    )


def prompt_field(limits: Limits, required: bool) -> Field:
    """A text, several, or the ids of tokens."""

    def read(name: str, value: Any) -> list[str | list[int]]:
        if isinstance(value, str):
            return [read_text(name, value)]
        given = read_list(name, value, 1, limits.body_bytes)
        if all(type(entry) is int for entry in given):
            return [_token_ids(name, given)]
        read_list(name, value, 1, limits.choices)
        return [
            read_text(name, entry) if isinstance(entry, str) else _token_ids(name, entry)
            for entry in given
        ]

    ids: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    words: Schema = {"type": "string"}
    several: Schema = {
        "type": "array",
        "items": {"anyOf": [words, ids]},
        "minItems": 1,
        "maxItems": limits.choices,
    }
    schema: Schema = {"anyOf": [words, ids, several]}
    told = "What is continued: a text, a list of token ids, or a list of either; no chat template."
    return Field("prompt", read, schema, told, required=required)


def _token_ids(name: str, value: Any) -> list[int]:
    if isinstance(value, list) and value and all(type(i) is int and i >= 0 for i in value):
        return value
    raise refused_field(
        name, f"{name} is a text, a list of texts, or a list of token ids, not {shortened(value)}."
    )


def _model() -> Field:
    return text("model", _NAME, "The model's name; without it, the one that is served.")


def _sampling(limits: Limits) -> tuple[Field, ...]:
    return (
        _model(),
        number("temperature", 0, 2, 1.0, "0 takes the likeliest token."),
        number("top_p", 0, 1, 1.0, "Mass of the nucleus that is drawn from.", above_low=True),
        whole("max_tokens", 1, limits.tokens, None, "New tokens at most."),
        whole("n", 1, limits.choices, 1, "Replies; the i-th, from 0, draws with `seed` + i."),
        whole("seed", 0, _SEEDS, None, "Names the draws; without it, a random one."),
        Field("stop", _read_stop, _STOP_SCHEMA, "Texts that end a reply, and are not part of it."),
        flag("stream", False, "Whether the reply is told as it is drawn, in server-sent events."),
        Field("stream_options", _read_stream_options, _STREAM_SCHEMA, "Needs `stream`."),
    )


def _unheeded() -> tuple[Field, ...]:
    name = {"type": "string", "maxLength": _NAME}
    pairs: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

    def read_name(name: str, value: Any) -> str:
        return read_text(name, value, _NAME)

    return (
        unheeded("user", name, read_name, "this server keeps nothing by user"),
        unheeded("safety_identifier", name, read_name, "this server keeps nothing by user"),
        unheeded("prompt_cache_key", name, read_name, "prefixes are shared wherever they agree"),
        unheeded("metadata", pairs, _read_pairs, "it is for stored replies, and none is stored"),
        neutral("store", False),
        neutral("service_tier", "auto", "default"),
    )


def _read_pairs(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise refused_field(name, f"{name} is an object of texts, not {shortened(value)}.")


def _penalties() -> tuple[Field, ...]:
    return (
        neutral("frequency_penalty", 0),
        neutral("presence_penalty", 0),
        neutral("logit_bias", {}),
    )


_STOP_SCHEMA: Schema = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": _NAME},
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": _NAME},
            "maxItems": _STOPS,
        },
    ]
}


def _read_stop(name: str, value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else read_list(name, value, 0, _STOPS)
    texts = tuple(read_text(name, entry, _NAME) for entry in given)
    if not all(texts):
        raise refused_field(name, f"{name} holds an empty text, which ends every reply; drop it.")
    return texts


_STREAM_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "include_usage": {"type": "boolean"},
        "include_obfuscation": {"enum": [False, None]},
    },
    "additionalProperties": False,
}


def _read_stream_options(name: str, value: Any) -> bool:
    """Whether usage is told at the end."""
    options = table(
        flag("include_usage", False, "Whether a last chunk tells the usage."),
        neutral("include_obfuscation", False),
    )
    return bool(read_fields(value, options, name)["include_usage"])
