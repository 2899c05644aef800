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
import difflib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.drift.cases import NO_CATEGORY, Case, Rule, Suite, generic_starters, personas_of
from holdfast.drift.safe_yaml import CaseLines, read_yaml
from holdfast.errors import UsageError
from holdfast.measures import Measure, build
from holdfast.measures.judging import check_labels

SUITE_FIELDS = ("name", "starters", "personas", "notes", "cases")
RULE_FIELDS = ("id", "probe", "probes", "measure", "follows", "breaks")
BESIDE_RULES = RULE_FIELDS[1:]  # which a case with rules leaves to them
CASE_FIELDS = ("id", "category", "system_prompt", *BESIDE_RULES, "rules")
FOLLOWED = 0.5  # the least score of a reply that keeps to its prompt


@dataclass(frozen=True)
class Place:
    """Where a case stands.

    Args:
        source: what its document is called in messages.
        lines: of the case and of its rules; None where they are not known.
    """

    source: str
    lines: CaseLines | None

    @property
    def case(self) -> str:
        """The case's place, for a message."""
        return f"{self.source}, line {self.lines.case}" if self.lines else self.source

    def rule(self, number: int) -> str:
        """The place of a rule of it, from 1; the case's own where that is not known."""
        if self.lines is None or number > len(self.lines.rules):
            return self.case
        return f"{self.source}, line {self.lines.rules[number - 1]}"


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
        what = "is empty" if root is None else f"holds {describe(root)}, not a suite"
        raise UsageError(f"{source} {what}; it needs the field 'cases', a list.")
    refuse_unknown_fields(root, SUITE_FIELDS, source)
    entries = root.get("cases")
    if not isinstance(entries, list) or not entries:
        raise UsageError(
            f"{source} has no cases ('cases' is {describe(entries)}); list at least one system"
            " prompt there."
        )
    cases = []
    places: dict[str, str] = {}
    with modules_in(folder if allow_code else None):
        for number, entry in enumerate(entries, start=1):
            place = Place(source, lines[number - 1] if number <= len(lines) else None)
            case = read_case(entry, place, number, allow_code)
            if case.id in places:
                raise UsageError(
                    f"{place.case}: the id {case.id!r} is taken by {places[case.id]}; give "
                    "every case its own."
                )
            known = place.lines
            places[case.id] = f"the case at line {known.case}" if known else "an earlier case"
            if check:
                check_examples(case, place)
            cases.append(case)
    return Suite(
        name=text_of(root, "name", source) if "name" in root else name,
        cases=tuple(cases),
        starters=texts(root, "starters", source) if "starters" in root else generic_starters(),
        notes=texts(root, "notes", source) if "notes" in root else (),
        personas=personas_of(texts(root, "personas", source)) if "personas" in root else (),
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
    place, before = folder.resolve(), set(sys.modules)
    sys.path.insert(0, str(place))
    try:
        yield
    finally:
        sys.path.remove(str(place))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(place):
                del sys.modules[name]


def check_examples(case: Case, place: Place) -> None:
    """Refuses a measure that scores the examples of its own rule on the wrong side, and a judge
    with too few of them to be checked by the run.
    """
    for number, rule in enumerate(case.all_rules, start=1):
        where = f"{place.rule(number)}, case {case.id!r}"
        where += f", rule {rule.id!r}" if rule.id else ""
        if rule.measure.judged:
            check_labels(rule.follows, rule.breaks, f"{where}: the judge")
            continue
        for field, replies in (("follows", rule.follows), ("breaks", rule.breaks)):
            for reply in replies:
                score = rule.measure.score(reply)
                if (score.value >= FOLLOWED) != (field == "follows"):
                    limit = "at least" if field == "follows" else "below"
                    raise UsageError(
                        f"{where}: the reply {reply[:60]!r} under {field!r} scores"
                        f" {score.value:.2f} ({score.reason}), and needs {limit} {FOLLOWED};"
                        f" correct the measure {rule.measure.name!r} or the example."
                    )


def read_case(entry: Any, written: Place, number: int, allow_code: bool) -> Case:
    """One entry under 'cases'; its number names it in messages until its id is known."""
    name = f"case {number}"
    if isinstance(entry, dict) and isinstance(entry.get("id"), str):
        name = f"case {entry['id']!r}"
    place = f"{written.case}, {name}"
    if not isinstance(entry, dict):
        raise UsageError(
            f"{place} is {describe(entry)}, not a case; write its fields"
            f" ({', '.join(CASE_FIELDS)})."
        )
    refuse_unknown_fields(entry, CASE_FIELDS, place)
    category = text_of(entry, "category", place) if "category" in entry else NO_CATEGORY
    if "rules" in entry:
        return Case(
            id=text_of(entry, "id", place),
            category=category,
            system_prompt=text_of(entry, "system_prompt", place),
            rules=read_rules(entry, written, name, allow_code),
        )
    probes, measure = read_probes(entry, place), read_measure(entry, place, allow_code)
    return Case(
        id=text_of(entry, "id", place),
        category=category,
        system_prompt=text_of(entry, "system_prompt", place),
        probes=probes,
        measure=measure,
        follows=read_examples(entry, "follows", place),
        breaks=read_examples(entry, "breaks", place),
    )


def read_rules(
    entry: dict[Any, Any], written: Place, case: str, allow_code: bool
) -> tuple[Rule, ...]:
    """The rules of a case that has several; `case` names it in messages."""
    place = f"{written.case}, {case}"
    beside = next((field for field in BESIDE_RULES if field in entry), None)
    if beside:
        raise UsageError(
            f"{place} has both 'rules' and {beside!r}; move {beside!r} into one of the rules."
        )
    listed = entry["rules"]
    if not isinstance(listed, list) or not listed:
        raise UsageError(
            f"{place}: the field 'rules' is {describe(listed)}, not a list of rules; write one "
            f"with {', '.join(RULE_FIELDS)}."
        )
    rules: dict[str, Rule] = {}
    for number, item in enumerate(listed, start=1):
        place = f"{written.rule(number)}, {case}, rule"
        rule = read_rule(item, place, number, allow_code)
        if rule.id in rules:
            raise UsageError(
                f"{place} {number}: the id {rule.id!r} is taken by an earlier rule; give "
                "every rule its own."
            )
        rules[str(rule.id)] = rule
    return tuple(rules.values())


def read_rule(item: Any, place: str, number: int, allow_code: bool) -> Rule:
    """One entry under 'rules'."""
    if not isinstance(item, dict):
        raise UsageError(
            f"{place} {number} is {describe(item)}, not a rule; write its fields "
            f"({', '.join(RULE_FIELDS)})."
        )
    place = f"{place} {item['id']!r}" if isinstance(item.get("id"), str) else f"{place} {number}"
    refuse_unknown_fields(item, RULE_FIELDS, place)
    name = text_of(item, "id", place)
    probes, measure = read_probes(item, place), read_measure(item, place, allow_code)
    follows, breaks = (read_examples(item, field, place) for field in ("follows", "breaks"))
    return Rule(name, probes, measure, follows, breaks)


def read_probes(entry: dict[Any, Any], place: str) -> tuple[str, ...]:
    """The question or questions of a case or rule."""
    if ("probe" in entry) == ("probes" in entry):
        many = "both 'probe' and 'probes'" if "probe" in entry else "neither 'probe' nor 'probes'"
        raise UsageError(f"{place} has {many}; give one of the two.")
    return (text_of(entry, "probe", place),) if "probe" in entry else texts(entry, "probes", place)


def read_measure(entry: dict[Any, Any], place: str, allow_code: bool) -> Measure:
    """The measure of a case or rule."""
    if "measure" not in entry:
        raise UsageError(
            f"{place} lacks the field 'measure'; name one of those that `holdfast measures` lists."
        )
    try:
        return build(entry["measure"], allow_code)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def read_examples(entry: dict[Any, Any], field: str, place: str) -> tuple[str, ...]:
    """The replies that keep to a case or rule, or those that do not, as far as they are given."""
    return texts(entry, field, place) if field in entry else ()


def refuse_unknown_fields(mapping: dict[Any, Any], known: Iterable[str], place: str) -> None:
    """A field that nobody reads would be a wish that nobody grants."""
    known = list(known)
    for field in mapping:
        if field not in known:
            near = difflib.get_close_matches(str(field), known, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
            raise UsageError(f"{place} has an unknown field {field!r}; {cure}")


def text_of(mapping: dict[Any, Any], field: str, place: str) -> str:
    """A field that holds a text with something in it; outer spaces are dropped."""
    if field not in mapping:
        raise UsageError(f"{place} lacks the field {field!r}; add it.")
    value = mapping[field]
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"{place}: the field {field!r} is {describe(value)}, not a text; write one, in quotes"
            " if need be."
        )
    return value.strip()


def texts(mapping: dict[Any, Any], field: str, place: str) -> tuple[str, ...]:
    """A field that holds a list of one or more texts."""
    value = mapping[field]
    if not isinstance(value, list) or not value:
        raise UsageError(
            f'{place}: the field {field!r} is {describe(value)}, not a list of texts; write ["...",'
            ' "..."].'
        )
    return tuple(
        text_of({f"{field}[{i}]": item}, f"{field}[{i}]", place) for i, item in enumerate(value)
    )


def describe(value: Any) -> str:
    """A value as a message shows it."""
    if value is None:
        return "empty"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a mapping" if isinstance(value, dict) else repr(value)[:60]
