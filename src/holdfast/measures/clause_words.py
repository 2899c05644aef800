"""The words of texts and of their clauses, without markup, case and contractions.

The content words of a clause are *signed*: each with whether the clause asks for it or forbids it.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.rule_words import PHRASES, stem
from holdfast.measures.text import fold


class SignedWord(NamedTuple):
    """A content word of a clause, without its ending, and whether the clause asks for it."""

    stem: str
    is_wanted: bool


SignedWords = frozenset[SignedWord]


class PlacedWord(NamedTuple):
    """A word of a text, and the number of its sentence."""

    word: str
    sentence: int


WORD = re.compile(r"[^\W_]+")

# --- Markup

# the number of a line, as tools show files
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:→|\t|\|[ \t])", re.MULTILINE)
_MARKUP = re.compile(
    r"^[ \t]*(?:>[ \t]?|#+[ \t]+)+"  # quotations and headings
    r"|\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)",  # bold and italics
    re.MULTILINE,
)
_TAG = re.compile(r"</?[a-z][\w-]*>", re.IGNORECASE)
_ESCAPED = re.compile(r'\\[nrt"]')  # in a tool result that is JSON
_STOP_BETWEEN = re.compile(r"[.!?;]\s|\n\s*(?:[-*•>#]|\d+[.)]|\n)")  # between two sentences

# --- Fixed phrases

_CONTRACTIONS = (
    (re.compile(r"\b(?:pls|plz)\b"), "please"),
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bdont\b"), "do not"),
    (re.compile(r"(?<=\w)n't\b"), " not"),
    (re.compile(r"(?<=\bit)'s\b"), " is"),
)
IN_CONTRACTIONS = {word for _, plain in _CONTRACTIONS for word in plain.split()}

_BEFORE_NUMBER = rf"(?= (?:\d|(?:{'|'.join(NUMBER_WORDS)})\b))"
# phrases whose "no" or "not" negates no other word, and what they become
_HARMLESS_NEGATIONS = (
    (r"\b(?:no|not) more than\b", "at most"),
    (r"\bno (\w+ )?(?:(?:has|is|with|may have|may be) )?(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:never|not) (\w+ )(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:no|not) (?:fewer|less) than\b", "at least"),
    (rf"\b(?:under|fewer than|less than|shorter than){_BEFORE_NUMBER}", "at most"),
    (rf"\b(?:more|longer) than{_BEFORE_NUMBER}", "not at most"),
    (r"\b(?:do not|never) forget to\b", ""),
    (r"\bwithout (?:exception|fail)\b|\bno exceptions?\b", ""),
    (r"\bof any (?:kind|sort)\b|\bany (?:kind|sort)s? of\b", ""),
)
_ALL_PHRASES = (*_HARMLESS_NEGATIONS, *PHRASES)
_PHRASES = [(re.compile(pattern), plain) for pattern, plain in _ALL_PHRASES]
_ANY_PHRASE = re.compile(rf"\b(?=\w)(?:{'|'.join(pattern for pattern, _ in _ALL_PHRASES)})")

# --- Negations

# negates all of its clause: "the main branch must never be pushed to", "pip is forbidden"
_NEGATES_CLAUSE = re.compile(
    r"\b(?:forbidden|prohibited|banned|disallowed|off[ -]limits|untouched)\b"
    r"|\b(?:is|are|be|been|must|may|should|can|could|shall|has|have) (?:never|not)\b"
    r"|\bleave\b.*\balone\b"
)
# negates what follows it in its clause
_NEGATES_REST = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|without|avoid(?:ing|s)?|stop|skip|drop"
    r"|instead of|rather than|forget(?: about)?|prefers?\b.*?\bover)\b"
)

# --- Content words

_STOP_WORDS = frozenset(
    "a an the this that these those it its i me my we us our you your he she they them their and or"
    " but so if then than as of in on at to for from with by into through under over up about be is"
    " are was were been being am do does did done has have had having will would shall should can"
    " could may might must always ever every each all any some please also just only when where"
    " which who what how there here too very such other another own never not no nothing none"
    " neither nor without avoid stop skip drop instead rather forget ignore user users rule rules"
    " want wants asked asks said remember mind note sure forbidden prohibited banned allowed"
    " permitted alone leave said now again directly".split()
)
# words that a paraphrase does not replace
_ANCHOR = re.compile(
    r"[\"“`']([^\"”`']+)[\"”`']"  # in quotation marks
    r"|(?<![\w.])(\.?\w+(?:[./_-]\w+)+/?|\.\w+|\w+/)(?!\w)"  # a path or an identifier
    r"|(?<=[\w,] )([A-Z]\w+)"  # a name
    r"|\b(\d+)\b"
)


@lru_cache(maxsize=4096)
def without_markup(text: str) -> str:
    """Removes Markdown's marks, tags, line numbers and escapes from a text."""
    text = _ESCAPED.sub(lambda escape: "\n" if escape[0] in (r"\n", r"\r") else " ", text)
    return _MARKUP.sub("", _TAG.sub("\n", _LINE_NUMBER.sub("", text)))


