"""Measures with their arguments, built from the specs of a suite.

For example:

    measure = build({"name": "at_most_words", "count": 3})
    measure.score("Yes.")  ->  Score(1.0, "1 word, at most 3 asked for")
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.measures.registry import JUDGE, REGISTRY
from holdfast.measures.scores import CutRule, Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn

if TYPE_CHECKING:
    from holdfast.validation.pydantic_errors import FieldPath, StrictModel

_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = 6  # decimal places of a score; beyond these, machines may differ


@dataclass(frozen=True)
class Measure:
    """A scoring function with its arguments filled in: `measure.score("Yes.")` returns a `Score`.

    Two are equal if name and arguments are.

    Args:
        name: of a registered measure, or "python" or "judge".
        arguments: of the function, by name; all of them, with defaults filled in.
        function: takes a text, or a turn of a log, and the arguments.
        empty_is_zero: whether a reply without a visible character scores 0.
        of_turn: whether it scores a turn of a log rather than a text.
        when_cut: whether it judges a reply that was cut off.
    """

    name: str
    arguments: Mapping[str, Any] = field(hash=False)
    function: Callable[..., Any] = field(compare=False, repr=False)
    empty_is_zero: bool = field(default=True, compare=False, repr=False)
    of_turn: bool = field(default=False, compare=False, repr=False)
    when_cut: CutRule = field(default=WhenCut.JUDGED, compare=False, repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The measure as data for JSON; `build(measure.spec)` returns the measure again."""
        return {"name": self.name, **self.arguments}

    @property
    def judged(self) -> bool:
        """Whether a model has to judge, so that `score` raises."""
        return self.name == JUDGE

    def score(self, text: str) -> Score:
        """Scores one reply, deterministically.

        Raises:
            UsageError: a user's function failed, or did not return a number from 0 to 1.
        """
        text = _normalise(text)
        if self.empty_is_zero and not text.strip():
            return Score(0.0, "the reply is empty")
        score = self.function(text, **self.arguments)
        return Score(round(float(score.value), _DIGITS), score.reason)

    def score_cut(self, text: str) -> Score | None:
        """Scores a reply that was cut off; None if the missing text could change the score."""
        when_cut = self.when_cut
        score = self.score(text)
        if not isinstance(when_cut, WhenCut):
            when_cut = when_cut(_normalise(text), **self.arguments)
        return score if when_cut.lets_stand(score) else None

    def score_turn(self, turn: AssistantTurn) -> Score | None:
        """Scores an assistant's turn in a log.

        Returns:
            None if the rule does not apply to the turn, if it was cut and the missing text could
            change the score, or if the log shows too little of it.
        """
        judged = self.judge_turn(turn)
        return None if isinstance(judged, Undecided) else judged

    def judge_turn(self, turn: AssistantTurn) -> Score | Undecided | None:
        """Scores a turn like `score_turn`; an `Undecided` says what the log does not show."""
        if self.of_turn:
            judged: Score | Undecided | None = self.function(turn, **self.arguments)
            return judged
        if not turn.text.strip():
            return None
        return self.score_cut(turn.text) if turn.is_cut else self.score(turn.text)

    def score_so_far(self, turn: AssistantTurn) -> Score | None:
        """Scores the actions of a turn that is not over.

        Returns:
            None if the rest of the turn could change the score, as it always can for a measure of
            the text.
        """
        score = self.score_turn(turn) if self.of_turn else None
        if score is None or not isinstance(self.when_cut, WhenCut):
            return None
        return score if self.when_cut.lets_stand(score) else None

    @property
    def reads_earlier(self) -> bool:
        """Whether the tool calls of earlier turns can change its score."""
        return self.name in REGISTRY and REGISTRY[self.name].reads_earlier

    @property
    def loads(self) -> bool:
        """Whether it, or a measure inside it, loads a lexicon or a model when it first scores."""
        inner = (build(spec) for spec in inner_specs(self.arguments))
        entry = REGISTRY.get(self.name)
        return (entry is not None and entry.loads) or any(measure.loads for measure in inner)


def _normalise(text: str) -> str:
    """Writes a text with composed characters, and without lone surrogates."""
    if not isinstance(text, str):
        raise UsageError(f"A measure scores a text, not {shortened(text)}.")
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text))


# builders of the measures that are not registered functions, by the field in place of "name"
BUILDERS: dict[str, Callable[[dict[str, Any], bool], Measure]] = {}


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
        raise _unknown_measure(name)
    entry = REGISTRY[name]
    check_fields(entry.model, arguments, f"the measure {name!r}")
    complete: dict[str, Any] = {}
    for key, declared in entry.arguments.items():
        value = arguments.get(key, declared.default)
        complete[key] = list(value) if isinstance(value, tuple) else value  # as JSON has it
    if entry.check is not None:
        entry.check(**complete)
    return build_checked(name, complete)


def _unknown_measure(name: str) -> UsageError:
    """The error for a name without a measure, also for one that puts `never_` before a measure."""
    inner = name.removeprefix("never_")
    if inner == name or inner not in REGISTRY:
        return UnknownName("measure", name, [*REGISTRY, *BUILDERS])
    return UsageError(
        f"There is no measure {name!r}; to forbid what {inner!r} looks for, write"
        f" {{name: never, measure: {{name: {inner}, ...}}}}.",
        option="measure",
        value=name,
    )


def build_checked(name: str, arguments: Mapping[str, Any]) -> Measure:
    """Builds a registered measure with arguments that were checked before.

    Raises:
        KeyError: no measure has this name.
    """
    entry = REGISTRY[name]
    return Measure(
        name=name,
        arguments=arguments,
        function=entry.function,
        empty_is_zero=entry.empty_is_zero,
        of_turn=entry.of_turn,
        when_cut=entry.when_cut,
    )


def read_spec(spec: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the name and the arguments in a spec, not yet checked."""
    if isinstance(spec, str):
        return spec, {}
    if not isinstance(spec, Mapping):
        raise UsageError(
            f"A measure is a name or a mapping, not {spec!r}; write for example"
            " {name: one_sentence}."
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


def inner_specs(arguments: Mapping[str, Any]) -> list[Any]:
    """Returns the specs of the measures that a measure with these arguments combines."""
    several = arguments.get("measures")
    single = arguments.get("measure")
    return [*(several or ()), *([single] if single is not None else [])]


def check_fields(model: type[StrictModel], fields: Mapping[str, Any], owner: str) -> None:
    """Checks the fields of a spec against a Pydantic model.

    Args:
        owner: has the fields, for messages, such as "the measure 'emoji'".

    Raises:
        UsageError: a field is wrong; names the first one.
    """
    from pydantic import ValidationError

    from holdfast.validation.pydantic_errors import problem_of

    def name_of(path: FieldPath) -> str:
        """Names a field: "Entry 2 of the argument 'words' of the measure 'contains'"."""
        name = owner
        if path:
            entry = "".join(f"entry {part + 1} of " for part in path[1:] if isinstance(part, int))
            name = f"{entry}the argument {path[0]!r} of {owner}"
        return name[0].upper() + name[1:]

    fields = {str(key): value for key, value in fields.items()}
    try:
        model.model_validate(fields)
    except ValidationError as error:
        raise UsageError(problem_of(error, model, fields, name_of, shortened).sentence) from None
