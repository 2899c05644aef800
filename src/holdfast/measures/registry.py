"""The registry of measures: functions from a text, or a turn of a log, to a score, by their names.

For example:

    @measure
    def shouted(text: str) -> Score:
        \"\"\"1 if the reply is in capitals.\"\"\"
        return verdict(text.isupper(), "...")

    REGISTRY["shouted"].summary  ->  "1 if the reply is in capitals."
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
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
from holdfast.measures.arguments import for_pydantic
from holdfast.measures.scores import CutRule, Score, Undecided, WhenCut

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from holdfast.validation.pydantic_errors import StrictModel

ScoringFunction = Callable[..., Score | Undecided | None]
F = TypeVar("F", bound=ScoringFunction)


@dataclass(frozen=True)
class RegisteredMeasure:
    """A function that scores, with the options with which `measure` registered it.

    Args:
        function: `(text, **arguments) -> Score`, or the same of a turn.
        empty_is_zero: whether a reply without a visible character scores 0, without a call.
        check: takes the arguments of a spec; raises a `UsageError` if they do not go together.
        when_cut: whether a reply that was cut off at the token limit, or a turn that is not over,
            is judged: a value of `WhenCut`, or a function `(text, **arguments)` that returns one.
        loads: whether the first score reads a lexicon or a model, which takes up to a second.
        reads_earlier: whether the tool calls of earlier turns, or the text before, matter.
    """

    function: ScoringFunction
    empty_is_zero: bool = True
    check: Callable[..., Any] | None = None
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
        """Its arguments as a Pydantic model, by which specs are checked."""
        from pydantic import create_model

        from holdfast.validation.pydantic_errors import StrictModel

        hints = get_type_hints(self.function, include_extras=True)
        _, *parameters = inspect.signature(self.function).parameters.values()
        fields: dict[str, Any] = {}
        for parameter in parameters:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (for_pydantic(hints[parameter.name]), default)
        return create_model(self.function.__name__, __base__=StrictModel, **fields)

    @property
    def arguments(self) -> dict[str, FieldInfo]:
        """The arguments by name; `describe_values` says what values one takes."""
        return self.model.model_fields


REGISTRY: dict[str, RegisteredMeasure] = {}


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
    there is nothing to score, and `Undecided` if the log does not show enough to decide. Each
    argument is annotated with one of the types of `measures.arguments`, by which Pydantic checks
    the arguments of a spec. `RegisteredMeasure` explains the options.
    """

    def register(scoring: F) -> F:
        REGISTRY[scoring.__name__] = RegisteredMeasure(
            scoring, empty_is_zero, check, when_cut, loads, reads_earlier
        )
        return scoring

    return register if function is None else register(function)


# --- Measures that are no functions of the registry

CODE = "python"  # the spec that runs a user's function
JUDGE = "judge"  # the spec that asks a model
# examples of these specs in a suite
SPEC_EXAMPLES = {
    CODE: "{python: my_measures.rhymes}",
    JUDGE: '{judge: "Is the reply polite?", model: "http://localhost:8000/v1"}',
}
_SPEC_ENTRIES = (
    CatalogueEntry(
        CODE, (CODE,), "A function of your own, by its dotted name; needs --allow-code."
    ),
    CatalogueEntry(
        JUDGE,
        (JUDGE, "model", "endpoint_model=null"),
        "A model answers your question about the reply with yes (1) or no (0).",
    ),
)

# --- The catalogue


def catalogue() -> list[CatalogueEntry]:
    """Lists every built-in measure with its arguments and a summary, in alphabetical order."""
    registered = [
        CatalogueEntry(
            name,
            tuple(_signature_of(*item) for item in entry.arguments.items()),
            entry.summary,
        )
        for name, entry in REGISTRY.items()
    ]
    return sorted([*registered, *_SPEC_ENTRIES])


def _signature_of(name: str, argument: FieldInfo) -> str:
    """Writes an argument for the catalogue: `name`, `name: this|that` or `name=default`."""
    if not argument.is_required():
        return f"{name}={json.dumps(argument.default)}"
    if get_origin(argument.annotation) is Literal:
        return f"{name}: {'|'.join(get_args(argument.annotation))}"
    return name


def describe_values(argument: FieldInfo) -> str:
    """Describes the values that an argument takes, such as "a list of texts"."""
    extra: Any = _with_description(argument).json_schema_extra
    return str(extra["expected"])


def _with_description(argument: FieldInfo) -> FieldInfo:
    """Returns what describes an argument: itself, or a part of its type if it may be None."""
    if argument.json_schema_extra is not None:
        return argument
    notes = (getattr(part, "__metadata__", ()) for part in get_args(argument.annotation))
    inner = (note for note in chain.from_iterable(notes) if hasattr(note, "json_schema_extra"))
    return next(inner, argument)
