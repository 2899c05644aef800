"""What a body asks for: requests for the engine, and how their replies are told."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chat.messages import Message
from holdfast.errors import HoldfastError
from holdfast.methods import Method, spell
from holdfast.models.requests import Request
from holdfast.sampling import Sampling
from holdfast.serve.limits import Limits
from holdfast.serve.messages import rounds
from holdfast.serve.refusals import Refusal, refusal_of, refused_field
from holdfast.serve.steering_fields import Wanted, read_spelling, read_wanted


@dataclass(frozen=True)
class Steered:
    """What a reply is held to.

    Args:
        methods: that are applied.
        why: none are; "" where some are.
    """

    methods: tuple[Method, ...]
    why: str = ""

    def told(self) -> dict[str, Any]:
        """For the answer."""
        told: dict[str, Any] = {"steering": spell(self.methods), "applied": not self.why}
        return told | ({"why": self.why} if self.why else {})


@dataclass(frozen=True)
class Asked:
    """A body, read.

    Args:
        requests: one per choice, in the order of their index.
        per_prompt: choices of each prompt, which follow one another.
        steered: what they are held to.
        round: of the dialog, from 1; 0 where there is no dialog.
        stops: texts that end a reply.
        trace: False, True, or "heads".
        stream: whether the reply is told as it is drawn.
        include_usage: whether a last chunk tells the usage.
    """

    requests: tuple[Request, ...]
    per_prompt: int
    steered: Steered
    round: int
    stops: tuple[str, ...]
    trace: bool | str
    stream: bool
    include_usage: bool


def ask_chat(values: Mapping[str, Any], default: Sequence[Method], limits: Limits) -> Asked:
    """What a body of `/v1/chat/completions` asks for.

    Args:
        values: of its fields.
        default: the server's steering.
        limits: of the server.

    Raises:
        Refusal: fields that do not go together, or emphasis that is not in the chat.
    """
    wanted = read_wanted(values)
    messages: list[Message] = values["messages"]
    request = _request(messages, wanted, _sampling(values, limits), limits)
    steered = _steered(wanted, default, _has_prompt(messages) or bool(request.emphasis))
    first = replace(
        request,
        methods=steered.methods,
        seed=_seed(values),
        conversation_seed=_dialog_seed(messages) if values["seed"] is None else None,
        trace=bool(wanted.trace),
    )
    return Asked(
        tuple(replace(first, seed=first.seed + index) for index in range(values["n"])),
        values["n"],
        steered,
        rounds(messages),
        values["stop"] or (),
        wanted.trace,
        values["stream"],
        _include_usage(values),
    )


def ask_tokens(values: Mapping[str, Any], limits: Limits) -> Request:
    """The chat whose tokens a body of `/tokenize` asks for.

    Raises:
        Refusal: emphasis that is not in the chat.
    """
    wanted = Wanted(None, values["emphasis"] or (), values["marks"], values["system_as"], False)
    return _request(values["messages"], wanted, Sampling(), limits)


def _request(
    messages: list[Message], wanted: Wanted, sampling: Sampling, limits: Limits
) -> Request:
    try:
        request = Request(
            messages,
            sampling=sampling,
            system_as=wanted.system_as,
            emphasis=wanted.emphasis,
            marks=wanted.marks,
        )
    except HoldfastError as error:
        raise refusal_of(error, "marks" if wanted.marks else "emphasis") from None
    if len(request.emphasis) > limits.emphasis:
        raise refused_field(
            "marks" if wanted.marks else "emphasis",
            f"{len(request.emphasis)} parts are emphasised, and this server takes"
            f" {limits.emphasis} at most.",
        )
    return request


def _steered(wanted: Wanted, default: Sequence[Method], has_span: bool) -> Steered:
    """The methods of a request, where there is something to hold on to."""
    if wanted.steering is None:
        if not default:
            return Steered((), "neither the request nor the server asks for steering")
        if has_span:
            return Steered(tuple(default))
        return Steered((), "there is no system prompt and no emphasis to hold on to")
    methods = read_spelling(wanted.steering)
    if not methods:
        return Steered((), "the request asks for none")
    if not has_span:
        raise refused_field(
            "steering",
            f"steering {spell(methods)} holds on to a system prompt or to emphasis, and there is"
            " neither; add one, or ask for steering none.",
            "nothing_to_hold",
        )
    return Steered(methods)


def _has_prompt(messages: Sequence[Message]) -> bool:
    return any(message["role"] == "system" and message["content"].strip() for message in messages)


def _sampling(values: Mapping[str, Any], limits: Limits) -> Sampling:
    tokens, same = values["max_tokens"], values.get("max_completion_tokens")
    if tokens is not None and same is not None and tokens != same:
        raise refused_field(
            "max_tokens", f"max_tokens is {tokens} and max_completion_tokens {same}; give one."
        )
    most = tokens or same or limits.tokens
    return Sampling(values["temperature"], values["top_p"], most)


def _seed(values: Mapping[str, Any]) -> int:
    return secrets.randbits(62) if values["seed"] is None else int(values["seed"])


def _dialog_seed(messages: Sequence[Message]) -> int:
    """The same for all turns of a dialog: methods that edit messages stand by what they did."""
    first = next((m["content"] for m in messages if m["role"] == "user"), "")
    system = [m["content"] for m in messages if m["role"] == "system"]
    return int.from_bytes(hashlib.sha256(repr((system, first)).encode()).digest()[:8], "big")


def _include_usage(values: Mapping[str, Any]) -> bool:
    if values["stream_options"] is None:
        return False
    if not values["stream"]:
        raise refused_field(
            "stream_options", 'stream_options needs a stream; add "stream": true, or leave it out.'
        )
    return bool(values["stream_options"])


def check_model(name: str | None, served: str) -> None:
    """Refuses another model than the one that is served.

    Raises:
        Refusal: with the status that OpenAI gives it.
    """
    if name is not None and name != served:
        raise Refusal(
            f"There is no model {name[:100]!r} here; this server has {served!r}.",
            "model",
            "model_not_found",
            404,
        )
