"""Sentences as IFEval counts them: as nltk's Punkt parts them, without its trained model.

A stop ends a sentence wherever it stands before a space, also within a line of a list ("1."), and
a new line alone ends none. After an abbreviation, an initial or dots it does so only where a word
follows that often begins a sentence, and after "Dr." never. What follows the last stop is a
sentence too, be it a sign.
"""

from __future__ import annotations

import re

from holdfast.measures.text import MAY_BE_LAST, NEVER_LAST, listed

OPENING = "\"'“‘([{*_«"
CLOSING = "\"')]}*_:;”’»"
BESIDE = frozenset("\"')]}")  # a token of these alone belongs to the sentence before
INITIAL = re.compile(r"[^\W\d_]")
CONTRACTED = re.compile(r"['’]")  # "I'm" begins with the word "I"
NUMBER = re.compile(r"\d[\d.,]*")
ABBREVIATIONS = MAY_BE_LAST | frozenset(
    listed(
        "messrs gen sen rep gov col capt lt sgt rev hon pres ave blvd rd corp ltd co bros sr"
        " ph.d m.d b.a m.a u.k d.c n.y l.a no vol fig ed jan feb aug sept oct nov dec"
    )
)
OPENERS = frozenset(
    listed(
        "i you he she it we they this that these those there here my your his her its our their"
        " the a an and but or so yet if when while as after before since because although though"
        " in on at by for from with to of no not yes what why how who where which is are was do"
        " does did can could would should will may let please then now also however some many"
        " most all each every one another even just such"
    )
)


def count_sentences(text: str) -> int:
    """How many sentences a text has; 0 only where it holds nothing."""
    tokens = [token for token in text.split() if not set(token) <= BESIDE]
    followers = tokens[1:]
    ends = sum(map(ends_sentence, tokens, followers))  # the last token has no follower
    return ends + bool(text.strip())


def ends_sentence(token: str, follower: str) -> bool:
    """Whether a sentence ends behind a token, given the one that follows."""
    word = token.rstrip(CLOSING)
    if word.endswith(("?", "!")):
        return True
    if not word.endswith("."):
        return False
    stem = word.rstrip(".").lstrip(OPENING).lower()
    follower = CONTRACTED.split(follower.lstrip(OPENING))[0]
    if stem in NEVER_LAST:
        return False
    if NUMBER.fullmatch(stem):
        return not follower[:1].islower()
    if word.endswith("..") or stem in ABBREVIATIONS or INITIAL.fullmatch(stem):
        return follower[:1].isupper() and follower.rstrip(".,?!" + CLOSING).lower() in OPENERS
    return True
