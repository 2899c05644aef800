"""How methods are spelled: on the command line, in records, in requests and on plots.

    none
    split-softmax:exponent=0.5
    split-softmax:exponent=0.7,heads=3.0/3.5+repetition:probability=0.5
    gate:methods=[split-softmax:exponent=0.5],threshold=0.1
    pasta:alpha=0.01,heads=heads.json
    prompt-strength:scale=2,default="You are a helpful assistant."
    seka:file=seka.safetensors,gain=1   a file of `holdfast fit`; `spell` names its content
    method.json                         a file {"method": SPEC}, as `holdfast calibrate` writes it

A sweep gives one parameter several values: `split-softmax:exponent=0.9,0.7,0.5`. `read_methods`
takes specs, methods and lists of both, and refuses a method of one's own that lacks something.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UnknownName, UsageError
from holdfast.methods.fitted import Fitted, read_fitted
from holdfast.methods.head_files import read_heads, spell_heads
from holdfast.methods.heads import LayerSet, read_layers, spell_layers
from holdfast.methods.kinds import MEMBERS, Kind, kinds_of
from holdfast.methods.parameters import (
    AttentionMethods,
    FittedFile,
    Heads,
    Layers,
    Text,
    Values,
    Word,
    parameters_of,
    required_parameters,
)
from holdfast.methods.protocols import Method
from holdfast.methods.registry import BY_NAME

NONE = "none"


def parse(spec: str, *, files: bool = True) -> tuple[Method, ...]:
    """Reads the spelling of one or several methods, applied in the order given.

    Args:
        spec: "none", or NAME:PARAMETER=VALUE,PARAMETER=VALUE joined by "+", or the name of a method
            file.
        files: whether it may name files; never where it comes from somebody else.

    Raises:
        UnknownName: no such method or parameter; the message suggests the nearest.
        ParameterOutOfRange: a value outside its parameter's range.
        UsageError: the spelling is malformed, a parameter is missing, or it
            names a file and may not.
    """
    if is_file(spec):
        if not files:
            raise _names_file(spec)
        spec = read_method_file(spec.strip())["method"]
    if spec.strip() == NONE:
        return ()
    return tuple(_make(_read_part(text, spec), files) for text in _split(spec, "+"))


@dataclass(frozen=True)
class Sweep:
    """One method, or several joined by "+", with one parameter at one value or several.

    Args:
        name: of the methods, with the parameters that stay.
        parameter: the name of the parameter that does not.
        values: its values as they were spelled.
        settings: the methods at each value.
    """

    name: str
    parameter: str
    values: tuple[str, ...]
    settings: tuple[tuple[Method, ...], ...]


def parse_sweep(spec: str) -> Sweep:
    """Reads a sweep: a spec string in which one parameter has several values, joined by ",".

    Where every parameter has one value, the sweep is this one setting.

    Raises:
        UsageError: no parameter is named, or more than one has several values, or as `parse`.
    """
    parts = [_read_part(text, spec, swept=True) for text in _split(spec, "+")]
    index, parameter = _swept_parameter(parts, spec)
    before, part, after = parts[:index], parts[index], parts[index + 1 :]
    values = part.parameters[parameter]
    settings = tuple(
        tuple(_make(chosen) for chosen in (*before, part.at(parameter, value), *after))
        for value in values
    )
    if len(set(settings)) < len(settings):
        raise UsageError(
            f"The sweep {spec!r} gives {parameter} the same value twice; give each value once."
        )
    stays = "+".join(chosen.spec() for chosen in (*before, part.without(parameter), *after))
    return Sweep(stays, parameter, values, settings)


def _swept_parameter(parts: Sequence[_Part], spec: str) -> tuple[int, str]:
    """The part, by its number, and the parameter that has several values; else the first one."""
    pairs = [
        (index, parameter) for index, part in enumerate(parts) for parameter in part.parameters
    ]
    swept = [
        (index, parameter)
        for index, parameter in pairs
        if len(parts[index].parameters[parameter]) > 1
    ]
    if len(swept) < 2 and pairs:
        return (swept or pairs)[0]
    named = " and ".join(parameter for _, parameter in swept)
    why = f"gives several values to {named}" if named else "names no parameter"
    raise UsageError(
        f"The sweep {spec!r} {why}; give one parameter one value or several,"
        " as in split-softmax:exponent=0.9,0.7,0.5."
    )


def is_file(spec: str) -> bool:
    """Whether a spelling names a method file."""
    return spec.strip().endswith(".json") and spec.partition(":")[0].strip() not in BY_NAME


def read_method_file(path: Path | str) -> dict[str, Any]:
    """The object in a method file; "method" is a spelling, and the rest says where it comes from.

    Raises:
        UsageError: the file cannot be read, or holds something else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        calibrated = Path(path).with_name("summary.json")
        if isinstance(error, FileNotFoundError) and calibrated.is_file():
            raise UsageError(
                f"There is no method file {path}: `holdfast calibrate` finished in"
                f" {calibrated.parent} and recommended nothing, or had no --budget. Its report.html"
                " says why; give a method such as boost:factor=2, or repeat the calibration with"
                " --budget POINTS, more conversations or other --sweep settings."
            ) from error
        raise UsageError(
            f"The method file {path} cannot be read ({error.strerror}); check the path."
        ) from error
    except ValueError as error:
        raise UsageError(
            f"The method file {path} is not JSON ({error}); write it with `holdfast calibrate"
            " --budget`."
        ) from error
    method = content.get("method") if isinstance(content, dict) else None
    if not isinstance(method, str) or is_file(method):
        raise UsageError(
            f'The method file {path} gives {method!r} as its method; write {{"method":'
            ' "split-softmax:exponent=0.5"}.'
        )
    return dict(content)


