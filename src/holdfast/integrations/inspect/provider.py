"""Holdfast's engine as a model of Inspect: concurrent calls share its batches.

    inspect eval arc.py --model holdfast/Qwen/Qwen2.5-0.5B-Instruct -M method=boost:factor=2

A call is read in the same way as a request to `holdfast serve`, so both accept and refuse the same,
and draw the same replies. The fields of a request that OpenAI's API lacks (`steering`, `emphasis`,
`marks`, `system_as`, `trace`) are given in `GenerateConfig.extra_body`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sniffio
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Logprobs,
    ModelAPI,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    set_model_info,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from transformers.utils import logging

from holdfast.chat.messages import Message, dialog_seed
from holdfast.errors import PromptTooLong, UsageError, shortened
from holdfast.integrations.inspect.speakers import PROVIDER
from holdfast.integrations.inspect.task_arguments import (
    check_names,
    prerequisite_errors,
    rejoin_spec,
)
from holdfast.methods import Method, parse
from holdfast.models.event_loop import task_group
from holdfast.models.loading import load
from holdfast.models.local import LocalModel
from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import ReplyTokens
from holdfast.models.streaming import TextDecoder
from holdfast.serve.answer_formats import Details
from holdfast.serve.bodies import ChatBody
from holdfast.serve.body_model import read_body
from holdfast.serve.decoding import Delta, decode_reply, join_deltas
from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import Refusal
from holdfast.serve.served_engine import ServedEngine
from holdfast.serve.submissions import Submission, read_chat
from holdfast.serve.tool_calls import CallParser

# the engine serves only this process, so requests may be of any size
LIMITS = RequestLimits(tokens=1 << 20, messages=1 << 20, choices=1 << 10, emphasis=1 << 10)
DEFAULT_TOKENS = 2048  # per reply if the evaluation sets no limit, as Inspect's own providers do

TOKENS = "holdfast_tokens"  # the key of a message's tokens in its metadata

# the fields of a configuration, and their names in the body of a request
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
# fields that are refused unless they have the value that changes nothing
_NEUTRAL = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "best_of": 1,
    "extra_headers": {},
    "fallback_models": [],
}
# fields that Inspect itself uses, or that concern tools, caches and batch services, which this
# engine does not have
_IGNORED = frozenset(
    """max_retries timeout attempt_timeout stream_idle_timeout max_connections
    adaptive_connections system_message parallel_tool_calls internal_tools max_tool_output
    cache_prompt fail_on_refusal reasoning_history cache batch""".split()
)
_LOADING = ("device", "dtype", "device_map", "batch_size", "prefix_memory", "trust_remote_code")
_QUEUE = 1 << 30  # no limit, as Inspect itself limits the open requests
_NUMBERS = itertools.count()  # tell the models of this process apart
_STOP_REASONS = {"stop": "stop", "length": "max_tokens"}


class _DrawnReply(NamedTuple):
    """A reply in Inspect's form, and as the server's single piece."""

    choice: ChatCompletionChoice
    delta: Delta


class HoldfastAPI(ModelAPI):
    """A model in this process, whose attention can be steered.

    Args:
        model_name: "default", a folder, or a name on the hub.
        model_args: `method`, which steers calls that do not name any steering, and arguments of
            `holdfast.load`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ):
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        with prerequisite_errors():
            if base_url is not None:
                raise UsageError(
                    f"holdfast/{model_name} runs in this process, and {base_url!r} is given as its"
                    " address; ask a server as openai-api/holdfast/NAME.",
                    option="base_url",
                    value=base_url,
                )
            known = ("method", *_LOADING)
            check_names(model_args, known, kind="argument", owner="A holdfast model")
            logging.disable_progress_bar()  # it would garble Inspect's own display
            self.methods = parse(rejoin_spec(model_args.pop("method", "none")))
            self.model = load(model_name, **model_args)
            if self.methods:
                self.model.check(self.methods)
        # without this, Inspect would create the model again to find it out
        set_model_info(f"{PROVIDER}/{model_name}", ModelInfo(context_length=self.model.context))
        self._engine: ServedEngine | None = None
        self._number = next(_NUMBERS)

    def close(self) -> None:
        """Stops the engine; the next call starts a new one."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def max_tokens(self) -> int:
        """The maximum length of a reply in tokens, if the evaluation sets none."""
        return DEFAULT_TOKENS

    def max_connections(self) -> int:
        """The number of concurrent calls, which all share a batch."""
        return self.model.batch_size

    def connection_key(self) -> str:
        """A key that no other model has, as each model has its own engine."""
        return f"{self.model_name} {self._number}"

    async def count_text_tokens(self, text: str) -> int:
        """Counts the tokens of a text with the model's own tokenizer."""
        return len(self.model.tokenizer(text, add_special_tokens=False).input_ids)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answers a chat in a batch with others; stops with `model_length` if there is no room."""
        start = time.monotonic()
        submission = read_call(input, tools, config, self.methods, self.model)
        engine = self._running_engine()
        try:
            with engine.admit(len(submission.requests)):
                chats = await engine.render(submission.requests, submission.body.likeliest)
                async with task_group() as group:
                    tasks = [
                        group.create_task(self._draw_reply(engine, submission, chat))
                        for chat in chats
                    ]
        except PromptTooLong as error:
            return ModelOutput.from_content(self.model_name, str(error), "model_length")
        replies = [task.result() for task in tasks]
        return ModelOutput(
            model=self.model_name,
            choices=[reply.choice for reply in replies],
            usage=_usage(chats[0], [reply.delta for reply in replies]),
            time=time.monotonic() - start,
        )

    def _running_engine(self) -> ServedEngine:
        """Returns the engine, which is started by the first call."""
        if (library := sniffio.current_async_library()) != "asyncio":
            raise UsageError(
                f"Holdfast's engine needs asyncio, and Inspect runs {library!r}; set"
                " INSPECT_ASYNC_BACKEND=asyncio.",
                value=library,
                allowed="asyncio",
            )
        if self._engine is None:
            self._engine = ServedEngine(self.model, _QUEUE)
        return self._engine

    async def _draw_reply(
        self, engine: ServedEngine, submission: Submission, chat: RenderedRequest
    ) -> _DrawnReply:
        """Draws a reply to a chat."""
        decoder = TextDecoder(self.model.tokenizer, submission.body.stops)
        reply = await join_deltas(decode_reply(engine.stream(chat), decoder))
        tokens = reply.tokens
        masses = [token.mass for token in tokens if token.mass is not None]
        masses += [] if reply.end_mass is None else [reply.end_mass]
        details = Details(self.model.tokenizer, submission.body.likeliest, submission.body.trace)
        logprobs = details.chat_logprobs(tokens)
        token_ids = [token.token_id for token in tokens]
        applied = submission.steering.report([chat.request])
        metadata = applied | tokens_of(token_ids, reply.text, self.model)
        if masses:
            metadata["masses"] = masses
        if submission.body.trace == "heads":
            metadata["tokens"] = details.masses(tokens)
        message = ChatMessageAssistant(
            content=reply.text, model=self.model_name, source="generate", metadata=metadata
        )
        choice = ChatCompletionChoice(
            message=message,
            stop_reason=_STOP_REASONS[reply.finish_reason or "stop"],
            logprobs=None if logprobs is None else Logprobs(content=logprobs["content"]),
        )
        return _DrawnReply(choice, reply)


def _usage(chat: RenderedRequest, replies: Sequence[Delta]) -> ModelUsage:
    """Returns the numbers of tokens that a call took."""
    prompt = len(chat.prompt_ids)
    cached = replies[0].cached
    generated = sum(len(reply.tokens) for reply in replies)
    return ModelUsage(
        input_tokens=prompt - cached,
        input_tokens_cache_read=cached,
        output_tokens=generated,
        total_tokens=prompt + generated,
    )


def read_call(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    config: GenerateConfig,
    default: Sequence[Method],
    model: LocalModel,
) -> Submission:
    """Converts a call of `generate` to requests.

    Args:
        config: a field that would change replies in a way that the engine does not support is
            refused under its name in Inspect.
        default: steers calls without `steering` in their `extra_body`.
    """
    body = _body_fields(config) | {"messages": [_to_message(message) for message in messages]}
    try:
        chat = read_body(ChatBody, body | (config.extra_body or {}), "The call")
        if offered := [*tools, *(tool.function for tool in chat.tools)]:
            raise UsageError(
                f"holdfast models call no tools, and {shortened(offered[0].name)} is given; take a"
                " task without tools.",
                option="tools",
                value=offered[0].name,
            )
        submission = read_chat(chat, default, LIMITS, CallParser(model.name, model))
    except Refusal as refusal:
        raise UsageError(refusal.sentence()) from None
    # in Inspect a seed belongs to one call, but a method's edits are decided once per dialog
    identity: dict[str, Any] = {
        "conversation_seed": dialog_seed(chat.chat),
        "reply_token_ids": _token_ids_of(messages, model),
    }
    requests = tuple(replace(request, **identity) for request in submission.requests)
    return replace(submission, requests=requests)


def tokens_of(token_ids: Sequence[int], text: str, model: LocalModel) -> dict[str, Any]:
    """Returns the token ids of a message as metadata; {} if they do not decode to its text."""
    if model.tokenizer.decode(list(token_ids), skip_special_tokens=True) != text:
        return {}
    return {TOKENS: {"model": model.fingerprint, "ids": list(token_ids)}}


def _token_ids_of(messages: Sequence[ChatMessage], model: LocalModel) -> tuple[ReplyTokens, ...]:
    """Returns the tokens of replies that this model wrote and that were not changed since."""
    token_ids = list[ReplyTokens]()
    for index, message in enumerate(messages):
        tokens = (message.metadata or {}).get(TOKENS)
        if not index or message.role != "assistant" or tokens is None:
            continue
        if tokens == tokens_of(tokens["ids"], message.text, model).get(TOKENS):
            token_ids.append((index, tuple(tokens["ids"])))
    return tuple(token_ids)


def _body_fields(config: GenerateConfig) -> dict[str, Any]:
    """Returns the fields of a configuration under their names in the body of a request."""
    fields = config.model_dump(exclude_none=True, exclude={*_IGNORED, "extra_body"})
    for name, value in fields.items():
        if name not in _FIELDS and not (name in _NEUTRAL and value == _NEUTRAL[name]):
            raise UsageError(
                f"holdfast models do not support {name} ({shortened(value)}); leave it out.",
                option=name,
                value=value,
            )
    return {_FIELDS[name]: value for name, value in fields.items() if name in _FIELDS}


def _to_message(message: ChatMessage) -> Message:
    """Converts a message; raises `UsageError` if it is more than text."""
    if message.role == "tool" or getattr(message, "tool_calls", None):
        raise UsageError(
            f"holdfast models call no tools, and the chat has a message of the role"
            f" {message.role!r} with a tool's call or answer; take a task without tools.",
            option="messages",
            value=message.role,
        )
    parts = message.content if isinstance(message.content, list) else []
    for part in parts:
        if part.type != "text":
            raise UsageError(
                f"holdfast models read only text, and a message has {part.type!r}; leave it out.",
                option="messages",
                value=part.type,
                allowed="text",
            )
    return {"role": message.role, "content": message.text}
