"""The parameters of a method as data on its class: what they take, and what they do in a line.

    factor: float = field(metadata=parameter("M; 1 changes nothing", Number(1), example="4"))

Checking, spelling, `holdfast methods` and `methods.schema` read them from there.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast import ranges
from holdfast.errors import UsageError
from holdfast.methods.fitted import SUFFIX, Fitted, read_fitted
from holdfast.methods.heads import HeadSet, LayerSet, checked_heads, checked_layers
from holdfast.methods.kinds import Kind, kind_of


class Values(Protocol):
    """The values that a parameter takes."""

    def check(self, owner: str, parameter: str, value: Any) -> object:
        """The value as it is kept.

        Raises:
            UsageError: names `owner`, `parameter`, the value and what is taken.
        """

    def words(self) -> str:
        """The values in words; "" where the description says so."""

    def schema(self) -> dict[str, Any]:
        """The values as JSON Schema."""


@dataclass(frozen=True)
class Number:
    """A finite number in [low, high]; `above_low` and `below_high` leave out an end."""

    low: float
    high: float = math.inf
    above_low: bool = False
    below_high: bool = False

    def check(self, owner: str, parameter: str, value: Any) -> float:
        ends = {"above_low": self.above_low, "below_high": self.below_high}
        return ranges.number_between(owner, parameter, value, self.low, self.high, **ends)

    def words(self) -> str:
        ends = {"above_low": self.above_low, "below_high": self.below_high}
        return ranges.range_in_words(self.low, self.high, **ends)

    def schema(self) -> dict[str, Any]:
        least = "exclusiveMinimum" if self.above_low else "minimum"
        most = "exclusiveMaximum" if self.below_high else "maximum"
        ends = {least: self.low} | ({most: self.high} if math.isfinite(self.high) else {})
        return {"type": "number", **ends}


@dataclass(frozen=True)
class Whole:
    """A whole number of at least `low`."""

    low: int

    def check(self, owner: str, parameter: str, value: Any) -> int:
        whole = isinstance(value, float) and value.is_integer()
        return ranges.whole_number(owner, parameter, int(value) if whole else value, self.low)

    def words(self) -> str:
        return f"a whole number from {self.low} upwards"

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low}


@dataclass(frozen=True)
class Word:
    """One of several words."""

    words_taken: tuple[str, ...]

    def check(self, owner: str, parameter: str, value: Any) -> str:
        if value not in self.words_taken:
            raise UsageError(f"{owner} takes {parameter} as {self.words()}, not {value!r}.")
        return str(value)

    def words(self) -> str:
        return " or ".join(self.words_taken)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words_taken)}


@dataclass(frozen=True)
class Text:
    """Any text that is not empty; spelled in double quotes, as JSON has it."""

    def check(self, owner: str, parameter: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{owner} takes {parameter} as a text, not {value!r}.")
        return value

    def words(self) -> str:
        return "a text"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Heads:
    """(layer, head) pairs, or None for all heads."""

    def check(self, owner: str, parameter: str, value: Any) -> HeadSet | None:
        return checked_heads(owner, value)

    def words(self) -> str:
        return "LAYER.HEAD/LAYER.HEAD or FILE.json"

    def schema(self) -> dict[str, Any]:
        pair = {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 2,
            "maxItems": 2,
        }
        return {"type": "array", "items": pair, "minItems": 1}


@dataclass(frozen=True)
class Layers:
    """Layers, or None for those that a fitted file chose."""

    def check(self, owner: str, parameter: str, value: Any) -> LayerSet | None:
        return checked_layers(owner, value)

    def words(self) -> str:
        return "LAYER/LAYER"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}


@dataclass(frozen=True)
class FittedFile:
    """A file that `holdfast fit` wrote for the method."""

    def check(self, owner: str, parameter: str, value: Any) -> Fitted:
        if isinstance(value, Fitted) and value.method == owner:
            return value
        return read_fitted(str(value.path if isinstance(value, Fitted) else value), owner)

    def words(self) -> str:
        return f"FILE{SUFFIX} of holdfast fit"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "description": "the digest of a file that the server has read"}


@dataclass(frozen=True)
class AttentionMethods:
    """Attention methods, at least one."""

    def check(self, owner: str, parameter: str, value: Any) -> tuple[object, ...]:
        methods = tuple(value)
        wrong = [method for method in methods if kind_of(method) is not Kind.LOG_ODDS]
        if wrong or not methods:
            raise UsageError(
                f"{owner} takes attention methods, at least one, not {wrong[0] if wrong else ()!r};"
                " put other methods beside it."
            )
        return methods

    def words(self) -> str:
        return "attention methods in brackets"

    def schema(self) -> dict[str, Any]:
        spelling = {"type": "string", "description": "an attention method as it is spelled"}
        return {"type": "array", "items": spelling, "minItems": 1}


@dataclass(frozen=True)
class Parameter:
    """The declaration of a parameter.

    Args:
        description: what it is, in a few words.
        values: what it takes.
        example: a value as it is spelled, for sentences.
    """

    description: str
    values: Values
    example: str = ""


def parameter(description: str, values: Values, example: str = "") -> dict[str, Parameter]:
    """The metadata of a dataclass's field that is a parameter."""
    return {"parameter": Parameter(description, values, example)}


HEADS = parameter("the heads that it touches; all of them without", Heads())

KEY_HEADS = parameter(
    "the key-value heads that it touches, each for all query heads that read it; all without",
    Heads(),
)
LAYERS = parameter("the layers that it touches; those that the file chose without", Layers())


def fitted_file(method: str) -> dict[str, Parameter]:
    """The parameter that names what `holdfast fit` has learned for a method."""
    return parameter("what was fitted on the model", FittedFile(), f"{method}{SUFFIX}")


def parameters_of(method: type[Any]) -> dict[str, Parameter]:
    """The parameters that a class declares, in order."""
    return {
        field.name: field.metadata["parameter"]
        for field in dataclasses.fields(method)
        if "parameter" in field.metadata
    }


def required_parameters(method: type[Any]) -> tuple[str, ...]:
    """The parameters that have no default."""
    required = [f.name for f in dataclasses.fields(method) if f.default is dataclasses.MISSING]
    return tuple(name for name in required if name in parameters_of(method))


def check_parameters(method: Any) -> None:
    """Puts the checked value into every parameter of a frozen dataclass; its `__post_init__`.

    Raises:
        UsageError: a value that its parameter does not take; a number is a `ParameterOutOfRange`.
    """
    for name, declared in parameters_of(type(method)).items():
        value = declared.values.check(method.name, name, getattr(method, name))
        object.__setattr__(method, name, value)
