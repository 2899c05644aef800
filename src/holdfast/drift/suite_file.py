"""Suites as YAML: the one form that shipped suites and a user's own share.

    name: my-bot                          # optional; the file's name otherwise
    starters: ["How was your day?", ...]  # optional; forty generic ones otherwise
    cases:
      - id: shop-hours
        category: memorization            # any text
        system_prompt: ...
        probe: ...                        # or probes: [...]
        measure: {name: one_sentence}     # see `holdfast measures`
        follows: [...]                    # optional: replies that keep to the prompt
        breaks: [...]                     # optional: replies that do not
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import yaml

from holdfast.drift.cases import Case, Suite, generic_starters
from holdfast.errors import UsageError
from holdfast.measures import build

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SUITE_FIELDS = ("name", "starters", "notes", "cases")
CASE_FIELDS = ("id", "category", "system_prompt", "probe", "probes", "measure", "follows", "breaks")


def parse_suite(text: str, source: str, name: str, allow_code: bool = False) -> Suite:
    """Reads a suite from YAML.

    Args:
        text: the YAML document.
        source: what to call it in messages, usually a path.
        name: the suite's name if the document gives none.
        allow_code: whether measures may be functions of the user's own.

    Raises:
        UsageError: the document is not YAML, or not a suite; says where and what to do.
    """
    root, lines = read_yaml(text, source)
    if not isinstance(root, dict):
        raise UsageError(f"{source} holds {describe(root)}, not a suite; it needs the field 'cases', a list.")
    refuse_unknown_fields(root, SUITE_FIELDS, source)
    entries = root.get("cases")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{source} has no cases ('cases' is {describe(entries)}); list at least one system prompt there.")
    cases = []
    places: dict[str, str] = {}
    for number, entry in enumerate(entries, start=1):
        line = f", line {lines[number - 1]}" if number <= len(lines) else ""
        case = read_case(entry, f"{source}{line}, case {number}", f"{source}{line}", allow_code)
        if case.id in places:
            raise UsageError(f"{source}{line}: the id {case.id!r} is taken by {places[case.id]}; give every case its own.")
        places[case.id] = f"the case at{line.removeprefix(',')}" if line else "an earlier case"
        cases.append(case)
    starters = texts(root, "starters", source) if "starters" in root else generic_starters()
    notes = texts(root, "notes", source) if "notes" in root else ()
    return Suite(text_of(root, "name", source) if "name" in root else name, tuple(cases), starters, notes)


def read_yaml(text: str, source: str) -> tuple[Any, list[int]]:
    """The document as plain data, and the line of each entry under 'cases'."""
    loader = None
    try:
        loader = LOADER(text)
        node = loader.get_single_node()
        refuse_repeated_keys(node, source, set())
        root = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is not valid YAML{where(error)}; correct that place or put the text in quotes.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} cannot be read as YAML ({type(error).__name__}: {error}); correct it.") from error
    finally:
        if loader is not None:
            loader.dispose()
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    listed = next((value for key, value in pairs if key.value == "cases"), None)
    items = listed.value if isinstance(listed, yaml.SequenceNode) else []
    return root, [item.start_mark.line + 1 for item in items]


def where(error: yaml.YAMLError) -> str:
    """' at line 3, column 7 (what is wrong)', as far as the parser knows."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    return f"{place} ({problem})"


def refuse_repeated_keys(node: yaml.Node | None, source: str, seen: set[int]) -> None:
    """YAML readers keep the last of two equal keys without a word; here that is an error."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            refuse_repeated_keys(child, source, seen)
    if isinstance(node, yaml.MappingNode):
        lines: dict[Any, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in lines:
                raise UsageError(
                    f"{source}, line {line}: the field {key.value!r} stands here and at line {lines[key.value]}; remove one."
                )
            if isinstance(key, yaml.ScalarNode):
                lines[key.value] = line
            refuse_repeated_keys(value, source, seen)


def read_case(entry: Any, place: str, line: str, allow_code: bool) -> Case:
    """One entry under 'cases'; `place` names it in messages until its id is known."""
    if not isinstance(entry, dict):
        raise UsageError(f"{place} is {describe(entry)}, not a case; write its fields ({', '.join(CASE_FIELDS)}).")
    if isinstance(entry.get("id"), str):
        place = f"{line}, case {entry['id']!r}"
    refuse_unknown_fields(entry, CASE_FIELDS, place)
    if ("probe" in entry) == ("probes" in entry):
        many = "both 'probe' and 'probes'" if "probe" in entry else "neither 'probe' nor 'probes'"
        raise UsageError(f"{place} has {many}; give one of the two.")
    if "measure" not in entry:
        raise UsageError(f"{place} lacks the field 'measure'; name one of those that `holdfast measures` lists.")
    try:
        measure = build(entry["measure"], allow_code)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
    return Case(
        id=text_of(entry, "id", place),
        category=text_of(entry, "category", place),
        system_prompt=text_of(entry, "system_prompt", place),
        probes=(text_of(entry, "probe", place),) if "probe" in entry else texts(entry, "probes", place),
        measure=measure,
        follows=texts(entry, "follows", place) if "follows" in entry else (),
        breaks=texts(entry, "breaks", place) if "breaks" in entry else (),
    )


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
        raise UsageError(f"{place}: the field {field!r} is {describe(value)}, not a text; write one, in quotes if need be.")
    return value.strip()


def texts(mapping: dict[Any, Any], field: str, place: str) -> tuple[str, ...]:
    """A field that holds a list of one or more texts."""
    value = mapping[field]
    if not isinstance(value, list) or not value:
        raise UsageError(f"{place}: the field {field!r} is {describe(value)}, not a list of texts; write [\"...\", \"...\"].")
    return tuple(text_of({f"{field}[{i}]": item}, f"{field}[{i}]", place) for i, item in enumerate(value))


def describe(value: Any) -> str:
    """A value as a message shows it."""
    if value is None:
        return "empty"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a mapping" if isinstance(value, dict) else repr(value)[:60]
