"""Servers that steer: what they offer, and how they are asked for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.chat.emphasis import Range, put_marks, take_marks, unused_character
from holdfast.chat.messages import Message
from holdfast.chat.prompt import place_system
from holdfast.client import WIRE_FORMATS, SteeringRequest
from holdfast.errors import ModelError, RequestFailed
from holdfast.methods import Ability, Kind, Method, edit_messages, holds_span, of_kind, spell
from holdfast.methods.spec import NONE
from holdfast.models.answers import Applied, Endpoint
from holdfast.models.capabilities import ENDPOINT
from holdfast.models.refusals import failure_of, is_gone, words_of
from holdfast.models.requests import Request

if TYPE_CHECKING:
    from openai import OpenAI

_SEEDS = 2**31  # what every server can read
_PATIENCE = 5.0  # seconds for the question whether a server steers


@dataclass(frozen=True)
class Served:
    """The steering that a server offers; without arguments, that of an ordinary endpoint.

    Args:
        wire_format: how it is asked, of `client.WIRE_FORMATS`; "" where it does not steer.
        offers: what methods can use of it.
        methods: the names of those that it knows.
        default: the method that it applies where a request names none.
        fingerprint: of its model; "" where it is not told.
        unsure: why it may steer and does not now, of "the server, which ..."; "" where it does, or
            is known never to.
    """

    wire_format: str = ""
    offers: frozenset[Ability] = ENDPOINT
    methods: tuple[str, ...] = ()
    default: str = NONE
    fingerprint: str = ""
    unsure: str = ""

    @property
    def identity(self) -> str:
        """The part that may change replies, for the fingerprint; "" for ordinary endpoints."""
        engine = "" if self.wire_format == "holdfast" else f"{self.wire_format} "
        return f"Holdfast {engine}{self.fingerprint}".rstrip() if self.wire_format else ""


def ask_served(client: OpenAI, endpoint: Endpoint, *, patient: bool = False) -> Served:
    """Asks a server whether it steers, by one request; one that says nothing of it is an ordinary
    endpoint.

    Args:
        client, endpoint: of the server.
        patient: whether it is asked as often and waited for as long as for a reply.

    Raises:
        ModelError: there is no connection, when `patient`.
    """
    import openai

    hasty: Any = {"max_retries": 0, "timeout": min(_PATIENCE, endpoint.timeout)}
    try:
        text = client.get("/steering", cast_to=str, options={} if patient else hasty)
    except openai.APIStatusError as error:
        busy = error.status_code >= 500 or error.status_code in (401, 403, 429)
        return _unasked(f"{error.status_code}: {words_of(error, endpoint)}") if busy else Served()
    except openai.OpenAIError as error:
        if patient and is_gone(error):
            raise failure_of(error, endpoint) from None
        return _unasked("it does not answer")
    return read_served(text)


def _unasked(why: str) -> Served:
    return Served(unsure=f"could not be asked for its steering ({why})")


def read_served(text: str) -> Served:
    """Reads what `GET /v1/steering` answers; anything else is an ordinary endpoint's.

    `holdfast serve` and vLLM with our plug-in answer alike; the second says how it is asked.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return Served()
    listed = answer.get("methods") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return Served()
    if refusal := answer.get("refusal"):
        return Served(unsure=f"cannot steer now ({refusal})")
    wire_format = answer.get("spelling", "holdfast")
    if not isinstance(wire_format, str) or wire_format not in WIRE_FORMATS:
        return Served(unsure=f"is asked in a way that is not known here ({wire_format!r})")
    methods = [
        method for method in listed if isinstance(method, dict) and isinstance(method["name"], str)
    ]
    needs = {need for method in methods for need in method.get("needs", ())}
    return Served(
        wire_format,
        ENDPOINT | {ability for ability in Ability if ability.value in needs},
        tuple(method["name"] for method in methods),
        str(answer.get("default") or NONE),
        str(answer.get("fingerprint") or ""),
    )


def same_served(there: str, here: str) -> str | None:
    """The fingerprint of a run and of a command, where they are the same: earlier versions put the
    address in front, although the server had told what its weights are.
    """
    return here if there == here or there.endswith(f" {here}") else None


def check_served(methods: Sequence[Method], served: Served, url: str) -> None:
    """Refuses methods that a server which steers does not know.

    Raises:
        ModelError: names the first of them.
    """
    for method in methods:
        if method not in of_kind([method], Kind.MESSAGES) and method.name not in served.methods:
            raise ModelError(
                f"{url} knows {', '.join(served.methods) or 'no method'}, and not {method.name};"
                " use one of those, or load the model with holdfast.load()."
            )


