"""The steering that a server offers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.client import WIRE_FORMATS
from holdfast.errors import Unsteerable
from holdfast.methods import Ability, Method, compile_methods
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.endpoint_address import Endpoint
from holdfast.models.endpoint_errors import failure_of, is_unreachable, server_message
from holdfast.validation.json_values import fields_of, objects_in

if TYPE_CHECKING:
    from openai import OpenAI

_PATIENCE = 5.0  # seconds for the question whether a server steers


@dataclass(frozen=True)
class Served:
    """The steering that a server offers; without arguments, that of an ordinary endpoint."""

    wire_format: str = ""  # its format in `client.WIRE_FORMATS`; "" if it does not steer
    capabilities: frozenset[Ability] = ENDPOINT_ABILITIES  # the abilities that methods can use
    methods: tuple[str, ...] = ()  # the names of the methods it knows
    fingerprint: str = ""  # of its model; "" if the server does not say
    default: str = ""  # its methods for requests that name none; "" if it does not steer those
    obstacle: str = ""  # why a server that may steer does not now: "it does not answer"; else ""

    @property
    def identity(self) -> str:
        """The part that may change replies, for the fingerprint; "" for ordinary endpoints."""
        engine = "" if self.wire_format == "holdfast" else f"{self.wire_format} "
        return f"Holdfast {engine}{self.fingerprint}".rstrip() if self.wire_format else ""


def ask_served(client: OpenAI, endpoint: Endpoint, *, patient: bool = False) -> Served:
    """Asks a server once whether it steers; if `patient`, waits as long as for a reply."""
    import openai

    options: Any = {}
    if not patient:
        options = {"max_retries": 0, "timeout": min(_PATIENCE, endpoint.timeout)}
    try:
        text = client.get("/steering", cast_to=str, options=options)
    except openai.APIStatusError as error:
        if error.status_code < 500 and error.status_code not in (401, 403, 429):
            return Served()  # it has no such route
        refusal = f"{error.status_code}: {server_message(error, endpoint)}"
        return Served(obstacle=f"it does not say whether it steers ({refusal})")
    except openai.OpenAIError as error:
        if patient and is_unreachable(error):
            raise failure_of(error, endpoint) from None
        return Served(obstacle="it does not answer")
    return _read_served(text)


def _read_served(text: str) -> Served:
    """Reads the answer to `GET /v1/steering`; any other means an ordinary endpoint."""
    try:
        answer = fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return Served()
    listed = answer.get("methods")
    if not isinstance(listed, list):
        return Served()
    if refusal := answer.get("refusal"):
        return Served(obstacle=f"it cannot steer now ({refusal})")
    wire_format = answer.get("spelling", "holdfast")
    if not isinstance(wire_format, str) or wire_format not in WIRE_FORMATS:
        return Served(obstacle=f"this version does not know its wire format {wire_format!r}")
    methods = [m for m in objects_in(listed) if isinstance(m.get("name"), str)]
    lists = [method.get("needs") for method in methods]
    needed = [need for names in lists if isinstance(names, list) for need in names]
    return Served(
        wire_format=wire_format,
        capabilities=ENDPOINT_ABILITIES
        | {ability for ability in Ability if ability.value in needed},
        methods=tuple(method["name"] for method in methods),
        fingerprint=str(answer.get("fingerprint") or ""),
        default="" if answer.get("default") in (None, "none") else str(answer["default"]),
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
