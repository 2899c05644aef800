"""Reads a suite from YAML, and checks its measures on their examples (docs/suites.md).

YAML becomes mappings that know their lines, so that a message can name the place; these become
entries, which are Pydantic models of the format; and these become cases.
"""

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, StringConstraints, ValidationError, field_validator

from holdfast.drift.cases import (
    NO_CATEGORY,
    Case,
    LabelledTurn,
    Rule,
    Suite,
    generic_starters,
    personas_of,
)
from holdfast.errors import UsageError, shortened
from holdfast.measures import build
from holdfast.measures.judging import check_labels
from holdfast.measures.patterns import compile_regex
from holdfast.measures.rule_kinds import Polarity, RuleKind
from holdfast.measures.scores import MIN_KEPT_SCORE, Score, Undecided
from holdfast.measures.turns import AssistantTurn, ToolCall, Unless, UserAnswer, When
from holdfast.validation.pydantic_errors import FieldPath, StrictModel, format_path, problem_of

_TEXT_OR_NOTHING = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:null")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
NonEmptyTexts = Annotated[list[NonEmptyText], Field(min_length=1)]


class YamlMapping(dict[Any, Any]):
    """A mapping in a document.

    Attributes:
        line: the line where it begins.
        written: the words of values that YAML reads as something else than text, such as `Yes` or
            `8080`, by their keys.
    """

    line = 0
    written: Mapping[str, str] = MappingProxyType({})


class _RepeatedKey(Exception):
    """A mapping has the same key twice; the message names the lines."""


class _Loader(_SafeLoader):  # type: ignore[misc]  # PyYAML may be built without its C loader
    """Notes the lines of mappings, and refuses repeated keys, where PyYAML would take the last."""

    def construct_entry(self, node: yaml.MappingNode) -> Iterator[YamlMapping]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, line) != line:
                raise _RepeatedKey(
                    f"line {line}: the field {key.value!r} appears here and on line"
                    f" {lines[key.value]}; remove one."
                )
        entry = YamlMapping()
        entry.line = node.start_mark.line + 1
        entry.written = {
            key.value: value.value
            for key, value in node.value
            if isinstance(value, yaml.ScalarNode) and value.tag not in _TEXT_OR_NOTHING
        }
        yield entry  # before its values, which may refer to it
        entry.update(self.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_entry)

# a line whose text has a colon but no quotes, such as `text: Reply: yes`
_UNQUOTED = re.compile(r"\s*(?:- )*(?P<field>\w+): +(?P<value>[^\s'\"\[{|>&*!%@`].*: .*?)\s*")


