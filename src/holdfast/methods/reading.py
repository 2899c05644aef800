"""Methods as people give them: listed, alone or spelled; and what a method of one's own lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.errors import UsageError
from holdfast.methods.kinds import MEMBERS, Kind, kinds_of
from holdfast.methods.protocols import Method
from holdfast.methods.spec import parse

_LONGEST = 60


def read_methods(given: object) -> tuple[Method, ...]:
    """The methods that `given` stands for.

    A method of one's own that declares no kind is of the kind whose functions it has.

    Args:
        given: a spelling such as "boost:factor=2", a method, or a list of both; "none" adds none.

    Raises:
        UsageError: something else, or a method that lacks what its kind has; and as `parse`.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return parse(given)
    if isinstance(given, Iterable) and not isinstance(given, (type, dict, bytes)):
        return tuple(method for part in given for method in _read_part(part))
    return _read_part(given)


def _read_part(part: object) -> tuple[Method, ...]:
    return parse(part) if isinstance(part, str) else (_checked(part),)


def _checked(method: Any) -> Method:
    """A method that can be applied, spelled and told from others."""
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...)."
        )
    kind = _kind(method)
    made_by = type(method).__name__
    if missing := " and ".join(name for name in MEMBERS[kind] if not hasattr(method, name)):
        raise UsageError(
            f"The method {made_by} lacks {missing}; a method of its kind has"
            f" {', '.join(MEMBERS[kind])} (see holdfast.methods.protocols)."
        )
    if not isinstance(method.name, str) or not method.name:
        name = _cut(repr(method.name))
        raise UsageError(f"The method {made_by} has the name {name}; give it a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {made_by} cannot be hashed, so rows that share it cannot be told; make it"
            " a frozen dataclass, @dataclass(frozen=True)."
        ) from None
    checked: Method = method
    return checked


def _kind(method: object) -> Kind:
    """The kind that a method declares, or the one whose functions it has."""
    kinds, made_by = kinds_of(method), type(method).__name__
    if not kinds:
        raise UsageError(
            f"{_cut(repr(method))} is no method; give objects of holdfast.methods, or "
            "spellings such as 'boost:factor=2'."
        )
    kind, *others = kinds
    if not isinstance(kind, Kind):
        raise UsageError(
            f"The method {made_by} declares the kind {_cut(repr(kind))}; give it one of"
            f" {', '.join(map(str, Kind))}."
        )
    if others:
        raise UsageError(
            f"The method {made_by} has the functions of {' and '.join(map(str, kinds))}; declare"
            f" the one that it is, as in kind = {kind}."
        )
    return kind


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
