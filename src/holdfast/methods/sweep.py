"""Sweeps of `holdfast calibrate`: spec strings in which one parameter has several values.

    split-softmax:exponent=0.9,0.7,0.5
    split-softmax:exponent=0.7+repetition:probability=0.5,1

The other parameters have one value each, as in any spec string (`spec.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.methods.protocols import Method
from holdfast.methods.spec import NONE, class_of, parse, split_spec


@dataclass(frozen=True)
class Sweep:
    """One method, or several joined by "+", with one parameter at each of some values."""

    name: str  # the spec string without the parameter that varies
    parameter: str  # the name of the parameter that varies
    values: tuple[str, ...]  # its values as the user wrote them
    steerings: tuple[tuple[Method, ...], ...]  # the methods at each value


def parse_sweep(spec: str) -> Sweep:
    """Reads a sweep: a spec string in which one parameter has several values, joined by ",".

    If every parameter has one value, the sweep is a single point.

    Raises:
        UsageError: no parameter is named, or more than one has several values; also as `parse`.
    """
    if spec.strip() == NONE:
        raise UsageError(
            f"The model without a method is measured anyway; leave out {NONE!r}.",
            option="sweep",
            value=spec,
        )
    methods = [_read_method(text, spec) for text in split_spec(spec, "+")]
    parameters = [parameter for method in methods for parameter in method.parameters]
    swept_parameters = [parameter for parameter in parameters if len(parameter.values) > 1]
    swept_parameters = swept_parameters or parameters[:1]
    if len(swept_parameters) != 1:
        names = " and ".join(parameter.name for parameter in swept_parameters)
        reason = f"gives several values to {names}" if names else "names no parameter"
        raise UsageError(
            f"The sweep {spec!r} {reason}; give one parameter one value or several,"
            " as in split-softmax:exponent=0.9,0.7,0.5.",
            option="sweep",
            value=spec,
        )
    (parameter,) = swept_parameters

    def with_value(value: str | None) -> str:
        """Returns the spec string with this value of the parameter; None leaves it out."""
        return "+".join(method.spec_with(parameter, value) for method in methods)

    steerings = tuple(parse(with_value(value)) for value in parameter.values)
    if len(set(steerings)) < len(steerings):
        raise UsageError(
            f"The sweep {spec!r} gives {parameter.name} the same value twice; give each value"
            " once.",
            option="sweep",
            value=spec,
        )
    return Sweep(with_value(None), parameter.name, tuple(parameter.values), steerings)


@dataclass(eq=False)
class _Parameter:
    name: str
    values: list[str]


@dataclass(frozen=True)
class _SweptMethod:
    """One method of a sweep, with the values of its parameters."""

    method: str
    parameters: list[_Parameter]

    def spec_with(self, swept_parameter: _Parameter, value: str | None) -> str:
        """Returns the spec of the method with this value of the swept parameter, if it has it."""
        pairs = [
            f"{parameter.name}={value if parameter is swept_parameter else parameter.values[0]}"
            for parameter in self.parameters
            if parameter is not swept_parameter or value is not None
        ]
        return f"{self.method}:{','.join(pairs)}" if pairs else self.method


def _read_method(text: str, spec: str) -> _SweptMethod:
    """Reads one method; a text without "=" is another value of the parameter before it."""
    name, _, pairs = (side.strip() for side in text.partition(":"))
    class_of(name, spec)  # refuses an unknown name
    parameters: list[_Parameter] = []
    for pair in split_spec(pairs, ",") if pairs else ():
        word, equals, value = (side.strip() for side in pair.partition("="))
        if equals and all(parameter.name != word for parameter in parameters):
            parameters.append(_Parameter(word, [value]))
        elif parameters and not equals:
            parameters[-1].values.append(word)
        else:
            raise UsageError(
                f"A sweep takes each parameter once as PARAMETER=VALUE,VALUE, not {pair!r} in"
                f" {text.strip()!r}.",
                option="sweep",
                value=pair,
            )
    return _SweptMethod(name, parameters)
