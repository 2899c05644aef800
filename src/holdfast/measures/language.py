"""Tells which language a reply is in.

For example:

    probability("Je ne sais pas.", "fr")  ->  1.00
    probability("No.", "en")              ->  0.81
    probability("No.", "es")              ->  0.92, as the word counts for the language asked for

Two kinds of evidence are multiplied: letter sequences, judged by the identifier in the package
`py3langid` (139 languages), and words, judged by the frequencies in `wordfreq` (38 of them).
Letters decide long texts; for one or two words ("Ja.", "Merci.") they say next to nothing, and the
words decide. Both packages ship their data and have no random state.
"""

import math
import re
from functools import cache
from typing import Any

from holdfast.measures.arguments import LanguageCode
from holdfast.measures.language_names import NAMES
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score
from holdfast.measures.text import folded_words, sentences_of, words_of
from holdfast.plurals import count_of

# The word list of each language that has one; related languages share a list. Languages without
# spaces between words, or written with signs between letters, are left to the identifier.
WORD_LISTS = {
    code: code
    for code in """ar bg ca cs da de el en es fa fi fr he hu id is it lt lv mk ms nl
pl pt ro ru sk sl sv tr uk ur vi""".split()
} | {"no": "nb", "tl": "fil", "bs": "sh", "hr": "sh", "sr": "sh"}
_LOG_UNLISTED = math.log(3e-8)  # log share of a word that is not in its language's list
_LOG_ANY_WORD = math.log(1e-6)  # log share of any word in a language without a list
_MAX_CHARACTERS = 3_000  # of a sentence that are read

# The languages that the one asked for is compared with, its rivals.
_COMMON = ("de", "en", "es", "fr", "it", "nl", "pt")  # rivals of every language
_MAX_RIVALS = 8  # further rivals, the likeliest by their letters
_MIN_RIVAL_PROBABILITY = 0.01  # of such a rival, by its letters
# How much a rival counts against the language asked for, whose weight is 1.
_ENGLISH_WEIGHT = 0.5  # English, which models fall back to
_COMMON_WEIGHT = 0.02  # the other common languages, and any rival of English
_RARE_WEIGHT = 0.5 / len(NAMES)  # any other language

_PARENTHESISED = re.compile(r"\(([^()]*)\)")
_QUOTATION = re.compile(
    r"""["“”„«][^"“”„«»]*["“”»]"""
    r"""|(?<!\w)['‘‚][^'’]*(?:\w['’]\w[^'’]*)*['’](?!\w)"""  # with apostrophes inside words
)
_MIN_WORDS_OUTSIDE = 2  # words around a quotation that suffice to tell their language


@cache
def identifier() -> Any:
    """Loads the identifier of py3langid."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _log_frequencies(code: str) -> dict[str, float]:
    """Loads the log share of each word in running text of a language."""
    from wordfreq import get_frequency_list

    frequencies = {}
    for centibels, words in enumerate(get_frequency_list(WORD_LISTS[code], wordlist="small")):
        frequencies.update(dict.fromkeys(words, -centibels / 100 * math.log(10)))
    return frequencies


def _log_probability(words: list[str], code: str) -> float:
    """Returns the log probability of words in a language."""
    if code not in WORD_LISTS:
        return _LOG_ANY_WORD * len(words)
    if code == "sr":  # its list is in Latin letters
        words = _to_latin(" ".join(words)).split()
    return math.fsum(_log_share(word, _log_frequencies(code)) for word in words)


def _to_latin(text: str) -> str:
    """Writes Serbian in Latin letters."""
    from wordfreq.transliterate import transliterate

    latin: str = transliterate("sr-Latn", text)  # type: ignore[arg-type]  # its hint is wrong
    return latin


def _log_share(word: str, frequencies: dict[str, float]) -> float:
    """Returns the log share of a word, or of its parts if it is an elision ("j'aime")."""
    if word in frequencies:
        return frequencies[word]
    parts = re.split(r"['‐‑-]", word)
    if len(parts) == 1:
        return _LOG_UNLISTED
    shares = (frequencies.get(part, _LOG_UNLISTED) for part in parts if part)
    return max(_LOG_UNLISTED, math.fsum(shares))


def _likelihoods(words: list[str], code: str) -> dict[str, float]:
    """Returns how likely words are in a language and in its rivals, relative to the likeliest."""
    letters = dict(identifier().rank(" ".join(words)))
    likeliest = list(letters)[:_MAX_RIVALS]
    rivals = [rival for rival in likeliest if letters[rival] >= _MIN_RIVAL_PROBABILITY]
    logs: dict[str, float] = {}
    for name in sorted({code, *_COMMON, *rivals}):
        by_letters = round(math.log(max(letters[name], 1e-9)), 3)
        logs[name] = by_letters + _log_probability(words, name)
    top = max(logs.values())
    return {name: math.exp(value - top) for name, value in logs.items()}


def probability(text: str, code: str) -> float | None:
    """Returns the probability that a sentence is in a language; None if it has no word.

    Other languages weigh less than the one asked for, so a word that several languages share counts
    for that one.
    """
    words = _telling_words(text[:_MAX_CHARACTERS])
    if not words:
        return None
    likelihoods = _likelihoods(words, code)
    asked_for = likelihoods.pop(code)
    rivals = math.fsum(value * _weight(name, code) for name, value in likelihoods.items())
    return asked_for / (asked_for + rivals)


def _telling_words(text: str) -> list[str]:
    """Returns the words that tell a sentence's language: around its quotations, if enough."""
    for part in (_QUOTATION.sub(" ", text), text):
        words = [word for word in folded_words(part) if not any(map(str.isdigit, word))]
        if len(words) >= _MIN_WORDS_OUTSIDE:
            break
    return words


