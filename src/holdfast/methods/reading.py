"""Methods as people give them: listed, alone or spelled; and what a method of one's own lacks."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import UsageError
from holdfast.methods.gate import Gate
from holdfast.methods.protocols import EditsLogits, EditsMessages, Method, ShiftsAttention
from holdfast.methods.spec import parse

# by the function that tells its kind, what a method of one's own must have
_FIELDS = {
    "shift": ("name", "heads", "span_includes_generated", "shift"),
    "edit": ("name", "edit"),
    "guide": ("name", "other", "guide"),
    "other": ("name", "other", "guide"),
}
_LONGEST = 60


def read_methods(given: object) -> tuple[Method, ...]:
    """The methods that `given` stands for.

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


def _checked(method: object) -> Method:
    """A method that can be applied, spelled and told from others."""
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...)."
        )
    kind = type(method).__name__
    if not isinstance(method, (ShiftsAttention, EditsMessages, EditsLogits, Gate)):
        fields = next((some for name, some in _FIELDS.items() if hasattr(method, name)), None)
        if fields is None:
            raise UsageError(
                f"{_cut(repr(method))} is no method; give objects of holdfast.methods, or "
                "spellings such as 'boost:factor=2'."
            )
        missing = " and ".join(name for name in fields if not hasattr(method, name))
        raise UsageError(
            f"The method {kind} lacks {missing}; a method of its kind has {', '.join(fields)} "
            "(see holdfast.methods.protocols)."
        )
    if not isinstance(method.name, str) or not method.name:
        name = _cut(repr(method.name))
        raise UsageError(f"The method {kind} has the name {name}; give it a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {kind} cannot be hashed, so rows that share it cannot be told; make it a "
            "frozen dataclass, @dataclass(frozen=True)."
        ) from None
    return method


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
