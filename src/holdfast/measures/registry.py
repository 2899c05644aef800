"""What a measure is, and how one is built from a spec.

A measure is a plain function `(text, **arguments) -> Score`, registered under its own name by the
decorator `measure`. The kinds of its arguments stand in its annotations, and serve the check of a
spec, its error messages and `holdfast measures`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar, get_args, get_type_hints, overload

from holdfast.errors import UnknownName, UsageError

SURROGATE = re.compile("[\ud800-\udfff]")
DIGITS = 6  # of a score's value: beyond, machines may differ
CODE = "python"  # the one spec that runs a user's own function
JUDGE = "judge"  # the one spec that asks a model


@dataclass(frozen=True)
class Score:
    """How far a reply follows its instruction.

    Attributes:
        value: 0 (not at all) to 1 (fully).
        reason: short English that says why this number.
    """

    value: float
    reason: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(f"a score lies between 0 and 1, not {self.value}")


def share(part: int, whole: int, what: str, full: float = 1.0) -> Score:
    """`part` of `whole` as a score, a share of `full` scoring 1; 0 of 0 is 0."""
    if not whole:
        return Score(0.0, f"there are no {what.split()[0]}")
    reason = f"{part} of {whole} {what}" + (f", {full:g} is full marks" if full < 1 else "")
    return Score(min(1.0, part / whole / full), reason)


@dataclass(frozen=True)
class Kind:
    """What an argument may be: a word for messages, the check, a value that `holdfast measures`
    shows, and the names if it is one of a few.
    """

    label: str
    accepts: Callable[[Any], bool]
    example: Any
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One argument of a measure; `required` ones have no default."""

    name: str
    kind: Kind
    required: bool
    default: Any = None

    def __str__(self) -> str:
        if not self.required:
            return f"{self.name}={json.dumps(self.default)}"
        return ": ".join(filter(None, (self.name, "|".join(self.kind.choices))))


@dataclass(frozen=True)
class Entry:
    """One registered measure."""

    function: Callable[..., Score]
    parameters: tuple[Parameter, ...]
    summary: str
    empty_is_zero: bool
    check: Callable[..., Any] | None


F = TypeVar("F", bound=Callable[..., Score])
REGISTRY: dict[str, Entry] = {}
# of specs that name no registered function, by the field that stands for their name
BUILDERS: dict[str, Callable[[dict[str, Any], bool], Measure]] = {}


