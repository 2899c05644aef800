"""Inspect's calls as requests to the engine.

A call is read as the body of a request to `holdfast serve` would be, so that both take the same,
refuse the same and draw the same. The fields of such a body that OpenAI lacks (`steering`,
`emphasis`, `marks`, `system_as`, `trace`) come in `GenerateConfig.extra_body`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig
from inspect_ai.tool import ToolInfo

from holdfast.chat.messages import Message, shortened
from holdfast.errors import UsageError
from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.models.requests import ReplyTokens
from holdfast.serve.bodies import ChatBody, read_body
from holdfast.serve.refusals import Refusal
from holdfast.serve.requests import Submission, dialog_seed, read_chat
from holdfast.serve.service import Limits

# nobody shares this engine, so a request may take what it likes
LIMITS = Limits(tokens=1 << 20, messages=1 << 20, choices=1 << 10, emphasis=1 << 10)
DEFAULT_TOKENS = 2048  # of a reply where the evaluation does not say, as Inspect's providers have

TOKENS = "holdfast_tokens"  # where the metadata of a message keeps its tokens

# fields of a configuration by their names in the body of a request
_FIELDS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop_seqs": "stop",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
    "num_choices": "n",
}
# refused unless they have the value that changes nothing
_NEUTRAL = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "best_of": 1,
    "extra_headers": {},
    "fallback_models": [],
}
# what Inspect itself uses, or what concerns tools, caches and batch services, of which there are
# none
_IGNORED = frozenset(
    """max_retries timeout attempt_timeout stream_idle_timeout max_connections
    adaptive_connections system_message parallel_tool_calls internal_tools max_tool_output
    cache_prompt fail_on_refusal reasoning_history cache batch""".split()
)


def read_call(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    config: GenerateConfig,
    default: Sequence[Method],
    model: LocalModel,
) -> Submission:
    """The requests that a call of `generate` makes.

    Fields of `config` that would change a reply in a way that the engine does not do are refused by
    their names in Inspect; `default` steers calls that ask for nothing in `extra_body`.
    """
    if tools:
        raise UsageError(
            f"holdfast models call no tools, and {shortened(tools[0].name)} is given; take a task"
            " without tools."
        )
    body = _fields(config) | {"messages": [_plain(message) for message in messages]}
    try:
        chat = read_body(ChatBody, body | (config.extra_body or {}), "The call")
        submission = read_chat(chat, default, LIMITS)
    except Refusal as refusal:
        raise UsageError(refusal.message) from None
    # seeds name draws here, one for each call; what a method repeats is decided once per dialog
    identity: dict[str, Any] = {
        "conversation_seed": dialog_seed(chat.chat),
        "reply_token_ids": _token_ids_of(messages, model),
    }
    requests = tuple(replace(request, **identity) for request in submission.requests)
    return replace(submission, requests=requests)


def tokens_of(token_ids: Sequence[int], text: str, model: LocalModel) -> dict[str, Any]:
    """Metadata with the token ids of a message, so that a dialog goes on from those that the model
    wrote; nothing where they spell another text, as in front of a stop text.
    """
    if model.tokenizer.decode(list(token_ids), skip_special_tokens=True) != text:
        return {}
    return {TOKENS: {"model": model.fingerprint, "ids": list(token_ids)}}


def _token_ids_of(messages: Sequence[ChatMessage], model: LocalModel) -> tuple[ReplyTokens, ...]:
    """The tokens of replies that this model has written, and nobody changed since."""
    token_ids = list[ReplyTokens]()
    for index, message in enumerate(messages):
        kept = (message.metadata or {}).get(TOKENS)
        if not index or message.role != "assistant" or kept is None:
            continue
        if kept == tokens_of(kept["ids"], message.text, model).get(TOKENS):
            token_ids.append((index, tuple(kept["ids"])))
    return tuple(token_ids)


def _fields(config: GenerateConfig) -> dict[str, Any]:
    """The settings of a configuration, by the names of a request's body."""
    given = config.model_dump(exclude_none=True, exclude={*_IGNORED, "extra_body"})
    for name, value in given.items():
        if name not in _FIELDS and not (name in _NEUTRAL and value == _NEUTRAL[name]):
            raise UsageError(
                f"holdfast models take no {name}, and it is {shortened(value)}; leave it out."
            )
    return {_FIELDS[name]: value for name, value in given.items() if name in _FIELDS}


def _plain(message: ChatMessage) -> Message:
    """A message with a role and a text."""
    if message.role == "tool" or getattr(message, "tool_calls", None):
        raise UsageError(
            f"holdfast models call no tools, and the chat holds a message of the role"
            f" {message.role!r} with a tool's call or answer; take a task without tools."
        )
    for part in message.content if isinstance(message.content, list) else ():
        if part.type != "text":
            raise UsageError(
                f"holdfast models read text alone, and a message holds {part.type!r}; leave it out."
            )
    return {"role": message.role, "content": message.text}
