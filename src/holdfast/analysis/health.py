"""Whether replies are text at all: what a method costs that wins stability by wrecking them.

A reply is *broken* where it loops (`measures.repetition`), is empty, or consists of what are no
words.
No words are

- words that no list of wordfreq has, in English or in the languages that the letters of the reply
  look most like; and
- single letters that are strung together ("A-B-l-m-o-n-y").

Names and rare words are no garbage. So a word with a capital and small letters behind it is passed
over, and so is one with a digit or in a script without spaces; a reply counts only where at least
`MANY` of the words that are left are none. A reply that is surely in a language without a list is
never said to be garbage.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.drift.dialogs import GIVEN
from holdfast.measures.language import LISTS, identifier
from holdfast.measures.repetition import NO_NEWS_FROM, UNSPACED_SIGN, loops
from holdfast.measures.text import fold, words_of

MANY = 1 / 3
_LIKELIEST = 3  # languages that a reply may be in, beside English,
_POSSIBLE = 0.01  # if their probability is this
_SURE = 0.9  # probability at which a reply is in a language without a list
_SPELLED = re.compile(r"(?<![^\W_])[^\W\d_](?:[-‐‑][^\W\d_]){3,}(?![^\W_])")


def is_broken(text: str) -> bool:
    """Whether a reply is empty, loops, or is made of what are no words."""
    return not text.strip() or loops(text) >= NO_NEWS_FROM or no_words(text) >= MANY


@functools.lru_cache(maxsize=100_000)
def no_words(text: str) -> float:
    """The share of a reply's words that are none; 0 where there is nothing to tell by."""
    letters = sum((len(match.group()) + 1) // 2 for match in _SPELLED.finditer(text))
    words = [word for word in words_of(_SPELLED.sub(" ", text)) if _may_be_judged(word)]
    total = letters + len(words)
    if not total:
        return 0.0
    unknown = _unknown(words, "en")
    if unknown:
        likeliest = identifier().rank(text)[:_LIKELIEST]
        if likeliest[0][0] not in LISTS and likeliest[0][1] >= _SURE:
            return letters / total
        for code, chance in likeliest:
            if code in LISTS and chance >= _POSSIBLE:
                unknown = _unknown(unknown, code)
    return (letters + len(unknown)) / total


def _may_be_judged(word: str) -> bool:
    is_name = word[:1].isupper() and not word.isupper()
    return not is_name and not any(s.isdigit() or UNSPACED_SIGN.match(s) for s in word)


def _unknown(words: Sequence[str], language: str) -> list[str]:
    return [word for word in words if not _is_known(fold(word), language)]


@functools.lru_cache(maxsize=100_000)
def _is_known(word: str, language: str) -> bool:
    from wordfreq import zipf_frequency

    return zipf_frequency(word, LISTS[language]) > 0


def broken_share(record: Mapping[str, Any]) -> float:
    """Of a conversation, the share of the agent's replies, in turns and probes, that are broken."""
    replies = [
        turn["text"]
        for turn in record["turns"]
        if turn["speaker"] == "agent" and turn["stop_reason"] not in GIVEN
    ]
    replies += [probe["reply"] for probe in record["probes"] if "reply_of" not in probe]
    return float(np.mean([is_broken(reply) for reply in replies])) if replies else float("nan")
