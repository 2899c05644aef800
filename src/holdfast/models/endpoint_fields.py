"""Builds the fields of a request to an endpoint, and reads from its answer how it was steered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.chat.emphasis import TextRange, edit_emphasised
from holdfast.chat.messages import Message, Messages, has_prompt
from holdfast.chat.prompt import place_system
from holdfast.client import WIRE_FORMATS
from holdfast.errors import ModelError, RequestFailed
from holdfast.methods import spec_of
from holdfast.methods.spec import NONE
from holdfast.models.endpoint_errors import Endpoint, failure_of
from holdfast.models.offered_steering import OfferedSteering
from holdfast.models.requests import Request
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SEED_LIMIT = 2**31  # every server can read a seed below it


def chat_fields(request: Request, offered: OfferedSteering) -> dict[str, Any]:
    """Builds the fields for the chat of a request, its seed and, in `extra_body`, its steering.

    Methods that edit messages are applied here, so that they draw as they do with a local model. If
    they copy emphasised text, every copy is emphasised.
    """
    messages, emphasis = edit_emphasised(
        request.messages,
        request.emphasis,
        lambda chat: request.compiled.edit(chat, request.editing_seed),
    )
    fields: dict[str, Any] = {}
    if request.tools:
        fields |= {"tools": list(request.tools), "tool_choice": "none"}
    if offered.wire_format == "holdfast":
        fields["messages"] = _to_openai_format(messages)
        fields["seed"] = request.seed
        fields["extra_body"] = _holdfast_fields(request, messages, emphasis)
        return fields
    fields["messages"] = _to_openai_format(place_system(messages, request.system_as))
    fields["seed"] = request.seed % _SEED_LIMIT
    if offered.wire_format == "vllm":
        fields["extra_body"] = _vllm_fields(request, messages, emphasis)
    return fields


def _holdfast_fields(
    request: Request, messages: Messages, emphasis: Sequence[TextRange]
) -> dict[str, Any]:
    """The `extra_body` for `holdfast serve`."""
    steering = _select_steering(request, messages, emphasis)
    fields = WIRE_FORMATS["holdfast"](steering.spec, emphasis, steering.trace)
    if request.system_as != "role":
        fields["system_as"] = request.system_as
    if request.continue_final_message:
        fields["continue_final_message"] = True
    return fields


def _vllm_fields(
    request: Request, messages: Messages, emphasis: Sequence[TextRange]
) -> dict[str, Any]:
    """The `extra_body` for vLLM, which takes texts in place of ranges, and the whole seed."""
    steering = _select_steering(request, messages, emphasis)
    texts = tuple(messages[number]["content"][first:last] for number, first, last in emphasis)
    if not texts and request.system_as != "role":
        prompts = (m["content"].strip() for m in messages if m["role"] == "system")
        texts = tuple(filter(None, prompts))
    fields = WIRE_FORMATS["vllm"](steering.spec, texts, steering.trace)
    fields["vllm_xargs"]["holdfast_seed"] = str(request.seed)
    return {**fields, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


async def fetch_masses(
    client: AsyncOpenAI, endpoint: Endpoint, answer_id: object
) -> tuple[float, ...]:
    """Fetches the mass at every token of a reply that vLLM has traced."""
    import openai

    try:
        answer = json.loads(await client.get(f"/steering/mass/{answer_id}", cast_to=str))
        return tuple(float(mass) for mass in answer["mass"])
    except openai.OpenAIError as error:
        raise failure_of(error, endpoint) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RequestFailed(
            f"{endpoint.url} was asked for the mass of its reply {answer_id}, and reports something"
            f" else ({error}); see its log, or ask without a trace."
        ) from None


def is_mass_separate(body: Mapping[str, Any]) -> bool:
    """Whether the mass that a request asks for has to be fetched after its answer, as from vLLM."""
    return bool(body.get("extra_body", {}).get("vllm_xargs", {}).get("holdfast_trace"))


def check_applied(answer: Mapping[str, Any], body: Mapping[str, Any], url: str) -> None:
    """Raises a `ModelError` if an answer was not steered as its request asked."""
    requested = body.get("extra_body", {}).get("steering")
    reported = fields_of(answer.get("holdfast"))
    applied = reported.get("steering")
    why = reported.get("why")
    if not isinstance(applied, str):
        if requested in (None, NONE):
            return
        applied = NONE
        why = "it says nothing of its steering"
    elif not reported.get("applied"):
        applied = NONE
    if requested is None:
        raise ModelError(
            f"{url} steers (its answer says {applied}), but did not say so when it was connected;"
            " connect again, or repeat the command."
        )
    if (applied == NONE) != (requested == NONE):
        because = f" ({why})" if why else ""
        raise ModelError(
            f"{url} was asked for {requested!r} and applied {applied!r}{because}; see its log, and"
            " connect again if it was restarted."
        )


class _RequestedSteering(NamedTuple):
    """The steering to ask a server for."""

    spec: str
    trace: bool


def _select_steering(
    request: Request, messages: Messages, emphasis: Sequence[TextRange]
) -> _RequestedSteering:
    """Leaves out the methods, and the trace, that need a span if the chat has none."""
    prompted = has_prompt(messages)
    emphasised = bool(emphasis)
    rest = request.compiled.without_edits
    idle = rest.lacking_target(prompted=prompted, emphasised=emphasised)
    methods = [method for method in rest.methods if method not in idle.methods]
    return _RequestedSteering(spec_of(methods), request.trace and (prompted or emphasised))


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
