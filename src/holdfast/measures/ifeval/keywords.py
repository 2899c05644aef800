"""IFEval's instructions on words and letters; case never counts."""

from __future__ import annotations

import re

from holdfast.measures.content import named
from holdfast.measures.kinds import Number, Relation, Sign, Text, Texts
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural


def compare(seen: int, relation: str, wanted: int, noun: str) -> Score:
    """1 where a count is at least, or less than, the wanted one."""
    kept = seen >= wanted if relation == "at least" else seen < wanted
    return Score(float(kept), f"{plural(seen, noun)}, {relation} {wanted} asked for")


def occurrences(text: str, phrase: str) -> int:
    """How often a phrase occurs, inside longer words too."""
    return len(re.findall(re.escape(phrase), text, re.IGNORECASE))


@measure
def ifeval_keywords_existence(text: str, keywords: Texts) -> Score:
    """1 if every keyword occurs, inside longer words too."""
    missing = [keyword for keyword in keywords if not occurrences(text, keyword)]
    return Score(float(not missing), f"{named(missing)} missing" if missing else "all occur")


@measure
def ifeval_keywords_frequency(
    text: str, keyword: Text, frequency: Number, relation: Relation
) -> Score:
    """1 if the keyword occurs at least, or less than, so often; inside longer words too."""
    return compare(occurrences(text, keyword.strip()), relation, frequency, "occurrence")


@measure
def ifeval_keywords_forbidden_words(text: str, forbidden_words: Texts) -> Score:
    """1 if none of the words occurs as a whole word."""
    seen = [
        word
        for word in forbidden_words
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    ]
    return Score(float(not seen), f"{named(seen)} occurs" if seen else "none occurs")


@measure
def ifeval_keywords_letter_frequency(
    text: str, letter: Sign, let_frequency: Number, let_relation: Relation
) -> Score:
    """1 if a letter or sign occurs at least, or less than, so often."""
    seen = text.lower().count(letter.lower())
    return compare(seen, let_relation, let_frequency, "occurrence")
