"""The fields of a request body: how each is read, and what the published document says of it.

A `Field` holds both, and the constructors below make the two from the same arguments, so that the
parser and the OpenAPI document cannot disagree.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.chat.messages import shortened
from holdfast.errors import KnobOutOfRange
from holdfast.knobs import number_between, range_in_words
from holdfast.serve.refusals import Refusal, refused_field

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One field of a body.

    Args:
        name: as it is written.
        read: takes the name and a value that is not null, and returns it checked; raises a
            `Refusal` that names it.
        schema: what is taken, as JSON Schema.
        description: for people.
        default: where it is absent or null.
        required: whether it must be there.
    """

    name: str
    read: Callable[[str, Any], Any]
    schema: Schema
    description: str
    default: Any = None
    required: bool = False


Table = Mapping[str, Field]


def table(*fields: Field) -> Table:
    """Fields by name."""
    return {field.name: field for field in fields}


def read_fields(body: object, fields: Table, where: str = "The body") -> dict[str, Any]:
    """The value of every field of the table, defaults where the body gives none.

    Args:
        body: what the client sent, as JSON.
        fields: that are known.
        where: what a sentence calls the body.

    Raises:
        Refusal: not an object, a field that is not known, missing, or has a value not taken.
    """
    if not isinstance(body, dict):
        raise Refusal(f"{where} is a JSON object, not {shortened(body)}.", code="invalid_json")
    for name in body:
        if name not in fields:
            raise _unknown(name, fields, where)
    return {name: _value(body.get(name), field) for name, field in fields.items()}


def _value(value: Any, field: Field) -> Any:
    if value is not None:
        return field.read(field.name, value)
    if field.required:
        raise refused_field(field.name, f"{field.name} is missing.", "missing_required_parameter")
    return field.default


def _unknown(name: str, fields: Table, where: str) -> Refusal:
    near = difflib.get_close_matches(name[:60], fields, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]!r}?" if near else "leave it out."
    return refused_field(
        name[:60], f"{where} has a field {shortened(name)}, unknown here; {hint}", "unknown_field"
    )


def as_schema(fields: Table) -> Schema:
    """The body as JSON Schema; a field that is not required may be null."""
    return {
        "type": "object",
        "properties": {
            name: {"description": field.description}
            | (field.schema if field.required else {"anyOf": [field.schema, {"type": "null"}]})
            | ({} if field.default is None else {"default": field.default})
            for name, field in fields.items()
        },
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }


# Kinds of field


def number(
    name: str, low: float, high: float, default: float, description: str, *, above_low: bool = False
) -> Field:
    """A number in [low, high]."""

    def read(name: str, value: Any) -> float:
        try:
            return number_between("a request", name, value, low, high, above_low=above_low)
        except KnobOutOfRange:
            taken = range_in_words(low, high, above_low=above_low)
            raise refused_field(name, f"{name} is {taken}, not {shortened(value)}.") from None

    least = "exclusiveMinimum" if above_low else "minimum"
    schema = {"type": "number", least: low, "maximum": high}
    return Field(name, read, schema, description, default)


def whole(name: str, low: int, high: int, default: int | None, description: str) -> Field:
    """A whole number in [low, high]."""

    def read(name: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1.0 is a whole number in JSON
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise refused_field(
            name, f"{name} is a whole number from {low} to {high}, not {shortened(value)}."
        )

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Field(name, read, schema, description, default)


def flag(name: str, default: bool, description: str) -> Field:
    """True or false."""

    def read(name: str, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise refused_field(name, f"{name} is true or false, not {shortened(value)}.")

    return Field(name, read, {"type": "boolean"}, description, default)


def text(name: str, longest: int | None, description: str) -> Field:
    """A text of at most `longest` characters; None: as the body's size allows."""

    def read(name: str, value: Any) -> str:
        return read_text(name, value, longest)

    schema: Schema = {"type": "string"} | ({} if longest is None else {"maxLength": longest})
    return Field(name, read, schema, description)


def word(name: str, words: Sequence[str], default: str | None, description: str) -> Field:
    """One of several words."""

    def read(name: str, value: Any) -> str:
        if value in words and isinstance(value, str):
            return value
        raise refused_field(name, f"{name} is {' or '.join(words)}, not {shortened(value)}.")

    return Field(name, read, {"type": "string", "enum": list(words)}, description, default)


def neutral(name: str, *values: Any, why: str = "is not implemented here") -> Field:
    """A field of OpenAI's that is taken where it changes nothing, and refused where it would."""
    spelled = " or ".join(json.dumps(value) for value in values)
    cure = f"leave it out{f' or give {spelled}' if values else ''}"

    def read(name: str, value: Any) -> None:
        if not any(_same(value, known) for known in values):
            raise refused_field(
                name, f"{name} {why}, so {shortened(value)} is refused; {cure}.", "unsupported"
            )

    schema: Schema = {"enum": [*values, None]}
    return Field(name, read, schema, f"{why.capitalize()}: {cure}.")


def _same(value: Any, known: Any) -> bool:
    """Equal as JSON is, where 0 and 0.0 are, and false and 0 are not."""
    return bool(value == known) and isinstance(value, bool) == isinstance(known, bool)


def unheeded(name: str, schema: Schema, read: Callable[[str, Any], Any], why: str) -> Field:
    """A field that is taken and changes nothing, as it could change no reply."""
    return Field(name, read, schema, f"Changes nothing: {why}.")


# Parts of fields


def read_text(name: str, value: Any, longest: int | None = None) -> str:
    """A text that can be encoded.

    Raises:
        Refusal: something else, a longer one, or half a pair of surrogates.
    """
    if not isinstance(value, str):
        raise refused_field(name, f"{name} is a text, not {shortened(value)}.")
    if longest is not None and len(value) > longest:
        raise refused_field(
            name, f"{name} has {len(value)} characters, and {longest} are taken at most."
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise refused_field(
                name,
                f"{name} holds {value[error.start]!r} at character {error.start}, which is half a"
                " character; send whole ones.",
            ) from None
    return value


def read_list(name: str, value: Any, fewest: int, most: int) -> list[Any]:
    """A list of a bounded length.

    Raises:
        Refusal: something else.
    """
    if isinstance(value, list) and fewest <= len(value) <= most:
        return value
    seen = f"one of {len(value)}" if isinstance(value, list) else shortened(value)
    raise refused_field(name, f"{name} is a list of {fewest} to {most} entries, not {seen}.")
