"""The fields of a request to an endpoint, and how its answer was steered."""

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
from holdfast.models.endpoint_address import Endpoint
from holdfast.models.endpoint_errors import failure_of
from holdfast.models.offered_steering import OfferedSteering
from holdfast.models.requests import Request
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SEEDS = 2**31  # what every server can read


def chat_fields(request: Request, offered: OfferedSteering) -> dict[str, Any]:
    """The messages of a request, its seed, and in `extra_body` the steering to request.

    Methods that edit messages are applied here, so that they draw as they do locally; text that
    they repeat is emphasised everywhere.
    """
    messages, emphasis = edit_emphasised(
        request.messages,
        request.emphasis,
        lambda chat: request.compiled.edit(chat, request.editing_seed),
    )
    tools = {"tools": list(request.tools), "tool_choice": "none"} if request.tools else {}
    if offered.wire_format != "holdfast":
        placed = _sendable(place_system(messages, request.system_as))
        fields = {"messages": placed, "seed": request.seed % _SEEDS, **tools}
        if offered.wire_format is None:
            return fields
        return fields | _vllm_fields(request, messages, emphasis)
    steering = _steering(request, messages, emphasis)
    extra = WIRE_FORMATS["holdfast"](steering.spec, emphasis, steering.trace)
    if request.system_as != "role":
        extra["system_as"] = request.system_as
    if request.continue_final_message:
        extra["continue_final_message"] = True
    return {"messages": _sendable(messages), "seed": request.seed, **tools, "extra_body": extra}


def _vllm_fields(
    request: Request, messages: Messages, emphasis: Sequence[TextRange]
) -> dict[str, Any]:
    """The `extra_body` for vLLM, which takes texts instead of ranges, and the whole seed."""
    steering = _steering(request, messages, emphasis)
    texts = tuple(messages[number]["content"][first:last] for number, first, last in emphasis)
    if not texts and request.system_as != "role":
        prompts = (m["content"].strip() for m in messages if m["role"] == "system")
        texts = tuple(filter(None, prompts))
    fields = WIRE_FORMATS["vllm"](steering.spec, texts, steering.trace)
    fields["vllm_xargs"]["holdfast_seed"] = str(request.seed)
    return {"extra_body": {**fields, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}}


async def fetch_masses(client: AsyncOpenAI, endpoint: Endpoint, name: object) -> tuple[float, ...]:
    """The mass at every token of a reply that vLLM traced, by the reply's id."""
    import openai

    try:
        answer = json.loads(await client.get(f"/steering/mass/{name}", cast_to=str))
        return tuple(float(mass) for mass in answer["mass"])
    except openai.OpenAIError as error:
        raise failure_of(error, endpoint) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RequestFailed(
            f"{endpoint.url} was asked for the mass of its reply {name}, and reports something else"
            f" ({error}); see its log, or ask without a trace."
        ) from None


def traces_apart(body: Mapping[str, Any]) -> bool:
    """Whether the mass of an answer must be fetched after the answer."""
    return bool(body.get("extra_body", {}).get("vllm_xargs", {}).get("holdfast_trace"))


def check_applied(answer: Mapping[str, Any], body: Mapping[str, Any], url: str) -> None:
    """Refuses an answer that was not steered as requested, with a `ModelError`."""
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
            f"{url} steers (its answer says {applied}), and did not say so when it was"
            " connected; connect again, or repeat the command."
        )
    if (applied == NONE) != (requested == NONE):
        because = f" ({why})" if why else ""
        raise ModelError(
            f"{url} was asked for {requested!r} and applied {applied!r}{because}; look into its"
            " log, and connect again if it was started anew."
        )


class _Steering(NamedTuple):
    """The steering to ask a server for, without what needs a span that the chat lacks."""

    spec: str
    trace: bool


def _steering(request: Request, messages: Messages, emphasis: Sequence[TextRange]) -> _Steering:
    prompted = has_prompt(messages)
    emphasised = bool(emphasis)
    rest = request.compiled.without_edits
    idle = rest.lacking_target(prompted=prompted, emphasised=emphasised)
    methods = [method for method in rest.methods if method not in idle.methods]
    return _Steering(spec_of(methods), request.trace and (prompted or emphasised))


def _sendable(messages: Messages) -> list[Message]:
    """The messages as UTF-8 can encode them, with tool calls in OpenAI's format."""
    sendable = []
    for message in messages:
        text = message["content"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        message = {**message, "content": text}
        if calls := message.get("tool_calls"):
            message |= {"content": text or None, "tool_calls": [_call_as_text(c) for c in calls]}
        sendable.append(message)
    return sendable


def _call_as_text(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["function"]["arguments"])
    return {**call, "function": {**call["function"], "arguments": arguments}}