def _weight(rival: str, code: str) -> float:
    """Returns how much a rival counts against the language asked for."""
    if rival == "en":
        return _ENGLISH_WEIGHT
    return _COMMON_WEIGHT if code == "en" or rival in _COMMON else _RARE_WEIGHT


@measure(loads=True)
def language(text: str, code: LanguageCode) -> Score:
    """Probability that the reply is in this language, by its letters and words: mean over
    sentences.

    A sentence that quotes another language is in the language of the words around the quotation.
    A word that several languages share, such as "No." or "Ja.", counts for the one asked for.

    With `code: fr`, "Je ne sais pas." scores 1, and "I do not know." 0.
    """
    weighted_sum = 0.0
    total_words = 0
    verdicts: list[bool] = []  # of each sentence that has a word
    for sentence in sentences_of(text):
        sentence_probability = probability(sentence, code)
        if sentence_probability is not None:
            num_words = len(words_of(sentence))
            weighted_sum += num_words * sentence_probability
            total_words += num_words
            verdicts.append(sentence_probability > 0.5)
    if not verdicts:
        return Score(0.0, "there is no word to tell a language by")
    score = min(1.0, round(weighted_sum / total_words, 4))
    reason = f"probability of {NAMES[code]}: {score:.2f}"
    if len(verdicts) > 1:
        reason = (
            f"mean {reason} over {len(verdicts)} sentences, weighted by words; {sum(verdicts)} of"
            " them above 0.5"
        )
    return Score(score, reason)


def is_in(text: str, code: str) -> bool:
    """Whether a text reads as a language rather than another."""
    return (probability(text, code) or 0.0) > 0.5


@measure(loads=True)
def bilingual(text: str, first: LanguageCode, second: LanguageCode) -> Score:
    """Mean over pairs "sentence (translation)": 0.5 for each side that is in its language.

    With `first: fr, second: en`, "J'aime Londres. (I love London.)" scores 1, and "I love London."
    0.
    """
    pieces = [piece.strip() for piece in _PARENTHESISED.split(text)]
    pairs = list(zip(pieces[::2], [*pieces[1::2], ""], strict=True))
    pairs = [(outer, inner) for outer, inner in pairs if words_of(outer) or words_of(inner)]
    if not pairs or len(pieces) == 1:
        return Score(0.0, "there is no (translation) in parentheses")
    outer_good = sum(is_in(outer, first) for outer, _ in pairs)
    inner_good = sum(is_in(inner, second) for _, inner in pairs)
    reason = (
        f"of {count_of(len(pairs), 'pair')}, {outer_good} with {NAMES[first]} "
        f"and {inner_good} with ({NAMES[second]})"
    )
    return Score((outer_good + inner_good) / (2 * len(pairs)), reason)
