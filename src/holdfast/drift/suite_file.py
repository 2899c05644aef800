"""Suites as YAML: the one form that shipped suites and a user's own share (docs/suites.md).

name: my-bot                          # optional; the file's name otherwise
starters: ["How was your day?", ...]  # optional; forty generic ones otherwise
personas: ["You are Ada, ...", ...]   # optional; who the user model is
cases:
  - id: shop-hours
    category: memorization            # optional; any text
    system_prompt: ...
    probe: ...                        # or probes: [...]
    measure: {name: one_sentence}     # see `holdfast measures`
    follows: [...]                    # optional: replies that keep to the prompt
    breaks: [...]                     # optional: replies that do not
  - id: robin                         # one prompt with several rules
    system_prompt: ...
    rules:
      - id: signs
        probe: ...                    # and as above
        measure: {name: ends_with, word: Robin}
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, StringConstraints, ValidationError

from holdfast.drift.cases import NO_CATEGORY, Case, Rule, Suite, generic_starters, personas_of
from holdfast.errors import UsageError
from holdfast.measures import Measure, build
from holdfast.measures.judging import check_labels
from holdfast.validation import Path as FieldPath
from holdfast.validation import StrictModel, problem_of, shortened, written


@dataclass(frozen=True)
class CaseLines:
    """Line numbers, from 1, of an entry under 'cases'.

    Args:
        case: of the entry itself.
        rules: of each entry under its 'rules'.
    """

    case: int
    rules: tuple[int, ...]


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 50


class _Loader(_SafeLoader):
    """YAML readers silently keep the last of two equal keys; here a repeated key is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = _line(key)
            if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, line) != line:
                raise _RepeatedKey(
                    f"line {line}: the field {key.value!r} appears here and on line"
                    f" {lines[key.value]}; remove one."
                )
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


class _RepeatedKey(Exception):
    pass


def read_yaml(text: str, source: str) -> tuple[Any, list[CaseLines]]:
    """The document as plain data, and the line numbers of each entry under 'cases'.

    Raises:
        UsageError: it is not valid YAML, or repeats a key, or holds what cannot be written as JSON
            in UTF-8, such as an alias to itself or half a surrogate pair.
    """
    try:
        _refuse_deep(text, source)
        loader = _Loader(text)
        node = loader.get_single_node()
        root = None if node is None else loader.construct_document(node)
        json.dumps(root, ensure_ascii=False, default=str).encode()
    except yaml.YAMLError as error:
        raise UsageError(
            f"{source} is not valid YAML{_where(error)}; correct that place: the fields of an"
            " entry begin in the same column, and a text with a colon or a bracket needs quotes."
        ) from error
    except _RepeatedKey as error:
        raise UsageError(f"{source}, {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{source} cannot be read as YAML ({type(error).__name__}: {error}); correct it."
        ) from error
    cases = _entries(node, "cases")
    return root, [
        CaseLines(_line(case), tuple(map(_line, _entries(case, "rules")))) for case in cases
    ]


