"""Forms: patterns of the ways in which people write a rule, compiled once."""

import re
from collections.abc import Iterable


def forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Several ways to write one rule, in any case of letters."""
    return tuple(re.compile(pattern, re.I) for pattern in patterns)


def one_of(*alternatives: str) -> str:
    """A part of a pattern: one of several words or patterns, the first that fits."""
    return f"(?:{'|'.join(alternatives)})"


def whole_match(ways: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """The match of the first form that is the whole text; None if there is none."""
    return next(filter(None, (way.fullmatch(text) for way in ways)), None)