def read_yaml(text: str, source: str) -> Any:
    """Reads a document as plain data, in which each mapping is a `YamlMapping`.

    Args:
        source: what to call the document in messages.

    Raises:
        UsageError: it is not valid YAML, or a mapping has the same key twice.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(
            f"{source} is not valid YAML{where} ({problem}); {_yaml_cure(text, mark, problem)}."
        ) from error
    except _RepeatedKey as error:
        raise UsageError(f"{source}, {error}") from error
    except ValueError as error:  # an impossible date or number
        raise UsageError(f"{source} cannot be read as YAML ({error}); correct it.") from error


def _yaml_cure(text: str, mark: yaml.Mark | None, problem: str) -> str:
    """How to correct the line where a document stops being YAML."""
    line = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
    unquoted = _UNQUOTED.fullmatch(line)
    if unquoted and problem.startswith("mapping values"):
        value = unquoted["value"].replace("'", "''")
        return f"quote the text, as in `{unquoted['field']}: '{value}'`"
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "indent with spaces, not with tabs"
    if problem.startswith("did not find expected"):
        return "correct it: the fields of an entry must begin in the same column"
    return (
        "correct it: the fields of an entry must begin in the same column, and a text with a"
        " colon or a bracket needs quotes"
    )


class WhenEntry(StrictModel):
    """The turns of a log that a rule applies to (`measures.turns.When`)."""

    user: NonEmptyText = ""
    reply: NonEmptyText = ""
    tool: NonEmptyText = ""
    role: Literal["user", "tool", ""] = ""


class CallEntry(StrictModel):
    """A tool call of a labelled turn."""

    tool: NonEmptyText
    arguments: dict[str, Any] = Field({})
    answers: dict[str, str] = Field({})  # of the user, by the question, for a tool that asks

    @field_validator("answers", mode="before")
    @classmethod
    def _as_written(cls, answers: object) -> object:
        """Takes an answer such as `Yes` or `8080`, which YAML reads as no text, as its words."""
        return {**answers, **answers.written} if isinstance(answers, YamlMapping) else answers

    def as_tool_call(self) -> ToolCall:
        """The call as measures see it."""
        answers = tuple(UserAnswer(question, text) for question, text in self.answers.items())
        return ToolCall(self.tool, self.arguments, answers=answers)


class TurnEntry(StrictModel):
    """A turn under 'follows' or 'breaks': what the assistant said and did, and what came before."""

    reply: str = ""
    run: NonEmptyText | NonEmptyTexts = Field([])  # shell commands, each in a separate call
    calls: list[CallEntry] = Field([])
    earlier: list[CallEntry] = Field([])
    user: str = ""
    previous: str = ""

    def labelled(self, follows: bool) -> LabelledTurn:
        """Builds the labelled turn that measures score."""
        scripts = [self.run] if isinstance(self.run, str) else self.run
        commands = (ToolCall("Bash", {"command": script}) for script in scripts)
        calls = (call.as_tool_call() for call in self.calls)
        earlier = tuple(call.as_tool_call() for call in self.earlier)
        turn = AssistantTurn(
            self.reply, (*commands, *calls), earlier, user=self.user, previous=self.previous
        )
        return LabelledTurn(follows, turn, self.user)


Examples = Annotated[list[NonEmptyText | TurnEntry], Field(min_length=1)]


class UnlessEntry(StrictModel):
    """Words of the user that lift a rule for a turn (`measures.turns.Unless`)."""

    user: NonEmptyText


class RuleEntry(StrictModel):
    """An entry under 'rules'. A case with a single rule has the same fields itself."""

    id: NonEmptyText
    when: WhenEntry = Field(WhenEntry())
    probe: NonEmptyText = ""
    probes: NonEmptyTexts = Field([])
    measure: str | dict[str, Any] = ""
    follows: Examples = Field([])
    breaks: Examples = Field([])
    kind: RuleKind | None = None
    polarity: Polarity | None = None
    text: NonEmptyText = ""
    recalled: str | dict[str, Any] = ""
    unless: UnlessEntry | None = None


class CaseEntry(RuleEntry):
    """An entry under 'cases'."""

    category: NonEmptyText = NO_CATEGORY
    system_prompt: NonEmptyText
    rules: list[RuleEntry] = Field([], min_length=1)


class SuiteFile(StrictModel):
    """The contents of a suite's file."""

    name: NonEmptyText = ""
    starters: NonEmptyTexts = Field([])
    personas: NonEmptyTexts = Field([])
    notes: NonEmptyTexts = Field([])
    cases: list[CaseEntry] = Field(min_length=1)


