"""How methods are spelled: on the command line, in records, in requests and on plots.

    none
    split-softmax:exponent=0.5
    split-softmax:exponent=0.7,heads=3.0/3.5+repetition:probability=0.5
    gate:methods=[split-softmax:exponent=0.5],threshold=0.1
    pasta:alpha=0.01,heads=heads.json
    method.json                                               a file {"method": SPEC}, as `holdfast
                                                              calibrate` writes it

A sweep gives one knob several values: `split-softmax:exponent=0.9,0.7,0.5`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import UnknownName, UsageError
from holdfast.methods.boost import Boost
from holdfast.methods.gate import Gate
from holdfast.methods.guidance import Guidance
from holdfast.methods.heads import read_heads, spell_heads
from holdfast.methods.pasta import Pasta
from holdfast.methods.protocols import Method
from holdfast.methods.repetition import Repetition
from holdfast.methods.split_softmax import SplitSoftmax
from holdfast.methods.spotlight import Spotlight

NONE = "none"
_METHODS: dict[str, type[Any]] = {
    method.name: method
    for method in (SplitSoftmax, Pasta, Boost, Spotlight, Repetition, Guidance, Gate)
}


def parse(spec: str) -> tuple[Method, ...]:
    """Reads the spelling of one or several methods, applied in the order given.

    Args:
        spec: "none", or NAME:KNOB=VALUE,KNOB=VALUE joined by "+", or the name of a method file.

    Raises:
        UnknownName: no such method or knob; the message suggests the nearest.
        KnobOutOfRange: a value outside its knob's range.
        UsageError: the spelling is malformed, or a knob is missing.
    """
    if is_file(spec):
        spec = read_method_file(spec.strip())["method"]
    if spec.strip() == NONE:
        return ()
    return tuple(_parse_one(part.strip(), spec) for part in _split(spec, "+"))


@dataclasses.dataclass(frozen=True)
class Sweep:
    """One method, or several joined by "+", with one knob at several values.

    Args:
        name: of the methods, with the knobs that stay.
        knob: the name of the knob that does not.
        values: its values as they were spelled.
        settings: the methods at each value.
    """

    name: str
    knob: str
    values: tuple[str, ...]
    settings: tuple[tuple[Method, ...], ...]


def parse_sweep(spec: str) -> Sweep:
    """Reads a sweep: a spelling of methods in which one knob has several values, joined by ",".

    Raises:
        UsageError: no knob or more than one has several values, or as `parse`.
    """
    parts = [
        (name.strip(), _assignments(listed))
        for name, _, listed in (part.partition(":") for part in _split(spec, "+"))
    ]
    swept = [
        (number, knob, values)
        for number, (_, knobs) in enumerate(parts)
        for knob, values in knobs.items()
        if len(values) > 1
    ]
    if len(swept) != 1:
        some = " and ".join(knob for _, knob, _ in swept)
        why = f"gives several values to {some}" if some else "has one point"
        raise UsageError(
            f"The sweep {spec!r} {why}; give one knob two values or more, as in"
            " split-softmax:exponent=0.9,0.7,0.5."
        )
    number, swept_knob, values = swept[0]

    def at(value: str) -> str:
        fixed = [
            (name, {**knobs, swept_knob: [value]} if place == number else knobs)
            for place, (name, knobs) in enumerate(parts)
        ]
        return "+".join(
            (
                f"{name}:{','.join(f'{knob}={one[0]}' for knob, one in knobs.items())}"
                if knobs
                else name
            )
            for name, knobs in fixed
        )

    settings = tuple(parse(at(value)) for value in values)
    stay = [
        (
            name,
            [
                f"{knob}={one[0]}"
                for knob, one in knobs.items()
                if (place, knob) != (number, swept_knob)
            ],
        )
        for place, (name, knobs) in enumerate(parts)
    ]
    if len(set(settings)) < len(settings):
        raise UsageError(
            f"The sweep {spec!r} gives {swept_knob} the same value twice; give each value once."
        )
    return Sweep(
        "+".join(":".join(filter(None, (name, ",".join(knobs)))) for name, knobs in stay),
        swept_knob,
        tuple(values),
        settings,
    )


def _assignments(listed: str) -> dict[str, list[str]]:
    """The values of each knob: what follows a comma without a "=" is another value of the knob
    before it.
    """
    knobs: dict[str, list[str]] = {}
    last: list[str] | None = None
    for pair in _split(listed, ",") if listed.strip() else ():
        knob, equals, value = (text.strip() for text in pair.partition("="))
        if equals and (last is None or knob not in knobs):
            last = knobs[knob] = [value]
        elif not equals and last is not None:
            last.append(knob)
        else:
            raise UsageError(
                f"A sweep takes each knob once as KNOB=VALUE,VALUE, not {pair!r} in {listed!r}."
            )
    return knobs


def is_file(spec: str) -> bool:
    """Whether a spelling names a method file."""
    return spec.strip().endswith(".json") and spec.partition(":")[0].strip() not in _METHODS


def read_method_file(path: Path | str) -> dict[str, Any]:
    """The object in a method file; "method" is a spelling, and the rest says where it comes from.

    Raises:
        UsageError: the file cannot be read, or holds something else.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"The method file {path} cannot be read ({error.strerror}); check the path."
        ) from error
    except ValueError as error:
        raise UsageError(
            f"The method file {path} is not JSON ({error}); write it with `holdfast calibrate"
            " --budget`."
        ) from error
    method = found.get("method") if isinstance(found, dict) else None
    if not isinstance(method, str) or is_file(method):
        raise UsageError(
            f'The method file {path} gives {method!r} as its method; write {{"method":'
            ' "split-softmax:exponent=0.5"}.'
        )
    return found