def check_applied(applied: Applied | None, body: Mapping[str, Any], url: str) -> None:
    """Refuses an answer that was not steered as it was asked to be.

    Raises:
        ModelError: the server did not apply the method, or applied one on its own.
    """
    requested = body.get("extra_body", {}).get("steering")
    if applied is None and requested in (None, NONE):
        return
    if requested is None and applied is not None:
        raise ModelError(
            f"{url} steers (its answer says {applied.method}), and did not say so when it was"
            " connected; connect again, or repeat the command."
        )
    reported = applied or Applied(NONE, "it says nothing of its steering")
    if (reported.method == NONE) != (requested == NONE):
        why = f" ({reported.why})" if reported.why else ""
        raise ModelError(
            f"{url} was asked for {requested!r} and applied {reported.method!r}{why}; look into its"
            " log, and connect again if it was started anew."
        )


def chat_fields(request: Request, served: Served) -> dict[str, Any]:
    """The messages of a request, its seed, and in `extra_body` what is asked of the server.

    Methods that edit messages are applied here, so that they draw as they do locally; what they
    repeat is emphasised in every place.
    """
    shown, emphasis = _edited(request)
    if not served.wire_format:
        placed = place_system(shown, request.system_as)
        return {"messages": _sendable(placed), "seed": request.seed % _SEEDS}
    spans = bool(emphasis) or any(m["role"] == "system" and m["content"].strip() for m in shown)
    steering = _steering(request.methods, spans)
    trace = request.trace and spans
    if served.wire_format == "vllm":
        texts = _texts(shown, emphasis, request.system_as) if spans else ()
        return {
            "messages": _sendable(place_system(shown, request.system_as)),
            "seed": request.seed % _SEEDS,
            "extra_body": _for_vllm(
                WIRE_FORMATS["vllm"](SteeringRequest(steering, texts, trace)), request.seed
            ),
        }
    fields = WIRE_FORMATS[served.wire_format](
        SteeringRequest(steering, emphasis if spans else (), trace)
    )
    if request.system_as != "role":
        fields["system_as"] = request.system_as
    return {"messages": _sendable(shown), "seed": request.seed, "extra_body": fields}


def _for_vllm(fields: dict[str, Any], seed: int) -> dict[str, Any]:
    """Draws by the whole seed as a local model does; what the model's own configuration adds to
    vLLM's draw is switched off.
    """
    xargs = {**fields["vllm_xargs"], "holdfast_seed": str(seed)}
    return {"vllm_xargs": xargs, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def _texts(
    messages: Sequence[Message], emphasis: Sequence[Range], system_as: str
) -> tuple[str, ...]:
    """The texts that vLLM holds on to, as it knows no messages; () for those that it finds."""
    if emphasis:
        return tuple(messages[number]["content"][first:last] for number, first, last in emphasis)
    if system_as == "role":
        return ()
    return tuple(m["content"].strip() for m in messages if m["role"] == "system")


def fetch_masses(client: OpenAI, endpoint: Endpoint, name: object) -> tuple[float, ...]:
    """The mass at every token of a reply that vLLM was asked to trace, by the reply's id.

    Raises:
        ModelError: the server does not tell it.
    """
    import openai

    try:
        answer = json.loads(client.get(f"/steering/mass/{name}", cast_to=str))
        return tuple(float(mass) for mass in answer["mass"])
    except openai.OpenAIError as error:
        raise failure_of(error, endpoint) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RequestFailed(
            f"{endpoint.url} was asked for the mass of its reply {name}, and tells something else"
            f" ({error}); see its log, or ask without a trace."
        ) from None


def traces_apart(body: Mapping[str, Any]) -> bool:
    """Whether the mass of an answer is to be fetched once the answer is there."""
    return bool(body.get("extra_body", {}).get("vllm_xargs", {}).get("holdfast_trace"))


def _edited(request: Request) -> tuple[tuple[Message, ...], tuple[Range, ...]]:
    """The chat as its methods edit it, and what is emphasised in it."""
    messages, mark = request.messages, ""
    if request.emphasis:
        mark = unused_character([message["content"] for message in messages])
        messages = put_marks(messages, request.emphasis, mark)
    edited = edit_messages(messages, request.methods, request.editing_seed)
    return take_marks(edited, mark) if mark else (edited, ())


def _steering(methods: Sequence[Method], spans: bool) -> str:
    """The wire_format of what is not applied here; what holds on to a span does nothing without."""
    rest = [method for method in methods if method not in of_kind([method], Kind.MESSAGES)]
    if not spans:
        rest = [method for method in rest if not holds_span(method)]
    return spell(rest)


def _sendable(messages: Sequence[Message]) -> list[Message]:
    return [
        {**message, "content": _without_lone_surrogates(message["content"])} for message in messages
    ]


def _without_lone_surrogates(text: str) -> str:
    """The text as UTF-8 can carry it; half a pair, as a reply may end with, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