@dataclass(frozen=True)
class Measure:
    """A scoring function with its arguments filled in; equal if name and arguments are."""

    name: str
    arguments: Mapping[str, Any] = field(hash=False)
    function: Callable[..., Score] = field(compare=False, repr=False)
    empty_is_zero: bool = field(default=True, compare=False, repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The measure as JSON-able data; `build(measure.spec)` gives it back."""
        return {"name": self.name, **self.arguments}

    @property
    def judged(self) -> bool:
        """Whether a model is asked, so that `score` has no answer."""
        return self.name == JUDGE

    def score(self, text: str) -> Score:
        """Scores one reply; same text, same number, on any machine.

        A built-in measure raises on no string. A user's own function (`python`) that raises, or
        returns no number from 0 to 1, is reported as a `UsageError` that names it.
        """
        text = unicodedata.normalize("NFC", SURROGATE.sub("\ufffd", text))
        if self.empty_is_zero and not text.strip():
            return Score(0.0, "the reply is empty")
        score = self.function(text, **self.arguments)
        return Score(round(float(score.value), DIGITS), score.reason)


@overload
def measure(function: F) -> F: ...
@overload
def measure(
    *, empty_is_zero: bool = True, check: Callable[..., Any] | None = None
) -> Callable[[F], F]: ...
def measure(
    function: Any = None, *, empty_is_zero: bool = True, check: Callable[..., Any] | None = None
) -> Any:
    """Registers a function `(text, **arguments) -> Score` as a measure of the same name.

    Each argument is annotated with one of the types of `kinds`. With `empty_is_zero` (the default)
    a reply without a visible character scores 0 before the function is asked: saying nothing
    follows no instruction. `check` is called with the arguments of a spec and raises a `UsageError`
    where they do not go together.
    """

    def register(wrapped: F) -> F:
        hints = get_type_hints(wrapped, include_extras=True)
        parameters = tuple(
            Parameter(
                p.name,
                kind_of(hints[p.name]),
                p.default is p.empty,
                None if p.default is p.empty else p.default,
            )
            for p in list(inspect.signature(wrapped).parameters.values())[1:]
        )
        summary = " ".join((inspect.getdoc(wrapped) or "").split("\n\n")[0].split())
        REGISTRY[wrapped.__name__] = Entry(wrapped, parameters, summary, empty_is_zero, check)
        return wrapped

    return register if function is None else register(function)


def kind_of(annotation: Any) -> Kind:
    """The `Kind` inside `Annotated[type, kind]` or inside `Annotated[type, kind] | None`."""
    holders = (annotation, *get_args(annotation))
    return next(
        kind
        for holder in holders
        for kind in getattr(holder, "__metadata__", ())
        if isinstance(kind, Kind)
    )


def catalogue() -> list[tuple[str, str, str]]:
    """Every built-in measure as (name, arguments, what it scores), in alphabetical order."""
    rows = [
        (name, ", ".join(map(str, entry.parameters)), entry.summary)
        for name, entry in REGISTRY.items()
    ]
    built = [
        (CODE, CODE, "A function of your own, by its dotted name; needs --allow-code."),
        (
            JUDGE,
            f"{JUDGE}, model, endpoint_model=null",
            "A model answers your question about the reply with yes (1) or no (0).",
        ),
    ]
    return sorted([*rows, *built])


def build(spec: str | Mapping[str, Any], allow_code: bool = False) -> Measure:
    """Builds a measure from its spec.

    Args:
        spec: a name; a mapping with `name` and arguments; `{"regex": ..., "flags": "i"}`; or
            `{"python": "package.module.function"}`, a function of the user's from text to a number;
            or `{"judge": "Does the reply ...?", "model": ...}`, a question that a model answers.
        allow_code: whether `python` specs may import and run code.

    Raises:
        UnknownName: no measure has this name.
        UsageError: the spec is malformed, or names code without `allow_code`.
    """
    name, arguments = read_spec(spec)
    if name in BUILDERS:
        return BUILDERS[name](arguments, allow_code)
    if name not in REGISTRY:
        raise UnknownName("measure", name, [*REGISTRY, *BUILDERS])
    entry = REGISTRY[name]
    arguments = fill_in(name, entry, arguments)
    if entry.check is not None:
        entry.check(**arguments)
    return Measure(name, arguments, entry.function, entry.empty_is_zero)


def as_measure(value: Any) -> Measure:
    """What stands for a measure in Python code as a measure.

    Args:
        value: a measure; a spec, as `build` takes it; or a function from the reply's text to a
            number from 0 to 1 or to a `Score`, which is known by its module and name.

    Raises:
        UsageError: anything else, or a spec that is malformed.
    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str | Mapping):
        return build(value, allow_code=True)
    if isinstance(value, type) or not callable(value):
        raise UsageError(
            "A measure is a name, a spec, a `Measure` or a function of the reply's text, "
            f"not {value!r}; `holdfast measures` lists those that are built in."
        )
    name = getattr(value, "__qualname__", type(value).__qualname__)
    path = f"{getattr(value, '__module__', None)}.{name}"
    return Measure(CODE, {CODE: path}, partial(call_user_function, value), False)


