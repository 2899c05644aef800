"""YAML of unknown origin as plain data: what would hang, crash or mislead its reader is refused by
its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from holdfast.errors import UsageError
from holdfast.measures.registry import SURROGATE

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST = 50
MOST_VALUES = 1_000_000
LONGEST_NUMBER = 100
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@dataclass(frozen=True)
class CaseLines:
    """Where an entry under 'cases' stands, in lines from 1.

    Args:
        case: its own line.
        rules: of each entry under its 'rules'.
    """

    case: int
    rules: tuple[int, ...]


def read_yaml(text: str, source: str) -> tuple[Any, list[CaseLines]]:
    """The document as plain data, and where each entry under 'cases' stands."""
    loader = None
    try:
        refuse_deep(text, source)
        loader = LOADER(text)
        node = loader.get_single_node()
        refuse_hostile(node, source)
        refuse_repeated_keys(node, source, set())
        root = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise UsageError(
            f"{source} is not valid YAML{where(error)}; correct that place: the fields of an entry"
            " begin in the same column, and a text with a colon or a bracket needs quotes."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source} cannot be read as YAML ({type(error).__name__}: {error}); correct it."
        ) from error
    finally:
        if loader is not None:
            loader.dispose()
    cases = _entries(node, "cases")
    return root, [
        CaseLines(_line(case), tuple(map(_line, _entries(case, "rules")))) for case in cases
    ]


def _entries(node: yaml.Node | None, field: str) -> list[yaml.Node]:
    """The entries of the list that a field holds; [] where it holds none."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    listed = next((value for key, value in pairs if key.value == field), None)
    return list(listed.value) if isinstance(listed, yaml.SequenceNode) else []


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def where(error: yaml.YAMLError) -> str:
    """' at line 3, column 7 (what is wrong)', as far as the parser knows."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = (
        getattr(error, "problem", None)
        or getattr(error, "reason", None)
        or str(error).splitlines()[0]
    )
    return f"{place} ({problem})"


def refuse_deep(text: str, source: str) -> None:
    """Refuses deep nesting before a tree is built: the builder in C recurses, and would crash
    Python.
    """
    depth = 0
    loader = LOADER(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                place = f"{source}, line {event.start_mark.line + 1}"
                raise UsageError(f"{place} is nested more than {DEEPEST} deep; write it flatter.")
    finally:
        loader.dispose()


@dataclass(frozen=True)
class Extent:
    """How many values a node holds, and how deep they nest, when its aliases are written out."""

    size: int
    depth: int


def refuse_hostile(node: yaml.Node | None, source: str) -> None:
    """Refuses what no suite needs and what would hang or break whoever reads it on.

    These are aliases that refer to themselves, stand for millions of values or nest deep, numbers
    of hundreds of digits, and half a surrogate pair.
    """
    if node is not None:
        measure_extent(node, source, (), {})


def measure_extent(
    node: yaml.Node, source: str, above: tuple[int, ...], seen: dict[int, Extent]
) -> Extent:
    """The extent of a node, each node looked at once; refuses it if hostile."""
    place = f"{source}, line {node.start_mark.line + 1}"
    if id(node) in seen:
        return seen[id(node)]
    if id(node) in above:
        raise UsageError(f"{place}: the alias refers to itself; write out what is meant.")
    if isinstance(node, yaml.ScalarNode):
        refuse_scalar(node, place)
    children = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        children = [part for pair in children for part in pair]
    size, depth = 1, 0
    for child in children:
        extent = measure_extent(child, source, (*above, id(node)), seen)
        size, depth = size + extent.size, max(depth, extent.depth)
        if size > MOST_VALUES:
            raise UsageError(
                f"{place} stands for more than {MOST_VALUES:,} values, aliases written out; "
                "leave the aliases out or split the suite."
            )
    if depth >= DEEPEST:
        raise UsageError(
            f"{place} is nested more than {DEEPEST} deep, aliases written out; write it flatter."
        )
    seen[id(node)] = Extent(size, depth + 1)
    return seen[id(node)]


def refuse_scalar(node: yaml.ScalarNode, place: str) -> None:
    """Refuses a number that is too long, and a text that cannot be written as UTF-8."""
    if node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
        raise UsageError(
            f"{place}: the number {node.value[:12]}... has {len(node.value)} digits; "
            "put it in quotes if it is a text, or give a smaller one."
        )
    half = SURROGATE.search(node.value)
    if half is not None:
        raise UsageError(
            f"{place}: the text holds {half.group()!a}, half of a surrogate pair; write the"
            " character itself."
        )


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
                    f"{source}, line {line}: the field {key.value!r} stands here and at line"
                    f" {lines[key.value]}; remove one."
                )
            if isinstance(key, yaml.ScalarNode):
                lines[key.value] = line
            refuse_repeated_keys(value, source, seen)
