"""Replies that are broken: empty, looping, or largely gibberish."""

import functools
import re
from collections.abc import Sequence

import numpy as np

from holdfast.measures.language import WORD_LISTS, identifier
from holdfast.measures.repeated_turns import UNSPACED_SIGN, loops
from holdfast.measures.text import fold, words_of
from holdfast.records import Conversation
from holdfast.records.conversation import GIVEN, MOSTLY_REPEATED

_BROKEN_NON_WORD_SHARE = 1 / 3  # a reply with this share of non-words is broken
# Besides English words, those of the likeliest languages are accepted: at most this many
# languages, each with at least this probability.
_MAX_LANGUAGES = 3
_MIN_LANGUAGE_PROBABILITY = 0.01
# From this probability of a language without a word list, a reply is not judged by its words.
_CERTAIN_LANGUAGE = 0.9
_SPELLED_OUT = re.compile(r"(?<![^\W_])[^\W\d_](?:[-‐‑][^\W\d_]){3,}(?![^\W_])")  # "s-p-e-l-t"


def broken_share(record: Conversation) -> float:
    """Returns the share of the agent's replies that are broken, over the turns and probes of a
    conversation; NaN if it has none.
    """
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
        or loops(text) >= MOSTLY_REPEATED
        or non_word_share(text) >= _BROKEN_NON_WORD_SHARE
    )


@functools.lru_cache(maxsize=100_000)
def non_word_share(text: str) -> float:
    """Returns the share of non-words in a reply; 0 if it has no word that can be judged."""
    letters = sum((len(match.group()) + 1) // 2 for match in _SPELLED_OUT.finditer(text))
    words = [word for word in words_of(_SPELLED_OUT.sub(" ", text)) if _may_be_judged(word)]
    total = letters + len(words)
    if not total:
        return 0.0
    unknown = _unknown_words(words, "en")
    if unknown:
        likeliest = identifier().rank(text)[:_MAX_LANGUAGES]
        language, probability = likeliest[0]
        if language not in WORD_LISTS and probability >= _CERTAIN_LANGUAGE:
            return letters / total
        for language, probability in likeliest:
            if language in WORD_LISTS and probability >= _MIN_LANGUAGE_PROBABILITY:
                unknown = _unknown_words(unknown, language)
    return (letters + len(unknown)) / total


def _may_be_judged(word: str) -> bool:
    """Whether a word should be in a word list: no name, no digits, no script without spaces."""
    is_name = word[:1].isupper() and not word.isupper()
    return not is_name and not any(s.isdigit() or UNSPACED_SIGN.match(s) for s in word)


def _unknown_words(words: Sequence[str], language: str) -> list[str]:
    return [word for word in words if not _is_known(fold(word), language)]


@functools.lru_cache(maxsize=100_000)
def _is_known(word: str, language: str) -> bool:
    from wordfreq import zipf_frequency

    return zipf_frequency(word, WORD_LISTS[language]) > 0
