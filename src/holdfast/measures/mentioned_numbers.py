"""The numbers that a reply mentions, in digits or in English words."""

import re

from holdfast.measures.arguments import WholeNumber
from holdfast.measures.number_words import NUMBER_WORDS, words_for
from holdfast.measures.reasons import quote_words
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, verdict
from holdfast.measures.text import fold, folded_words, words_of

_NUMERAL = re.compile(
    r"(?<![\w.,])[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+(?![\w])"  # with separators: 1,234,567
    r"|[0-9]+(?:\.[0-9]+)?"
)
_ORDINALS = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
}


def _numerals(text: str) -> list[str]:
    """Returns the numbers written in digits, without separators and redundant zeros."""
    plain = [re.sub("[, \u00a0\u202f]", "", match.group()) for match in _NUMERAL.finditer(text)]
    plain = [number.rstrip("0").rstrip(".") if "." in number else number for number in plain]
    return [number.lstrip("0") or "0" for number in plain]


def _occurs_in_words(number: int, text: str) -> bool:
    """Whether a number occurs in English words and not as part of a longer number."""
    tokens = [
        token for token in re.split(r"[\s-]+", " ".join(words_of(fold(text)))) if token != "and"
    ]
    words = words_for(number)
    for start in range(len(tokens) - len(words) + 1):
        end = start + len(words)
        around = (*tokens[max(0, start - 1) : start], *tokens[end : end + 1])
        if tokens[start:end] == words and NUMBER_WORDS.keys().isdisjoint(around):
            return True
    return False


@measure
def mentions_number(text: str, number: WholeNumber) -> Score:
    """1 if this number occurs, in digits (1,234 or 1234) or in English words.

    With `number: 97`, "Ninety-seven!" scores 1, and "197" 0.
    """
    numerals = _numerals(text)
    if str(number) in numerals or _occurs_in_words(number, text):
        return Score(1.0, f"{number} occurs")
    if numerals:
        return Score(0.0, f"{number} does not occur, but {quote_words(numerals)}")
    return Score(0.0, f"{number} does not occur")


@measure
def never_mentions_number(text: str, number: WholeNumber) -> Score:
    """0 if this number occurs, in digits (1,234 or 1234) or in English words, else 1.

    With `number: 97`, "197" scores 1, and "It is 97." 0.
    """
    mention = mentions_number(text, number)
    return Score(1.0 - mention.value, mention.reason)


def _cardinal(part: str) -> str:
    """Returns the number word of an ordinal: "first" is one, "sixth" is six."""
    return _ORDINALS.get(part) or re.sub(r"ie$", "y", part.removesuffix("th"))


def _is_number_word(word: str) -> bool:
    """Whether a word is a number: 'two', 'twenty-one', 'twenty-first'."""
    *tens, last = word.split("-")
    if tens:
        last = _cardinal(last)
    return {*tens, last} <= NUMBER_WORDS.keys()


@measure
def mentions_any_number(text: str) -> Score:
    """1 if any number occurs, in digits or in English words ("two", "twenty-first").

    "Twenty-two of them" scores 1, and "None at all" 0.
    """
    numbers = _numerals(text) + [word for word in folded_words(text) if _is_number_word(word)]
    return verdict(numbers, f"{quote_words(numbers)} occurs" if numbers else "no number occurs")


@measure
def number_near(text: str, number: WholeNumber) -> Score:
    """1 - |x - number| / number for the first number x of the reply, at least 0.

    With `number: 8`, "It is eight." scores 1, and "It is 6." 0.75.
    """
    numbers = _numerals(text) or [
        str(NUMBER_WORDS[word]) for word in folded_words(text) if word in NUMBER_WORDS
    ]
    if not numbers:
        return Score(0.0, "no number occurs")
    first = numbers[0]
    distance = abs(float(first) - number) / max(number, 1)
    return Score(max(0.0, 1 - distance), f"the first number is {first[:20]}, {number} asked for")
