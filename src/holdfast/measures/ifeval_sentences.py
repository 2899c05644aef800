r"""Counts sentences as IFEval does: a line break does not end one.

For example:

    count_sentences("One,\nstill one. Two.")            ->  2
    count_sentences("Dr. Byrne left at 5 p.m. today.")  ->  1
    count_sentences("She left the U.S. He stayed.")     ->  2
"""

import re
from itertools import pairwise

from holdfast.measures.text import MAY_BE_LAST, NEVER_LAST

# marks before the first word of a sentence
_OPENING = "\"'“‘([{*_«"
# marks after its stop
_CLOSING = "\"')]}*_:;”’»"
# a token of only these belongs to the sentence before
_CLOSING_ALONE = frozenset("\"')]}")
_INITIAL = re.compile(r"[^\W\d_]")  # "J" of "J. Smith"
_APOSTROPHE = re.compile(r"['’]")
_NUMBER = re.compile(r"\d[\d.,]*")
# these end a sentence only before one of `_OPENERS`: "She left the U.K. He stayed."
_ABBREVIATIONS = MAY_BE_LAST | frozenset(
    (
        "messrs gen sen rep gov col capt lt sgt rev hon pres ave blvd rd corp ltd co bros sr"
        " ph.d m.d b.a m.a u.k d.c n.y l.a no vol fig ed jan feb aug sept oct nov dec"
    ).split()
)
# words that often begin a sentence
_OPENERS = frozenset(
    (
        "i you he she it we they this that these those there here my your his her its our their"
        " the a an and but or so yet if when while as after before since because although though"
        " in on at by for from with to of no not yes what why how who where which is are was do"
        " does did can could would should will may let please then now also however some many"
        " most all each every one another even just such"
    ).split()
)


def count_sentences(text: str) -> int:
    """Counts the sentences of a text; 0 only if it is blank."""
    tokens = [token for token in text.split() if not set(token) <= _CLOSING_ALONE]
    ends = sum(_ends_sentence(token, follower) for token, follower in pairwise(tokens))
    return ends + bool(text.strip())


def _ends_sentence(token: str, follower: str) -> bool:
    """Whether a sentence ends after a token, given the next token."""
    word = token.rstrip(_CLOSING)
    if word.endswith(("?", "!")):
        return True
    if not word.endswith("."):
        return False
    stem = word.rstrip(".").lstrip(_OPENING).lower()
    follower = _APOSTROPHE.split(follower.lstrip(_OPENING))[0]  # "I" of "I'm"
    if stem in NEVER_LAST:
        return False
    if _NUMBER.fullmatch(stem):
        return not follower[:1].islower()
    if word.endswith("..") or stem in _ABBREVIATIONS or _INITIAL.fullmatch(stem):
        return follower[:1].isupper() and follower.rstrip(".,?!" + _CLOSING).lower() in _OPENERS
    return True
