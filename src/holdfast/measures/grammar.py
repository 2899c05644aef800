"""Verb tense, plural nouns and rare words (English); the ranks of words are those of `wordfreq`."""

from functools import cache

from holdfast.measures.arguments import Count, Share
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share, share_true
from holdfast.measures.text import folded_words, sentences_of
from holdfast.measures.verb_tenses import NOT_A_VERB_AFTER, tenses
from holdfast.measures.word_forms import (
    UNMARKED_PLURALS,
    WordInSentence,
    is_plural,
    lemmas_by_part,
    tokens_of,
)


@measure(loads=True)
def past_tense(text: str) -> Score:
    """Share of verbs with a tense that are past; infinitives and -ing forms have none; 1 without
    verbs.

    "Put", "read" and "cut" follow the other verbs of the sentence, and are past without any.

    "I walked home and slept." scores 1, and "I walk home." 0.
    """
    verbs = [kind for sentence in sentences_of(text) for kind in tenses(tokens_of(sentence))]
    if not verbs:
        return Score(1.0, "there are no verbs with a tense")
    return share(verbs.count("past"), len(verbs), "verbs are in the past tense")


@measure(loads=True)
def plural_nouns(text: str, full: Share = 1.0) -> Score:
    """Share of words that are plural nouns; a share of `full` or more scores 1.

    With `full: 0.5`, "Museums and parks" scores 1, and "She visits the park" 0.
    """
    return share_true(plural_noun_marks(text), "words are plural nouns", full)


def plural_noun_marks(text: str) -> list[bool]:
    """Returns for every word of a text whether it is a plural noun there."""
    marks = list[bool]()
    for sentence in sentences_of(text):
        marks += map(_is_plural_noun, tokens_of(sentence))
    return marks


def _is_plural_noun(token: WordInSentence) -> bool:
    """Whether a word is a plural noun here; "visits" after "she" or before "the" is a verb."""
    if not is_plural(token.word):
        return False
    if "VERB" not in lemmas_by_part(token.word) or token.word in UNMARKED_PLURALS:
        return True
    follows_singular = token.before in {"he", "she", "it", "who", "which"}
    return not follows_singular and token.after not in NOT_A_VERB_AFTER


@measure(loads=True)
def rare_words(text: str, common: Count = 10_000, full: Share = 1.0) -> Score:
    """Share of words not among the `common` commonest of English; `full` or more scores 1.

    With `full: 0.5`, "Verdant sojourn" scores 1, and "We went home" 0.
    """
    words = [word for word in folded_words(text) if any(character.isalpha() for character in word)]
    usual = commonest(common)
    rare = [word for word in words if word not in usual and word.removesuffix("'s") not in usual]
    return share(len(rare), len(words), "words are rare", full)


@cache
def commonest(number: int) -> frozenset[str]:
    """Returns the commonest English words."""
    from wordfreq import top_n_list

    return frozenset(top_n_list("en", number))
