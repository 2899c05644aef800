"""S-IFEval: IFEval's prompts with their instructions moved into the system prompt.

The file has an `IFEvalRow` as JSON in each line, and may be gzipped:

    {"key": 1000, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "messages":
     [{"role": "system", "content": "Do not use any commas."},
      {"role": "user", "content": "I am planning a trip to Japan. Write an itinerary."}]}

The system prompt gives the instructions; the user's request, which does not repeat them, is the
probe. The file is not part of the package, and nothing in it is executed. Source: SystemCheck
(MIT), derived from IFEval (Zhou et al. 2023, Apache-2.0).
"""

import difflib
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from holdfast.drift.cases import Case, Rule, Suite, generic_starters
from holdfast.drift.suite_entries import NonEmptyText
from holdfast.errors import UsageError, shortened
from holdfast.files import read_json_lines
from holdfast.measures import Measure, build
from holdfast.measures.registry import REGISTRY
from holdfast.plurals import count_of
from holdfast.validation.pydantic_errors import StrictModel, format_path, problem_of

SCORINGS = ("strict", "loose")
SEVERAL = "several"  # the category of a prompt with instructions of more than one group


class SystemMessage(StrictModel):
    """The message that gives the instructions."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system"]
    content: NonEmptyText


class UserMessage(StrictModel):
    """The message that the model is to answer as instructed."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["user"]
    content: NonEmptyText


class IFEvalRow(StrictModel):
    """A line of the file: a prompt with its instructions."""

    model_config = ConfigDict(extra="ignore")

    key: int | NonEmptyText
    instruction_id_list: list[str]
    kwargs: list[dict[str, Any]]  # the arguments of each instruction
    messages: Annotated[tuple[SystemMessage, UserMessage], Field(strict=False)]

    @model_validator(mode="after")
    def _has_arguments_for_each(self) -> Self:
        ids = len(self.instruction_id_list)
        arguments = len(self.kwargs)
        if ids != arguments:
            raise ValueError(
                f"instruction_id_list has {count_of(ids, 'entry')}, but kwargs has {arguments};"
                " give the published file."
            )
        return self


def load_sys_ifeval(where: str, scoring: str = "strict") -> Suite:
    """Loads S-IFEval, with one case for each row that has an instruction.

    Args:
        where: the path of the file.
        scoring: `strict`, or `loose` as Zhou et al. 2023 define it.

    Raises:
        UsageError: the file cannot be read, or a row is malformed; the message names its line.
    """
    path = Path(where)
    numbers: dict[str, int] = {}  # the number of each key's line
    cases: list[Case] = []
    for number, value in read_json_lines(path):
        line = f"Line {number} of {path}"
        row = _read_row(_normalise(value), line)
        key = str(row.key)
        if key in numbers:  # the key becomes the id of the case, which must be unique
            raise UsageError(
                f"{line}: the key {key!r} is also that of line {numbers[key]}; give every row its"
                " own."
            )
        numbers[key] = number
        system_prompt, _ = row.messages
        if rules := _rules_of(row, scoring, line):
            groups = {str(rule.id).split(":")[0] for rule in rules}
            category = groups.pop() if len(groups) == 1 else SEVERAL
            cases.append(Case(key, category, system_prompt.content, rules=rules))
    if not cases:
        raise UsageError(
            f"{path} holds {len(numbers)} prompts, but none has an instruction; give the published"
            " file."
        )
    how = "strictly" if scoring == "strict" else "loosely: the best of eight readings"
    notes = (
        "System prompts and probes of S-IFEval (IFEval's instructions as system prompts); the"
        " conversation starters are Holdfast's own.",
        f"Each instruction scores 0 or 1, {how}.",
    )
    name = "sys-ifeval" if scoring == "strict" else f"sys-ifeval-{scoring}"
    return Suite(name, tuple(cases), generic_starters(), notes)


def _read_row(value: Any, line: str) -> IFEvalRow:
    try:
        return IFEvalRow.model_validate(value)
    except ValidationError as error:
        problem = problem_of(error, IFEvalRow, value, lambda path: format_path(path) or "the row")
        raise UsageError(f"{line}: {problem.sentence}", option=problem.field) from None


def _normalise(value: Any) -> Any:
    """Converts all strings in JSON data to the Unicode form NFC, in which measures read replies."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_normalise(item) for item in value]
    if isinstance(value, dict):
        return {key: _normalise(item) for key, item in value.items()}
    return value


def _rules_of(row: IFEvalRow, scoring: str, line: str) -> tuple[Rule, ...]:
    """The instructions of a row as rules, without duplicates."""
    instructions = zip(row.instruction_id_list, row.kwargs, strict=True)
    measures = [(id, _measure_of(id, arguments, line)) for id, arguments in instructions]
    _, request = row.messages
    times: Counter[str] = Counter()
    rules: list[Rule] = []
    for id, measure in dict.fromkeys(measures):
        times[id] += 1
        name = f"{id} ({times[id]})" if times[id] > 1 else id
        if scoring == "loose":
            measure = build({"name": "loosely", "measure": measure.spec})
        rules.append(Rule(name, (request.content,), measure))
    return tuple(rules)


def _measure_of(id: str, arguments: dict[str, Any], line: str) -> Measure:
    """Builds the measure of an instruction.

    Raises:
        UsageError: the instruction is unknown, or does not take these arguments.
    """
    names = [name for name in REGISTRY if name.startswith("ifeval_")]
    name = measure_name(id)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        cure = f"did you mean {near[0]!r}?" if near else "give the published file."
        raise UsageError(f"{line}: no measure scores the instruction {shortened(id)}; {cure}")
    if "name" in arguments:  # in a spec, this field names the measure, and is never an argument
        raise UsageError(f"{line}: {id!r} has no argument 'name'; give the published file.")
    arguments_read = {  # a whole number may be written as 5.0
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in arguments.items()
        if value is not None
    }
    try:
        return build({"name": name, **arguments_read})
    except UsageError as error:
        raise UsageError(f"{line}: {error}") from error


def measure_name(id: str) -> str:
    """The name of an instruction's measure.

    >>> measure_name("punctuation:no_comma")
    'ifeval_punctuation_no_comma'
    """
    return f"ifeval_{id.replace(':', '_').replace('-', '_')}"
