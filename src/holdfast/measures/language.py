"""Which language a reply is in.

Two kinds of evidence are multiplied: letter sequences, judged by the identifier in the package
`py3langid` (139 languages), and words, judged by the frequencies in `wordfreq` (38 of them).
Letters decide long texts; for one or two words ("Ja.", "Merci.") they say next to nothing, and the
words decide. Both packages ship their data and have no random state."""

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

# Languages with a word list, and the list's name if it differs. Languages without spaces between
# words, or written with signs between letters, are left to the identifier.
LISTS = {
    code: code
    for code in """ar bg ca cs da de el en es fa fi fr he hu id is it lt lv mk ms nl
pl pt ro ru sk sl sv tr uk ur vi""".split()
} | {"no": "nb", "tl": "fil", "bs": "sh", "hr": "sh", "sr": "sh"}
FLOOR = math.log(3e-8)  # a word that is not in its language's list
ANY = math.log(1e-6)  # any word, in a language without a list
COMMON = ("de", "en", "es", "fr", "it", "nl", "pt")  # rivals of every language
RIVALS = 8  # at most this many further rivals, the likeliest by their letters
MIN_PROBABILITY = 0.01  # of such a rival, by its letters
ENGLISH = 0.5  # weight of English as a rival of the language asked for
OFTEN = 0.02  # weight of the other common languages, and of any rival of English
SELDOM = 0.5 / len(NAMES)  # weight of the rest
PARENTHESISED = re.compile(r"\(([^()]*)\)")
QUOTED = re.compile(r"""["“”„«][^"“”„«»]*["“”»]|(?<!\w)['‘‚][^'’]*(?:\w['’]\w[^'’]*)*['’](?!\w)""")
OUTSIDE = 2  # words around a quotation that suffice to decide its sentence's language
SIGHT = 3_000  # characters of a sentence that are read


@cache
def identifier() -> Any:
    """The identifier of py3langid, its model read once."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def log_frequencies(code: str) -> dict[str, float]:
    """The log share of each word in running text of a language (read once)."""
    from wordfreq import get_frequency_list

    frequencies = {}
    for centibels, words in enumerate(get_frequency_list(LISTS[code], wordlist="small")):
        frequencies.update(dict.fromkeys(words, -centibels / 100 * math.log(10)))
    return frequencies


def log_words(words: list[str], code: str) -> float:
    """The log probability of the words in a language."""
    if code not in LISTS:
        return ANY * len(words)
    if code == "sr":  # its list is in Latin letters
        words = latin(" ".join(words)).split()
    return math.fsum(log_word(word, log_frequencies(code)) for word in words)


def latin(text: str) -> str:
    """Serbian in Latin letters."""
    from wordfreq.transliterate import transliterate

    written: str = transliterate("sr-Latn", text)  # type: ignore[arg-type]  # its hint is wrong
    return written


def log_word(word: str, frequencies: dict[str, float]) -> float:
    """The log share of a word, or of its parts if it is an elision ("j'aime")."""
    if word in frequencies:
        return frequencies[word]
    parts = re.split(r"['‐‑-]", word)
    if len(parts) == 1:
        return FLOOR
    return max(FLOOR, math.fsum(frequencies.get(part, FLOOR) for part in parts if part))


def likelihoods(words: list[str], code: str) -> dict[str, float]:
    """How likely the words are in the language asked for and in its rivals; the likeliest is 1."""
    letters = dict(identifier().rank(" ".join(words)))
    near = [name for name in list(letters)[:RIVALS] if letters[name] >= MIN_PROBABILITY]
    logs = {
        name: round(math.log(max(letters[name], 1e-9)), 3) + log_words(words, name)
        for name in sorted({code, *COMMON, *near})
    }
    top = max(logs.values())
    return {name: math.exp(value - top) for name, value in logs.items()}


def probability(text: str, code: str) -> float | None:
    """The probability that a sentence is in the language asked for, and not in another.

    The language asked for has weight 1 and its rivals have less, English the most among them, since
    models fall back to it. So a word of several languages counts for the one that was asked for.
    None if there is no word.
    """
    words = evidence(text[:SIGHT])
    if not words:
        return None
    likely = likelihoods(words, code)
    wanted = likely.pop(code)
    rivals = math.fsum(value * weight(name, code) for name, value in likely.items())
    return wanted / (wanted + rivals)


def evidence(text: str) -> list[str]:
    """The words that decide a sentence's language: those around its quotations, if enough."""
    for part in (QUOTED.sub(" ", text), text):
        words = [word for word in folded_words(part) if not any(map(str.isdigit, word))]
        if len(words) >= OUTSIDE:
            break
    return words


def weight(rival: str, code: str) -> float:
    """How much a rival counts against the language asked for."""
    if rival == "en":
        return ENGLISH
    return OFTEN if code == "en" or rival in COMMON else SELDOM


@measure(loads=True)
def language(text: str, code: LanguageCode) -> Score:
    """Probability that the reply is in this language, by its letters and words: mean over
    sentences.

    A sentence that quotes another language is in the language of the words around the quotation.
    A word that several languages share, such as "No." or "Ja.", counts for the one asked for.
    """
    total = weight = 0.0
    read = []
    for sentence in sentences_of(text):
        chance = probability(sentence, code)
        if chance is not None:
            words = len(words_of(sentence))
            total = total + words * chance
            weight = weight + words
            read.append(chance > 0.5)
    if not read:
        return Score(0.0, "there is no word to tell a language by")
    score = min(1.0, round(total / weight, 4))
    reason = f"probability of {NAMES[code]}: {score:.2f}"
    if len(read) > 1:
        over = f"over {len(read)} sentences, weighted by words"
        reason = f"mean {reason} {over}; {sum(read)} of them above 0.5"
    return Score(score, reason)


def is_in(text: str, code: str) -> bool:
    """Whether a text reads as a language rather than another."""
    return (probability(text, code) or 0.0) > 0.5


@measure(loads=True)
def bilingual(text: str, first: LanguageCode, second: LanguageCode) -> Score:
    """Over pairs "sentence (translation)": 0.5 for each side in its language; mean."""
    pieces = [piece.strip() for piece in PARENTHESISED.split(text)]
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
