"""Servers that steer: what they offer, and how to ask for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.chat.emphasis import Range, put_marks, take_marks, unused_character
from holdfast.chat.messages import Message, Messages, has_prompt
from holdfast.chat.prompt import place_system
from holdfast.client import WIRE_FORMATS
from holdfast.errors import ModelError, RequestFailed, Unsteerable
from holdfast.methods import Ability, Method, compile_methods, spec_of
from holdfast.methods.spec import NONE
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.completions import Endpoint, Fields, as_fields
from holdfast.models.endpoint_errors import failure_of, is_unreachable, server_message
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_SEEDS = 2**31  # what every server can read
_PATIENCE = 5.0  # seconds for the question whether a server steers


@dataclass(frozen=True)
class Served:
    """The steering that a server offers; without arguments, that of an ordinary endpoint."""

    wire_format: str = ""  # its format in `client.WIRE_FORMATS`; "" if it does not steer
    capabilities: frozenset[Ability] = ENDPOINT_ABILITIES  # the abilities that methods can use
    methods: tuple[str, ...] = ()  # the names of the methods it knows
    fingerprint: str = ""  # of its model; "" if the server does not say
    default: str = ""  # its methods for requests that name none; "" if it does not steer those
    unsure: str = ""  # why a server that may steer does not now, after "which"; else ""

    @property
    def identity(self) -> str:
        """The part that may change replies, for the fingerprint; "" for ordinary endpoints."""
        engine = "" if self.wire_format == "holdfast" else f"{self.wire_format} "
        return f"Holdfast {engine}{self.fingerprint}".rstrip() if self.wire_format else ""


def ask_served(client: OpenAI, endpoint: Endpoint, *, patient: bool = False) -> Served:
    """Asks a server once whether it steers; if `patient`, waits as long as for a reply."""
    import openai

    hasty: Any = {"max_retries": 0, "timeout": min(_PATIENCE, endpoint.timeout)}
    try:
        text = client.get("/steering", cast_to=str, options={} if patient else hasty)
    except openai.APIStatusError as error:
        busy = error.status_code >= 500 or error.status_code in (401, 403, 429)
        return (
            _unasked(f"{error.status_code}: {server_message(error, endpoint)}")
            if busy
            else Served()
        )
    except openai.OpenAIError as error:
        if patient and is_unreachable(error):
            raise failure_of(error, endpoint) from None
        return _unasked("it does not answer")
    return _read_served(text)


def _unasked(why: str) -> Served:
    return Served(unsure=f"could not be asked for its steering ({why})")


def _read_served(text: str) -> Served:
    """Reads the answer to `GET /v1/steering`; any other means an ordinary endpoint."""
    try:
        answer = as_fields(json.loads(text))
    except (ValueError, RecursionError):
        return Served()
    listed = answer.get("methods")
    if not isinstance(listed, list):
        return Served()
    if refusal := answer.get("refusal"):
        return Served(unsure=f"cannot steer now ({refusal})")
    wire_format = answer.get("spelling", "holdfast")
    if not isinstance(wire_format, str) or wire_format not in WIRE_FORMATS:
        return Served(unsure=f"is asked in a way that is not known here ({wire_format!r})")
    methods = [m for m in map(as_fields, listed) if isinstance(m.get("name"), str)]
    lists = [method.get("needs") for method in methods]
    required = [need for names in lists if isinstance(names, list) for need in names]
    return Served(
        wire_format,
        ENDPOINT_ABILITIES | {ability for ability in Ability if ability.value in required},
        tuple(method["name"] for method in methods),
        str(answer.get("fingerprint") or ""),
        "" if answer.get("default") in (None, "none") else str(answer["default"]),
    )


def same_served(recorded: str, current: str) -> str | None:
    """The fingerprint if run and command agree; earlier versions prefixed it with the address."""
    return current if recorded == current or recorded.endswith(f" {current}") else None


def check_served(methods: Sequence[Method], served: Served, url: str) -> None:
    """Refuses a method that a steering server does not know, with an `Unsteerable`."""
    for method in compile_methods(methods).without_edits.methods:
        if method.name not in served.methods:
            raise Unsteerable(
                f"{url} knows {', '.join(served.methods) or 'no method'}, and not {method.name};"
                " use one of those, or load the model in this process."
            )


def check_applied(answer: Fields, body: Mapping[str, Any], url: str) -> None:
    """Refuses an answer that was not steered as requested, with a `ModelError`."""
    requested, reported = (
        body.get("extra_body", {}).get("steering"),
        as_fields(answer.get("holdfast")),
    )
    applied, why = reported.get("steering"), reported.get("why")
    if not isinstance(applied, str):
        if requested in (None, NONE):
            return
        applied, why = NONE, "it says nothing of its steering"
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


def chat_fields(request: Request, served: Served) -> dict[str, Any]:
    """The messages of a request, its seed, and in `extra_body` the steering to request.

    Methods that edit messages are applied here, so that they draw as they do locally; text that
    they repeat is emphasised everywhere.
    """
    shown, emphasis = _edited(request)
    tools = {"tools": list(request.tools), "tool_choice": "none"} if request.tools else {}
    if served.wire_format != "holdfast":
        placed = _sendable(place_system(shown, request.system_as))
        fields = {"messages": placed, "seed": request.seed % _SEEDS, **tools}
        return fields | _vllm_fields(request, shown, emphasis) if served.wire_format else fields
    steering, trace = _steering(request, shown, emphasis)
    extra = WIRE_FORMATS["holdfast"](steering, emphasis, trace)
    if request.system_as != "role":
        extra["system_as"] = request.system_as
    if request.continue_final_message:
        extra["continue_final_message"] = True
    return {"messages": _sendable(shown), "seed": request.seed, **tools, "extra_body": extra}


def _vllm_fields(request: Request, shown: Messages, emphasis: Sequence[Range]) -> dict[str, Any]:
    """The `extra_body` for vLLM, which takes texts instead of ranges, and the whole seed."""
    steering, trace = _steering(request, shown, emphasis)
    texts = tuple(shown[number]["content"][first:last] for number, first, last in emphasis)
    if not texts and request.system_as != "role":
        systems = (m["content"].strip() for m in shown if m["role"] == "system")
        texts = tuple(text for text in systems if text)
    fields = WIRE_FORMATS["vllm"](steering, texts, trace)
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


def _edited(request: Request) -> tuple[tuple[Message, ...], tuple[Range, ...]]:
    messages, mark = request.messages, ""
    if request.emphasis:
        mark = unused_character([message["content"] for message in messages])
        messages = put_marks(messages, request.emphasis, mark)
    edited = request.compiled.edit(messages, request.editing_seed)
    return take_marks(edited, mark) if mark else (edited, ())


def _steering(request: Request, shown: Messages, emphasis: Sequence[Range]) -> tuple[str, bool]:
    """The spec string for the server and whether to trace, without what needs a missing span."""
    prompted, emphasised = has_prompt(shown), bool(emphasis)
    rest = request.compiled.without_edits
    idle = rest.without_target(prompted=prompted, emphasised=emphasised)
    steering = [method for method in rest.methods if method not in idle.methods]
    return spec_of(steering), request.trace and (prompted or emphasised)


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