def read_spec(spec: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments that a spec gives, not yet checked."""
    if isinstance(spec, str):
        return spec, {}
    if not isinstance(spec, Mapping):
        raise UsageError(
            f"A measure is a name or a mapping, not {spec!r}; write for example {{name:"
            " one_sentence}."
        )
    arguments = dict(spec)
    unnamed = next((key for key in ("regex", *BUILDERS) if key in arguments), None)
    name = arguments.pop("name", unnamed)
    if not isinstance(name, str):
        raise UsageError(
            f"The measure {spec!r} has no name; give it one of 'name', 'regex', 'python' or"
            " 'judge'."
        )
    return name, arguments


def fill_in(name: str, entry: Entry, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with defaults filled in, or a `UsageError` about the first that is wrong."""
    known = [p.name for p in entry.parameters]
    for argument in arguments:
        if argument not in known:
            near = difflib.get_close_matches(str(argument), known, n=1)
            cure = (
                f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known) or 'none'}."
            )
            raise UsageError(f"The measure {name!r} has no argument {argument!r}; {cure}")
    filled = {}
    for p in entry.parameters:
        if p.required and p.name not in arguments:
            raise UsageError(
                f"The measure {name!r} needs the argument {p.name!r}; give it {p.kind.label}."
            )
        value = arguments.get(p.name, p.default)
        if not (value is None and p.default is None and not p.required) and not p.kind.accepts(
            value
        ):
            shown = shortened(value)
            raise UsageError(
                f"The argument {p.name!r} of the measure {name!r} is {shown}; give it"
                f" {p.kind.label}."
            )
        filled[p.name] = list(value) if isinstance(value, tuple) else value
    return filled


def shortened(value: Any) -> str:
    """A value as a message shows it; a number of thousands of digits has no decimal form."""
    try:
        text = repr(value)
    except ValueError:
        return (
            f"a number of {value.bit_length()} bits"
            if isinstance(value, int)
            else "a value with a huge number"
        )
    return text if len(text) <= 200 else text[:200] + "..."


@cache
def compiled(regex: str, flags: str) -> Any:
    """A regular expression of the user's, or a `UsageError` with what is wrong in it.

    The package `regex` runs it, which can be given a time limit; it reads what `re` reads.
    """
    import regex as engine

    try:
        return engine.compile(regex, sum(getattr(engine, flag.upper()) for flag in set(flags)))
    except (engine.error, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"The regular expression {regex!r} is not valid ({error}); correct it."
        ) from error


def build_from_code(arguments: dict[str, Any], allow_code: bool) -> Measure:
    """A measure that calls a user's own function, found by its dotted name."""
    path = arguments.get(CODE)
    if not isinstance(path, str) or "." not in path or len(arguments) > 1:
        raise UsageError(
            f"A python measure is one dotted name, not {arguments!r}; write {{python:"
            " package.module.function}."
        )
    if not allow_code:
        raise UsageError(
            f"The measure {path!r} is code of your own; pass --allow-code to let it run."
        )
    module, _, attribute = path.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever a user's module does as it is imported
        raise UsageError(
            f"The measure {path!r} cannot be imported ({type(error).__name__}: {error}); "
            "check the name: its file stands beside the suite's or on PYTHONPATH."
        ) from error
    if not callable(function):
        raise UsageError(
            f"The measure {path!r} is a {type(function).__name__}, not a function of the reply's"
            " text."
        )
    return Measure(CODE, {CODE: path}, partial(call_user_function, function), False)


def call_user_function(function: Callable[[str], Any], text: str, python: str) -> Score:
    """The user's number as a score; whatever goes wrong is named, never scored."""
    try:
        value = function(text)
        return (
            value
            if isinstance(value, Score)
            else Score(float(value), f"{python} gave {float(value):g}")
        )
    except Exception as error:
        raise UsageError(
            f"The measure {python!r} failed on {text[:60]!r} ({type(error).__name__}: {error}); "
            "it must return a number from 0 to 1 for every string."
        ) from error


BUILDERS[CODE] = build_from_code
