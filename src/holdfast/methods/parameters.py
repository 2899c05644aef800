"""The parameters of a method, declared on its class:

    factor: float = parameter("the factor M; 1 changes nothing", number(1), "4")

Checks, spec strings, `holdfast methods` and `methods.schema` are all derived from these
declarations.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from functools import partial
from typing import Any, TypeVar, dataclass_transform

from holdfast.errors import UsageError
from holdfast.methods.fitted import SUFFIX, Fitted, read_fitted
from holdfast.methods.head_specs import read_heads, read_layers
from holdfast.methods.heads import HeadSet, to_head_set, to_layer_set
from holdfast.validation.ranges import Range, whole_value

# JSON Schemas: numbers of layers, and a pair of a layer and a head
_NUMBERS_FROM_0 = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_PAIR = _NUMBERS_FROM_0 | {"minItems": 2, "maxItems": 2}
C = TypeVar("C")  # the class of a method


@dataclass(frozen=True)
class ParameterType:
    """The values that a parameter takes.

    Args:
        words: describes the values in messages.
        schema: describes them as a JSON Schema.
        check: takes the names of the method and of the parameter, and a value; returns the value to
            use, or raises a `UsageError` that names all three.
        read: reads a value, which is checked later, from the text in a spec string; raises a
            `ValueError` that says in words what form the text should have.
        read_file: like `read`, where the text may name a file; None if these values are in no file.
    """

    words: str
    schema: dict[str, Any]
    check: Callable[[str, str, Any], object]
    read: Callable[[str], object] = str
    read_file: Callable[[str], object] | None = None

    def read_spec(self, text: str, *, files: bool) -> object:
        """Reads a value, which is not checked yet, from the text in a spec string.

        Args:
            files: whether the text may name a file.
        """
        if files and self.read_file is not None:
            return self.read_file(text)
        return self.read(text)


@dataclass(frozen=True)
class Parameter:
    """A parameter's declaration: a description, the values it takes, and an example of one."""

    description: str
    values: ParameterType
    example: str = ""


def parameter(
    description: str, values: ParameterType, example: str = "", default: Any = MISSING
) -> Any:
    """Declares a field of a method's class as a parameter; see `Parameter` for the arguments."""
    return field(default=default, metadata={"parameter": Parameter(description, values, example)})


def wrong_form(
    owner: str, name: str, value: object, form: str, allowed: object = None
) -> UsageError:
    """Builds the error for a parameter's value that does not have the form it should."""
    message = f"{owner} takes {name} as {form}, not {value!r}."
    return UsageError(message, option=name, value=value, allowed=allowed or form)


# The values that parameters take


def number(
    low: float,
    high: float = math.inf,
    *,
    above_low: bool = False,
    below_high: bool = False,
    share: bool = False,
) -> ParameterType:
    """The numbers of a `Range`."""
    numbers = Range(low, high, above_low, below_high, share)
    return ParameterType(numbers.words, numbers.schema, numbers.check_value, read=_read_number)


def whole(low: int) -> ParameterType:
    """The whole numbers from `low` upwards; 3.0 counts as 3."""

    def check(owner: str, name: str, value: Any) -> int:
        is_whole = isinstance(value, float) and value.is_integer()
        return whole_value(owner, name, int(value) if is_whole else value, low)

    words = f"a whole number from {low} upwards"
    return ParameterType(words, {"type": "integer", "minimum": low}, check, read=_read_number)


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def word(*choices: str) -> ParameterType:
    """One of several words."""
    words = f"{', '.join(choices[:-1])} or {choices[-1]}"

    def check(owner: str, name: str, value: Any) -> str:
        if value not in choices:
            raise wrong_form(owner, name, value, words, choices)
        return str(value)

    return ParameterType(words, {"type": "string", "enum": list(choices)}, check)


def _check_names(owner: str, name: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(text, str) and text.strip() for text in names):
        raise wrong_form(owner, name, value, "names joined by a slash", "NAME/NAME")
    return names


NAMES = ParameterType(
    "NAME/NAME",
    {"type": "array", "items": {"type": "string", "minLength": 1}},
    _check_names,
    read=lambda text: text.split("/"),
)


