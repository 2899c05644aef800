"""The registry of measures, and `build`, which makes a measure from a spec.

A measure is a plain function `(text, **arguments) -> Score`, registered under its own name by the
decorator `measure`. Pydantic checks the arguments of a spec against the function's annotations
(`measures.arguments`).
"""

from __future__ import annotations

import inspect
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from holdfast.catalogue_entry import CatalogueEntry
from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.measures.arguments import for_pydantic
from holdfast.measures.turns import AssistantTurn

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from holdfast.validation.pydantic_errors import Path, StrictModel

SURROGATE = re.compile("[\ud800-\udfff]")
FOLLOWED = 0.5  # the least score of a reply that follows its prompt
DIGITS = 6  # decimal places of a score; beyond these, machines may differ
CODE = "python"  # the one spec that runs a user's own function
JUDGE = "judge"  # the one spec that asks a model


@dataclass(frozen=True)
class Score:
    """How far a reply follows its instruction.

    Attributes:
        value: 0 (not at all) to 1 (fully).
        reason: a short explanation of the value, in English.
    """

    value: float
    reason: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(f"a score lies between 0 and 1, not {self.value}")


@dataclass(frozen=True)
class Undecided:
    """The answer of a measure on a turn of which the log shows too little to score it.

    Attributes:
        reason: the part that the log does not show, in English.
    """

    reason: str


def share(part: int, whole: int, what: str, full: float = 1.0) -> Score:
    """`part` of `whole` as a score; a share of `full` scores 1, and 0 of 0 scores 0."""
    if not whole:
        return Score(0.0, f"there are no {what.split()[0]}")
    reason = f"{part} of {whole} {what}" + (f", {full:g} is full marks" if full < 1 else "")
    return Score(min(1.0, part / whole / full), reason)


def share_true(marks: Iterable[bool], what: str, full: float = 1.0) -> Score:
    """The share of the marks that are true, as `share` scores it."""
    listed = list(marks)
    return share(sum(listed), len(listed), what, full)


def verdict(kept: object, reason: str) -> Score:
    """1 if an instruction is followed, else 0."""
    return Score(float(bool(kept)), reason)


class WhenCut(Enum):
    """Whether a reply that was cut off at the token limit is evidence for a measure."""

    JUDGED = "judged"  # the text so far is: what it says, how it begins, its language and style
    NOT_JUDGED = "not judged"  # the ending or the whole counts
    IF_BROKEN = "judged if broken"  # more text cannot mend it: a maximum that is exceeded
    IF_KEPT = "judged if kept"  # more text cannot break it: a minimum that is reached


# or a function of the text and the arguments, where it depends on them
CutRule = WhenCut | Callable[..., WhenCut]


def exceeds(count: int, target: int | None) -> WhenCut:
    """For an exact number: more text can reach it, and cannot take back what is too much."""
    if target is None:
        return WhenCut.JUDGED
    return WhenCut.JUDGED if count > target else WhenCut.NOT_JUDGED


