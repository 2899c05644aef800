"""The kinds of argument that measures take; each says in messages what it wants."""

from __future__ import annotations

from typing import Any

from holdfast.measures.lexicon import list_names
from holdfast.measures.registry import Kind

LANGUAGES = ("de", "en", "es", "fr", "it")


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number (True is none) of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_text(value: Any) -> bool:
    """Whether a value is a text with a visible character."""
    return isinstance(value, str) and bool(value.strip())


def is_list_of_texts(value: Any) -> bool:
    """Whether a value is a list with at least one text, and texts only."""
    return isinstance(value, list | tuple) and bool(value) and all(map(is_text, value))


def is_share(value: Any) -> bool:
    """Whether a value is a number above 0 and up to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


TEXT = Kind("a text (in quotes if it looks like a number)", is_text)
LETTER = Kind("one letter", lambda v: isinstance(v, str) and len(v) == 1 and v.isalpha())
LETTERS = Kind("the option letters, as in 'ABCDE'", lambda v: is_text(v) and v.isalpha() and v.isascii())
TEXTS = Kind("a list of texts", is_list_of_texts)
WORDS = Kind(
    "a list of words or the name of a shipped list (holdfast measures shows them)",
    lambda v: is_list_of_texts(v) or (isinstance(v, str) and v in list_names()),
)
COUNT = Kind("a whole number of at least 1", lambda v: is_whole(v, 1))
NUMBER = Kind("a whole number of at least 0", lambda v: is_whole(v, 0))
COUNTS = Kind(
    "a list of whole numbers of at least 1",
    lambda v: isinstance(v, list | tuple) and bool(v) and all(is_whole(n, 1) for n in v),
)
FLAG = Kind("true or false", lambda v: isinstance(v, bool))
SHARE = Kind("a number above 0 and up to 1", is_share)
LANGUAGE = Kind(f"one of {', '.join(LANGUAGES)}", lambda v: isinstance(v, str) and v in LANGUAGES)
DIRECTION = Kind("'positive' or 'negative'", lambda v: isinstance(v, str) and v in ("positive", "negative"))
