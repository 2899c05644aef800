"""Words and sentences as IFBench parts them."""

from __future__ import annotations

import string

from holdfast.measures.registry import Score
from holdfast.measures.text import sentences_of

MARKS = string.punctuation
WITHOUT_MARKS = str.maketrans("", "", MARKS)


def bare_words(text: str) -> list[str]:
    """The words between spaces, in lower case and without any ASCII punctuation."""
    return text.lower().translate(WITHOUT_MARKS).split()


def stripped_words(text: str) -> list[str]:
    """The words between spaces, in lower case and without punctuation around them."""
    return [word for token in text.lower().split() if (word := token.strip(MARKS))]


def sentences(text: str) -> list[str]:
    """The sentences, in which a new line ends none."""
    return sentences_of(" ".join(text.split()))


def kept(condition: object, reason: str) -> Score:
    """1 where an instruction is kept, else 0."""
    return Score(float(bool(condition)), reason)
