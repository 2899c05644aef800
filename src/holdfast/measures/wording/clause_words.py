"""The content words of clauses, each with whether the clause asks for it or forbids it.

    signed_words("never edit the generated files")  ->  -edit -generat -fil
    signed_words("modify the files")                ->  +edit +fil    ("modify" is "edit")
    anchors("Run `make lint` before 5 pm.")         ->  mak, lint, 5

Clauses are written as `plain_text.plain_sentence` writes sentences.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from holdfast.measures.text import fold
from holdfast.measures.wording.plain_text import WORD, plain_words, words_for_phrases
from holdfast.measures.wording.word_stems import stem

_STOP_WORDS = frozenset(
    "a an the this that these those it its i me my we us our you your he she they them their and or"
    " but so if then than as of in on at to for from with by into through under over up about be is"
    " are was were been being am do does did done has have had having will would shall should can"
    " could may might must always ever every each all any some please also just only when where"
    " which who what how there here too very such other another own never not no nothing none"
    " neither nor without avoid avoided stop skip drop instead rather forget ignore user users rule"
    " rules want wants asked asks said remember mind note sure forbidden prohibited banned allowed"
    " permitted alone leave said now again directly forbid forbids forbade prohibit prohibits ban"
    " bans".split()
)


class SignedWord(NamedTuple):
    """A content word of a clause, without its ending, and whether the clause asks for it."""

    stem: str
    is_wanted: bool


SignedWords = frozenset[SignedWord]


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """Returns the stems of a text's words, and of the plain words for its fixed phrases."""
    words = plain_words(text)
    return frozenset(map(stem, [*words, *words_for_phrases(words)]))


def _content_stems(text: str) -> set[str]:
    return {stem(word) for word in WORD.findall(text) if word not in _STOP_WORDS}


# --- Negations

# negates all of its clause: "the main branch *must never* be pushed to", "pip is *forbidden*"
_NEGATES_CLAUSE = re.compile(
    r"\b(?:forbidden|prohibited|banned|disallowed|off[ -]limits|untouched)\b"
    r"|\b(?:is|are|be|been|must|may|should|can|could|shall|has|have) (?:never|not)\b"
    r"|\bleave\b.*\balone\b|\b(?:must|should|has to|have to|to) be avoided\b"
)
# negates what follows it in its clause: "use uv *instead of* pip"
_NEGATES_REST = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|without|avoid(?:ing|s)?|stop|skip|drop"
    r"|forb(?:id|ids|ade)|prohibits?|bans?"
    r"|instead of|rather than|forget(?: about)?|prefers?\b.*?\bover)\b"
)
_OFF_LIMITS = re.compile(r"\boff[ -]limits\b")


@lru_cache(maxsize=65536)
def signed_words(clause: str) -> SignedWords:
    """Returns the content words of a clause, each with whether it is asked for."""
    if _NEGATES_CLAUSE.search(clause):
        rest = _NEGATES_CLAUSE.sub(_without_off_limits, clause)
        return frozenset(SignedWord(word, False) for word in _content_stems(rest))
    negation = _NEGATES_REST.search(clause)
    if negation is None:
        return frozenset(SignedWord(word, True) for word in _content_stems(clause))
    wanted = {SignedWord(word, True) for word in _content_stems(clause[: negation.start()])}
    unwanted = {SignedWord(word, False) for word in _content_stems(clause[negation.end() :])}
    return frozenset(wanted | unwanted)


def _without_off_limits(negation: re.Match[str]) -> str:
    """Removes "off limits", whose words are not in the list of stop words, from a negation."""
    return _OFF_LIMITS.sub("", negation[0])


def is_negated(clause: str) -> bool:
    """Whether a clause forbids something, or denies it."""
    return bool(_NEGATES_CLAUSE.search(clause) or _NEGATES_REST.search(clause))


# --- Words that a paraphrase does not replace

_ANCHOR = re.compile(
    r"[\"“`']([^\"”`']+)[\"”`']"  # in quotation marks: "Ahoy", `make lint`
    r"|(?<![\w.])(\.?\w+(?:[./_-]\w+)+/?|\.\w+|\w+/)(?!\w)"  # a path or a name: src/app.py, .env
    r"|(?<=[\w,] )([A-Z]\w+)"  # a name: "never mention Velox"
    r"|\b(\d+)\b"
)


def anchors(sentence: str) -> set[str]:
    """Returns the stems that a paraphrase keeps: numbers, names, paths, and what is quoted."""
    words: set[str] = set()
    for anchor in _ANCHOR.finditer(sentence):
        words |= _content_stems(fold(next(filter(None, anchor.groups()))))
    all_stems = {stem(word) for word in WORD.findall(fold(sentence))}
    return words | {word for word in all_stems if word.isdecimal()}
