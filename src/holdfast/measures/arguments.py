"""The types of the arguments of measures, and the shipped word lists.

Pydantic checks an argument against its type. Each type has an example and describes its values, for
messages and `holdfast measures`. The word lists are text files in `assets/words`.

Pydantic is imported when the first spec is checked, but not to score: `holdfast remind` scores with
specs that were checked before, and has no time to import it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from holdfast.files import ASSETS, asset
from holdfast.measures.language_names import NAMES

# --- Word lists


@functools.cache
def list_names() -> tuple[str, ...]:
    """Returns the names of the shipped word lists, sorted."""
    files = (entry.name for entry in (ASSETS / "words").iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in files if name.endswith(".txt")))


@functools.cache
def shipped_list(name: str) -> tuple[str, ...]:
    """Reads the words or phrases of one shipped list; lines that start with '#' are comments."""
    lines = asset(f"words/{name}.txt").splitlines()
    entries = [line.strip() for line in lines if not line.startswith("#")]
    return tuple(entry for line in entries for entry in line.split(", ") if entry)


def entries(words: Sequence[str] | str) -> tuple[str, ...]:
    """Returns the words of a list, or of the shipped list of that name."""
    return shipped_list(words) if isinstance(words, str) else tuple(words)


# --- Descriptions of types


@dataclass(frozen=True, eq=False)  # typing hashes annotations to form unions
class Takes:
    """Describes the values of a type: the arguments of Pydantic's `Field`."""

    field: Mapping[str, Any]

    def for_pydantic(self) -> Any:
        """Returns Pydantic's `Field` with these arguments."""
        from pydantic import Field

        return Field(**self.field)


@dataclass(frozen=True, eq=False)
class Has:
    """A property that every value of a type must have.

    Args:
        test: whether a value has it.
        error: the kind of Pydantic's error about it.
        message: the message of that error.
    """

    test: Callable[[str], bool]
    error: str
    message: str

    def for_pydantic(self) -> Any:
        """Returns a validator of Pydantic that makes the test."""
        from pydantic import AfterValidator
        from pydantic_core import PydanticCustomError

        def check(value: str) -> str:
            if not self.test(value):
                raise PydanticCustomError(self.error, self.message)
            return value

        return AfterValidator(check)


def takes(words: str, example: Any, **limits: Any) -> Takes:
    """Describes the values of a type.

    Args:
        words: what the values are, in messages: "a list of texts".
        example: one of them.
        limits: other arguments of Pydantic's `Field`, such as `min_length`.
    """
    return Takes({"examples": [example], "json_schema_extra": {"expected": words}, **limits})


def for_pydantic(hint: Any) -> Any:
    """Translates each `Takes` and `Has` in a type hint into Pydantic's terms.

    Annotated[int, Takes({"ge": 1})] | None -> Annotated[int, Field(ge=1)] | None
    """
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin is Annotated:
        notes = [
            note.for_pydantic() if isinstance(note, Takes | Has) else note for note in parts[1:]
        ]
        return Annotated[(for_pydantic(parts[0]), *notes)]
    if origin is None or origin is Literal:
        return hint
    parts = tuple(map(for_pydantic, parts))
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, parts)
    return origin[parts]


# --- The types


def _are_different(letters: str) -> bool:
    return len(set(letters.upper())) == len(letters)


def _is_shipped(name: str) -> bool:
    return name in list_names()


def _is_language(code: str) -> bool:
    return code in NAMES


_MAX_NUMBER = 10**18 - 1  # a larger number is no plausible count or fact, and breaks arithmetic
_COUNT = "a whole number of at least {}, with at most 18 digits"

Text = Annotated[str, takes("a text (in quotes if it looks like a number)", "Tony", pattern=r"\S")]
Texts = Annotated[Sequence[Text], takes("a list of texts", ["by the sea", "at home"], min_length=1)]
_ListName = Annotated[str, Has(_is_shipped, "unknown_list", "no list has this name")]
_Words = Annotated[Sequence[Text], Takes({"min_length": 1})]
Words = Annotated[
    _Words | _ListName, takes("a list of words or the name of a shipped list", ["sea", "boat"])
]
Letter = Annotated[str, takes("one letter, in quotes", "e", pattern=r"^\p{L}$")]
Letters = Annotated[
    str,
    Has(_are_different, "repeated_letter", "a letter occurs twice"),
    takes("the option letters, as in 'ABCDE'", "ABCD", pattern="^[A-Za-z]+$"),
]
Sign = Annotated[str, takes("one character, in quotes", "!", pattern=r"^\S$")]
Flags = Annotated[str, takes("letters of 'aimsux'", "i", pattern="^[aimsux]*$")]
Count = Annotated[int, takes(_COUNT.format(1), 3, ge=1, le=_MAX_NUMBER)]
WholeNumber = Annotated[int, takes(_COUNT.format(0), 2, ge=0, le=_MAX_NUMBER)]
Counts = Annotated[
    Sequence[Count], takes("a list of whole numbers of at least 1", [3, 5, 7], min_length=1)
]
MaybeCount = Annotated[Count | None, takes(_COUNT.format(1), 3)]
MaybeTexts = Annotated[Texts | None, takes("a list of texts", ["by the sea", "at home"])]
Share = Annotated[float, takes("a number above 0 and up to 1", 0.5, gt=0, le=1)]
Flag = Annotated[bool, takes("true or false", True)]
LanguageCode = Annotated[
    str,
    Has(_is_language, "unknown_language", "no language has this code"),
    takes(f"the code of one of {len(NAMES)} languages, as 'de', 'en', 'es' or 'ja'", "de"),
]
CountRelation = Annotated[
    Literal["at least", "less than"], takes("one of at least, less than", "at least")
]
Direction = Annotated[
    Literal["positive", "negative"], takes("one of positive, negative", "positive")
]
SentimentPart = Annotated[Literal["pos", "neg", "neu"], takes("one of pos, neg, neu", "pos")]
NestedMeasure = Annotated[str | Mapping[str, Any], takes("a measure", "one_sentence")]
NestedMeasures = Annotated[
    Sequence[str | Mapping[str, Any]],
    takes("a list of measures", ["one_sentence", "all_questions"], min_length=1),
]