def spell(methods: Sequence[Method]) -> str:
    """The one spelling of `methods`: `parse(spell(methods)) == tuple(methods)`."""
    return "+".join(_spell_one(method) for method in methods) or NONE


@dataclass(frozen=True)
class _Part:
    """One method of a spelling, and each parameter with the values it is given."""

    method: type[Any]
    parameters: Mapping[str, tuple[str, ...]]

    def at(self, parameter: str, value: str) -> _Part:
        return _Part(self.method, {**self.parameters, parameter: (value,)})

    def without(self, parameter: str) -> _Part:
        return _Part(self.method, {k: v for k, v in self.parameters.items() if k != parameter})

    def spec(self) -> str:
        parameters = [
            f"{parameter}={','.join(values)}" for parameter, values in self.parameters.items()
        ]
        return f"{self.method.name}:{','.join(parameters)}" if parameters else str(self.method.name)


def _read_part(text: str, spec: str, swept: bool = False) -> _Part:
    """In a sweep, text behind a comma without "=" is another value of the parameter before it."""
    name, _, listed = (side.strip() for side in text.partition(":"))
    method = _class_of(name, spec)
    parameters: dict[str, tuple[str, ...]] = {}
    for pair in _split(listed, ",") if listed else ():
        parameter, equals, value = (side.strip() for side in pair.partition("="))
        if equals and parameter not in parameters:
            parameters[parameter] = (value,)
        elif swept and parameters and not equals:
            parameters[next(reversed(parameters))] += (parameter,)
        else:
            owner, form = (
                ("A sweep", "PARAMETER=VALUE,VALUE") if swept else (name, "PARAMETER=VALUE")
            )
            raise UsageError(
                f"{owner} takes each parameter once as {form}, not {pair!r} in {text.strip()!r}."
            )
    return _Part(method, parameters)


def _make(part: _Part, files: bool = True) -> Method:
    """The method that a part spells, whose parameters have one value each."""
    name, known = part.method.name, parameters_of(part.method)
    for parameter in part.parameters:
        if parameter not in known:
            raise UnknownName("parameter", parameter, known, owner=name)
    if missing := next(
        (k for k in required_parameters(part.method) if k not in part.parameters), None
    ):
        raise UsageError(
            f"{name} needs {missing}, as in {name}:{missing}={known[missing].example},"
            f" but got {part.spec()!r}."
        )
    values = {
        parameter: _read_value(name, parameter, known[parameter].values, text, files)
        for parameter, (text,) in part.parameters.items()
    }
    made: Method = part.method(**values)
    return made


def _class_of(name: str, spec: str) -> type[Any]:
    if not name:
        raise UsageError(
            f"An empty method in {spec!r}; write {NONE}, or NAME:PARAMETER=VALUE joined by '+'."
        )
    if name == NONE:
        raise UsageError(
            f"{NONE!r} cannot be combined with other methods, as in {spec!r}; leave it out."
        )
    if name not in BY_NAME:
        raise UnknownName("method", name, [*BY_NAME, NONE])
    return BY_NAME[name]


