"""Access to the fields of JSON values, any of which may be missing or mistyped in a damaged log.

`list_or_empty`, `at`, `first_of` and `decode_json` never fail, as `fields_of`
(validation/json_values.py); `require_field`, `require_object` and `optional_list` raise `Malformed`
for values that a reader cannot do without.
"""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.transcript import Malformed


def list_or_empty(value: Any) -> list[Any]:
    """Returns a list as it is, and [] for any other value."""
    return value if isinstance(value, list) else []


def at(value: Any, *path: str) -> Any:
    """Returns the value at a path of names in nested objects; None if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def first_of(item: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """Returns the value of the first of these fields that is present and not null."""
    return next((item[name] for name in names if item.get(name) is not None), default)


def decode_json(value: Any) -> Any:
    """Decodes a string that looks like JSON, as some exports write it; others stay as they are."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def require_field(value: Any, *names: str) -> Any:
    """Returns the first of these fields that an object has; raises `Malformed` if it has none."""
    if isinstance(value, Mapping):
        for name in names:
            if name in value:
                return value[name]
    raise Malformed(f"{shortened(value)} has no {' or '.join(map(repr, names))}")


def require_object(value: Any) -> Mapping[str, Any]:
    """Returns a value that has to be an object; raises `Malformed` if it is not one."""
    if not isinstance(value, Mapping):
        raise Malformed(f"{shortened(value)} is not an object")
    return value


def optional_list(value: Any) -> list[Any]:
    """Returns a list; [] if the value is None. Raises `Malformed` if it is anything else."""
    if value is not None and not isinstance(value, list):
        raise Malformed(f"{shortened(value)} is not a list")
    return value or []
