"""Runs users' regular expressions within a time limit, by the package `regex`."""

import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.errors import UsageError

_MAX_SEARCH_SECONDS = 5.0  # of processor time
# parts of a pattern in which $ is no anchor: an escaped character, and a character class
_LITERAL = re.compile(r"\\[^zZ]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_END_ANCHOR = re.compile(r"\$|\\[zZ]")


def _quote_pattern(pattern: str) -> str:
    """Quotes a regular expression, without doubling its backslashes."""
    return repr(pattern).replace("\\\\", "\\")


@cache
def compile_regex(regex: str, flags: str) -> Any:
    """Compiles a user's regular expression; a `UsageError` if it is invalid."""
    import regex as engine

    try:
        return engine.compile(regex, sum(getattr(engine, flag.upper()) for flag in set(flags)))
    except (engine.error, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"The regular expression {_quote_pattern(regex)} is not valid: {error}; correct it."
        ) from error


@dataclass
class SearchTime:
    """The seconds of processor time that several searches may still take together."""

    left: float


_SHARED_TIME: ContextVar[SearchTime | None] = ContextVar("search_time", default=None)


@contextmanager
def limit_search_time(seconds: float) -> Iterator[SearchTime]:
    """Limits the processor time of all searches in a block together, instead of each one's."""
    time_left = SearchTime(seconds)
    token = _SHARED_TIME.set(time_left)
    try:
        yield time_left
    finally:
        _SHARED_TIME.reset(token)


def find(pattern: str, text: str, flags: str = "") -> Any:
    """Returns the first match of a user's regular expression, or None.

    Raises:
        UsageError: the search takes too long, or the expression is invalid.
    """
    return _run_search(compile_regex(pattern, flags).search, pattern, text)


def find_all(pattern: str, text: str, flags: str = "") -> list[Any]:
    """Returns the matches of a user's regular expression; raises as `find` does."""
    finditer = compile_regex(pattern, flags).finditer

    def search(text: str, timeout: float) -> list[Any]:
        return list(finditer(text, timeout=timeout))

    matches: list[Any] = _run_search(search, pattern, text)
    return matches


def matches(pattern: str, text: str, flags: str = "") -> bool:
    """Whether `find` finds a match."""
    return find(pattern, text, flags) is not None


def composed(text: str) -> str:
    """Returns a text with each accent as a part of its letter, so that `é` is found however it was
    typed.
    """
    return unicodedata.normalize("NFC", text)


def count(pattern: str, text: str, flags: str = "") -> int:
    """Counts the matches of a user's regular expression; raises as `find` does."""
    return len(_run_search(compile_regex(pattern, flags).findall, pattern, text))


def _run_search(search: Callable[..., Any], pattern: str, text: str) -> Any:
    """Runs a search within its own time limit, or within one shared with other searches."""
    shared = _SHARED_TIME.get()
    limit = _MAX_SEARCH_SECONDS if shared is None else shared.left
    started = time.process_time()
    try:
        if limit <= 0:
            raise TimeoutError
        return search(text, timeout=limit)
    except TimeoutError as error:
        raise UsageError(
            f"The regular expression {_quote_pattern(pattern)} took more than"
            f" {max(limit, 0):.3g} s on a text of {len(text)} characters; write it without"
            " repetitions inside repetitions, such as (a+)+.",
            value=pattern,
        ) from error
    finally:
        if shared is not None:
            shared.left -= time.process_time() - started


def looks_at_end(pattern: str) -> bool:
    """Whether a regular expression has an anchor for the end of the text, or of a line."""
    return _END_ANCHOR.search(_LITERAL.sub("", pattern)) is not None
