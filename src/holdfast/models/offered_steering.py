"""The steering that a server offers to its clients, as its answer to `GET /v1/steering` says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from holdfast.client import WIRE_FORMATS
from holdfast.errors import Unsteerable
from holdfast.methods import Ability, Method, compile_methods
from holdfast.methods.spec import NONE
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.endpoint_address import Endpoint
from holdfast.models.endpoint_errors import failure_of, is_unreachable, server_message
from holdfast.models.steering_answer import READ_BY_CLIENTS, SteeringAnswer
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from openai import OpenAI

_SECONDS = 5.0  # that a server may take to answer as it is connected


@dataclass(frozen=True)
class OfferedSteering:
    """The steering that a server offers; without arguments, that of an ordinary endpoint.

    Attributes:
        wire_format: its format in `client.WIRE_FORMATS`; None: it does not steer.
        capabilities: the abilities that methods can use.
        methods: the names of the methods that it knows.
        fingerprint: of its model; None: it does not say.
        default: its methods for requests that name none; None: it does not steer those.
        obstacle: why a server that may steer does not now, such as "it does not answer".
    """

    wire_format: str | None = None
    capabilities: frozenset[Ability] = ENDPOINT_ABILITIES
    methods: tuple[str, ...] = ()
    fingerprint: str | None = None
    default: str | None = None
    obstacle: str | None = None

    @property
    def identity(self) -> str | None:
        """The part that may change replies, for the fingerprint; None for ordinary endpoints."""
        if self.wire_format is None:
            return None
        parts = ["Holdfast"]
        if self.wire_format != "holdfast":
            parts.append(self.wire_format)
        if self.fingerprint is not None:
            parts.append(self.fingerprint)
        return " ".join(parts)


def ask_steering(client: OpenAI, endpoint: Endpoint) -> OfferedSteering:
    """Asks a server what it offers, once and briefly; that it does not answer is an obstacle."""
    import openai

    try:
        return _ask(client, endpoint, max_retries=0, timeout=min(_SECONDS, endpoint.timeout))
    except openai.OpenAIError:
        return OfferedSteering(obstacle="it does not answer")


def await_steering(client: OpenAI, endpoint: Endpoint) -> OfferedSteering:
    """Asks a server what it offers, and waits as long as for a reply.

    Raises:
        Unreachable: it does not answer.
    """
    import openai

    try:
        return _ask(client, endpoint)
    except openai.OpenAIError as error:
        if is_unreachable(error):
            raise failure_of(error, endpoint) from None
        return OfferedSteering(obstacle="it does not answer")


def _ask(client: OpenAI, endpoint: Endpoint, **options: Any) -> OfferedSteering:
    """Reads what a server offers; raises an `OpenAIError` if it does not answer."""
    import openai

    untyped: Any = client.get  # whose options are of a type that openai keeps to itself
    try:
        text = untyped("/steering", cast_to=str, options=options)
    except openai.APIStatusError as error:
        if error.status_code < 500 and error.status_code not in (401, 403, 429):
            return OfferedSteering()  # it has no such route
        refusal = f"{error.status_code}: {server_message(error, endpoint)}"
        return OfferedSteering(obstacle=f"it does not say whether it steers ({refusal})")
    return read_offer(text)


def read_offer(text: str) -> OfferedSteering:
    """Reads the answer to `GET /v1/steering`; any other means an ordinary endpoint."""
    try:
        fields = fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return OfferedSteering()
    if not isinstance(fields.get("methods"), list):
        return OfferedSteering()  # it means something else by this route
    known = {name: fields[name] for name in READ_BY_CLIENTS if name in fields}
    try:
        answer = SteeringAnswer.model_validate(known)
    except ValidationError as error:
        wrong = ", ".join(".".join(map(str, line["loc"])) for line in error.errors())
        return OfferedSteering(
            obstacle=f"this version cannot read what it says of its steering ({wrong})"
        )
    if answer.refusal:
        return OfferedSteering(obstacle=f"it cannot steer now ({answer.refusal})")
    if answer.wire_format not in WIRE_FORMATS:
        return OfferedSteering(
            obstacle=f"this version does not know its wire format {answer.wire_format!r}"
        )
    needs = {need for method in answer.methods for need in method.needs}
    needed = {ability for ability in Ability if ability.value in needs}
    return OfferedSteering(
        wire_format=answer.wire_format,
        capabilities=ENDPOINT_ABILITIES | needed,
        methods=tuple(method.name for method in answer.methods),
        fingerprint=answer.fingerprint or None,
        default=None if answer.default == NONE else answer.default,
    )


def same_fingerprint(recorded: str, current: str) -> str | None:
    """The fingerprint if run and command agree; earlier versions prefixed it with the address."""
    return current if recorded == current or recorded.endswith(f" {current}") else None


def check_offered(methods: Sequence[Method], offered: OfferedSteering, url: str) -> None:
    """Refuses a method that a steering server does not know, with an `Unsteerable`."""
    for method in compile_methods(methods).without_edits.methods:
        if method.name not in offered.methods:
            raise Unsteerable(
                f"{url} knows {', '.join(offered.methods) or 'no method'}, and not {method.name};"
                " use one of those, or load the model in this process."
            )