@dataclass
class Entry:
    """One registered measure."""

    function: Callable[..., Score | Undecided | None]
    empty_is_zero: bool
    check: Callable[..., Any] | None
    when_cut: CutRule = WhenCut.JUDGED
    loads: bool = False
    reads_earlier: bool = False

    @property
    def of_turn(self) -> bool:
        """Whether it scores a turn of a log rather than a text."""
        return "turn" in inspect.signature(self.function).parameters

    @property
    def summary(self) -> str:
        """The first paragraph of the function's docstring, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n")[0].split())

    @cached_property
    def model(self) -> type[StrictModel]:
        """Its arguments as a Pydantic model."""
        from pydantic import create_model

        from holdfast.validation.pydantic_errors import StrictModel

        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {
            p.name: (for_pydantic(hints[p.name]), ... if p.default is p.empty else p.default)
            for p in list(inspect.signature(self.function).parameters.values())[1:]
        }
        return create_model(self.function.__name__, __base__=StrictModel, **fields)

    @property
    def arguments(self) -> dict[str, FieldInfo]:
        """The arguments by name; `expected_of` has their values in words."""
        return self.model.model_fields


def expected_of(argument: FieldInfo) -> str:
    """The values of an argument, in words."""
    extra: Any = argument.json_schema_extra
    return str(extra["expected"])


def _written(name: str, argument: FieldInfo) -> str:
    """An argument in the catalogue: `name`, `name: this|that` or `name=default`."""
    if not argument.is_required():
        return f"{name}={json.dumps(argument.default)}"
    if get_origin(argument.annotation) is Literal:
        return f"{name}: {'|'.join(get_args(argument.annotation))}"
    return name


F = TypeVar("F", bound=Callable[..., Score | Undecided | None])
REGISTRY: dict[str, Entry] = {}
# for specs that name no registered function, by the field that replaces their name
BUILDERS: dict[str, Callable[[dict[str, Any], bool], Measure]] = {}
# such specs, as written in a suite
SPEC_EXAMPLES = {
    CODE: "{python: my_measures.rhymes}",
    JUDGE: '{judge: "Is the reply polite?", model: "http://localhost:8000/v1"}',
}


@dataclass(frozen=True)
class Measure:
    """A scoring function with its arguments filled in; equal if name and arguments are."""

    name: str
    arguments: Mapping[str, Any] = field(hash=False)
    function: Callable[..., Any] = field(compare=False, repr=False)
    empty_is_zero: bool = field(default=True, compare=False, repr=False)
    of_turn: bool = field(default=False, compare=False, repr=False)
    when_cut: CutRule = field(default=WhenCut.JUDGED, compare=False, repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The measure as JSON-able data; `build(measure.spec)` gives it back."""
        return {"name": self.name, **self.arguments}

    @property
    def judged(self) -> bool:
        """Whether a model has to be asked, so that `score` cannot answer."""
        return self.name == JUDGE

    def score(self, text: str) -> Score:
        """Scores one reply, deterministically. A user's function that fails, or does not return a
        number from 0 to 1, is a `UsageError`.
        """
        text = _readable(text)
        if self.empty_is_zero and not text.strip():
            return Score(0.0, "the reply is empty")
        score = self.function(text, **self.arguments)
        return Score(round(float(score.value), DIGITS), score.reason)

    def score_cut(self, text: str) -> Score | None:
        """Scores a reply that was cut off; None if the text that is missing could decide."""
        when_cut, score = self.when_cut, self.score(text)
        if not isinstance(when_cut, WhenCut):
            when_cut = when_cut(_readable(text), **self.arguments)
        return score if _is_judged(score, when_cut) else None

    def score_turn(self, turn: AssistantTurn) -> Score | None:
        """Scores an assistant's turn in a log; None if the rule does not apply to it, if it was cut
        and the text that is missing could decide, or if the log shows too little of it.
        """
        judged = self.judge_turn(turn)
        return None if isinstance(judged, Undecided) else judged

    def judge_turn(self, turn: AssistantTurn) -> Score | Undecided | None:
        """Scores a turn as `score_turn` does, and says what the log does not show."""
        if self.of_turn:
            judged: Score | Undecided | None = self.function(turn, **self.arguments)
            return judged
        if not turn.text.strip():
            return None
        return self.score_cut(turn.text) if turn.is_cut else self.score(turn.text)

    def score_so_far(self, turn: AssistantTurn) -> Score | None:
        """Scores what an assistant did in a turn that goes on; None if the rest of the turn could
        decide, as it always can for a measure of the text.
        """
        score = self.score_turn(turn) if self.of_turn else None
        if score is None or not isinstance(self.when_cut, WhenCut):
            return None
        return score if _is_judged(score, self.when_cut) else None

    @property
    def reads_earlier(self) -> bool:
        """Whether the tool calls of earlier turns matter to it."""
        return self.name in REGISTRY and REGISTRY[self.name].reads_earlier

    @property
    def loads(self) -> bool:
        """Whether it, or one that it combines, loads a lexicon or a model when it first scores."""
        inner = (build(spec) for spec in inner_specs(self.arguments))
        entry = REGISTRY.get(self.name)
        return (entry is not None and entry.loads) or any(measure.loads for measure in inner)


def _is_judged(score: Score, when_cut: WhenCut) -> bool:
    """Whether a score of what is there so far stands, whatever follows."""
    return {
        WhenCut.JUDGED: True,
        WhenCut.NOT_JUDGED: False,
        WhenCut.IF_BROKEN: score.value < 1,
        WhenCut.IF_KEPT: score.value == 1,
    }[when_cut]


def inner_specs(arguments: Mapping[str, Any]) -> list[Any]:
    """The specs of the measures that a measure with these arguments combines."""
    several, single = arguments.get("measures"), arguments.get("measure")
    return [*(several or ()), *([single] if single is not None else [])]


