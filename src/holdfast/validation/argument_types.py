"""Refuses arguments of the public functions that are of another type.

Types are otherwise left to annotations: these are the arguments that users mix up, at the functions
where they enter.
"""

from pathlib import Path

from holdfast.errors import UsageError, type_in_words

Kind = type | tuple[type, ...]
PATH = (str, Path)
SEQUENCE = (tuple, list)
_WORDS: dict[Kind, str] = {PATH: "a path", SEQUENCE: "a tuple", str: "a text"}


def require_types(**arguments: tuple[object, Kind]) -> None:
    """Refuses the first argument that is of another type.

    Args:
        arguments: each with its value and its type: `settings=(settings, Settings)`.

    Raises:
        UsageError: it names the argument, and what to give.
    """
    for name, (value, kind) in arguments.items():
        if not isinstance(value, kind):
            words = _WORDS.get(kind) or f"{getattr(kind, '__name__', kind)}(...)"
            raise UsageError(
                f"{name} has to be {words}, not {type_in_words(value)}.",
                option=name,
                value=value,
                allowed=words,
            )