def _check_text(owner: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong_form(owner, name, value, "a text")
    return value


def _read_text(text: str) -> str:
    """Reads a text in a spec string, which is either a JSON string or the plain text."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        raise ValueError('a text in double quotes, with \\" for one inside') from None


TEXT = ParameterType("a text", {"type": "string", "minLength": 1}, _check_text, read=_read_text)


def _check_heads(owner: str, name: str, value: Any) -> HeadSet | None:
    """Accepts pairs, or a spec string that names no file, as the value may come from a request."""
    heads = read_heads(value, files=False) if isinstance(value, str) else value
    return to_head_set(owner, heads)


_HEADS = ParameterType(
    "LAYER.HEAD/LAYER.HEAD or FILE.json",
    {"type": "array", "items": _PAIR, "minItems": 1},
    _check_heads,
    read=partial(read_heads, files=False),
    read_file=read_heads,
)
_LAYERS = ParameterType(
    "LAYER/LAYER",
    _NUMBERS_FROM_0 | {"minItems": 1},
    lambda owner, name, value: to_layer_set(owner, value),
    read=read_layers,
)


def _file_fitted_for(method: str) -> ParameterType:
    """The files that `holdfast fit` made for a method."""

    def check(owner: str, name: str, value: Any) -> Fitted:
        if isinstance(value, Fitted) and value.method == method:
            return value
        return read_fitted(str(value.path if isinstance(value, Fitted) else value), method)

    return ParameterType(
        f"FILE{SUFFIX} of holdfast fit",
        {"type": "string", "description": "the digest of a file that the server has read"},
        check,
        read=partial(read_fitted, method=method, files=False),
        read_file=partial(read_fitted, method=method),
    )


# Parameters that several methods share


def heads_parameter() -> Any:
    """The parameter `heads`; None means all heads."""
    return parameter("the heads that it touches; all if not given", _HEADS, default=None)


def key_heads_parameter() -> Any:
    """The parameter `heads` of a method that edits keys; None means all key-value heads."""
    description = (
        "the key-value heads that it touches, each for all query heads that share it; all if not"
        " given"
    )
    return parameter(description, _HEADS, default=None)


def layers_parameter() -> Any:
    """The parameter `layers`; None means the layers that the fitted file chose."""
    return parameter(
        "the layers that it touches; if not given, the layers that the file chose",
        _LAYERS,
        default=None,
    )


def file_parameter(method: str) -> Any:
    """The parameter `file`: a file that `holdfast fit` made for this method; it must be given."""
    return parameter("the file fitted on the model", _file_fitted_for(method), f"{method}{SUFFIX}")


# Classes with parameters


@dataclass_transform(frozen_default=True, field_specifiers=(parameter, file_parameter, field))
def method(cls: type[C]) -> type[C]:
    """Makes a class with parameters a frozen dataclass that checks them.

    Creating an object with a value that its parameter does not take raises a `UsageError`, or for a
    number a `ParameterOutOfRange`. A class whose parameters depend on each other checks that in
    `check_parameters()`.
    """
    cls.__post_init__ = _check_parameters  # type: ignore[attr-defined]
    return dataclass(frozen=True)(cls)


def _check_parameters(method: Any) -> None:
    """Checks all parameters, and replaces each value by the one to use, such as a `HeadSet`."""
    for name, parameter in parameters_of(type(method)).items():
        value = parameter.values.check(method.name, name, getattr(method, name))
        object.__setattr__(method, name, value)
    if hasattr(method, "check_parameters"):
        method.check_parameters()


def parameters_of(method: type[Any]) -> dict[str, Parameter]:
    """Returns the parameters that a class declares, by name, in order."""
    return {
        field.name: field.metadata["parameter"]
        for field in dataclasses.fields(method)
        if "parameter" in field.metadata
    }


def required_parameters(method: type[Any]) -> tuple[str, ...]:
    """Returns the names of the parameters without a default."""
    required_names = [
        field.name for field in dataclasses.fields(method) if field.default is MISSING
    ]
    return tuple(name for name in required_names if name in parameters_of(method))