def parse_suite(
    text: str,
    source: str,
    name: str,
    *,
    allow_code: bool = False,
    folder: Path | None = None,
    check: bool = True,
    probed: bool = True,
) -> Suite:
    """Reads a suite from YAML.

    Args:
        text: the YAML.
        source: what to call it in messages, usually its path.
        name: the suite's name, if the text gives none.
        allow_code: whether the text may name Python functions as measures.
        probed: whether the rules are to be probed; False accepts rules that only score logs, too.
        folder: searched first for modules with the user's functions.
        check: whether each measure is tested on its examples.

    Raises:
        UsageError: the text is not a suite, or a measure disagrees with its examples.
    """
    root = read_yaml(text, source)
    if not isinstance(root, dict):
        content = "is empty" if root is None else f"holds {shortened(root)}, not a suite"
        raise UsageError(f"{source} {content}; it needs the field 'cases', a list.")

    def where(*path: str | int) -> str:
        return _name(source, root, path)

    try:
        document = SuiteFile.model_validate(root)
    except ValidationError as error:
        problem = problem_of(error, SuiteFile, root, lambda path: where(*path))
        raise UsageError(problem.sentence) from None
    cases = list[Case]()
    with modules_in(folder if allow_code else None):
        for number, entry in enumerate(document.cases):
            if any(case.id == entry.id for case in cases):
                raise UsageError(
                    f"{where('cases', number)}: the id {entry.id!r} is taken by an earlier case;"
                    " give every case its own."
                )
            case = _build_case(entry, number, where, allow_code=allow_code)
            cases.append(case)
            for index, rule in enumerate(case.rules):
                place = where("cases", number)
                if entry.rules:
                    place = where("cases", number, "rules", index)
                if probed:
                    check_probed(rule, place)
                if check:
                    check_examples(rule, place)
    return Suite(
        name=document.name or name,
        cases=tuple(cases),
        starters=tuple(document.starters) or generic_starters(),
        notes=tuple(document.notes),
        personas=personas_of(document.personas),
    )


def _name(source: str, root: Any, path: FieldPath) -> str:
    """Names a part of a document for messages: the file, line, case and rule, and the field."""
    value = root
    line: int | None = None
    entries: list[str] = []  # such as "case 'bread'"
    field: list[str | int] = []  # the path within the last of the entries
    for part in path:
        has_part = isinstance(value, list) or (isinstance(value, dict) and part in value)
        value = value[part] if has_part else None
        if not isinstance(part, int) or field not in (["cases"], ["rules"]):
            field.append(part)
            continue
        kind = "case" if field == ["cases"] else "rule"
        name: object = None
        if isinstance(value, YamlMapping):
            line = value.line
            name = value.get("id")
        entries.append(f"{kind} {name!r}" if isinstance(name, str) else f"{kind} {part + 1}")
        field.clear()
    at_line = [f"line {line}"] if line else []
    where = ", ".join([source, *at_line, *entries])
    return f"{where}: the field {format_path(tuple(field))!r}" if field else where


@contextlib.contextmanager
def modules_in(folder: Path | None) -> Iterator[None]:
    """Within this context, imports search a folder first; its modules are unloaded at the end."""
    if folder is None:
        yield
        return
    location = folder.resolve()
    modules_before = set(sys.modules)
    sys.path.insert(0, str(location))
    try:
        yield
    finally:
        sys.path.remove(str(location))
        for name in set(sys.modules) - modules_before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(location):
                del sys.modules[name]


def _build_case(
    entry: CaseEntry, number: int, where: Callable[..., str], *, allow_code: bool
) -> Case:
    """Builds the case of an entry.

    Args:
        number: the entry's place in the list, from 0.
        where: names a part of the document in messages, given its path.
    """
    if not entry.rules:
        only_rule = _build_rule(entry, where("cases", number), allow_code=allow_code)
        return Case(entry.id, entry.category, entry.system_prompt, rules=(only_rule,))
    for name in RuleEntry.model_fields:
        if name != "id" and name in entry.model_fields_set:
            raise UsageError(
                f"{where('cases', number)} has both 'rules' and {name!r}; move {name!r} into one of"
                " the rules."
            )
    rules_read = list[Rule]()
    for index, rule_entry in enumerate(entry.rules):
        place = where("cases", number, "rules", index)
        if any(rule.id == rule_entry.id for rule in rules_read):
            raise UsageError(
                f"{place}: the id {rule_entry.id!r} is taken by an earlier rule; give every rule"
                " its own."
            )
        rules_read.append(_build_rule(rule_entry, place, allow_code=allow_code))
    return Case(entry.id, entry.category, entry.system_prompt, rules=rules_read)