def _readable(text: str) -> str:
    """The text as measures read it: composed characters, and no lone surrogates."""
    if not isinstance(text, str):
        raise UsageError(f"A measure scores a text, not {shortened(text)}.")
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", SURROGATE.sub("\ufffd", text))


@overload
def measure(function: F) -> F: ...
@overload
def measure(
    *,
    empty_is_zero: bool = True,
    check: Callable[..., Any] | None = None,
    when_cut: CutRule = WhenCut.JUDGED,
    loads: bool = False,
    reads_earlier: bool = False,
) -> Callable[[F], F]: ...
def measure(
    function: Any = None,
    *,
    empty_is_zero: bool = True,
    check: Callable[..., Any] | None = None,
    when_cut: CutRule = WhenCut.JUDGED,
    loads: bool = False,
    reads_earlier: bool = False,
) -> Any:
    """Registers a function `(text, **arguments) -> Score` as a measure of the same name.

    A function whose first argument is called `turn` scores an `AssistantTurn`. It returns None if
    there is nothing to score, and `Undecided` if the log does not show what decides. Each argument
    is annotated with one of the types of `measures.arguments`. With `empty_is_zero` a reply without
    a visible character scores 0. `check` raises a `UsageError` if the arguments of a spec do not go
    together. `when_cut` says whether a reply that was cut off at the token limit, or a turn that
    goes on, is judged: a value of `WhenCut`, or a function `(text, **arguments)` that returns one.
    A measure `loads` if its first score reads a lexicon or a model, which takes up to a second; it
    `reads_earlier` if the tool calls of earlier turns, or the text before, matter.
    """

    def register(wrapped: F) -> F:
        REGISTRY[wrapped.__name__] = Entry(
            wrapped, empty_is_zero, check, when_cut, loads, reads_earlier
        )
        return wrapped

    return register if function is None else register(function)


def catalogue() -> list[CatalogueEntry]:
    """Every built-in measure with its arguments and a summary, in alphabetical order."""
    registered = [
        CatalogueEntry(
            name, tuple(_written(*item) for item in entry.arguments.items()), entry.summary
        )
        for name, entry in REGISTRY.items()
    ]
    built = [
        CatalogueEntry(
            CODE, (CODE,), "A function of your own, by its dotted name; needs --allow-code."
        ),
        CatalogueEntry(
            JUDGE,
            (JUDGE, "model", "endpoint_model=null"),
            "A model answers your question about the reply with yes (1) or no (0).",
        ),
    ]
    return sorted([*registered, *built])


def build(spec: str | Mapping[str, Any], allow_code: bool = False) -> Measure:
    """Builds a measure from its spec.

    Args:
        spec: a name; a mapping with `name` and arguments; `{"regex": ..., "flags": "i"}`; or
            `{"python": "package.module.function"}`, a user's function from text to a number;
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
    check_fields(entry.model, arguments, f"The measure {name!r}", f"of the measure {name!r}")
    filled = {key: arguments.get(key, field.default) for key, field in entry.arguments.items()}
    arguments = {k: list(v) if isinstance(v, tuple) else v for k, v in filled.items()}
    if entry.check is not None:
        entry.check(**arguments)
    return registered(name, arguments)


def registered(name: str, arguments: Mapping[str, Any]) -> Measure:
    """A registered measure with arguments that were checked before; a `KeyError` if there is none
    of this name.
    """
    entry = REGISTRY[name]
    return Measure(
        name, arguments, entry.function, entry.empty_is_zero, entry.of_turn, entry.when_cut
    )


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


def check_fields(
    model: type[StrictModel], fields: Mapping[str, Any], whole: str, belonging: str
) -> None:
    """Checks the fields of a spec against a Pydantic model; a `UsageError` names the first that is
    wrong. Messages call all fields `whole`, and put `belonging` after the name of one.
    """

    from pydantic import ValidationError

    from holdfast.validation.pydantic_errors import problem_of

    def called(path: Path) -> str:
        if not path:
            return whole
        entry = "".join(f"entry {part + 1} of " for part in path[1:] if isinstance(part, int))
        sentence = f"{entry}the argument {path[0]!r} {belonging}"
        return sentence[0].upper() + sentence[1:]

    fields = {str(key): value for key, value in fields.items()}
    try:
        model.model_validate(fields)
    except ValidationError as error:
        raise UsageError(problem_of(error, model, fields, called, shortened).sentence) from None
