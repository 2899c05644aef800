"""Replies that are broken: empty, looping, or largely gibberish."""

import functools
import re
from collections.abc import Sequence

import numpy as np

from holdfast.measures.language import WORD_LISTS, identifier
from holdfast.measures.repeated_turns import UNSPACED_SIGN, loops
from holdfast.measures.text import fold, words_of
from holdfast.records import Conversation
from holdfast.records.conversation import GIVEN, NO_NEWS_FROM

_BROKEN_NON_WORD_SHARE = 1 / 3  # their share from which a reply is broken
# languages whose words are accepted besides English: so many of the likeliest, if at least as
# probable as this
_LIKELIEST = 3
_POSSIBLE = 0.01
# a reply that is so certainly in a language without a word list is not judged by its words
_CERTAIN_LANGUAGE = 0.9
_SPELLED_OUT = re.compile(r"(?<![^\W_])[^\W\d_](?:[-‐‑][^\W\d_]){3,}(?![^\W_])")  # "s-p-e-l-t"


def broken_share(record: Conversation) -> float:
    """The share of the agent's replies that are broken, over a conversation's turns and probes."""
    replies = [
        turn.text
        for turn in record.turns
        if turn.speaker == "agent" and turn.stop_reason not in GIVEN
    ]
    replies += [probe.reply for probe in record.answered if not probe.reply_of]
    return float(np.mean([is_broken(reply) for reply in replies])) if replies else float("nan")


def is_broken(text: str) -> bool:
    """Whether a reply is empty, loops, or consists largely of non-words."""
    return (
        not text.strip()
        or loops(text) >= NO_NEWS_FROM
        or non_word_share(text) >= _BROKEN_NON_WORD_SHARE
    )


@functools.lru_cache(maxsize=100_000)
def non_word_share(text: str) -> float:
    """The share of non-words in a reply; 0 if there is nothing to judge."""
    letters = sum((len(match.group()) + 1) // 2 for match in _SPELLED_OUT.finditer(text))
    words = [word for word in words_of(_SPELLED_OUT.sub(" ", text)) if _may_be_judged(word)]
    total = letters + len(words)
    if not total:
        return 0.0
    unknown = _unknown(words, "en")
    if unknown:
        likeliest = identifier().rank(text)[:_LIKELIEST]
        if likeliest[0][0] not in WORD_LISTS and likeliest[0][1] >= _CERTAIN_LANGUAGE:
            return letters / total
        for code, chance in likeliest:
            if code in WORD_LISTS and chance >= _POSSIBLE:
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

    return zipf_frequency(word, WORD_LISTS[language]) > 0
