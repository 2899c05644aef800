"""IFEval's instructions that bind the whole reply: its case, language, commas, ends."""

from __future__ import annotations

import re

from holdfast.measures.ifeval.keywords import compare
from holdfast.measures.kinds import LanguageCode, Number, Relation, Text
from holdfast.measures.language import is_in
from holdfast.measures.languages import NAMES
from holdfast.measures.registry import Score, measure

# Hyphens, dots and slashes join words, and so do apostrophes, save in English contractions: "I'M"
# is I and M, "l'AI" is one.
TOKEN = re.compile(
    r"[^\W_]+(?:(?:[-‐‑./&’]|'(?!(?:s|m|d|t|ll|re|ve)(?!\w)))[^\W_]+)*", re.IGNORECASE
)


@measure
def ifeval_language_response_language(text: str, language: LanguageCode) -> Score:
    """1 if the reply reads as this language rather than another.

    A reply without a word is in no language; the published checker lets it pass.
    """
    kept = reads_as(text, language)
    return Score(float(kept), f"{'reads' if kept else 'does not read'} as {NAMES[language]}")


def reads_as(text: str, code: str) -> bool:
    """Whether a reply reads as a language; hyphens part words."""
    return is_in(text.replace("-", " "), code)


@measure
def ifeval_change_case_english_capital(text: str) -> Score:
    """1 for an English reply in capital letters only."""
    return in_case(text, text.isupper(), "capital")


@measure
def ifeval_change_case_english_lowercase(text: str) -> Score:
    """1 for an English reply without a capital letter."""
    return in_case(text, text.islower(), "lower-case")


def in_case(text: str, kept: bool, what: str) -> Score:
    """1 for a reply in the right case that reads as English."""
    if not kept:
        return Score(0.0, f"not all letters are {what}")
    english = reads_as(text, "en")
    return Score(float(english), f"{what} letters, {'' if english else 'not '}English")


@measure
def ifeval_change_case_capital_word_frequency(
    text: str, capital_frequency: Number, capital_relation: Relation
) -> Score:
    """1 for at least, or less than, so many words in capital letters; "I" and "A" are such."""
    seen = sum(word.isupper() for word in TOKEN.findall(text))
    return compare(seen, capital_relation, capital_frequency, "capital word")


@measure
def ifeval_punctuation_no_comma(text: str) -> Score:
    """1 for a reply without a comma."""
    seen = text.count(",")
    return Score(float(not seen), f"{seen} commas")


@measure
def ifeval_startend_quotation(text: str) -> Score:
    """1 for a reply between double quotation marks ("...")."""
    body = text.strip()
    kept = len(body) > 1 and body[0] == body[-1] == '"'
    return Score(float(kept), f"starts with {body[:12]!r}, ends with {body[-12:]!r}")


@measure
def ifeval_startend_end_checker(text: str, end_phrase: Text) -> Score:
    """1 if the reply ends with the phrase; case and quotation marks behind it do not count."""
    body = text.strip().strip('"').lower()
    return Score(float(body.endswith(end_phrase.strip().lower())), f"ends with {body[-40:]!r}")


@measure
def ifeval_combination_repeat_prompt(text: str, prompt_to_repeat: Text) -> Score:
    """1 if the reply begins with the request, word for word; case does not count."""
    body, request = text.strip().lower(), prompt_to_repeat.strip().lower()
    return Score(float(body.startswith(request)), f"begins with {body[:40]!r}")
