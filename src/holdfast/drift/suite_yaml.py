"""Reads YAML into mappings that know their lines, so that a message can name the place."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import yaml

from holdfast.errors import UsageError

_TEXT_OR_NOTHING = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:null")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry(dict[Any, Any]):
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

    def construct_entry(self, node: yaml.MappingNode) -> Iterator[Entry]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, line) != line:
                raise _RepeatedKey(
                    f"line {line}: the field {key.value!r} appears here and on line"
                    f" {lines[key.value]}; remove one."
                )
        entry = Entry()
        entry.line = node.start_mark.line + 1
        entry.written = {
            key.value: value.value
            for key, value in node.value
            if isinstance(value, yaml.ScalarNode) and value.tag not in _TEXT_OR_NOTHING
        }
        yield entry  # before its values, which may refer to it
        entry.update(self.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_entry)


def read_yaml(text: str, source: str) -> Any:
    """Reads a document as plain data, in which each mapping is an `Entry`.

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
            f"{source} is not valid YAML{where} ({problem}); correct it: the fields of an entry"
            " must begin in the same column, and a text with a colon or a bracket needs quotes."
        ) from error
    except _RepeatedKey as error:
        raise UsageError(f"{source}, {error}") from error
    except ValueError as error:  # an impossible date or number
        raise UsageError(f"{source} cannot be read as YAML ({error}); correct it.") from error
