"""Validates the bodies of requests: the checks that all body models share, and their errors."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from annotated_types import Le, MaxLen
from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from holdfast.errors import option, shortened
from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import refusal_of_problem
from holdfast.validation.pydantic_errors import (
    FieldPath,
    StrictModel,
    as_json,
    format_path,
    problem_of,
)

Model = TypeVar("Model", bound="Body")

_MAX_DEPTH = 64  # of nested lists and objects, such as a tool's parameters


def _allow_null(schema: dict[str, Any]) -> None:
    """Documents that every optional field may be null, which is the same as leaving it out."""
    for name, field in schema.get("properties", {}).items():
        if name not in schema.get("required", ()) and None not in field.get("enum", ()):
            annotations = {
                key: field.pop(key) for key in ("description", "default") if key in field
            }
            field.pop("title", None)
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **annotations}


class Body(StrictModel):
    """An object in a request."""

    model_config = ConfigDict(json_schema_extra=_allow_null)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_null(cls, body: Any) -> Any:
        if not isinstance(body, Mapping):
            return body
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: v for k, v in body.items() if v is not None or k not in optional}

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_unsupported(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuses other values of an `unsupported` field than those that change nothing."""
        _check_encodable(str(info.field_name), value)
        extra = cls.model_fields[str(info.field_name)].json_schema_extra
        if not isinstance(extra, dict) or "enum" not in extra:
            return value
        accepted: list[Any] = extra["enum"]  # type: ignore[assignment]
        if any(_is_same(value, same) for same in accepted):
            return None
        cure = " or ".join(json.dumps(same) for same in accepted if same is not None)
        raise PydanticCustomError(
            "unsupported",
            "{field} is not implemented here, so {value} is refused; leave it out{cure}.",
            {
                "field": info.field_name,
                "value": as_json(value),
                "cure": f" or give {cure}" if cure else "",
            },
        )


def _check_encodable(name: str, value: Any) -> None:
    """Refuses lone surrogates, which JSON can express but no tokenizer can read."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, list):
            _check_encodable(name, text)
        elif isinstance(text, str) and (surrogate := re.search("[\ud800-\udfff]", text)):
            raise PydanticCustomError(
                "half_character",
                "{field} has {value} at character {number}, which is half a character; send whole"
                " characters.",
                {"field": name, "value": repr(surrogate[0]), "number": surrogate.start()},
            )


def check_object(name: str, value: dict[str, Any]) -> None:
    """Refuses a caller's object that is nested too deeply or that no tokenizer can read."""
    parts: list[tuple[Any, int]] = [(value, 0)]
    while parts:
        part, depth = parts.pop()
        inner = [*part, *part.values()] if isinstance(part, dict) else part
        if depth > _MAX_DEPTH:
            raise PydanticCustomError(
                "unsupported",
                "{field} is nested deeper than {depth} levels; send a flatter one.",
                {"field": name, "depth": _MAX_DEPTH},
            )
        if isinstance(inner, list):
            parts += ((entry, depth + 1) for entry in inner)
        else:
            _check_encodable(name, inner)


def check_arguments(text: str) -> str:
    """Refuses the arguments of a call unless they are a JSON object; returns them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"arguments has to be a JSON object as a text, not {shortened(text)}.")
    check_object("arguments", value)
    return text


def _is_same(value: Any, known: Any) -> bool:
    """Compares as JSON does: 0 equals 0.0, but false does not equal 0."""
    return bool(value == known) and isinstance(value, bool) == isinstance(known, bool)


def unsupported(*accepted: Any) -> Any:
    """Declares a field of OpenAI's that is only accepted with values that change nothing."""
    description = "Not implemented: leave it out."
    if accepted:
        values = " or ".join(f"`{json.dumps(value)}`" for value in accepted)
        description = f"Not implemented: leave it out or give {values}."
    return Field(None, json_schema_extra={"enum": [*accepted, None]}, description=description)


def ignored(why: str) -> Any:
    """Declares a field that is accepted but ignored, because it cannot affect a reply."""
    return Field(None, description=f"Changes nothing: {why}.")


def within_limits(body: type[Model], limits: RequestLimits) -> type[Model]:
    """Returns the body model with its fields bounded by the server's limits."""
    bounds = {
        "max_tokens": Le(limits.tokens),
        "max_completion_tokens": Le(limits.tokens),
        "max_output_tokens": Le(limits.tokens),
        "n": Le(limits.choices),
        "messages": MaxLen(limits.messages),
    }
    fields = {}
    for name in bounds.keys() & body.model_fields.keys():
        field = copy.copy(body.model_fields[name])
        field.metadata = [*field.metadata, bounds[name]]
        fields[name] = (field.annotation, field)
    return create_model(  # type: ignore[call-overload]
        body.__name__, __base__=body, __doc__=body.__doc__, **fields
    )


def read_body(body: type[Model], value: Any, whole: str = "The body") -> Model:
    """Validates a body against its model; raises a `Refusal` if it is invalid.

    `whole` names the body itself in an error.
    """

    def name(path: FieldPath) -> str:
        if not path:
            return whole
        field = str(path[0])
        return option(field) + format_path(path).removeprefix(field)

    try:
        return body.model_validate(value)
    except ValidationError as error:
        problem = problem_of(error, body, value, name)
        raise refusal_of_problem(problem) from None
