"""Which language a reply is in.

A naive Bayes classifier over words, with the word frequencies that the package `wordfreq` carries.
On short chat sentences it was right more often than a detector over letter sequences (py3langid),
and it has no random state: the same text gives the same number on any machine.
"""

from __future__ import annotations

import math
import re
from functools import cache

from holdfast.measures.kinds import LANGUAGES, LanguageCode
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural, sentences_of, words_of

BESIDE = ("nl", "pl", "pt", "sv")  # told apart, so that Dutch does not pass for German
FLOOR = math.log(1e-9)  # a word the language does not know
OTHER = math.log(1e-8)  # any word, in none of these languages
PARENTHESISED = re.compile(r"\(([^()]*)\)")
NAMES = {"de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian"}


@cache
def log_frequencies(language: str) -> dict[str, float]:
    """The log share of each word in running text of a language (read once)."""
    from wordfreq import get_frequency_dict

    return {word: math.log(share) for word, share in get_frequency_dict(language, wordlist="small").items()}


def tokens_of(text: str) -> list[str]:
    """Folded words; elisions such as "j'aime" that no list holds are parted."""
    found: list[str] = []
    for word in words_of(text):
        word = word.lower().replace("’", "'")
        if any(character.isdigit() for character in word):
            continue
        known = any(word in log_frequencies(language) for language in (*LANGUAGES, *BESIDE))
        found += [word] if known else [part for part in re.split(r"['‐‑-]", word) if part]
    return found


def probabilities(text: str) -> dict[str, float]:
    """The probability of each language, and of 'other', for one sentence; empty without a word."""
    tokens = tokens_of(text)
    if not tokens:
        return {}
    sums = {"other": OTHER * len(tokens)}
    for language in (*LANGUAGES, *BESIDE):
        table = log_frequencies(language)
        sums[language] = math.fsum(table.get(token, FLOOR) for token in tokens)
    top = max(sums.values())
    odds = {language: math.exp(total - top) for language, total in sums.items()}
    whole = math.fsum(odds.values())
    return {language: value / whole for language, value in odds.items()}


def detected(text: str) -> str:
    """The likeliest language of a sentence; 'other' if none, or without a word."""
    found = probabilities(text)
    return max(found, key=lambda language: found[language]) if found else "other"


@measure
def language(text: str, code: LanguageCode) -> Score:
    """Probability that the reply is in this language (de, en, es, fr, it): mean over sentences, by their words."""
    total = weight = 0.0
    read = []
    for sentence in sentences_of(text):
        found = probabilities(sentence)
        if found:
            words = len(words_of(sentence))
            total, weight = total + words * found[code], weight + words
            read.append(max(found, key=lambda name: found[name]) == code)
    if not read:
        return Score(0.0, "there is no word to tell a language by")
    return Score(min(1.0, round(total / weight, 4)), f"{sum(read)} of {plural(len(read), 'sentence')} read as {NAMES[code]}")


@measure
def bilingual(text: str, first: LanguageCode, second: LanguageCode) -> Score:
    """Over pairs "sentence (translation)": 0.5 for each side in its language; mean."""
    pieces = [piece.strip() for piece in PARENTHESISED.split(text)]
    pairs = list(zip(pieces[::2], [*pieces[1::2], ""], strict=True))
    pairs = [(outer, inner) for outer, inner in pairs if words_of(outer) or words_of(inner)]
    if not pairs or len(pieces) == 1:
        return Score(0.0, "there is no (translation) in parentheses")
    outer_good = sum(detected(outer) == first for outer, _ in pairs)
    inner_good = sum(detected(inner) == second for _, inner in pairs)
    reason = f"of {plural(len(pairs), 'pair')}, {outer_good} with {NAMES[first]} and {inner_good} with ({NAMES[second]})"
    return Score((outer_good + inner_good) / (2 * len(pairs)), reason)
