"""The steering that a server offers at `GET /v1/steering`, as it is written and read.

For example:

    '{"methods": [{"name": "boost"}, ...], "spelling": "holdfast", ...}'     as a `SteeringAnswer`
    -> OfferedSteering(wire_format="holdfast", methods=("boost", ...), ...)  as a client uses it
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.client import WIRE_FORMATS
from holdfast.errors import Unsteerable
from holdfast.methods import Ability, Method, compile_methods
from holdfast.methods.spec import NONE
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.endpoint_errors import Endpoint, failure_of, is_unreachable, server_message
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

READ_BY_CLIENTS = ("methods", "spelling", "fingerprint", "default", "refusal")

_MAX_SECONDS = 5.0  # that a server may take to answer when it is connected


class OfferedMethod(BaseModel):
    """A method that a server applies; its other fields are those of `holdfast.methods.schema`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    needs: list[str] = []  # the abilities that a model needs for it


class OfferedLimits(BaseModel):
    """The limits of one request, and of the queue."""

    model_config = ConfigDict(frozen=True)

    max_model_len: int | None  # tokens of a chat and its reply; null if unknown
    max_tokens: int  # of a reply
    seconds: float  # of a request as a whole
    body_bytes: int
    messages: int  # of a chat
    n: int  # choices of a request
    emphasis: int  # emphasised texts of a request
    queue: int  # requests that wait


class SteeringAnswer(BaseModel):
    """The steering that a server applies on request, with facts about its model and its limits.

    Clients read the fields in `READ_BY_CLIENTS`. Only `holdfast serve` writes the others.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    methods: list[OfferedMethod]
    wire_format: str = Field(
        default="holdfast", validation_alias="spelling", serialization_alias="spelling"
    )
    fingerprint: str | None = None  # of the model
    default: str | None = None  # the spec of the methods for requests that name none
    refusal: str | None = None  # why the server cannot steer now

    model: str | None = None  # the model's name in requests
    attention: bool | None = None  # whether attention can be steered
    layers: int | None = None
    heads: int | None = None  # per layer; null if the layers differ
    prompts: Sequence[Mapping[str, str]] = ()  # the examples in the playground
    fitted: Sequence[str] = ()  # the specs of the fitted files that requests may name
    limits: OfferedLimits | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields that were set, under their names on the wire."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


@dataclass(frozen=True)
class OfferedSteering:
    """The steering that a server offers; the defaults are those of an ordinary endpoint.

    Attributes:
        wire_format: its format in `client.WIRE_FORMATS`; None if it does not steer.
        capabilities: the abilities that methods can use.
        methods: the names of the methods that it knows.
        fingerprint: the fingerprint of its model; None if it does not say.
        default: its methods for requests that name none; None if it does not steer those.
        obstacle: why a server that may be able to steer does not steer now, such as "it does not
            answer"; None if nothing prevents it.
    """

    wire_format: str | None = None
    capabilities: frozenset[Ability] = ENDPOINT_ABILITIES
    methods: tuple[str, ...] = ()
    fingerprint: str | None = None
    default: str | None = None
    obstacle: str | None = None

    @property
    def identity(self) -> str | None:
        """The part of the model's fingerprint that identifies a steering server.

        None for ordinary endpoints.
        """
        if self.wire_format is None:
            return None
        parts = ["Holdfast"]
        if self.wire_format != "holdfast":
            parts.append(self.wire_format)
        if self.fingerprint is not None:
            parts.append(self.fingerprint)
        return " ".join(parts)


async def ask_steering(client: AsyncOpenAI, endpoint: Endpoint) -> OfferedSteering:
    """Asks a server once what it offers, and does not wait long; no answer is an obstacle."""
    import openai

    try:
        return await _ask(
            client, endpoint, max_retries=0, timeout=min(_MAX_SECONDS, endpoint.timeout)
        )
    except openai.OpenAIError:
        return OfferedSteering(obstacle="it does not answer")


async def await_steering(client: AsyncOpenAI, endpoint: Endpoint) -> OfferedSteering:
    """Asks a server what it offers, with the timeout and the retries of any other request.

    Raises:
        Unreachable: there is no connection to the server.
    """
    import openai

    try:
        return await _ask(client, endpoint)
    except openai.OpenAIError as error:
        if is_unreachable(error):
            raise failure_of(error, endpoint) from None
        return OfferedSteering(obstacle="it does not answer")


async def _ask(client: AsyncOpenAI, endpoint: Endpoint, **options: Any) -> OfferedSteering:
    """Reads what a server offers; raises an `OpenAIError` if it does not answer."""
    import openai

    get: Any = client.get  # its options have a type that openai does not export
    try:
        text = await get("/steering", cast_to=str, options=options)
    except openai.APIStatusError as error:
        if error.status_code < 500 and error.status_code not in (401, 403, 429):
            return OfferedSteering()  # the server has no such route
        refusal = f"{error.status_code}: {server_message(error, endpoint)}"
        return OfferedSteering(obstacle=f"it does not say whether it steers ({refusal})")
    return read_offer(text)


def read_offer(text: str) -> OfferedSteering:
    """Reads the answer to `GET /v1/steering`; one without methods means an ordinary endpoint."""
    try:
        fields = fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return OfferedSteering()
    if not isinstance(fields.get("methods"), list):
        return OfferedSteering()  # another kind of server, which has this route by chance
    known = {name: fields[name] for name in READ_BY_CLIENTS if name in fields}
    try:
        answer = SteeringAnswer.model_validate(known)
    except ValidationError as error:
        wrong = ", ".join(".".join(map(str, line["loc"])) for line in error.errors())
        return OfferedSteering(
            obstacle=f"this version cannot read its answer about steering ({wrong})"
        )
    return _usable_offer(answer)


def _usable_offer(answer: SteeringAnswer) -> OfferedSteering:
    """The part of an answer that this version can use, or why it can use none of it."""
    if answer.refusal:
        return OfferedSteering(obstacle=f"it cannot steer now ({answer.refusal})")
    if answer.wire_format not in WIRE_FORMATS:
        return OfferedSteering(
            obstacle=f"this version does not know its wire format {answer.wire_format!r}"
        )
    needs = {need for method in answer.methods for need in method.needs}
    abilities = {ability for ability in Ability if ability.value in needs}
    return OfferedSteering(
        wire_format=answer.wire_format,
        capabilities=ENDPOINT_ABILITIES | abilities,
        methods=tuple(method.name for method in answer.methods),
        fingerprint=answer.fingerprint or None,
        default=None if answer.default == NONE else answer.default,
    )


def same_fingerprint(recorded: str, current: str) -> str | None:
    """Returns the current fingerprint if a run was recorded under it, and None otherwise.

    Earlier versions put the address of the server before it.
    """
    return current if recorded == current or recorded.endswith(f" {current}") else None


def check_offered(methods: Sequence[Method], offered: OfferedSteering, url: str) -> None:
    """Raises an `Unsteerable` for a method that a steering server does not know."""
    for method in compile_methods(methods).without_edits.methods:
        if method.name not in offered.methods:
            raise Unsteerable(
                f"{method.name} is not one of the methods that {url} applies"
                f" ({', '.join(offered.methods) or 'none'}); use one of those, or load the model in"
                " this process."
            )
