"""The arguments of measures: their types, the languages, the shipped word lists.

Pydantic checks an argument against its type. Each type describes what it takes, for messages and
`holdfast measures`, and has an example. The word lists are text files in `assets/words`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from holdfast.common.files import ASSETS, asset

# the languages that a reply can be asked to be in: codes of the package `py3langid`, and names
NAMES = dict(line.split(" ", 1) for line in asset("languages.txt").splitlines())


@cache
def list_names() -> tuple[str, ...]:
    """The names of the shipped word lists, sorted."""
    listed = (entry.name for entry in (ASSETS / "words").iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in listed if name.endswith(".txt")))


@cache
def shipped_list(name: str) -> tuple[str, ...]:
    """The words or phrases of one shipped list; lines that start with '#' are remarks."""
    lines = asset(f"words/{name}.txt").splitlines()
    entries = [line.strip() for line in lines if not line.startswith("#")]
    return tuple(entry for line in entries for entry in line.split(", ") if entry)


def entries(words: Sequence[str] | str) -> tuple[str, ...]:
    """A list as given, or the shipped list of that name."""
    return shipped_list(words) if isinstance(words, str) else tuple(words)


def takes(words: str, example: Any, **limits: Any) -> Any:
    """A type's name in messages, an example, and its limits."""
    return Field(examples=[example], json_schema_extra={"expected": words}, **limits)


def _different(letters: str) -> str:
    if len(set(letters.upper())) < len(letters):
        raise PydanticCustomError("repeated_letter", "a letter occurs twice")
    return letters


def _shipped(name: str) -> str:
    if name not in list_names():
        raise PydanticCustomError("unknown_list", "no list has this name")
    return name


def _language(code: str) -> str:
    if code not in NAMES:
        raise PydanticCustomError("unknown_language", "no language has this code")
    return code


_MOST = 10**18  # a larger number is no plausible count or fact, and breaks arithmetic
_COUNT = "a whole number of at least {} and at most 10**18"

Text = Annotated[str, takes("a text (in quotes if it looks like a number)", "Tony", pattern=r"\S")]
Texts = Annotated[Sequence[Text], takes("a list of texts", ["by the sea", "at home"], min_length=1)]
_ListName = Annotated[str, AfterValidator(_shipped)]
_Words = Annotated[Sequence[Text], Field(min_length=1)]
Words = Annotated[
    _Words | _ListName, takes("a list of words or the name of a shipped list", ["sea", "boat"])
]
Letter = Annotated[str, takes("one letter, in quotes", "e", pattern=r"^\p{L}$")]
Letters = Annotated[
    str,
    AfterValidator(_different),
    takes("the option letters, as in 'ABCDE'", "ABCD", pattern="^[A-Za-z]+$"),
]
Sign = Annotated[str, takes("one character, in quotes", "!", pattern=r"^\S$")]
Flags = Annotated[str, takes("letters of 'aimsux'", "i", pattern="^[aimsux]*$")]
Count = Annotated[int, takes(_COUNT.format(1), 3, ge=1, le=_MOST)]
Number = Annotated[int, takes(_COUNT.format(0), 2, ge=0, le=_MOST)]
Counts = Annotated[
    Sequence[Count], takes("a list of whole numbers of at least 1", [3, 5, 7], min_length=1)
]
MaybeCount = Annotated[Count | None, takes(_COUNT.format(1), 3)]
MaybeTexts = Annotated[Texts | None, takes("a list of texts", ["by the sea", "at home"])]
Share = Annotated[float, takes("a number above 0 and up to 1", 0.5, gt=0, le=1)]
Flag = Annotated[bool, takes("true or false", True)]
LanguageCode = Annotated[
    str,
    AfterValidator(_language),
    takes(f"the code of one of {len(NAMES)} languages, as 'de', 'en', 'es' or 'ja'", "de"),
]
Relation = Annotated[
    Literal["at least", "less than"], takes("one of at least, less than", "at least")
]
Direction = Annotated[
    Literal["positive", "negative"], takes("one of positive, negative", "positive")
]
Part = Annotated[Literal["pos", "neg", "neu"], takes("one of pos, neg, neu", "pos")]
Spec = Annotated[str | Mapping[str, Any], takes("a measure", "one_sentence")]
Specs = Annotated[
    Sequence[str | Mapping[str, Any]],
    takes("a list of measures", ["one_sentence", "all_questions"], min_length=1),
]
