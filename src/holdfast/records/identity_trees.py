"""Compares identities, which are trees of JSON values, and completes them with defaults."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.records.manifest import as_json

ABSENT = object()  # the value of a field that an identity lacks


class IdentityDifference(NamedTuple):
    """A field in which two identities differ; `ABSENT` is the value of one that lacks the field."""

    name: str  # dotted
    stored: Any  # in the folder
    new: Any  # of the command


def first_difference(stored: Any, new: Any, path: str = "") -> IdentityDifference | None:
    """Returns the first difference, in the order of `new`; None if the two are equal."""
    if isinstance(stored, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in stored if name not in new)]:
            inner = f"{path}.{name}" if path else name
            difference = first_difference(stored.get(name, ABSENT), new.get(name, ABSENT), inner)
            if difference:
                return difference
        return None
    # in Python, 1 == True; in JSON, the two differ (1 and 1.0 count as equal here)
    is_same = stored == new and isinstance(stored, bool) == isinstance(new, bool)
    return None if is_same else IdentityDifference(path or "identity", stored, new)


def with_defaults(identity: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the identity with defaults for the fields that it lacks."""
    complete = copy.deepcopy(dict(identity))
    for name, value in as_json(defaults).items():
        if name not in complete:
            complete[name] = value
        elif isinstance(value, dict) and isinstance(complete[name], dict):
            complete[name] = with_defaults(complete[name], value)
    return complete


def without_defaults(
    joined: Mapping[str, Any], stored: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a joined identity without the fields that came only from defaults, so that repeating
    a command leaves the manifest as it is.
    """
    reduced = {}
    for name, value in joined.items():
        if name not in stored and name not in new:
            continue
        sides = [stored.get(name) or {}, new.get(name) or {}]
        if isinstance(value, dict) and all(isinstance(side, dict) for side in sides):
            value = without_defaults(value, *sides)
        reduced[name] = value
    return reduced


def part_of(stored: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a stored identity that a command's identity has too."""
    part = {name: stored[name] for name in new if name in stored}
    for name, value in part.items():
        if isinstance(value, dict) and isinstance(new[name], dict):
            part[name] = part_of(value, new[name])
    return part


def get_at(identity: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a field, given its dotted name; `ABSENT` if the identity lacks it."""
    value: Any = identity
    for part in name.split("."):
        value = value.get(part, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def set_at(identity: dict[str, Any], name: str, value: Any) -> None:
    """Sets the value of an existing field, given its dotted name."""
    *outer, last = name.split(".")
    for part in outer:
        identity = identity[part]
    identity[last] = value
