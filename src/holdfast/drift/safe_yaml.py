"""YAML as plain data with line numbers; malformed documents are refused by line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml

from holdfast.errors import UsageError


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
