"""Patterns from word to word: alternation, repetition, doubling."""

from __future__ import annotations

from collections import Counter

from holdfast.measures.kinds import Count, Text
from holdfast.measures.registry import Score, measure, share
from holdfast.measures.text import fold, folded_words, words_of


def alternation(kinds: list[int], what: str) -> Score:
    """Share of words of either kind (1, -1; 0 is neither) that differ from the kind before."""
    good = sum(kind != 0 and (i == 0 or kinds[i - 1] != kind) for i, kind in enumerate(kinds))
    return share(good, len(kinds), f"words alternate {what}")


@measure
def alternating_case(text: str) -> Score:
    """Share of words that continue an alternation of UPPER and lower case."""
    found = [word for word in words_of(text) if word.upper() != word.lower()]
    return alternation([word.isupper() - word.islower() for word in found], "upper and lower case")


@measure
def alternating_length(text: str, limit: Count = 4) -> Score:
    """Share of words that continue an alternation of short (up to `limit` letters) and long.

    An apostrophe or a hyphen is no letter: "can't" has four.
    """
    lengths = [sum(map(str.isalnum, word)) for word in words_of(text)]
    return alternation([1 if length <= limit else -1 for length in lengths], "short and long")


@measure
def alternating_word(text: str, word: Text) -> Score:
    """Share of words that continue an alternation of this word and any other."""
    target = fold(word.strip())
    return alternation(
        [1 if found == target else -1 for found in folded_words(text)], f"{word!r} and others"
    )


@measure
def doubled_words(text: str) -> Score:
    """Share of words that stand in a pair of the same word twice."""
    found = folded_words(text)
    paired, i = 0, 0
    while i + 1 < len(found):
        same = found[i] == found[i + 1]
        paired += 2 * same
        i += 1 + same
    return share(paired, len(found), "words stand in a pair")


@measure
def no_repeated_words(text: str) -> Score:
    """Share of words that occur only once."""
    times = Counter(folded_words(text))
    return share(sum(n for n in times.values() if n == 1), times.total(), "words occur once only")


@measure
def repeated_words(text: str) -> Score:
    """Share of words that occur twice or more."""
    times = Counter(folded_words(text))
    return share(
        sum(n for n in times.values() if n > 1), times.total(), "words occur twice or more"
    )


@measure
def same_first_last(text: str) -> Score:
    """1 if the first and the last word are the same, case and punctuation ignored."""
    found = folded_words(text)
    if not found:
        return Score(0.0, "there is no word")
    return Score(float(found[0] == found[-1]), f"first word {found[0]!r}, last word {found[-1]!r}")
