"""Counts the syllables of English words."""

import re
from functools import cache, lru_cache

from holdfast.files import asset
from holdfast.measures.number_words import words_for
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share
from holdfast.measures.text import folded_words

_VOWELS = re.compile(r"[aeiouy]+")
# endings whose vowel is silent
_SILENT_END = re.compile(
    r"(?<=[^l])e$|(?<=[aeiouyrw]l)e$"  # time, whole; not table
    r"|(?<=[^aeiouy])es$|(?<=[^aeiouytd])ed$"  # times, walked; not wanted
)
_SOUNDED_ES = re.compile(r"(?:[sxzcg]|ch|sh|[^aeiouy]l)es$")  # boxes, tables
# neighbouring vowels that are two syllables
_HIATUS = re.compile(
    r"(?<![cstgx])i[ao](?!u?r?$)"  # piano, violet; not nation, special
    r"|(?<!q)u[ai](?=n$|l$|te|ti|d$)"  # casual, ruin; not quite
    r"|eo(?!p)|aos|ious?m|oe[mt]"  # video, chaos, medium, poem
    r"|ie[tn](?!ds?$|t$)"  # quiet; not friend
    r"|[aeiouy]ing|rea(?=t[eio])|^rea(?=ct)"  # seeing, create, react
)


@cache
def _exceptions() -> dict[str, int]:
    """Reads the syllable counts of words that the rules get wrong; the file has words by count."""
    by_word = {}
    for line in asset("syllables.txt").splitlines():
        number, *words = line.split()
        by_word.update(dict.fromkeys(words, int(number)))
    return by_word


@lru_cache(maxsize=20_000)
def syllables_in(word: str) -> int:
    """Counts the syllables of a folded word; for a number in digits, those of its English words.

    The rules were developed on about 200 common words. For words outside the list of exceptions
    they may be off by one, mostly at two vowels in a row.
    """
    if word in _exceptions():
        return _exceptions()[word]
    if word.isascii() and word.isdigit():
        if len(word) >= 16:
            return len(word)
        return sum(syllables_in(part) for part in words_for(int(word)))
    if "-" in word:
        return sum(syllables_in(part) for part in word.split("-") if part)
    stem = word.removesuffix("'s")
    if stem in _exceptions():
        return _exceptions()[stem]
    groups = len(_VOWELS.findall(stem)) + len(_HIATUS.findall(stem))
    if groups > 1 and _SILENT_END.search(stem) and not _SOUNDED_ES.search(stem):
        groups -= 1
    return max(1, groups)


@measure
def one_syllable(text: str) -> Score:
    """Share of words that have one syllable.

    "The cat sat on the mat." scores 1, and "Red museums" 0.5.
    """
    words = folded_words(text)
    longer = [word for word in words if syllables_in(word) != 1]
    result = share(len(words) - len(longer), len(words), "words have one syllable")
    if not longer:
        return result
    return Score(result.value, f"{result.reason}, not {longer[0]!r}")
