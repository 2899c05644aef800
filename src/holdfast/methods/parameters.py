"""The parameters of a method, declared on its class:

    factor: float = parameter("the factor M; 1 changes nothing", number(1), "4")

Checks, spec strings, `holdfast methods` and `methods.schema` are all made from these declarations.
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
from holdfast.methods.head_files import read_heads, read_layers
from holdfast.methods.heads import HeadSet, checked_heads, checked_layers
from holdfast.validation.ranges import Range, whole_value

C = TypeVar("C")


@dataclass(frozen=True)
class Values:
    """The values that a parameter takes.

    Args:
        words: the values as messages name them.
        schema: the values as JSON Schema.
        check: given the names of the method and of the parameter, and a value: returns the value to
            use, or raises a `UsageError` that names all three.
        read: makes the value to check from the text in a spec string; a `ValueError` has the right
            form in words.
        read_file: the same where the text may name a file; None: these values are in no file.
    """

    words: str
    schema: dict[str, Any]
    check: Callable[[str, str, Any], object]
    read: Callable[[str], object] = str
    read_file: Callable[[str], object] | None = None

    def read_spec(self, text: str, *, files: bool) -> object:
        """The value, not checked yet, of a text in a spec string, which may name `files` or not."""
        if files and self.read_file is not None:
            return self.read_file(text)
        return self.read(text)


@dataclass(frozen=True)
class Parameter:
    """A parameter's declaration: a description, the values it takes, and an example of one."""

    description: str
    values: Values
    example: str = ""


def parameter(description: str, values: Values, example: str = "", default: Any = MISSING) -> Any:
    """A field of a method's class, with the arguments of `Parameter`."""
    return field(default=default, metadata={"parameter": Parameter(description, values, example)})


def refused(owner: str, name: str, value: object, form: str, allowed: object = None) -> UsageError:
    """The refusal of a parameter's value that has another form than it takes."""
    message = f"{owner} takes {name} as {form}, not {value!r}."
    return UsageError(message, option=name, value=value, allowed=allowed or form)


# Values of one kind each


def number(
    low: float,
    high: float = math.inf,
    *,
    above_low: bool = False,
    below_high: bool = False,
    share: bool = False,
) -> Values:
    """The numbers of a `Range`."""
    numbers = Range(low, high, above_low, below_high, share)
    return Values(numbers.words, numbers.schema, numbers.check_value, read=_read_number)


def whole(low: int) -> Values:
    """The whole numbers from `low` upwards."""

    def check(owner: str, name: str, value: Any) -> int:
        is_whole = isinstance(value, float) and value.is_integer()
        return whole_value(owner, name, int(value) if is_whole else value, low)

    words = f"a whole number from {low} upwards"
    return Values(words, {"type": "integer", "minimum": low}, check, read=_read_number)


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def word(*choices: str) -> Values:
    """Any of several words."""
    words = f"{', '.join(choices[:-1])} or {choices[-1]}"

    def check(owner: str, name: str, value: Any) -> str:
        if value not in choices:
            raise refused(owner, name, value, words, choices)
        return str(value)

    return Values(words, {"type": "string", "enum": list(choices)}, check)


def _check_names(owner: str, name: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(text, str) and text.strip() for text in names):
        raise refused(owner, name, value, "names joined by a slash", "NAME/NAME")
    return names


NAMES = Values(
    "NAME/NAME",
    {"type": "array", "items": {"type": "string", "minLength": 1}},
    _check_names,
    read=lambda text: text.split("/"),
)


def _check_text(owner: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refused(owner, name, value, "a text")
    return value


def _read_text(text: str) -> str:
    """A text in a spec string: either a JSON string or the plain text."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        raise ValueError('a text in double quotes, with \\" for one inside') from None


TEXT = Values("a text", {"type": "string", "minLength": 1}, _check_text, read=_read_text)


def _check_heads(owner: str, name: str, value: Any) -> HeadSet | None:
    """Heads as pairs or as a spec string writes them; no file, as requests have values too."""
    heads = read_heads(value, files=False) if isinstance(value, str) else value
    return checked_heads(owner, heads)


_NUMBERS_FROM_0 = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_PAIR = _NUMBERS_FROM_0 | {"minItems": 2, "maxItems": 2}

_HEADS = Values(
    "LAYER.HEAD/LAYER.HEAD or FILE.json",
    {"type": "array", "items": _PAIR, "minItems": 1},
    _check_heads,
    read=partial(read_heads, files=False),
    read_file=read_heads,
)
_LAYERS = Values(
    "LAYER/LAYER",
    _NUMBERS_FROM_0 | {"minItems": 1},
    lambda owner, name, value: checked_layers(owner, value),
    read=read_layers,
)


def _file_fitted_for(method: str) -> Values:
    """The files that `holdfast fit` made for a method."""

    def check(owner: str, name: str, value: Any) -> Fitted:
        if isinstance(value, Fitted) and value.method == method:
            return value
        return read_fitted(str(value.path if isinstance(value, Fitted) else value), method)

    return Values(
        f"FILE{SUFFIX} of holdfast fit",
        {"type": "string", "description": "the digest of a file that the server has read"},
        check,
        read=partial(read_fitted, method=method, files=False),
        read_file=partial(read_fitted, method=method),
    )


# Parameters that several methods share


def heads_parameter() -> Any:
    """`heads`: None for all of them."""
    return parameter("the heads that it touches; all of them without", _HEADS, default=None)


def key_heads_parameter() -> Any:
    """`heads` of a method that edits keys, which several query heads may read; None for all."""
    description = (
        "the key-value heads that it touches, each for all query heads that read it; all without"
    )
    return parameter(description, _HEADS, default=None)


def layers_parameter() -> Any:
    """The parameter `layers`; None means the layers that the fitted file chose."""
    return parameter(
        "the layers that it touches; those that the file chose without", _LAYERS, default=None
    )


def file_parameter(method: str) -> Any:
    """`file`: that which `holdfast fit` made for this method; it must be given."""
    return parameter("what was fitted on the model", _file_fitted_for(method), f"{method}{SUFFIX}")


# Classes with parameters


@dataclass_transform(frozen_default=True, field_specifiers=(parameter, file_parameter, field))
def method(cls: type[C]) -> type[C]:
    """Makes a class with parameters a frozen dataclass that checks them.

    Creating an object with a value that its parameter does not take raises a `UsageError`; for a
    number, a `ParameterOutOfRange`. A class whose parameters depend on each other refuses what does
    not fit in `check_parameters()`.
    """
    cls.__post_init__ = _check_parameters  # type: ignore[attr-defined]
    return dataclass(frozen=True)(cls)


def _check_parameters(method: Any) -> None:
    for name, declared in parameters_of(type(method)).items():
        value = declared.values.check(method.name, name, getattr(method, name))
        object.__setattr__(method, name, value)
    if hasattr(method, "check_parameters"):
        method.check_parameters()


def parameters_of(method: type[Any]) -> dict[str, Parameter]:
    """The parameters that a class declares, in order."""
    return {
        field.name: field.metadata["parameter"]
        for field in dataclasses.fields(method)
        if "parameter" in field.metadata
    }


def required_parameters(method: type[Any]) -> tuple[str, ...]:
    """The parameters that have no default."""
    required = [field.name for field in dataclasses.fields(method) if field.default is MISSING]
    return tuple(name for name in required if name in parameters_of(method))
