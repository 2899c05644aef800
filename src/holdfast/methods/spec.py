"""Reads and writes spec strings, the form of methods on the command line, in records and in plots:

    none
    split-softmax:exponent=0.5
    split-softmax:exponent=0.7,heads=3.0/3.5+repetition:probability=0.5
    pasta:alpha=0.01,heads=heads.json
    prompt-strength:scale=2,default="You are a helpful assistant."
    seka:file=seka.safetensors,gain=1   a file of `holdfast fit`; `spec_of` names its content
    method.json                         a file {"method": SPEC}, as `holdfast calibrate` writes it

Python functions take method objects as well. In a sweep (`sweep.py`), a parameter has several
values.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.errors import UnknownName, UsageError
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet, spec_of_heads
from holdfast.methods.kinds import check_method
from holdfast.methods.method_file import is_file, read_method_file
from holdfast.methods.parameters import parameters_of, required_parameters, wrong_form
from holdfast.methods.protocols import Method

NONE = "none"
Methods = Sequence[Method | str] | Method | str  # what `read_methods` takes


def read_methods(methods: object) -> tuple[Method, ...]:
    """Returns the methods that a user gave in any form, in the order in which they apply.

    A custom method that declares no kind is of the kind whose functions it has.

    Args:
        methods: a spec string such as "boost:factor=2", a method, or a list of both; None and
            "none" stand for no methods.

    Raises:
        UsageError: anything else, or a method that lacks a member of its kind; also as `parse`.
    """
    if methods is None:
        return ()
    if not isinstance(methods, Iterable) or isinstance(methods, (str, type, dict, bytes)):
        methods = [methods]
    result: list[Method] = []
    for part in methods:
        result += parse(part) if isinstance(part, str) else [check_method(part)]
    return tuple(result)


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
                f"{spec!r} names a file, which a spec string from elsewhere may not do; write the"
                " methods themselves.",
                option="method",
                value=spec,
            )
        spec = read_method_file(spec.strip()).method
    if spec.strip() == NONE:
        return ()
    return tuple(_parse_one(text, spec, files=files) for text in split_spec(spec, "+"))


def _parse_one(text: str, spec: str, *, files: bool) -> Method:
    """Parses the text of one method in a spec string."""
    name, _, pairs = (side.strip() for side in text.partition(":"))
    method = class_of(name, spec)
    texts: dict[str, str] = {}
    for pair in split_spec(pairs, ",") if pairs else ():
        parameter, equals, value = (side.strip() for side in pair.partition("="))
        if not equals or parameter in texts:
            raise UsageError(
                f"{name} takes each parameter once as PARAMETER=VALUE, not {pair!r} in"
                f" {text.strip()!r}.",
                option=name,
                value=pair,
            )
        texts[parameter] = value
    _check_parameters(method, texts)
    declarations = parameters_of(method)
    values: dict[str, object] = {}
    for parameter, value in texts.items():
        try:
            values[parameter] = declarations[parameter].values.read_spec(value, files=files)
        except ValueError as error:
            raise wrong_form(name, parameter, value, str(error)) from None
    instance: Method = method(**values)
    return instance


def class_of(name: str, spec: str) -> type[Any]:
    """Returns the class of a method; raises a `UsageError` for an unknown name.

    Args:
        spec: the spec string that has the name, for the message.
    """
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


def _check_parameters(method: type[Any], texts: Mapping[str, str]) -> None:
    """Refuses unknown parameters, and a spec that lacks a required one."""
    declarations = parameters_of(method)
    for parameter in texts:
        if parameter not in declarations:
            raise UnknownName("parameter", parameter, declarations, owner=method.name)
    for parameter in required_parameters(method):
        if parameter not in texts:
            spec = _join_spec(method.name, [f"{name}={text}" for name, text in texts.items()])
            raise UsageError(
                f"{method.name} needs {parameter}, as in"
                f" {method.name}:{parameter}={declarations[parameter].example}, but got {spec!r}.",
                option=parameter,
                value=spec,
                allowed=declarations[parameter].example,
            )


def split_spec(text: str, separator: str) -> list[str]:
    """Splits a spec string, or a part of it, at separators outside double quotes."""
    parts = [""]
    in_quotes = False
    is_escaped = False
    for character in text:
        in_quotes ^= character == '"' and not is_escaped
        is_escaped = in_quotes and character == "\\" and not is_escaped
        if character == separator and not in_quotes:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def spec_of(methods: Sequence[Method]) -> str:
    """Returns the spec string of methods, so that `parse(spec_of(methods)) == tuple(methods)`."""
    return "+".join(map(_spec_of_one, methods)) or NONE


def _spec_of_one(method: Method) -> str:
    """Returns the spec of a method, without fields that its repr hides (the rules of a prompt).

    A method that is not a dataclass is described by its attributes.
    """
    if dataclasses.is_dataclass(method):
        defaults = {field.name: field.default for field in dataclasses.fields(method) if field.repr}
    else:
        defaults = dict.fromkeys(getattr(method, "__dict__", ()), dataclasses.MISSING)
    values = {name: getattr(method, name) for name in defaults}
    changed = [
        f"{name}={_spec_of_value(value)}"
        for name, value in values.items()
        if value != defaults[name]
    ]
    return _join_spec(method.name, changed)


def _join_spec(name: str, values: Sequence[str]) -> str:
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
