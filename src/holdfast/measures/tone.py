"""Feeling, by the lexicon of VADER (Hutto & Gilbert 2014; the package `vaderSentiment` carries
it).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast.measures.kinds import Direction
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural, sentences_of

FULL = 0.5  # the compound of one clear word ("I love London": 0.64) is full marks for a sentence
LONGEST = 5_000  # characters that are read, and
# emojis among them: VADER spells each out, and its time grows with the square of the words
SYMBOLS = 100


@cache
def analyzer() -> Any:
    """VADER, its lexicon read once."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def vader(text: str) -> dict[str, float]:
    """VADER's shares `pos`, `neg`, `neu` and its `compound` from -1 to 1."""
    kept, symbols = [], 0
    for character in text[:LONGEST]:
        symbols += ord(character) > 0x2100 and not character.isalnum()
        if symbols <= SYMBOLS or character.isalnum() or character.isspace():
            kept.append(character)
    shares: dict[str, float] = analyzer().polarity_scores("".join(kept))
    return shares


@measure
def sentiment(text: str, direction: Direction) -> Score:
    """(1 + VADER compound) / 2 for 'positive', (1 - compound) / 2 for 'negative'; 0.5 is
    neutral.
    """
    compound = vader(text)["compound"]
    signed = compound if direction == "positive" else -compound
    return Score((1 + signed) / 2, f"VADER compound {compound:+.2f}")


@measure
def joyful(text: str) -> Score:
    """Mean over sentences of VADER's compound above 0, where 0.5 is full marks."""
    return feeling(text, +1, "joyful")


@measure
def sad(text: str) -> Score:
    """Mean over sentences of VADER's compound below 0, where -0.5 is full marks."""
    return feeling(text, -1, "negative")


def feeling(text: str, sign: int, what: str) -> Score:
    """Mean strength of one sign of feeling; a published share (`pos`) hardly leaves 0.6, this
    reaches 1.
    """
    strengths = [
        min(1.0, max(0.0, sign * vader(sentence)["compound"]) / FULL)
        for sentence in sentences_of(text)
    ]
    if not strengths:
        return Score(0.0, "there is no sentence")
    value = round(sum(strengths) / len(strengths), 4)
    return Score(
        value,
        f"{sum(s > 0 for s in strengths)} of {plural(len(strengths), 'sentence')} sound {what}",
    )
