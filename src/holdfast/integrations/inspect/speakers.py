"""Lets models of Inspect answer the requests of the benchmark, as the two sides of a self-chat."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelName,
    ModelOutput,
)
from inspect_ai.util import span

from holdfast.chat.prompt import place_system
from holdfast.drift.dialog import is_from_user_model
from holdfast.errors import ModelError, RequestFailed
from holdfast.methods import Method, compile_methods, spec_of
from holdfast.models.requests import Reply, Request

PROVIDER = "holdfast"
_NUM_SEEDS = 2**31  # every provider accepts seeds below this
_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


@dataclass
class Speaker:
    """A model of Inspect as one side of one conversation, and the settings of its calls.

    Args:
        config: the configuration of every call; for fields that it does not set, the evaluation's
            values apply.
        steering: how a Holdfast model is steered in requests without methods; None leaves that to
            the model's own default.
        turns: the turns so far as the model returned them. They are sent back unchanged, since they
            may carry more than their text, such as their token ids.
    """

    model: Model
    config: GenerateConfig = field(default_factory=GenerateConfig)
    steering: str | None = None
    turns: list[ChatMessageAssistant] = field(default_factory=list)

    @property
    def steers(self) -> bool:
        """Whether the model is Holdfast's.

        Such a model takes steering with each call and seeds of any size, and reports the mass.
        """
        return ModelName(self.model).api == PROVIDER

    def check(self, methods: Sequence[Method]) -> None:
        """Raises `ModelError` for methods that the model cannot apply."""
        others = compile_methods(methods).without_edits.methods
        if others and not self.steers:
            raise ModelError(
                f"{spec_of(others[:1])} works inside the model, and Inspect gives {self.model} the"
                " messages alone; use --model holdfast/PATH, or a prompt method such as"
                " repetition:probability=0.5."
            )

    async def ask(self, request: Request) -> Reply:
        """Answers a request; raises `RequestFailed` if a content filter withheld the reply."""
        self.check(request.methods)
        output = await self.model.generate(self._messages(request), config=self._config(request))
        if request.keep and not output.empty:
            self.turns.append(output.message)
        return _reply(output)

    def _messages(self, request: Request) -> list[ChatMessage]:
        """Returns the chat for a request, with the model's own turns as it returned them."""
        messages = request.compiled.edit(request.messages, request.editing_seed)
        if not self.steers:
            messages = place_system(messages, request.system_as)
        turns = iter(self.turns)
        chat: list[ChatMessage] = []
        for message in messages:
            chat_message = _MESSAGES[message["role"]](content=message["content"])
            # a turn with the same text is sent back as the model returned it
            turn = next(turns, None) if message["role"] == "assistant" else None
            if turn is not None and turn.content == chat_message.content:
                chat_message = turn
            chat.append(chat_message)
        return chat

    def _config(self, request: Request) -> GenerateConfig:
        """Returns the configuration of the call for a request."""
        if not self.steers:
            return self.config.merge(GenerateConfig(seed=request.seed % _NUM_SEEDS))
        steering = request.compiled.without_edits.spec if request.methods else self.steering
        body: dict[str, Any] = {"system_as": request.system_as, "trace": request.trace}
        if steering is not None:
            body["steering"] = steering
        return self.config.merge(GenerateConfig(seed=request.seed, extra_body=body))


@dataclass(frozen=True)
class Speakers:
    """An engine made of two models; each request goes to the one whose turn it is.

    Every request is a span in Inspect's transcript.
    """

    agent: Speaker
    user: Speaker

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `Engine.generate`."""
        async with span(request.name):
            return await (self.user if is_from_user_model(request) else self.agent).ask(request)

    def forget(self, thread: Hashable) -> None:
        """Does nothing, as the speakers belong to a single conversation."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass


def _reply(output: ModelOutput) -> Reply:
    """Converts an output of Inspect's to a reply, with the stop reason that records use."""
    if output.empty:
        return Reply("", None, "empty")
    if output.stop_reason == "content_filter":
        raise RequestFailed(f"A content filter withheld the reply of {output.model}.", "filter")
    if output.stop_reason == "model_length":
        return Reply("", None, "context")
    reasons = {"max_tokens": "length", "tool_calls": "tool_calls"}
    reason = reasons.get(output.stop_reason, "stop")
    metadata = output.message.metadata or {}
    return Reply(output.completion, None, reason, masses=tuple(metadata.get("masses", ())) or None)
