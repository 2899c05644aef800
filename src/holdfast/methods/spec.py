"""Spec strings: methods as the command line, records, requests and plots write them.

    none
    split-softmax:exponent=0.5
    split-softmax:exponent=0.7,heads=3.0/3.5+repetition:probability=0.5
    pasta:alpha=0.01,heads=heads.json
    prompt-strength:scale=2,default="You are a helpful assistant."
    seka:file=seka.safetensors,gain=1   a file of `holdfast fit`; `spec_of` names its content
    method.json                         a file {"method": SPEC}, as `holdfast calibrate` writes it

A sweep gives one parameter several values: `split-softmax:exponent=0.9,0.7,0.5`.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import UnknownName, UsageError
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet, spec_of_heads
from holdfast.methods.method_file import is_file, read_method_file
from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.methods.protocols import Method

NONE = "none"


def parse(spec: str, *, files: bool = True) -> tuple[Method, ...]:
    """Reads the spec string of one or several methods, applied in the order given.

    Args:
        spec: "none", or NAME:PARAMETER=VALUE,PARAMETER=VALUE joined by "+", or the name of a method
            file.
        files: whether it may name files; must be False for a spec from an untrusted source.

    Raises:
        UnknownName: no such method or parameter; the message suggests the nearest.
        ParameterOutOfRange: a value outside its parameter's range.
        UsageError: the spec is malformed, a parameter is missing, or it names a file and may not.
    """
    if is_file(spec):
        if not files:
            raise UsageError(
                f"{spec!r} names a file, and none is read for a spec string that comes from"
                " elsewhere; write the methods themselves.",
                option="method",
                value=spec,
            )
        spec = read_method_file(spec.strip()).method
    if spec.strip() == NONE:
        return ()
    return tuple(_make(_read_part(text, spec), files) for text in _split(spec, "+"))


@dataclass(frozen=True)
class Sweep:
    """One method, or several joined by "+", with one parameter at one value or several."""

    name: str  # the methods with the parameters that stay
    parameter: str  # the name of the parameter that varies
    values: tuple[str, ...]  # its values as written
    settings: tuple[tuple[Method, ...], ...]  # the methods at each value


def parse_sweep(spec: str) -> Sweep:
    """Reads a sweep: a spec string in which one parameter has several values, joined by ",".

    If every parameter has one value, the sweep is this one setting.

    Raises:
        UsageError: no parameter is named, or more than one has several values, or as `parse`.
    """
    if spec.strip() == NONE:
        raise UsageError(
            f"The model without a method is measured anyway; leave out {NONE!r}.",
            option="sweep",
            value=spec,
        )
    parts = [_read_part(text, spec, swept=True) for text in _split(spec, "+")]
    pairs = [(part, parameter) for part in parts for parameter in part.values]
    several = [(part, parameter) for part, parameter in pairs if len(part.values[parameter]) > 1]
    if len(several) > 1 or not pairs:
        named = " and ".join(parameter for _, parameter in several)
        why = f"gives several values to {named}" if named else "names no parameter"
        raise UsageError(
            f"The sweep {spec!r} {why}; give one parameter one value or several,"
            " as in split-softmax:exponent=0.9,0.7,0.5.",
            option="sweep",
            value=spec,
        )
    swept, parameter = (several or pairs)[0]

    def with_values(*values: str) -> list[_Part]:
        """The parts, with only these values of the parameter."""
        others = {name: kept for name, kept in swept.values.items() if name != parameter}
        changed = _Part(swept.method, others | ({parameter: values} if values else {}))
        return [changed if part is swept else part for part in parts]

    values = swept.values[parameter]
    settings = tuple(tuple(map(_make, with_values(value))) for value in values)
    if len(set(settings)) < len(settings):
        raise UsageError(
            f"The sweep {spec!r} gives {parameter} the same value twice; give each value once.",
            option="sweep",
            value=spec,
        )
    return Sweep("+".join(map(str, with_values())), parameter, values, settings)


@dataclass(frozen=True)
class _Part:
    """One method of a spec string, and each parameter with the values it is given."""

    method: type[Any]
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return _joined(self.method.name, [f"{k}={','.join(v)}" for k, v in self.values.items()])


def _read_part(text: str, spec: str, swept: bool = False) -> _Part:
    """In a sweep, text after a comma without "=" is another value of the parameter before it."""
    name, _, listed = (side.strip() for side in text.partition(":"))
    method = _class_of(name, spec)
    values: dict[str, tuple[str, ...]] = {}
    for pair in _split(listed, ",") if listed else ():
        parameter, equals, value = (side.strip() for side in pair.partition("="))
        if equals and parameter not in values:
            values[parameter] = (value,)
        elif swept and values and not equals:
            values[next(reversed(values))] += (parameter,)
        else:
            owner, form = ("A sweep", "VALUE,VALUE") if swept else (name, "VALUE")
            raise UsageError(
                f"{owner} takes each parameter once as PARAMETER={form}, not {pair!r} in"
                f" {text.strip()!r}.",
                option=owner,
                value=pair,
            )
    return _Part(method, values)


def _class_of(name: str, spec: str) -> type[Any]:
    if not name:
        raise UsageError(
            f"An empty method in {spec!r}; write {NONE}, or NAME:PARAMETER=VALUE joined by '+'.",
            option="method",
            value=spec,
        )
    if name == NONE:
        raise UsageError(
            f"{NONE!r} cannot be combined with other methods, as in {spec!r}; leave it out.",
            option="method",
            value=spec,
        )
    if name not in BY_NAME:
        raise UnknownName("method", name, [*BY_NAME, NONE])
    return BY_NAME[name]


def _make(part: _Part, files: bool = True) -> Method:
    name, known = part.method.name, parameters_of(part.method)
    for parameter in part.values:
        if parameter not in known:
            raise UnknownName("parameter", parameter, known, owner=name)
    for parameter in required_parameters(part.method):
        if parameter not in part.values:
            raise UsageError(
                f"{name} needs {parameter}, as in {name}:{parameter}={known[parameter].example},"
                f" but got {str(part)!r}.",
                option=parameter,
                value=str(part),
                allowed=known[parameter].example,
            )
    values = {
        parameter: known[parameter].values.read(name, parameter, text, files)
        for parameter, (text,) in part.values.items()
    }
    made: Method = part.method(**values)
    return made


def _split(text: str, separator: str) -> list[str]:
    """Splits at separators outside double quotes."""
    parts, quoted, escaped = [""], False, False
    for character in text:
        quoted ^= character == '"' and not escaped
        escaped = quoted and character == "\\" and not escaped
        if character == separator and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def spec_of(methods: Sequence[Method]) -> str:
    """The one spec string of `methods`: `parse(spec_of(methods)) == tuple(methods)`."""
    return "+".join(map(_spec_of_one, methods)) or NONE


def _spec_of_one(method: Method) -> str:
    """The spec of a method, without fields that its repr hides (the rules of a prompt).

    A method that is not a dataclass is described by its attributes.
    """
    if dataclasses.is_dataclass(method):
        shown = [field for field in dataclasses.fields(method) if field.repr]
        defaults = {field.name: field.default for field in shown}
    else:
        defaults = dict.fromkeys(getattr(method, "__dict__", ()), dataclasses.MISSING)
    values = {name: getattr(method, name) for name in defaults}
    changed = [f"{k}={_spec_of_value(v)}" for k, v in values.items() if v != defaults[k]]
    return _joined(method.name, changed)


def _joined(name: str, values: Sequence[str]) -> str:
    return f"{name}:{','.join(values)}" if values else name


def _spec_of_value(value: object) -> str:
    match value:
        case Fitted():
            return value.digest
        case LayerSet():
            return "/".join(map(str, sorted(value)))
        case tuple():
            return "/".join(value)
        case frozenset():
            return spec_of_heads(value)
        case str():
            return value if value.isidentifier() else json.dumps(value, ensure_ascii=False)
    number = repr(value).replace("e+", "e")  # '+' separates methods
    return number.removesuffix(".0")
