"""Reads a suite from YAML, and checks its measures on their examples (docs/suites.md)."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.drift.cases import (
    Case,
    LabelledTurn,
    Rule,
    Suite,
    generic_starters,
    personas_of,
)
from holdfast.drift.suite_checks import check_examples, check_probed
from holdfast.drift.suite_entries import CaseEntry, RuleEntry, SuiteDocument, TurnEntry
from holdfast.drift.suite_yaml import Entry, read_yaml
from holdfast.errors import UsageError, shortened
from holdfast.measures import build
from holdfast.measures.patterns import compile_regex
from holdfast.measures.turns import Unless, When
from holdfast.validation.pydantic_errors import Path as FieldPath
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
        document = SuiteDocument.model_validate(root)
    except ValidationError as error:
        problem = problem_of(error, SuiteDocument, root, lambda path: where(*path))
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
        if isinstance(value, Entry):
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