def spell(methods: Sequence[Method]) -> str:
    """The one spelling of `methods`: `parse(spell(methods)) == tuple(methods)`."""
    return "+".join(_spell_one(method) for method in methods) or NONE


def catalogue() -> list[tuple[str, tuple[str, ...], str]]:
    """Name, knobs and one line of every method, for help texts."""
    return [
        (name, tuple(field.name for field in dataclasses.fields(method)), _first_line(method))
        for name, method in _METHODS.items()
    ]


def _parse_one(part: str, spec: str) -> Method:
    name, colon, listed = part.partition(":")
    if not name:
        raise UsageError(
            f"An empty method in {spec!r}; write {NONE}, or NAME:KNOB=VALUE joined by '+'."
        )
    if name == NONE:
        raise UsageError(
            f"{NONE!r} cannot be combined with other methods, as in {spec!r}; leave it out."
        )
    if name not in _METHODS:
        raise UnknownName("method", name, [*_METHODS, NONE])
    method = _METHODS[name]
    fields = {field.name: field for field in dataclasses.fields(method)}
    values: dict[str, object] = {}
    for pair in _split(listed, ",") if colon else ():
        knob, equals, value = (text.strip() for text in pair.partition("="))
        if not equals or knob in values:
            raise UsageError(
                f"{name} takes each knob once as KNOB=VALUE, not {pair!r} in {part!r}."
            )
        if knob not in fields:
            raise UnknownName(f"knob of {name}", knob, fields)
        values[knob] = _read_value(name, fields[knob], value)
    missing = [
        knob
        for knob, field in fields.items()
        if field.default is dataclasses.MISSING and knob not in values
    ]
    if missing:
        example = "[split-softmax:exponent=0.5]" if missing[0] == "methods" else "0.5"
        raise UsageError(
            f"{name} needs {missing[0]}, as in {name}:{missing[0]}={example}, but got {part!r}."
        )
    made: Method = method(**values)
    return made


def _split(spelled: str, separator: str) -> list[str]:
    """Splits at separators that stand outside brackets."""
    parts, depth = [""], 0
    for character in spelled:
        depth += (character == "[") - (character == "]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _read_value(name: str, field: dataclasses.Field, value: str) -> object:
    if field.name == "heads":
        return read_heads(value)
    if field.name == "methods":
        if not (value.startswith("[") and value.endswith("]")):
            raise UsageError(
                f"{name} takes methods in brackets, as in"
                f" {name}:methods=[split-softmax:exponent=0.5], not {value!r}."
            )
        return parse(value[1:-1])
    if isinstance(field.default, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{name} takes a number as {field.name}, not {value!r}.") from None


def _spell_one(method: Method) -> str:
    """One method; one that is no dataclass is told by what its object holds."""
    knobs = []
    if dataclasses.is_dataclass(method):
        fields = [(field.name, field.default) for field in dataclasses.fields(method)]
    else:
        fields = [(name, dataclasses.MISSING) for name in getattr(method, "__dict__", ())]
    for name, default in fields:
        value = getattr(method, name)
        if value != default:
            knobs.append(f"{name}={_spell_value(value)}")
    return f"{method.name}:{','.join(knobs)}" if knobs else method.name


def _spell_value(value: object) -> str:
    if isinstance(value, frozenset):
        return spell_heads(value)
    if isinstance(value, tuple):
        return f"[{spell(value)}]"
    if isinstance(value, str):
        return value
    spelled = repr(value).replace("e+", "e")  # '+' stands between methods
    return spelled.removesuffix(".0")


def _first_line(method: type[Any]) -> str:
    """The summary of a class, which may be wrapped."""
    return " ".join((method.__doc__ or "").strip().split("\n\n")[0].split())
