"""The types of the arguments that measures take; each says in messages what it wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from holdfast.measures.languages import NAMES
from holdfast.measures.lexicon import list_names
from holdfast.measures.registry import Kind

MOST = 10**18  # beyond, a number stands for no count and no fact, and breaks arithmetic


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number (True is none) from `least` to `MOST`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def is_text(value: Any) -> bool:
    """Whether a value is a text with a visible character."""
    return isinstance(value, str) and bool(value.strip())


def is_list(value: Any, accepts: Any) -> bool:
    """Whether a value is a list, not empty, of accepted items only."""
    return isinstance(value, list | tuple) and bool(value) and all(map(accepts, value))


def is_words(value: Any) -> bool:
    """Whether a value is a list of words or names a shipped list."""
    return is_list(value, is_text) or (isinstance(value, str) and value in list_names())


def is_share(value: Any) -> bool:
    """Whether a value is a number above 0 and up to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def one_of(*choices: str) -> Kind:
    """One of a few names."""
    return Kind(
        f"one of {', '.join(choices)}",
        lambda value: isinstance(value, str) and value in choices,
        choices[0],
        choices,
    )


def is_letter(value: Any) -> bool:
    """Whether a value is a single letter."""
    return isinstance(value, str) and len(value) == 1 and value.isalpha()


def is_letters(value: Any) -> bool:
    """Whether a value is a text of different letters from A to Z."""
    return (
        is_text(value)
        and value.isascii()
        and value.isalpha()
        and len(set(value.upper())) == len(value)
    )


def is_flags(value: Any) -> bool:
    """Whether a value holds flags of regular expressions only."""
    return isinstance(value, str) and set(value) <= set("aimsux")


Text = Annotated[str, Kind("a text (in quotes if it looks like a number)", is_text, "Tony")]
Texts = Annotated[
    Sequence[str],
    Kind("a list of texts", lambda value: is_list(value, is_text), ("by the sea", "at home")),
]
Words = Annotated[
    Sequence[str] | str,
    Kind("a list of words or the name of a shipped list", is_words, ("sea", "boat")),
]
Letter = Annotated[str, Kind("one letter, in quotes", is_letter, "e")]
Letters = Annotated[str, Kind("the option letters, as in 'ABCDE'", is_letters, "ABCD")]
Flags = Annotated[str, Kind("letters of 'aimsux'", is_flags, "i")]
Count = Annotated[
    int,
    Kind("a whole number of at least 1 and at most 10**18", lambda value: is_whole(value, 1), 3),
]
Number = Annotated[
    int,
    Kind("a whole number of at least 0 and at most 10**18", lambda value: is_whole(value, 0), 2),
]
Counts = Annotated[
    Sequence[int],
    Kind(
        "a list of whole numbers of at least 1",
        lambda value: is_list(value, lambda item: is_whole(item, 1)),
        (3, 5, 7),
    ),
]
Share = Annotated[float, Kind("a number above 0 and up to 1", is_share, 0.5)]
Flag = Annotated[bool, Kind("true or false", lambda value: isinstance(value, bool), True)]
LanguageCode = Annotated[
    str,
    Kind(
        f"the code of one of {len(NAMES)} languages, as 'de', 'en', 'es', 'fr', 'it' or 'ja'",
        lambda value: isinstance(value, str) and value in NAMES,
        "de",
    ),
]
Sign = Annotated[
    str, Kind("one character, in quotes", lambda value: is_text(value) and len(value) == 1, "!")
]
Relation = Annotated[str, one_of("at least", "less than")]
Direction = Annotated[str, one_of("positive", "negative")]
Part = Annotated[str, one_of("pos", "neg", "neu")]
Spec = Annotated[
    str | Mapping[str, Any],
    Kind("a measure", lambda value: isinstance(value, str | Mapping), "one_sentence"),
]
Specs = Annotated[
    Sequence[Any],
    Kind(
        "a list of measures",
        lambda value: is_list(value, lambda item: isinstance(item, str | Mapping)),
        ("one_sentence", "all_questions"),
    ),
]