def _refuse_deep(text: str, source: str) -> None:
    """Refuses deep nesting before a tree is built: the builder in C recurses and crashes Python."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UsageError(
                f"{source}, line {_line(event)} is nested more than {_DEEPEST} deep; write it"
                " flatter."
            )


def _entries(node: yaml.Node | None, field: str) -> list[yaml.Node]:
    """The entries of the list that a field holds; [] where it holds none."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    listed = next((value for key, value in pairs if key.value == field), None)
    return list(listed.value) if isinstance(listed, yaml.SequenceNode) else []


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _where(error: yaml.YAMLError) -> str:
    """' at line 3, column 7 (the problem)', as far as the parser knows."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = (
        getattr(error, "problem", None)
        or getattr(error, "reason", None)
        or str(error).splitlines()[0]
    )
    return f"{position} ({problem})"


FOLLOWED = 0.5  # the least score of a reply that keeps to its prompt
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]


class RuleEntry(StrictModel):
    """An entry under 'rules'; a case with one rule has the same fields."""

    id: Text
    probe: Text = ""
    probes: Texts = Field([])
    measure: str | dict[str, Any] = ""
    follows: Texts = Field([])
    breaks: Texts = Field([])


class CaseEntry(RuleEntry):
    """An entry under 'cases'."""

    category: Text = NO_CATEGORY
    system_prompt: Text
    rules: list[RuleEntry] = Field([], min_length=1)


class SuiteDocument(StrictModel):
    """A suite as its file has it."""

    name: Text = ""
    starters: Texts = Field([])
    personas: Texts = Field([])
    notes: Texts = Field([])
    cases: list[CaseEntry] = Field(min_length=1)


@dataclass(frozen=True)
class _Places:
    """Where the entries of a document stand, for messages.

    Args:
        source: what the document is called.
        root: the document as plain data.
        lines: of its cases and their rules.
    """

    source: str
    root: Any
    lines: list[CaseLines]

    def of(self, case: int, rule: int | None = None) -> str:
        """An entry under 'cases', or under its 'rules', by numbers from 0."""
        lines = self.lines[case] if case < len(self.lines) else None
        entry = self.root["cases"][case]
        name = f"case {_id_of(entry, case)}"
        line = lines.case if lines else None
        if rule is not None:
            rules = entry["rules"]
            name += f", rule {_id_of(rules[rule], rule)}"
            line = lines.rules[rule] if lines and rule < len(lines.rules) else line
        return f"{self.source}, line {line}, {name}" if line else f"{self.source}, {name}"

    def line(self, case: int) -> str:
        """The line of a case."""
        return f"line {self.lines[case].case}" if case < len(self.lines) else "its place"

    def name(self, path: FieldPath) -> str:
        """A part of the document."""
        match path:
            case ("cases", int(case), "rules", int(rule), *rest):
                where = self.of(case, rule)
            case ("cases", int(case), *rest):
                where = self.of(case)
            case _:
                where, rest = self.source, list(path)
        return f"{where}: the field {written(tuple(rest))!r}" if rest else where


def _id_of(entry: Any, number: int) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
    return repr(name) if isinstance(name, str) else str(number + 1)


def parse_suite(
    text: str,
    source: str,
    name: str,
    allow_code: bool = False,
    folder: Path | None = None,
    check: bool = True,
) -> Suite:
    """Reads a suite from YAML.

    Args:
        text: the YAML document.
        source: what to call it in messages, usually a path.
        name: the suite's name if the document gives none.
        allow_code: whether measures may be functions of the user's own.
        folder: where modules of such functions are looked for first; None looks where Python does.
        check: whether each measure is tried on its examples.

    Raises:
        UsageError: the document is not YAML, or not a suite, or a measure scores an example of its
            own on the wrong side; says where and what to do.
    """
    root, lines = read_yaml(text, source)
    if not isinstance(root, dict):
        what = "is empty" if root is None else f"holds {shortened(root)}, not a suite"
        raise UsageError(f"{source} {what}; it needs the field 'cases', a list.")
    places = _Places(source, root, lines)
    try:
        document = SuiteDocument.model_validate(root)
    except ValidationError as error:
        raise UsageError(problem_of(error, SuiteDocument, root, places.name).sentence) from None
    with modules_in(folder if allow_code else None):
        cases = list[Case]()
        for number, entry in enumerate(document.cases):
            taken = next((n for n, case in enumerate(cases) if case.id == entry.id), None)
            if taken is not None:
                raise UsageError(
                    f"{source}, {places.line(number)}: the id {entry.id!r} is taken by the case at"
                    f" {places.line(taken)}; give every case its own."
                )
            cases.append(_case(entry, number, places, allow_code))
            if check:
                _check_examples(cases[-1], number, places)
    return Suite(
        name=document.name or name,
        cases=tuple(cases),
        starters=tuple(document.starters) or generic_starters(),
        notes=tuple(document.notes),
        personas=personas_of(document.personas),
    )


@contextlib.contextmanager
def modules_in(folder: Path | None) -> Iterator[None]:
    """Inside, imports look into this folder first; None changes nothing.

    What was imported from there is forgotten on leaving, so that another suite's module of the same
    name is not taken for it; functions of it go on working.
    """
    if folder is None:
        yield
        return
    location, before = folder.resolve(), set(sys.modules)
    sys.path.insert(0, str(location))
    try:
        yield
    finally:
        sys.path.remove(str(location))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(location):
                del sys.modules[name]


def _check_examples(case: Case, case_number: int, places: _Places) -> None:
    """Refuses a measure that scores the examples of its own rule on the wrong side, and a judge
    with too few of them to be checked by the run.
    """
    for number, rule in enumerate(case.all_rules):
        where = places.of(case_number, number if case.rules else None)
        if rule.measure.judged:
            check_labels(rule.follows, rule.breaks, f"{where}: the judge")
            continue
        examples = [("follows", reply) for reply in rule.follows]
        examples += [("breaks", reply) for reply in rule.breaks]
        for field, reply in examples:
            score = rule.measure.score(reply)
            if (score.value >= FOLLOWED) != (field == "follows"):
                limit = "at least" if field == "follows" else "below"
                raise UsageError(
                    f"{where}: the reply {reply[:60]!r} under {field!r} scores {score.value:.2f}"
                    f" ({score.reason}), and needs {limit} {FOLLOWED}; correct the measure"
                    f" {rule.measure.name!r} or the example."
                )


def _case(entry: CaseEntry, number: int, places: _Places, allow_code: bool) -> Case:
    where = places.of(number)
    if not entry.rules:
        rule = _rule(entry, where, allow_code)
        return Case(
            entry.id,
            entry.category,
            entry.system_prompt,
            rule.probes,
            rule.measure,
            rule.follows,
            rule.breaks,
        )
    of_rules = [name for name in RuleEntry.model_fields if name != "id"]
    if beside := next((name for name in of_rules if name in entry.model_fields_set), None):
        raise UsageError(
            f"{where} has both 'rules' and {beside!r}; move {beside!r} into one of the rules."
        )
    ids = [rule.id for rule in entry.rules]
    for index, name in enumerate(ids):
        if name in ids[:index]:
            raise UsageError(
                f"{places.of(number, index)}: the id {name!r} is taken by an earlier rule; give"
                " every rule its own."
            )
    rules = [
        _rule(rule, places.of(number, index), allow_code) for index, rule in enumerate(entry.rules)
    ]
    return Case(entry.id, entry.category, entry.system_prompt, rules=tuple(rules))


def _rule(entry: RuleEntry, where: str, allow_code: bool) -> Rule:
    if bool(entry.probe) == bool(entry.probes):
        many = "both 'probe' and 'probes'" if entry.probe else "neither 'probe' nor 'probes'"
        raise UsageError(f"{where} has {many}; give one of the two.")
    probes = (entry.probe,) if entry.probe else tuple(entry.probes)
    measure = _measure(entry, where, allow_code)
    name = None if isinstance(entry, CaseEntry) else entry.id
    return Rule(name, probes, measure, tuple(entry.follows), tuple(entry.breaks))


def _measure(entry: RuleEntry, where: str, allow_code: bool) -> Measure:
    if "measure" not in entry.model_fields_set:
        raise UsageError(
            f"{where} lacks the field 'measure'; name one of those that `holdfast measures` lists."
        )
    try:
        return build(entry.measure, allow_code)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
