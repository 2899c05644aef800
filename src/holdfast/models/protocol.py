"""The protocols of chat models and engines, whether they run here or behind an endpoint.

Generates   implements `generate` with `generate_batch`; a model may inherit it
ChatModel   the members that every model has; its `session` opens an engine
Engine      an asynchronous function from a request to a reply

The protocols after these are optional. A function beside each reads the member from any model or
engine, such as `tokenizer_of(model)`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack, cast, runtime_checkable

from holdfast.chat.default_prompts import default_system_prompt
from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.errors import UnknownName
from holdfast.generation.sampling import Penalties, Sampling, SamplingValues
from holdfast.methods import Ability, Method, Methods
from holdfast.models.grammars import read_response_format
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from holdfast.generation.reply_scoring import Scored


class Generates(Protocol):
    """Implements `generate` with `generate_batch`."""

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, faster than one by one; returns the replies in their order.

        The replies are the same as one by one, up to rounding. Below float32, rounding may change a
        sampled reply after some tokens.
        """

    def generate(
        self,
        messages: Messages,
        methods: Methods = (),
        sampling: Sampling = Sampling(),
        seed: int = 0,
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
        continue_final_message: bool = False,
        trace: bool = False,
        response_format: Mapping[str, Any] | None = None,
        penalties: Penalties = Penalties(),
        **values: Unpack[SamplingValues],
    ) -> Reply:
        """Answers one chat.

        Args:
            messages: the chat so far, each message with "role" and "content".
            methods: the steering: a spec string, a method, or a list of methods.
            sampling: how tokens are drawn.
            seed: determines the draws.
            emphasis: the text to steer towards in place of the system prompt: texts, (text,
                occurrence from 1) or (message from 0, first, last character).
            marks: whether `*like this*` in a message is emphasis too.
            continue_final_message: whether the reply continues the last message, which must be the
                assistant's.
            trace: whether to fill `token_masses` and `trace` of the reply.
            response_format: in OpenAI's form, {"type": "json_object"} or {"type": "json_schema",
                "json_schema": {"name": NAME, "schema": SCHEMA}}: every reply that is not cut off
                is such a JSON text. Needs the extra `grammar`, and a model in this process.
            penalties: lower the logits of tokens that the reply already has; need a model in this
                process.
            values: `temperature`, `top_p` and `max_new_tokens`, in place of those of `sampling`.

        Raises:
            UsageError: a method needs a system prompt or emphasis, and the chat has neither; or
                the response format has a schema that cannot be enforced.
        """
        for name in values.keys() - SamplingValues.__annotations__.keys():
            raise UnknownName("argument", name, _argument_names(), "generate")
        request = Request(
            messages,
            methods,
            replace(sampling, **values),
            seed,
            emphasis=emphasis,
            marks=marks,
            trace=trace,
            continue_final_message=continue_final_message,
            penalties=penalties,
            grammar=read_response_format(response_format),
        )
        request.check_span()
        return self.generate_batch([request])[0]


def _argument_names() -> set[str]:
    """The names of the arguments of `generate`, of which `values` stands for several."""
    names = {*Generates.generate.__annotations__, *SamplingValues.__annotations__}
    return names - {"values", "return"}


@runtime_checkable
class ChatModel(Generates, Protocol):
    """A chat model, local or remote."""

    @property
    def name(self) -> str:
        """The model's name, for display."""

    @property
    def fingerprint(self) -> str:
        """A text that changes if replies may; a run is only resumed under the same fingerprint."""

    @property
    def runtime(self) -> dict[str, str | int]:
        """Versions and devices that rounding depends on; a resumed run must have the same ones."""

    @property
    def independent(self) -> bool:
        """Whether a reply never depends on concurrent requests, not even by rounding."""

    @property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods and studies can use; a method that needs more is refused."""

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that cannot be applied to this model, before anything is generated."""

    def session(self) -> Engine:
        """Opens an engine, in which requests of one thread may share work."""


class Engine(Protocol):
    """An asynchronous function from a request to a reply; a model's `session` opens one.

    Requests that wait at the same time are answered together. Cancelling the task of a request
    frees its memory. An engine is used inside one event loop at a time.

        async with model.session() as engine:
            reply = await engine.generate(Request(messages))
    """

    async def generate(self, request: Request) -> Reply:
        """Answers a request.

        A request with a `thread` continues what the thread has computed. With `keep`, for one
        request of a thread at a time, the reply becomes part of the thread; otherwise the request
        forks the thread and does not change it.

        Raises:
            RequestFailed: this request cannot be answered; others can.
            HoldfastError: another error, whose message names the request if that has a `name`.
        """

    def forget(self, thread: Hashable) -> None:
        """Frees the memory of a thread; called when its conversation is over."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


# Optional members


@runtime_checkable
class HasFacts(Protocol):
    """A model with facts for the manifests of runs that are not part of its identity."""

    @property
    def about(self) -> Mapping[str, object]:
        """The facts, by name."""


@runtime_checkable
class HasTokenizer(Protocol):
    """A model whose chats are rendered in this process, unless its tokenizer is None."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast | None:
        """Its tokenizer, with its chat template."""


def tokenizer_of(model: object) -> PreTrainedTokenizerFast | None:
    """The tokenizer of a model that has one here; None for any other model."""
    return model.tokenizer if isinstance(model, HasTokenizer) else None


def facts_about(model: object) -> dict[str, object]:
    """Facts about a model for a run's manifest, such as its template's default system prompt."""
    about = dict(model.about) if isinstance(model, HasFacts) else {}
    tokenizer = tokenizer_of(model)
    if tokenizer is not None and tokenizer.chat_template:
        default = default_system_prompt(tokenizer)
        if default.text:
            about["default_system_prompt"] = asdict(default)
    return about


@runtime_checkable
class HasMemoryLimit(Protocol):
    """An engine that answers fewer requests at once after its device has run out of memory."""

    @property
    def reduced_max_sequences(self) -> int | None:
        """How many it answers at once since then; None if memory never ran out."""


def reduced_max_sequences(engine: Engine) -> int | None:
    """The limit of an engine that has one now (`HasMemoryLimit`); None for any other engine."""
    return engine.reduced_max_sequences if isinstance(engine, HasMemoryLimit) else None


class ScoresReplies(Protocol):
    """An engine whose model has `Ability.REPLY_SCORES`."""

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """The log-probabilities of given replies to each chat; see `LocalSession.score`."""


async def score_replies(
    engine: Engine, requests: Sequence[Request], replies: Sequence[Sequence[str]]
) -> list[Scored]:
    """The log-probabilities of given replies; the model must have `Ability.REPLY_SCORES`."""
    return await cast("ScoresReplies", engine).score(requests, replies)
