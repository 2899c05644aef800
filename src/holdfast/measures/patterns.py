"""Regular expressions of the user's, which the package `regex` runs within a time limit."""

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast.errors import UsageError

_WAIT = 2.0  # seconds that one search may take


@cache
def compiled(regex: str, flags: str) -> Any:
    """A regular expression of the user's, or a `UsageError` with its mistake; run by the package
    `regex`, which can be given a time limit.
    """
    import regex as engine

    try:
        return engine.compile(regex, sum(getattr(engine, flag.upper()) for flag in set(flags)))
    except (engine.error, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"The regular expression {regex!r} is not valid ({error}); correct it."
        ) from error


def matches(pattern: str, text: str, flags: str = "") -> bool:
    """Whether a regular expression of the user's occurs in a text.

    Raises:
        UsageError: it takes longer than two seconds.
    """
    try:
        return compiled(pattern, flags).search(text, timeout=_WAIT) is not None
    except TimeoutError as error:
        raise UsageError(
            f"The regular expression {pattern!r} takes more than {_WAIT:g} s on"
            f" {text[:40]!r}; write one that repeats less."
        ) from error
