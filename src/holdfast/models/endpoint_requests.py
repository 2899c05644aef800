"""Builds the body of a request to an endpoint: the chat, the sampling and the steering."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.chat.emphasis import TextRange, edit_emphasised
from holdfast.chat.messages import Message, Messages, has_prompt
from holdfast.chat.prompt import place_system
from holdfast.client import WIRE_FORMATS
from holdfast.methods import spec_of
from holdfast.models.offered_steering import OfferedSteering
from holdfast.models.requests import Request

_SEED_LIMIT = 2**31  # every server can read a seed below it


@dataclass(frozen=True)
class EndpointRequest:
    """A request as an endpoint reads it.

    Args:
        fields: the fields of its body, under OpenAI's names.
        steering: the spec of the methods that the answer has to report as applied; None if the
            server reports none.
        fetches_masses: whether the masses have to be fetched after the answer, as from vLLM.
    """

    fields: dict[str, Any]
    steering: str | None = None
    fetches_masses: bool = False


def endpoint_request(request: Request, model: str, offered: OfferedSteering) -> EndpointRequest:
    """Writes a request for an endpoint.

    Methods that edit messages are applied here, so that they draw as they do with a local model. If
    they copy emphasised text, every copy is emphasised.

    Args:
        request: the request.
        model: the model's name at the endpoint.
        offered: the steering that the endpoint offers, which determines the fields.
    """
    messages, emphasis = edit_emphasised(
        request.messages,
        request.emphasis,
        lambda chat: request.compiled.edit(chat, request.editing_seed),
    )
    fields: dict[str, Any] = {
        "model": model,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "max_tokens": request.sampling.max_new_tokens,
    }
    if request.tools:
        fields |= {"tools": list(request.tools), "tool_choice": "none"}
    steering = _select_steering(request, messages, emphasis)
    if offered.wire_format == "holdfast":
        fields["messages"] = _to_openai_format(messages)
        fields["seed"] = request.seed
        fields["extra_body"] = _holdfast_fields(request, steering, emphasis)
        return EndpointRequest(fields, steering.spec)
    fields["messages"] = _to_openai_format(place_system(messages, request.system_as))
    fields["seed"] = request.seed % _SEED_LIMIT
    if offered.wire_format == "vllm":
        fields["extra_body"] = _vllm_fields(request, steering, messages, emphasis)
        return EndpointRequest(fields, fetches_masses=steering.trace)
    return EndpointRequest(fields)


class _Steering(NamedTuple):
    """The steering to ask a server for."""

    spec: str
    trace: bool


def _select_steering(
    request: Request, messages: Messages, emphasis: Sequence[TextRange]
) -> _Steering:
    """Leaves out the methods, and the trace, that need a span if the chat has none, and the trace
    under `attenuate`, as an engine in this process does.
    """
    has_system_prompt = has_prompt(messages)
    has_emphasis = bool(emphasis)
    rest = request.compiled.without_edits
    untargeted = rest.lacking_target(prompted=has_system_prompt, emphasised=has_emphasis)
    methods = [method for method in rest.methods if method not in untargeted.methods]
    has_span = (has_system_prompt or has_emphasis) and not rest.spares_replies
    return _Steering(spec_of(methods), request.trace and has_span)


def _holdfast_fields(
    request: Request, steering: _Steering, emphasis: Sequence[TextRange]
) -> dict[str, Any]:
    """The `extra_body` for `holdfast serve`."""
    fields = WIRE_FORMATS["holdfast"](steering.spec, emphasis, steering.trace)
    if request.system_as != "role":
        fields["system_as"] = request.system_as
    if request.continue_final_message:
        fields["continue_final_message"] = True
    return fields


def _vllm_fields(
    request: Request, steering: _Steering, messages: Messages, emphasis: Sequence[TextRange]
) -> dict[str, Any]:
    """The `extra_body` for vLLM, which takes texts in place of ranges, and the whole seed."""
    texts = tuple(messages[number]["content"][first:last] for number, first, last in emphasis)
    if not texts and request.system_as != "role":
        prompts = (m["content"].strip() for m in messages if m["role"] == "system")
        texts = tuple(filter(None, prompts))
    fields = WIRE_FORMATS["vllm"](steering.spec, texts, steering.trace)
    fields["vllm_xargs"]["holdfast_seed"] = str(request.seed)
    return {**fields, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def _to_openai_format(messages: Messages) -> list[Message]:
    """Writes tool calls in OpenAI's format, and replaces lone surrogates, which UTF-8 lacks."""
    formatted = []
    for message in messages:
        text = message["content"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        message = {**message, "content": text}
        if calls := message.get("tool_calls"):
            message["content"] = text or None
            message["tool_calls"] = [_encode_arguments(call) for call in calls]
        formatted.append(message)
    return formatted


def _encode_arguments(call: dict[str, Any]) -> dict[str, Any]:
    """The call of a tool with its arguments as JSON text."""
    arguments = json.dumps(call["function"]["arguments"])
    return {**call, "function": {**call["function"], "arguments": arguments}}