def _read_value(owner: str, parameter: str, values: Values, text: str, files: bool) -> object:
    match values:
        case Heads():
            if text.endswith(".json") and not files:
                raise _names_file(text)
            return read_heads(text)
        case Layers():
            return read_layers(text)
        case FittedFile():
            return read_fitted(text, owner, files=files)
        case AttentionMethods():
            if not (text.startswith("[") and text.endswith("]")):
                raise UsageError(
                    f"{owner} takes {parameter} in brackets, as in"
                    f" {owner}:{parameter}=[split-softmax:exponent=0.5], not {text!r}."
                )
            return parse(text[1:-1], files=files)
        case Word():
            return text
        case Text():
            return _read_text(owner, parameter, text)
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{owner} takes a number as {parameter}, not {text!r}.") from None


def _read_text(owner: str, parameter: str, text: str) -> str:
    """A text as it is spelled: between double quotes, or as it stands."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        raise UsageError(
            f'{owner} takes {parameter} between double quotes, with \\" for one inside, not'
            f" {text!r}."
        ) from None


def _names_file(text: str) -> UsageError:
    return UsageError(
        f"{text!r} names a file, and none is read for a spelling that comes from elsewhere; write"
        " the methods and heads themselves."
    )


def _split(text: str, separator: str) -> list[str]:
    """Splits at separators that stand outside brackets and double quotes."""
    parts, depth, quoted, escaped = [""], 0, False, False
    for character in text:
        if not quoted:
            depth += (character == "[") - (character == "]")
        quoted ^= character == '"' and not escaped
        escaped = quoted and character == "\\" and not escaped
        if character == separator and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _spell_one(method: Method) -> str:
    """One method; one that is no dataclass is told by what its object holds."""
    parameters = []
    if dataclasses.is_dataclass(method):
        fields = [(field.name, field.default) for field in dataclasses.fields(method)]
    else:
        fields = [(name, dataclasses.MISSING) for name in getattr(method, "__dict__", ())]
    for name, default in fields:
        value = getattr(method, name)
        if value != default:
            parameters.append(f"{name}={_spell_value(value)}")
    return f"{method.name}:{','.join(parameters)}" if parameters else method.name


def _spell_value(value: object) -> str:
    if isinstance(value, Fitted):
        return value.digest
    if isinstance(value, LayerSet):
        return spell_layers(value)
    if isinstance(value, frozenset):
        return spell_heads(value)
    if isinstance(value, tuple):
        return f"[{spell(value)}]"
    if isinstance(value, str):
        return value if value.isidentifier() else json.dumps(value, ensure_ascii=False)
    number = repr(value).replace("e+", "e")  # '+' stands between methods
    return number.removesuffix(".0")


_LONGEST = 60


def read_methods(given: object) -> tuple[Method, ...]:
    """The methods that `given` stands for.

    A method of one's own that declares no kind is of the kind whose functions it has.

    Args:
        given: a spelling such as "boost:factor=2", a method, or a list of both; "none" adds none.

    Raises:
        UsageError: something else, or a method that lacks what its kind has; and as `parse`.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return parse(given)
    if isinstance(given, Iterable) and not isinstance(given, (type, dict, bytes)):
        return tuple(method for part in given for method in _methods_in(part))
    return _methods_in(given)


def _methods_in(part: object) -> tuple[Method, ...]:
    return parse(part) if isinstance(part, str) else (_checked(part),)


def _checked(method: Any) -> Method:
    """A method that can be applied, spelled and told from others."""
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...)."
        )
    kind = _kind(method)
    made_by = type(method).__name__
    if missing := " and ".join(name for name in MEMBERS[kind] if not hasattr(method, name)):
        raise UsageError(
            f"The method {made_by} lacks {missing}; a method of its kind has"
            f" {', '.join(MEMBERS[kind])} (see holdfast.methods.protocols)."
        )
    if not isinstance(method.name, str) or not method.name:
        name = _cut(repr(method.name))
        raise UsageError(f"The method {made_by} has the name {name}; give it a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {made_by} cannot be hashed, so rows that share it cannot be told; make it"
            " a frozen dataclass, @dataclass(frozen=True)."
        ) from None
    checked: Method = method
    return checked


def _kind(method: object) -> Kind:
    """The kind that a method declares, or the one whose functions it has."""
    kinds, made_by = kinds_of(method), type(method).__name__
    if not kinds:
        raise UsageError(
            f"{_cut(repr(method))} is no method; give objects of holdfast.methods, or "
            "spellings such as 'boost:factor=2'."
        )
    kind, *others = kinds
    if not isinstance(kind, Kind):
        raise UsageError(
            f"The method {made_by} declares the kind {_cut(repr(kind))}; give it one of"
            f" {', '.join(map(str, Kind))}."
        )
    if others:
        raise UsageError(
            f"The method {made_by} has the functions of {' and '.join(map(str, kinds))}; declare"
            f" the one that it is, as in kind = {kind}."
        )
    return kind


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
