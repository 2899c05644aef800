"""What a body asks for: requests for the engine, and how their replies are told."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import Message
from holdfast.errors import HoldfastError
from holdfast.methods import Method
from holdfast.models.requests import Request
from holdfast.sampling import Sampling
from holdfast.serve.limits import Limits
from holdfast.serve.messages import rounds
from holdfast.serve.refusals import Refusal, refusal_of, refused_field
from holdfast.serve.steered import Steered, choose_methods, has_prompt, works_on_messages
from holdfast.serve.steering_fields import Wanted, read_wanted

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class Asked:
    """A body, read.

    Args:
        requests: one per choice, in the order of their index.
        per_prompt: choices of each prompt, which follow one another.
        steered: what they are held to.
        round: of the dialog, from 1; 0 where there is no dialog.
        stops: texts that end a reply.
        top_logprobs: likeliest tokens told per place; None: no log-probabilities at all.
        trace: False, True, or "heads".
        stream: whether the reply is told as it is drawn.
        include_usage: whether a last chunk tells the usage.
    """

    requests: tuple[Request, ...]
    per_prompt: int
    steered: Steered
    round: int
    stops: tuple[str, ...]
    top_logprobs: int | None
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
    steered = choose_methods(wanted, default, has_prompt(messages) or bool(request.emphasis))
    if values["seed"] is None:
        request = replace(request, conversation_seed=dialog_seed(messages))
    seed = _seed(values)
    return Asked(
        tuple(_steer(request, steered, seed + index, wanted) for index in range(values["n"])),
        values["n"],
        steered,
        rounds(messages),
        values["stop"] or (),
        _top_logprobs(values),
        wanted.trace,
        values["stream"],
        _include_usage(values),
    )


def ask_completion(
    values: Mapping[str, Any],
    default: Sequence[Method],
    limits: Limits,
    tokenizer: PreTrainedTokenizerFast,
) -> Asked:
    """What a body of `/v1/completions` asks for.

    Args:
        values: of its fields.
        default: the server's steering, which needs emphasis here.
        limits: of the server.
        tokenizer: of the model, for prompts that are given as token ids.

    Raises:
        Refusal: as `ask_chat`; or token ids that are no text's.
    """
    wanted = read_wanted(values)
    if len(values["prompt"]) * values["n"] > limits.choices:
        raise refused_field(
            "n",
            f"{len(values['prompt'])} prompts with n {values['n']} are more than the"
            f" {limits.choices} choices that this server takes; send fewer at once.",
        )
    sampling, seed = _sampling(values, limits), _seed(values)
    requests, steered = list[Request](), Steered(())
    for prompt in values["prompt"]:
        text = prompt if isinstance(prompt, str) else _text_of(prompt, tokenizer)
        messages = [{"role": "user", "content": text}]
        first = _request(messages, wanted, sampling, limits, plain=True)
        steered = choose_methods(wanted, default, bool(first.emphasis))
        if wanted.steering is None and (other := works_on_messages(steered.methods)):
            steered = Steered((), f"{other} works on the messages of a chat, and this is none")
        for _ in range(values["n"]):
            requests.append(_steer(first, steered, seed + len(requests), wanted))
    return Asked(
        tuple(requests),
        values["n"],
        steered,
        0,
        values["stop"] or (),
        values["logprobs"],
        wanted.trace,
        values["stream"],
        _include_usage(values),
    )


def _text_of(ids: list[int], tokenizer: PreTrainedTokenizerFast) -> str:
    """The text that is tokenized to these ids.

    Raises:
        Refusal: there is none.
    """
    text = str(tokenizer.decode(ids)) if max(ids) < len(tokenizer) else ""
    for known in (text, text.removeprefix(str(tokenizer.bos_token))):
        if known and list(tokenizer(known).input_ids) == ids:
            return known
    raise refused_field(
        "prompt",
        f"The prompt's {len(ids)} token ids are not those that their text is tokenized to; send the"
        " text.",
    )


def ask_tokens(values: Mapping[str, Any], limits: Limits) -> Request:
    """The chat whose tokens a body of `/tokenize` asks for.

    Raises:
        Refusal: emphasis that is not in the chat.
    """
    wanted = Wanted(None, values["emphasis"] or (), values["marks"], values["system_as"], False)
    messages, prompt = values["messages"], values["prompt"]
    if (messages is None) == (prompt is None):
        raise refused_field("messages", "Give messages or a prompt, one of the two.")
    plain = prompt is not None
    messages = [{"role": "user", "content": prompt}] if plain else messages
    return _request(messages, wanted, Sampling(), limits, plain)


def _steer(request: Request, steered: Steered, seed: int, wanted: Wanted) -> Request:
    try:
        return replace(request, methods=steered.methods, seed=seed, trace=bool(wanted.trace))
    except HoldfastError as error:
        raise refusal_of(error, "steering") from None


def _request(
    messages: list[Message],
    wanted: Wanted,
    sampling: Sampling,
    limits: Limits,
    plain: bool = False,
) -> Request:
    try:
        request = Request(
            messages,
            sampling=sampling,
            system_as=wanted.system_as,
            emphasis=wanted.emphasis,
            marks=wanted.marks,
            plain=plain,
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


def _sampling(values: Mapping[str, Any], limits: Limits) -> Sampling:
    tokens, same = values["max_tokens"], values.get("max_completion_tokens")
    if tokens is not None and same is not None and tokens != same:
        raise refused_field(
            "max_tokens", f"max_tokens is {tokens} and max_completion_tokens {same}; give one."
        )
    most = tokens or same or limits.tokens
    return Sampling(values["temperature"], values["top_p"], most)


def _top_logprobs(values: Mapping[str, Any]) -> int | None:
    top: int | None = values["top_logprobs"]
    if top and not values["logprobs"]:
        raise refused_field(
            "top_logprobs", f'top_logprobs {top} needs logprobs; add "logprobs": true.'
        )
    return (top or 0) if values["logprobs"] else None


def _seed(values: Mapping[str, Any]) -> int:
    return secrets.randbits(62) if values["seed"] is None else int(values["seed"])


def dialog_seed(messages: Sequence[Message]) -> int:
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