@lru_cache(maxsize=256)
def _normalise(text: str) -> str:
    """Removes markup, case and contractions from a text."""
    return _expand_contractions(fold(unicodedata.normalize("NFKC", without_markup(text))))


def _expand_contractions(text: str) -> str:
    """Writes "do not" for "don't", and the like."""
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return text


@lru_cache(maxsize=4096)
def placed_words(text: str) -> tuple[PlacedWord, ...]:
    """Returns the words of a text without case and contractions, each with its sentence."""
    plain = _normalise(text)
    words: list[PlacedWord] = []
    sentence = 0
    end = 0
    for word in WORD.finditer(plain):
        if words and _STOP_BETWEEN.search(plain, end, word.start()):
            sentence += 1
        words.append(PlacedWord(word[0], sentence))
        end = word.end()
    return tuple(words)


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """Returns the stems of a text's words, and of the plain words for its fixed phrases."""
    words = WORD.findall(_normalise(text))
    joined = " ".join(words)
    if not _ANY_PHRASE.search(joined):
        return frozenset(map(stem, words))
    phrases = (plain for pattern, plain in PHRASES if re.search(pattern, joined))
    return frozenset(map(stem, [*words, *" ".join(phrases).split()]))


@lru_cache(maxsize=65536)
def plain_sentence(sentence: str) -> str:
    """Removes case, contractions and the `()` of functions from a sentence, and writes its fixed
    phrases plainly.
    """
    text = _expand_contractions(fold(unicodedata.normalize("NFKC", sentence)))
    text = re.sub(r"(?<=\w)\(\)", "", " ".join(text.split()))  # of a function, as in `print()`
    if _ANY_PHRASE.search(text):
        for pattern, plain in _PHRASES:
            text = pattern.sub(plain, text)
    return text


def _content_stems(text: str) -> set[str]:
    return {stem(word) for word in WORD.findall(text) if word not in _STOP_WORDS}


@lru_cache(maxsize=65536)
def signed_words(clause: str) -> SignedWords:
    """Returns the content words of a clause, each with whether it is asked for."""
    if _NEGATES_CLAUSE.search(clause):
        rest = _NEGATES_CLAUSE.sub(_without_limits, clause)
        return frozenset(SignedWord(word, False) for word in _content_stems(rest))
    negation = _NEGATES_REST.search(clause)
    if negation is None:
        return frozenset(SignedWord(word, True) for word in _content_stems(clause))
    wanted = {SignedWord(word, True) for word in _content_stems(clause[: negation.start()])}
    unwanted = {SignedWord(word, False) for word in _content_stems(clause[negation.end() :])}
    return frozenset(wanted | unwanted)


def _without_limits(negation: re.Match[str]) -> str:
    """Removes "off limits", whose words are not in the list of stop words, from a negation."""
    return re.sub(r"\boff[ -]limits\b", "", negation[0])


def is_negated(clause: str) -> bool:
    """Whether a clause forbids something, or denies it."""
    return bool(_NEGATES_CLAUSE.search(clause) or _NEGATES_REST.search(clause))


def anchors(sentence: str) -> set[str]:
    """Returns the words that a paraphrase keeps: numbers, names, paths, and what is quoted."""
    words: set[str] = set()
    for anchor in _ANCHOR.finditer(sentence):
        words |= _content_stems(fold(next(filter(None, anchor.groups()))))
    all_stems = {stem(word) for word in WORD.findall(fold(sentence))}
    return words | {word for word in all_stems if word.isdecimal()}