def _build_rule(entry: RuleEntry, where: str, *, allow_code: bool) -> Rule:
    """Builds the rule of an entry; `where` names the entry in messages."""
    probes = (entry.probe,) if entry.probe else tuple(entry.probes)
    if entry.probe and entry.probes:
        raise UsageError(f"{where} has both 'probe' and 'probes'; give one of the two.")
    if "measure" not in entry.model_fields_set:
        raise UsageError(
            f"{where} lacks the field 'measure'; name a measure, which `holdfast measures` lists."
        )
    when = When(**entry.when.model_dump())
    unless = Unless(entry.unless.user if entry.unless else "")
    try:
        measure = build(entry.measure, allow_code)
        recalled = build(entry.recalled, allow_code) if entry.recalled else None
        for pattern in filter(None, (when.user, when.reply, unless.user)):
            compile_regex(pattern, "i")
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return Rule(
        id=None if isinstance(entry, CaseEntry) else entry.id,
        probes=probes,
        measure=measure,
        follows=_replies(entry.follows),
        breaks=_replies(entry.breaks),
        labelled_turns=(
            *_turns(entry.follows, follows=True),
            *_turns(entry.breaks, follows=False),
        ),
        when=when,
        kind=entry.kind,
        polarity=entry.polarity,
        text=entry.text,
        recalled=recalled,
        unless=unless,
    )


def _replies(examples: Sequence[str | TurnEntry]) -> tuple[str, ...]:
    return tuple(example for example in examples if isinstance(example, str))


def _turns(examples: Sequence[str | TurnEntry], *, follows: bool) -> Iterator[LabelledTurn]:
    for example in examples:
        if isinstance(example, TurnEntry):
            yield example.labelled(follows)


def check_examples(rule: Rule, where: str) -> None:
    """Refuses a measure that scores an example wrong, and a judge with too few examples.

    Args:
        where: names the rule in messages.
    """
    if rule.measure.judged:
        labels = (rule.shown_to_judge(follows=True), rule.shown_to_judge(follows=False))
        check_labels(*labels, f"{where}: the judge")
        return
    for labelled in rule.labelled:
        score = score_labelled(rule, labelled)
        if isinstance(score, Score) and score.keeps_rule == labelled.follows:
            continue
        field = "follows" if labelled.follows else "breaks"
        limit = "at least" if labelled.follows else "below"
        if isinstance(score, Score):
            problem = (
                f"scores {score.value:.2f} ({score.reason}), and needs {limit} {MIN_KEPT_SCORE}"
            )
        elif score is None:
            problem = "is not scored, as the rule does not apply to it"
        else:
            problem = f"is not scored, as {score.reason}"
        raise UsageError(
            f"{where}: the reply {labelled.shown!r} under {field!r} {problem}; correct the measure"
            f" {rule.measure.name!r} or the example."
        )


def score_labelled(rule: Rule, labelled: LabelledTurn) -> Score | Undecided | None:
    """Scores a labelled turn; None if the rule does not apply to it.

    The rule's `when` is considered only if the turn's user message is known.
    """
    role = "tool" if labelled.turn.calls else "user"
    if labelled.user and not rule.when.applies(labelled.turn, labelled.user, role):
        return None
    score: Score | Undecided | None = rule.measure.judge_turn(labelled.turn)
    return score


def check_probed(rule: Rule, where: str) -> None:
    """Refuses a rule that has no probe, or whose measure cannot score the reply to one."""
    if not rule.probes:
        raise UsageError(
            f"{where} has neither 'probe' nor 'probes'; give one of the two, or let `holdfast try"
            " --prompt FILE` draft rules with their probes (`holdfast logs` and `holdfast proxy`"
            " need no probes)."
        )
    if rule.measure.of_turn:
        raise UsageError(
            f"{where}: the measure {rule.measure.name!r} reads tool calls, which no reply to a"
            " probe has; score it with `holdfast logs`."
        )
