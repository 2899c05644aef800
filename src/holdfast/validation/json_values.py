"""Values that were parsed from JSON and may have any shape: another than is asked for counts as
missing.
"""

from collections.abc import Mapping
from typing import Any


def fields_of(value: object) -> Mapping[str, Any]:
    """A value's fields; none if it is not an object."""
    return value if isinstance(value, Mapping) else {}


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list; none if it is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_or_empty(value: object) -> str:
    """A value that is a text; "" if it is not."""
    return value if isinstance(value, str) else ""
