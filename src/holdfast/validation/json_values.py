"""Reads values that were parsed from JSON and may have any shape.

A value of another type than the reader expects counts as missing.
"""

from collections.abc import Mapping
from typing import Any


def fields_of(value: object) -> Mapping[str, Any]:
    """Returns the fields of an object, or {} for any other value."""
    return value if isinstance(value, Mapping) else {}


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """Returns the objects in a list, or [] if the value is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_or_empty(value: object) -> str:
    """Returns the value if it is a string, else ""."""
    return value if isinstance(value, str) else ""
