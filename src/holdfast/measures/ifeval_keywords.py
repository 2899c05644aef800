"""IFEval's instructions on words and letters: keywords, their case, the language and commas.

The 25 verifiable instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911, Table 1) are here, in
`ifeval_formats` and in `ifeval_lengths`. Each is a measure that scores 0 or 1. Its name is the
published id in our spelling: `keywords:existence` is `ifeval_keywords_existence`, and its arguments
have their published names. Each accepts the replies that the published checker accepts, whose code
was read but not copied; where ours differs on purpose, the function says so (docs/suites.md counts
the differences).
"""

import re

from holdfast.measures.arguments import CountRelation, LanguageCode, Sign, Text, Texts, WholeNumber
from holdfast.measures.ifeval_lengths import relation_when_cut, score_relation
from holdfast.measures.language import is_in
from holdfast.measures.language_names import NAMES
from holdfast.measures.reasons import quote_words
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, verdict

# Hyphens, dots and slashes join words, and so do apostrophes except in English contractions: "I'M"
# is I and M, "l'AI" is one.
_TOKEN = re.compile(
    r"[^\W_]+(?:(?:[-‐‑./&’]|'(?!(?:s|m|d|t|ll|re|ve)(?!\w)))[^\W_]+)*", re.IGNORECASE
)


@measure
def ifeval_keywords_existence(text: str, keywords: Texts) -> Score:
    """1 if every keyword occurs, also inside longer words.

    With `keywords: [cat, dog]`, "CATS and dogs" scores 1, and "cats" 0.
    """
    missing = [keyword for keyword in keywords if not _occurrences(text, keyword)]
    return verdict(not missing, f"{quote_words(missing)} missing" if missing else "all occur")


@measure(when_cut=relation_when_cut)
def ifeval_keywords_frequency(
    text: str, keyword: Text, frequency: WholeNumber, relation: CountRelation
) -> Score:
    """1 if the keyword occurs at least, or less than, `frequency` times, also in longer words.

    With `keyword: war, frequency: 2, relation: at least`, "War, toward" scores 1, and "war" 0.
    """
    return score_relation(_occurrences(text, keyword.strip()), relation, frequency, "occurrence")


def _occurrences(text: str, phrase: str) -> int:
    """Counts how often a phrase occurs, also inside longer words."""
    return len(re.findall(re.escape(phrase), text, re.IGNORECASE))


@measure
def ifeval_keywords_forbidden_words(text: str, forbidden_words: Texts) -> Score:
    """1 if none of the words occurs as a whole word.

    With `forbidden_words: [can]`, "a candle" scores 1, and "You CAN." 0.
    """
    forbidden = [
        word
        for word in forbidden_words
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    ]
    reason = f"{quote_words(forbidden)} occurs" if forbidden else "none occurs"
    return verdict(not forbidden, reason)


@measure(when_cut=relation_when_cut)
def ifeval_keywords_letter_frequency(
    text: str, letter: Sign, let_frequency: WholeNumber, let_relation: CountRelation
) -> Score:
    """1 if a letter or sign occurs at least, or less than, `let_frequency` times.

    With `letter: q, let_frequency: 2, let_relation: at least`, "Quick quiz" scores 1, and "quick"
    0.
    """
    count = text.lower().count(letter.lower())
    return score_relation(count, let_relation, let_frequency, "occurrence")


@measure
def ifeval_punctuation_no_comma(text: str) -> Score:
    """1 for a reply without a comma.

    "one; two" scores 1, and "one, two" 0.
    """
    count = text.count(",")
    return verdict(not count, f"{count} commas")


@measure(when_cut=relation_when_cut)
def ifeval_change_case_capital_word_frequency(
    text: str, capital_frequency: WholeNumber, capital_relation: CountRelation
) -> Score:
    """1 for at least, or less than, this many words in capital letters, "I" and "A" included.

    With `capital_frequency: 2, capital_relation: at least`, "I love NASA" scores 1, and
    "We love NASA" 0.
    """
    count = sum(word.isupper() for word in _TOKEN.findall(text))
    return score_relation(count, capital_relation, capital_frequency, "capital word")


@measure(loads=True)
def ifeval_change_case_english_capital(text: str) -> Score:
    """1 for an English reply in capital letters only.

    "THE DOOR IS OPEN NOW." scores 1, and "The door." 0.
    """
    return _score_english(text, "capital", has_case=text.isupper())


@measure(loads=True)
def ifeval_change_case_english_lowercase(text: str) -> Score:
    """1 for an English reply without a capital letter.

    "the door is open now." scores 1, and "The door." 0.
    """
    return _score_english(text, "lower-case", has_case=text.islower())


def _score_english(text: str, case: str, *, has_case: bool) -> Score:
    """1 for a reply in the right case that reads as English."""
    if not has_case:
        return Score(0.0, f"not all letters are {case}")
    is_english = is_in(text.replace("-", " "), "en")
    language = "English" if is_english else "not English"
    return verdict(is_english, f"{case} letters, {language}")


@measure(loads=True)
def ifeval_language_response_language(text: str, language: LanguageCode) -> Score:
    """1 if the reply reads as this language rather than another.

    A reply without words is in no language; the published checker lets it pass.

    With `language: de`, "Das Wetter ist heute sehr schön." scores 1, and
    "The weather is lovely today." 0.
    """
    reads = is_in(text.replace("-", " "), language)
    return verdict(reads, f"{'reads' if reads else 'does not read'} as {NAMES[language]}")
