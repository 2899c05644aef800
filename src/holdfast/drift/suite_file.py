"""Reads a suite from YAML, and checks its measures on their examples; see docs/suites.md."""

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
from holdfast.measures.patterns import compiled
from holdfast.measures.turns import Unless, When
from holdfast.validation.pydantic_errors import Path as FieldPath
from holdfast.validation.pydantic_errors import problem_of, written


def parse_suite(
    text: str,
    source: str,
    name: str,
    allow_code: bool = False,
    folder: Path | None = None,
    check: bool = True,
    probed: bool = True,
) -> Suite:
    """Reads a suite from YAML.

    Args:
        source: what to call it in messages, usually a path.
        allow_code, probed: as in `load_suite`.
        folder: searched first for modules with the user's functions.
        check: whether each measure is tested on its examples.
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
            case = _case(entry, number, where, allow_code)
            cases.append(case)
            for index, rule in enumerate(case.rules):
                at = where("cases", number, *(("rules", index) if entry.rules else ()))
                if probed:
                    check_probed(rule, at)
                if check:
                    check_examples(rule, at)
    return Suite(
        name=document.name or name,
        cases=tuple(cases),
        starters=tuple(document.starters) or generic_starters(),
        notes=tuple(document.notes),
        personas=personas_of(document.personas),
    )


def _name(source: str, root: Any, path: FieldPath) -> str:
    """Names a part of a document in messages: its file, line, case and rule, and the field."""
    value, line, names = root, None, list[str]()
    rest: list[str | int] = []
    for part in path:
        known = isinstance(value, list) or (isinstance(value, dict) and part in value)
        value = value[part] if known else None
        if isinstance(part, int) and rest in (["cases"], ["rules"]):
            given = value.get("id") if isinstance(value, Entry) else None
            line = value.line if isinstance(value, Entry) else line
            entry = repr(given) if isinstance(given, str) else str(part + 1)
            names.append(f"{str(rest.pop())[:-1]} {entry}")
        else:
            rest.append(part)
    where = ", ".join([source, *([f"line {line}"] if line else []), *names])
    return f"{where}: the field {written(tuple(rest))!r}" if rest else where


@contextlib.contextmanager
def modules_in(folder: Path | None) -> Iterator[None]:
    """Within this context, imports search this folder first; its modules are unloaded on exit."""
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


def _case(entry: CaseEntry, number: int, where: Callable[..., str], allow_code: bool) -> Case:
    if not entry.rules:
        rules = (_rule(entry, where("cases", number), allow_code),)
        return Case(entry.id, entry.category, entry.system_prompt, rules=rules)
    of_rules = [name for name in RuleEntry.model_fields if name != "id"]
    if beside := next((name for name in of_rules if name in entry.model_fields_set), None):
        raise UsageError(
            f"{where('cases', number)} has both 'rules' and {beside!r}; move {beside!r} into one of"
            " the rules."
        )
    several = list[Rule]()
    for index, given in enumerate(entry.rules):
        at = where("cases", number, "rules", index)
        if any(rule.id == given.id for rule in several):
            raise UsageError(
                f"{at}: the id {given.id!r} is taken by an earlier rule; give every rule its own."
            )
        several.append(_rule(given, at, allow_code))
    return Case(entry.id, entry.category, entry.system_prompt, rules=several)


def _rule(entry: RuleEntry, where: str, allow_code: bool) -> Rule:
    probes = (entry.probe,) if entry.probe else tuple(entry.probes)
    if entry.probe and entry.probes:
        raise UsageError(f"{where} has both 'probe' and 'probes'; give one of the two.")
    if "measure" not in entry.model_fields_set:
        raise UsageError(
            f"{where} lacks the field 'measure'; name one of those that `holdfast measures` lists."
        )
    when = When(**entry.when.model_dump())
    unless = Unless(entry.unless.user if entry.unless else "")
    try:
        measure = build(entry.measure, allow_code)
        recalled = build(entry.recalled, allow_code) if entry.recalled else None
        for pattern in filter(None, (when.user, when.reply, unless.user)):
            compiled(pattern, "i")
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return Rule(
        id=None if isinstance(entry, CaseEntry) else entry.id,
        probes=probes,
        measure=measure,
        follows=_replies(entry.follows),
        breaks=_replies(entry.breaks),
        labelled_turns=(*_turns(entry.follows, True), *_turns(entry.breaks, False)),
        when=when,
        kind=entry.kind,
        polarity=entry.polarity,
        text=entry.text,
        recalled=recalled,
        unless=unless,
    )


def _replies(examples: Sequence[str | TurnEntry]) -> tuple[str, ...]:
    return tuple(example for example in examples if isinstance(example, str))


def _turns(examples: Sequence[str | TurnEntry], follows: bool) -> Iterator[LabelledTurn]:
    for example in examples:
        if isinstance(example, TurnEntry):
            yield example.labelled(follows)
