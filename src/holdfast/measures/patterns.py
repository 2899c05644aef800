"""The user's regular expressions, which the package `regex` runs within a time limit."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.errors import UsageError

_PATIENCE = 5.0  # seconds of computing that one search may take
# what is no anchor: a character after a backslash, and a character class
_LITERAL = re.compile(r"\\[^zZ]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_END = re.compile(r"\$|\\[zZ]")


def shown(pattern: str) -> str:
    """A regular expression in quotes, with its backslashes as they were written."""
    return repr(pattern).replace("\\\\", "\\")


@cache
def compiled(regex: str, flags: str) -> Any:
    """A user's regular expression, compiled; a `UsageError` if it is invalid."""
    import regex as engine

    try:
        return engine.compile(regex, sum(getattr(engine, flag.upper()) for flag in set(flags)))
    except (engine.error, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"The regular expression {shown(regex)} is not valid: {error}; correct it."
        ) from error


@dataclass
class SearchTime:
    """The seconds of computing that searches may still take together."""

    left: float


_search_time: ContextVar[SearchTime | None] = ContextVar("search_time", default=None)


@contextmanager
def searches_end_within(seconds: float) -> Iterator[SearchTime]:
    """Within this context, all searches together may compute this long, where each may for 5 s."""
    allowed = SearchTime(seconds)
    token = _search_time.set(allowed)
    try:
        yield allowed
    finally:
        _search_time.reset(token)


def find(pattern: str, text: str, flags: str = "") -> Any:
    """The first match of a user's regular expression, or None; a `UsageError` if it takes too
    long.
    """
    return _timed(compiled(pattern, flags).search, pattern, text)


def matches(pattern: str, text: str, flags: str = "") -> bool:
    """Whether a user's regular expression occurs, as `find` finds it."""
    return find(pattern, text, flags) is not None


def count(pattern: str, text: str, flags: str = "") -> int:
    """How often a user's regular expression occurs; a `UsageError` if it takes too long."""
    return len(_timed(compiled(pattern, flags).findall, pattern, text))


def _timed(search: Callable[..., Any], pattern: str, text: str) -> Any:
    """The result of a search, within its own time limit or one shared with other searches."""
    allowed = _search_time.get()
    patience = _PATIENCE if allowed is None else allowed.left
    started = time.process_time()
    try:
        if patience <= 0:
            raise TimeoutError
        return search(text, timeout=patience)
    except TimeoutError as error:
        raise UsageError(
            f"The regular expression {shown(pattern)} took more than {max(patience, 0):.3g} s on a"
            f" text of {len(text)} characters; write it without repetitions inside repetitions, as"
            " (a+)+.",
            value=pattern,
        ) from error
    finally:
        if allowed is not None:
            allowed.left -= time.process_time() - started


def looks_at_end(pattern: str) -> bool:
    """Whether a regular expression has an anchor for the end of the text, or of a line."""
    return _END.search(_LITERAL.sub("", pattern)) is not None
