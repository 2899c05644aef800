"""The numbers that a reply mentions, in digits or in English words."""

import re

from holdfast.measures.arguments import Number
from holdfast.measures.number_words import NUMBER_WORDS, words_for
from holdfast.measures.reasons import named
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, verdict
from holdfast.measures.text import fold, folded_words, words_of

_NUMERAL = re.compile(
    r"(?<![\w.,])[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+(?![\w])|[0-9]+(?:\.[0-9]+)?"
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
    """The numbers written in digits, without separators and redundant zeros."""
    plain = [re.sub("[, \u00a0\u202f]", "", match.group()) for match in _NUMERAL.finditer(text)]
    plain = [number.rstrip("0").rstrip(".") if "." in number else number for number in plain]
    return [number.lstrip("0") or "0" for number in plain]


def _occurs_in_words(number: int, text: str) -> bool:
    """Whether a number occurs in English words and not as part of a longer number."""
    tokens = [
        token for token in re.split(r"[\s-]+", " ".join(words_of(fold(text)))) if token != "and"
    ]
    wanted = words_for(number)
    for i in range(len(tokens) - len(wanted) + 1):
        around = tokens[max(0, i - 1) : i] + tokens[i + len(wanted) : i + len(wanted) + 1]
        if tokens[i : i + len(wanted)] == wanted and not any(
            token in NUMBER_WORDS for token in around
        ):
            return True
    return False


@measure
def mentions_number(text: str, number: Number) -> Score:
    """1 if this number occurs, in digits (1,234 or 1234) or in English words."""
    seen = _numerals(text)
    if str(number) in seen or _occurs_in_words(number, text):
        return Score(1.0, f"{number} occurs")
    return Score(0.0, f"{number} does not occur" + (f", but {named(seen)}" if seen else ""))


@measure
def never_mentions_number(text: str, number: Number) -> Score:
    """0 if this number occurs, in digits (1,234 or 1234) or in English words, else 1."""
    mentioned = mentions_number(text, number)
    return Score(1.0 - mentioned.value, mentioned.reason)


def _cardinal(part: str) -> str:
    """The number word of an ordinal: 'first' is one, 'sixth' is six."""
    return _ORDINALS.get(part) or re.sub(r"ie$", "y", part.removesuffix("th"))


def _is_number_word(word: str) -> bool:
    """Whether a word is a number: 'two', 'twenty-one', 'twenty-first'."""
    parts = word.split("-")
    return {
        *parts[:-1],
        _cardinal(parts[-1]) if len(parts) > 1 else parts[-1],
    } <= NUMBER_WORDS.keys()


@measure
def mentions_any_number(text: str) -> Score:
    """1 if any number occurs, in digits or in English words ("two", "twenty-first")."""
    seen = _numerals(text) + [word for word in folded_words(text) if _is_number_word(word)]
    return verdict(seen, f"{named(seen)} occurs" if seen else "no number occurs")


@measure
def number_near(text: str, number: Number) -> Score:
    """1 - |x - number| / number for the first number x of the reply, at least 0."""
    seen = _numerals(text) or [
        str(NUMBER_WORDS[word]) for word in folded_words(text) if word in NUMBER_WORDS
    ]
    if not seen:
        return Score(0.0, "no number occurs")
    distance = abs(float(seen[0]) - number) / max(number, 1)
    return Score(max(0.0, 1 - distance), f"the first number is {seen[0][:20]}, {number} asked for")
