"""Upper and lower case, letters, digits."""

from __future__ import annotations

from collections import Counter

from holdfast.measures.kinds import Flag, Letter
from holdfast.measures.registry import Score, measure, share
from holdfast.measures.text import plural, words_of


def cased_letters(text: str) -> list[str]:
    """The letters that have a case."""
    return [character for character in text if character.isupper() or character.islower()]


@measure
def upper_case(text: str) -> Score:
    """Share of letters that are upper case."""
    letters = cased_letters(text)
    return share(sum(map(str.isupper, letters)), len(letters), "letters are upper case")


@measure
def lower_case(text: str) -> Score:
    """Share of letters that are lower case."""
    letters = cased_letters(text)
    return share(sum(map(str.islower, letters)), len(letters), "letters are lower case")


@measure
def title_case(text: str) -> Score:
    """Share of words that begin with a capital and go on in lower case."""
    found = [word for word in words_of(text) if cased_letters(word)]
    return share(
        sum(word[:1].isupper() and not word[1:].isupper() for word in found),
        len(found),
        "words are capitalised",
    )


@measure
def letter_absent(text: str, letter: Letter) -> Score:
    """1/(1 + how often the letter occurs, in either case)."""
    times = text.casefold().count(letter.casefold())
    return Score(1 / (1 + times), f"{letter!r} occurs {plural(times, 'time')}")


@measure
def no_letters(text: str, spaces: Flag = False) -> Score:
    """Share of characters that are not letters; spaces count only if asked."""
    characters = [c for c in text if spaces or not c.isspace()]
    return share(
        sum(not c.isalpha() for c in characters), len(characters), "characters are no letters"
    )


@measure
def digits_only(text: str, spaces: Flag = False) -> Score:
    """Share of characters that are digits; spaces count only if asked."""
    characters = [c for c in text if spaces or not c.isspace()]
    return share(sum(c.isdigit() for c in characters), len(characters), "characters are digits")


@measure
def same_first_letter(text: str) -> Score:
    """Share of words that begin with the commonest first letter."""
    firsts = [word[0].casefold() for word in words_of(text)]
    letter, times = Counter(firsts).most_common(1)[0] if firsts else ("", 0)
    return share(times, len(firsts), f"words begin with {letter!r}")


@measure
def starts_with_letter(text: str, letter: Letter) -> Score:
    """1 if the first letter or digit of the reply is this letter, in either case."""
    first = next((c for c in text if c.isalnum()), "")
    return Score(float(first.casefold() == letter.casefold()), f"the reply starts with {first!r}")
