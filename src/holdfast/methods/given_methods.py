"""The methods that users give: spec strings, objects, or lists of both; objects are checked."""

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.errors import UsageError, shortened
from holdfast.methods.kinds import Kind, kinds_of, members_of
from holdfast.methods.protocols import Method
from holdfast.methods.spec import parse

Methods = Sequence[Method | str] | Method | str  # what `read_methods` takes


def read_methods(given: object) -> tuple[Method, ...]:
    """The methods that `given` stands for.

    A custom method that declares no kind is of the kind whose functions it has.

    Args:
        given: a spec string such as "boost:factor=2", a method, or a list of both; "none" adds
            none.

    Raises:
        UsageError: anything else, or a method that lacks a member of its kind; also as `parse`.
    """
    if given is None:
        return ()
    if not isinstance(given, Iterable) or isinstance(given, (str, type, dict, bytes)):
        given = [given]
    read = [parse(part) if isinstance(part, str) else (_checked(part),) for part in given]
    return tuple(method for methods in read for method in methods)


def _checked(method: Any) -> Method:
    """The method, if it can be applied, written as a spec and compared with others."""
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...).",
            option="method",
            value=method.__name__,
        )
    members = members_of(_kind(method))
    made_by = type(method).__name__
    if missing := " and ".join(name for name in members if not hasattr(method, name)):
        raise UsageError(
            f"The method {made_by} lacks {missing}; a method of its kind has"
            f" {', '.join(members)} (see holdfast.methods.protocols).",
            option="method",
            value=made_by,
            allowed=members,
        )
    if not method.name:
        raise UsageError(f"The method {made_by} has an empty name; give it a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {made_by} cannot be hashed, so rows that share it cannot be grouped; make"
            " it a frozen dataclass, @dataclass(frozen=True).",
            option="method",
            value=made_by,
        ) from None
    checked: Method = method
    return checked


def _kind(method: object) -> Kind:
    kinds, made_by = kinds_of(method), type(method).__name__
    if not kinds:
        raise UsageError(
            f"{shortened(method)} is no method; give objects of holdfast.methods, or spec strings"
            " such as 'boost:factor=2'.",
            option="method",
            value=made_by,
        )
    kind, *others = kinds
    if not isinstance(kind, Kind):
        raise UsageError(
            f"The method {made_by} declares the kind {shortened(kind)}; give it one of"
            f" {', '.join(map(str, Kind))}.",
            option="method",
            value=kind,
            allowed=tuple(Kind),
        )
    if others:
        raise UsageError(
            f"The method {made_by} has the functions of {' and '.join(map(str, kinds))}; declare"
            f" the one that it is, as in kind = {kind}.",
            option="method",
            value=made_by,
            allowed=kinds,
        )
    return kind
