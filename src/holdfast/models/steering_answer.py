"""The answer to `GET /v1/steering`, which servers write and clients read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

READ_BY_CLIENTS = ("methods", "spelling", "fingerprint", "default", "refusal")


class OfferedMethod(BaseModel):
    """A method that a server applies; its other fields are those of `holdfast.methods.schema`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    needs: list[str] = []  # the abilities that a model needs for it


class ServerLimits(BaseModel):
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
    limits: ServerLimits | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields that were set, under their names on the wire."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
