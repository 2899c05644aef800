"""Reads a suite from YAML (docs/suites.md), such as

    cases:
      - id: bread
        system_prompt: You talk only about bread.
        probe: What is your favourite food?
        measure: {name: contains, words: [bread]}

YAML becomes mappings that know their lines (`yaml_documents`), these become entries, which are
Pydantic models (`suite_entries`), and these become cases (`cases`). The measures are then tested on
the examples of their rules (`rule_examples`).
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.drift.cases import Case, LabelledTurn, Rule, Suite, generic_starters, personas_of
from holdfast.drift.rule_examples import check_examples
from holdfast.drift.suite_entries import CaseEntry, RuleEntry, SuiteFile, TurnEntry
from holdfast.drift.yaml_documents import YamlMapping, read_yaml
from holdfast.errors import UsageError, shortened
from holdfast.measures import build
from holdfast.measures.patterns import compile_regex
from holdfast.measures.turns import Unless, When
from holdfast.validation.pydantic_errors import format_path, problem_of


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
        folder: searched first for modules with the user's functions.
        check: whether each measure is tested on its examples.
        probed: whether the rules are to be probed; False accepts rules that only score logs, too.

    Raises:
        UsageError: the text is not a suite, or a measure disagrees with its examples.
    """
    document = _Document(source, read_yaml(text, source))
    contents = document.validate()
    with _modules_in(folder if allow_code else None):
        cases = _build_cases(contents, document, allow_code=allow_code, check=check, probed=probed)
    return Suite(
        name=contents.name or name,
        cases=cases,
        starters=tuple(contents.starters) or generic_starters(),
        notes=tuple(contents.notes),
        personas=personas_of(contents.personas),
    )


@dataclass(frozen=True)
class _Document:
    """The YAML of a suite, as plain data."""

    source: str  # what to call it in messages
    root: Any

    def validate(self) -> SuiteFile:
        """Reads the data as entries.

        Raises:
            UsageError: it is not a suite; the message names the part that is wrong.
        """
        if not isinstance(self.root, dict):
            content = (
                "is empty" if self.root is None else f"holds {shortened(self.root)}, not a suite"
            )
            raise UsageError(f"{self.source} {content}; it needs the field 'cases', a list.")
        try:
            return SuiteFile.model_validate(self.root)
        except ValidationError as error:
            problem = problem_of(error, SuiteFile, self.root, lambda path: self.locate(*path))
            raise UsageError(problem.sentence) from None

    def locate(self, *path: str | int) -> str:
        """Names a part of the document for messages: the file, line, case and rule, and the field.

        The path ("cases", 0, "rules", 1, "kind") may be called
        "suite.yaml, line 7, case 'bread', rule 'polite': the field 'kind'".
        """
        value = self.root
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
            id: object = None
            if isinstance(value, YamlMapping):
                line = value.line
                id = value.get("id")
            entries.append(f"{kind} {id!r}" if isinstance(id, str) else f"{kind} {part + 1}")
            field.clear()
        at_line = [f"line {line}"] if line else []
        location = ", ".join([self.source, *at_line, *entries])
        return f"{location}: the field {format_path(tuple(field))!r}" if field else location


@contextlib.contextmanager
def _modules_in(folder: Path | None) -> Iterator[None]:
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


def _build_cases(
    contents: SuiteFile, document: _Document, *, allow_code: bool, check: bool, probed: bool
) -> tuple[Case, ...]:
    """Builds the cases, and checks the rules of each as `parse_suite` says."""
    cases: list[Case] = []
    for number, entry in enumerate(contents.cases):
        location = document.locate("cases", number)
        if any(case.id == entry.id for case in cases):
            raise UsageError(
                f"{location}: the id {entry.id!r} is taken by an earlier case; give every case its"
                " own."
            )
        rule_locations = [location]
        if entry.rules:
            indices = range(len(entry.rules))
            rule_locations = [document.locate("cases", number, "rules", i) for i in indices]
        case = _build_case(entry, location, rule_locations, allow_code=allow_code)
        cases.append(case)
        for rule, rule_location in zip(case.rules, rule_locations, strict=True):
            if probed:
                _check_probed(rule, rule_location)
            if check:
                check_examples(rule, rule_location)
    return tuple(cases)


