"""The fields of JSON values, any of which may be missing or of any type in a damaged log.

`list_of`, `at` and `decoded` take what is there, as `fields_of` (validation/json_values.py) does;
`field_of`, `mapping` and `entries` raise `Malformed` for what a reader cannot do without.
"""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.transcript import Malformed


def list_of(value: Any) -> list[Any]:
    """A value's entries; none if it is not a list."""
    return value if isinstance(value, list) else []


def at(value: Any, *path: str) -> Any:
    """The value at a path of names in nested objects; None if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def decoded(value: Any) -> Any:
    """Decodes a value that may be JSON in a string, as exports write it."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def field_of(value: Any, *names: str) -> Any:
    """The first of these fields that an object has; raises `Malformed` if it has none."""
    if isinstance(value, Mapping):
        for name in names:
            if name in value:
                return value[name]
    raise Malformed(f"{shortened(value)} has no {' or '.join(map(repr, names))}")


def mapping(value: Any) -> Mapping[str, Any]:
    """A value that has to be an object; raises `Malformed` if it is not."""
    if not isinstance(value, Mapping):
        raise Malformed(f"{shortened(value)} is not an object")
    return value


def entries(value: Any) -> list[Any]:
    """A list that may be missing; raises `Malformed` if the value is something else."""
    if value is not None and not isinstance(value, list):
        raise Malformed(f"{shortened(value)} is not a list")
    return value or []
