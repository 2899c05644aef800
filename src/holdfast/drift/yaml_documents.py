"""Reads YAML as plain data that knows its lines, so that messages about it can name the place.

Refuses a key that a mapping has twice, of which PyYAML would take the last, and says how to correct
the line where a document stops being YAML.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import yaml

from holdfast.errors import UsageError

_TEXT_OR_NOTHING = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:null")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# a line whose text has a colon but no quotes, such as `text: Reply: yes`
_UNQUOTED = re.compile(r"\s*(?:- )*(?P<field>\w+): +(?P<value>[^\s'\"\[{|>&*!%@`].*: .*?)\s*")


class YamlMapping(dict[Any, Any]):
    """A mapping in a document.

    Attributes:
        line: the line where it begins.
        written: the words of values that YAML reads as something else than text, such as `Yes` or
            `8080`, by their keys.
    """

    line = 0
    written: Mapping[str, str] = MappingProxyType({})


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
            f"{source} is not valid YAML{where} ({problem}); {_cure_for(text, mark, problem)}."
        ) from error
    except _RepeatedKey as error:
        raise UsageError(f"{source}, {error}") from error
    except ValueError as error:  # an impossible date or number
        raise UsageError(f"{source} cannot be read as YAML ({error}); correct it.") from error


def _cure_for(text: str, mark: yaml.Mark | None, problem: str) -> str:
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


class _RepeatedKey(Exception):
    """A mapping has the same key twice; the message names the lines."""


class _Loader(_SafeLoader):  # type: ignore[misc]  # PyYAML may be built without its C loader
    """Makes a `YamlMapping` of each mapping."""

    def construct_lined_mapping(self, node: yaml.MappingNode) -> Iterator[YamlMapping]:
        _refuse_repeated_keys(node)
        mapping = YamlMapping()
        mapping.line = node.start_mark.line + 1
        mapping.written = {
            key.value: value.value
            for key, value in node.value
            if isinstance(value, yaml.ScalarNode) and value.tag not in _TEXT_OR_NOTHING
        }
        yield mapping  # before its values, which may refer to it
        mapping.update(self.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_lined_mapping)


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, line) != line:
            raise _RepeatedKey(
                f"line {line}: the field {key.value!r} appears here and on line"
                f" {lines[key.value]}; remove one."
            )