def _build_case(
    entry: CaseEntry, location: str, rule_locations: Sequence[str], *, allow_code: bool
) -> Case:
    """Builds the case of an entry.

    Args:
        location: names the entry in messages.
        rule_locations: name its rules.
    """
    if not entry.rules:
        only_rule = _build_rule(entry, location, allow_code=allow_code)
        return Case(entry.id, entry.category, entry.system_prompt, rules=(only_rule,))
    for name in RuleEntry.model_fields:
        if name != "id" and name in entry.model_fields_set:
            raise UsageError(
                f"{location} has both 'rules' and {name!r}; move {name!r} into one of the rules."
            )
    rules: list[Rule] = []
    for rule_entry, rule_location in zip(entry.rules, rule_locations, strict=True):
        if any(rule.id == rule_entry.id for rule in rules):
            raise UsageError(
                f"{rule_location}: the id {rule_entry.id!r} is taken by an earlier rule; give every"
                " rule its own."
            )
        rules.append(_build_rule(rule_entry, rule_location, allow_code=allow_code))
    return Case(entry.id, entry.category, entry.system_prompt, rules=rules)


def _build_rule(entry: RuleEntry, location: str, *, allow_code: bool) -> Rule:
    """Builds the rule of an entry; `location` names the entry in messages."""
    if entry.probe and entry.probes:
        raise UsageError(f"{location} has both 'probe' and 'probes'; give one of the two.")
    if "measure" not in entry.model_fields_set:
        raise UsageError(
            f"{location} lacks the field 'measure'; name a measure, which `holdfast measures`"
            " lists."
        )
    when = When(**entry.when.model_dump())
    unless = Unless(entry.unless.user if entry.unless else "")
    try:
        measure = build(entry.measure, allow_code)
        recalled = build(entry.recalled, allow_code) if entry.recalled else None
        for pattern in filter(None, (when.user, when.reply, unless.user)):
            compile_regex(pattern, "i")
    except UsageError as error:
        raise UsageError(f"{location}: {error}") from error
    return Rule(
        id=None if isinstance(entry, CaseEntry) else entry.id,
        probes=(entry.probe,) if entry.probe else tuple(entry.probes),
        measure=measure,
        follows=_replies_in(entry.follows),
        breaks=_replies_in(entry.breaks),
        labelled_turns=(
            *_turns_in(entry.follows, follows=True),
            *_turns_in(entry.breaks, follows=False),
        ),
        when=when,
        kind=entry.kind,
        polarity=entry.polarity,
        text=entry.text,
        recalled=recalled,
        unless=unless,
    )


def _replies_in(examples: Sequence[str | TurnEntry]) -> tuple[str, ...]:
    """The examples that are only the text of a reply."""
    return tuple(example for example in examples if isinstance(example, str))


def _turns_in(examples: Sequence[str | TurnEntry], *, follows: bool) -> Iterator[LabelledTurn]:
    """The examples that are turns, labelled."""
    for example in examples:
        if isinstance(example, TurnEntry):
            yield example.labelled(follows)


def _check_probed(rule: Rule, location: str) -> None:
    """Refuses a rule that has no probe, or whose measure cannot score the reply to one."""
    if not rule.probes:
        raise UsageError(
            f"{location} has neither 'probe' nor 'probes'; give one of the two, or let `holdfast"
            " try --prompt FILE` draft rules with their probes (`holdfast logs` and `holdfast"
            " proxy` need no probes)."
        )
    if rule.measure.of_turn:
        raise UsageError(
            f"{location}: the measure {rule.measure.name!r} reads tool calls, which no reply to a"
            " probe has; score it with `holdfast logs`."
        )
