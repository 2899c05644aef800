"""The published measures of Li et al. 2024 where they differ from ours, defects included.

Written from a description of what the released code computes, so that a run can be compared with the
published numbers. Each line says what is wrong; the mended measure stands in the file of its theme.
Where the released code raises on an empty reply, these return 0.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from holdfast.measures.content import never_contains
from holdfast.measures.grammar import past_tense
from holdfast.measures.kinds import Direction, Flag, Letter, Part, Text, Texts, Words
from holdfast.measures.registry import Score, measure, share
from holdfast.measures.text import plural, sentences_of, words_of
from holdfast.measures.tone import sentiment, vader

STRIPPED = re.compile(r"[^\w\s]")


def plain_words(text: str) -> list[str]:
    """Lower-cased words as the released code splits them: punctuation dropped, then at spaces."""
    return STRIPPED.sub("", text.lower()).split()


@measure(empty_is_zero=False)
def released_letter_absent(text: str, letter: Letter) -> Score:
    """1/(1 + how often the letter occurs in lower case); misses capitals."""
    times = text.count(letter.lower())
    return Score(1 / (1 + times), f"{letter.lower()!r} occurs {plural(times, 'time')}")


@measure(empty_is_zero=False)
def released_repeated_words(text: str) -> Score:
    """Different words that occur twice or more / all words; at most 0.5."""
    times = Counter(plain_words(text))
    return share(sum(n > 1 for n in times.values()), times.total(), "words are different ones that recur")


@measure(empty_is_zero=False)
def released_doubled_words(text: str) -> Score:
    """Words equal to the next word written twice / words; 0 for every reply that follows."""
    found = plain_words(text)
    good = sum(a == b + b for a, b in pairwise(found))
    return share(good, len(found), "words are the next one twice")


@measure(empty_is_zero=False)
def released_starts_with(text: str, word: Text) -> Score:
    """1 if the text up to the first space is exactly this word; 'Yes,' is not 'Yes'."""
    first = "".join(text.split()[:1])
    return Score(float(first == word), f"the reply starts with {first[:40]!r}" if first else "the reply is empty")


@measure(empty_is_zero=False)
def released_every_sentence_starts_with(text: str, word: Text) -> Score:
    """Share of sentences whose lower-cased first word is `word` as written; 0 if it holds a capital."""
    firsts = [words_of(sentence)[0].lower() for sentence in sentences_of(text)]
    return share(firsts.count(word), len(firsts), f"sentences start, lower-cased, with {word!r}")


@measure(empty_is_zero=False)
def released_vader(text: str, part: Part) -> Score:
    """VADER's share of positive, negative or neutral words; rarely above 0.6."""
    value = vader(text)[part]
    return Score(min(1.0, max(0.0, value)), f"VADER {part} {value:.2f}")


@measure(empty_is_zero=False)
def released_long_reply(text: str) -> Score:
    """1 - 1/(1 + cube root of the number of words)."""
    found = len(text.split())
    return Score(round(1 - 1 / (1 + found ** (1 / 3)), 6), plural(found, "word"))


@measure(empty_is_zero=False)
def released_words_present(text: str, words: Texts) -> Score:
    """Share of `words` among the lower-cased single words; phrases and capitals never match."""
    found = set(plain_words(text))
    return share(sum(word in found for word in words), len(words), "words occur")


@measure(empty_is_zero=False)
def released_words_absent(text: str, words: Texts) -> Score:
    """1 - the share of `words` among the lower-cased single words; a listed 'I' never counts."""
    found = set(plain_words(text))
    return share(sum(word not in found for word in words), len(words), "words do not occur")


@measure(empty_is_zero=False)
def released_never_contains(text: str, words: Words, case: Flag = False, whole: Flag = True) -> Score:
    """As never_contains, but an empty reply scores 1."""
    return never_contains(text, words, case, whole)


@measure(empty_is_zero=False)
def released_sentiment(text: str, direction: Direction) -> Score:
    """As sentiment, but an empty reply scores 0.5."""
    return sentiment(text, direction)


@measure(empty_is_zero=False)
def released_past_tense(text: str) -> Score:
    """As past_tense, but an empty reply scores 1."""
    return past_tense(text)
