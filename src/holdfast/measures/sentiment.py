"""The sentiment of a reply, by VADER (Hutto & Gilbert 2014).

The package `vaderSentiment` ships its lexicon.
"""

from functools import cache
from typing import Any

from holdfast.measures.arguments import Direction
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score
from holdfast.measures.text import sentences_of
from holdfast.plurals import count_of

_FULL = 0.5  # the compound of one clear word ("I love London": 0.64) is full marks for a sentence
_MAX_CHARACTERS = 5_000  # that are read
# symbols that are read, such as emojis: VADER spells each out, in time quadratic in the words
_MAX_SYMBOLS = 100


@cache
def _analyzer() -> Any:
    """Loads VADER with its lexicon."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def vader(text: str) -> dict[str, float]:
    """Returns VADER's shares `pos`, `neg`, `neu` and its `compound` from -1 to 1."""
    characters: list[str] = []
    symbols = 0
    for character in text[:_MAX_CHARACTERS]:
        if ord(character) > 0x2100 and not character.isalnum():
            symbols += 1
        if symbols <= _MAX_SYMBOLS or character.isalnum() or character.isspace():
            characters.append(character)
    scores: dict[str, float] = _analyzer().polarity_scores("".join(characters))
    return scores


@measure(loads=True)
def sentiment(text: str, direction: Direction) -> Score:
    """(1 + VADER compound) / 2 for 'positive', (1 - compound) / 2 for 'negative'.

    With `direction: positive`, "I love it!" scores 0.83, and "I hate it." 0.21.
    """
    compound = vader(text)["compound"]
    signed = compound if direction == "positive" else -compound
    return Score((1 + signed) / 2, f"VADER compound {compound:+.2f}")


@measure(loads=True)
def joyful(text: str) -> Score:
    """Mean over sentences of VADER's compound above 0, where 0.5 is full marks.

    "I love this wonderful day!" scores 1, and "I hate it." 0.
    """
    return _feeling(text, +1, "joyful")


@measure(loads=True)
def sad(text: str) -> Score:
    """Mean over sentences of VADER's compound below 0, where -0.5 is full marks.

    "Everything is terrible." scores 0.95, and "What a lovely day!" 0.
    """
    return _feeling(text, -1, "negative")


def _feeling(text: str, sign: int, feeling: str) -> Score:
    """Mean over sentences of the strength of one sentiment; unlike VADER's shares it reaches 1.

    Args:
        sign: +1 or -1, the sign of the sentiment's compound.
        feeling: names it in the reason.
    """
    strengths = [
        min(1.0, max(0.0, sign * vader(sentence)["compound"]) / _FULL)
        for sentence in sentences_of(text)
    ]
    if not strengths:
        return Score(0.0, "there is no sentence")
    strong = sum(strength > 0 for strength in strengths)
    reason = f"{strong} of {count_of(len(strengths), 'sentence')} sound {feeling}"
    return Score(round(sum(strengths) / len(strengths), 4), reason)
