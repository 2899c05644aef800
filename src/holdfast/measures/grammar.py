"""Verb tense, plural nouns, rare words, syllables (English).

Word forms come from the lexicon that the package `lemminflect` carries, word ranks from `wordfreq`.
Where a form can be noun or verb ("visits", "love"), the word before decides by the rules below:
simple, readable, and the same on any machine, which a trained tagger is not.
"""

from __future__ import annotations

from functools import cache, lru_cache

from holdfast.measures.kinds import Count, Share
from holdfast.measures.registry import Score, measure, share
from holdfast.measures.syllables import syllables_in
from holdfast.measures.text import folded_words, listed, sentences_of

SUBJECTS = frozenset(listed("i you he she it we they who there everyone everybody someone nobody people"))
NOT_A_VERB_AFTER = frozenset(listed("a an the my your his her its our their this that these those no some any every"))
PREPOSITIONS = frozenset(listed("of in on at for with from by into about near through around"))
AUXILIARIES = frozenset(
    listed(
        "do does did don't doesn't didn't can could will would shall should may might must can't couldn't "
        "won't wouldn't shouldn't i'll you'll he'll she'll it'll we'll they'll i'd you'd he'd she'd we'd "
        "they'd let's"
    )
)
PRESENT = frozenset(
    listed(
        "am is are isn't aren't i'm he's she's it's that's there's you're we're they're has hasn't haven't "
        "have i've you've we've they've do does don't doesn't can can't cannot will won't would wouldn't "
        "shall should shouldn't may might must i'll you'll he'll she'll it'll we'll they'll"
    )
)
PAST = frozenset(listed("was were wasn't weren't had hadn't did didn't could couldn't been"))
ADVERBS = frozenset(listed("not never always often also just really then usually sometimes only still already even"))
UNMARKED_PLURALS = frozenset(listed("people police cattle folk clothes trousers scissors glasses thanks"))


@lru_cache(maxsize=20_000)
def lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """The lemmas of a word form by part of speech: 'went' gives {'VERB': ('go',)}."""
    from lemminflect import getAllLemmas

    found: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return found


@lru_cache(maxsize=20_000)
def past_forms(lemma: str) -> frozenset[str]:
    """The past tense and past participle of a verb."""
    from lemminflect import getAllInflections

    forms = getAllInflections(lemma, upos="VERB")
    return frozenset((*forms.get("VBD", ()), *forms.get("VBN", ())))


def previous(tokens: list[str], i: int) -> str:
    """The word before, up to three adverbs skipped; '' at the start of the sentence."""
    for j in range(i - 1, max(-1, i - 5), -1):
        if tokens[j] not in ADVERBS and not tokens[j].endswith("ly"):
            return tokens[j]
    return ""


def tense(tokens: list[str], i: int) -> str:
    """'past', 'present', or '' for a word that is no verb, or a verb form without tense.

    Infinitives after "to" or an auxiliary and forms in -ing have no tense; a form that can also be
    a noun or an adjective is a verb only after a subject or, in the base form, at the start.
    """
    word, before = tokens[i], previous(tokens, i)
    if word in PAST:
        return "past"
    if word in PRESENT:
        return "present"
    kinds = lemmas(word)
    if "VERB" not in kinds or word in UNMARKED_PLURALS or before == "to" or before in AUXILIARIES:
        return ""
    if word.endswith("ing") and word not in kinds["VERB"]:
        return ""
    other = "NOUN" in kinds or "ADJ" in kinds
    if any(word != lemma and word in past_forms(lemma) for lemma in kinds["VERB"]):
        return "" if other and before in NOT_A_VERB_AFTER else "past"
    if before in ("he", "she", "it") and word in kinds["VERB"] and word in past_forms(word):
        return "past"  # "he put": the present would end in -s
    if set(kinds) == {"VERB"}:
        return "present"
    if before in SUBJECTS or (is_plural(before) and word in kinds["VERB"]):
        return "present"
    opens = before == "" and word in kinds["VERB"] and "ADJ" not in kinds
    follows = tokens[i + 1] if i + 1 < len(tokens) else ""
    return "present" if opens and follows in NOT_A_VERB_AFTER | PREPOSITIONS | SUBJECTS else ""


def is_plural(word: str) -> bool:
    """Whether a word can be a plural noun."""
    nouns = lemmas(word).get("NOUN", ())
    if word in UNMARKED_PLURALS:
        return True
    if not nouns or word in nouns:
        return False
    from lemminflect import getInflection

    return any(word in getInflection(noun, "NNS") for noun in nouns)


def is_plural_noun(tokens: list[str], i: int) -> bool:
    """Whether a word is a plural noun here; "visits" after "she" or before "the" is a verb."""
    if not is_plural(tokens[i]):
        return False
    if "VERB" not in lemmas(tokens[i]) or tokens[i] in UNMARKED_PLURALS:
        return True
    follows = tokens[i + 1] if i + 1 < len(tokens) else ""
    return previous(tokens, i) not in {"he", "she", "it", "who", "which"} and follows not in NOT_A_VERB_AFTER


@measure
def past_tense(text: str) -> Score:
    """Share of verbs with a tense that are past; infinitives and -ing forms have none; 1 without verbs."""
    found = [tense(tokens, i) for tokens in map(folded_words, sentences_of(text)) for i in range(len(tokens))]
    past, present = found.count("past"), found.count("present")
    if not past + present:
        return Score(1.0, "there are no verbs with a tense")
    return share(past, past + present, "verbs are in the past tense")


@measure
def plural_nouns(text: str, full: Share = 1.0) -> Score:
    """Share of words that are plural nouns; a share of `full` or more scores 1."""
    marks = [is_plural_noun(tokens, i) for tokens in map(folded_words, sentences_of(text)) for i in range(len(tokens))]
    return share(sum(marks), len(marks), "words are plural nouns", full)


@cache
def commonest(number: int) -> frozenset[str]:
    """The commonest English words."""
    from wordfreq import top_n_list

    return frozenset(top_n_list("en", number))


@measure
def rare_words(text: str, common: Count = 10_000, full: Share = 1.0) -> Score:
    """Share of words that are not among the `common` commonest of English; `full` or more scores 1."""
    found = [word for word in folded_words(text) if any(character.isalpha() for character in word)]
    usual = commonest(common)
    rare = [word for word in found if word not in usual and word.removesuffix("'s") not in usual]
    return share(len(rare), len(found), "words are rare", full)


@measure
def one_syllable(text: str) -> Score:
    """Share of words that have one syllable."""
    found = folded_words(text)
    long = [word for word in found if syllables_in(word) != 1]
    result = share(len(found) - len(long), len(found), "words have one syllable")
    return Score(result.value, result.reason + (f", not {long[0]!r}" if long else ""))
