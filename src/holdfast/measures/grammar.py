"""Verb tense, plural nouns and rare words (English).

Word forms come from the lexicon that the package `lemminflect` carries, word ranks from `wordfreq`.
Where a form can be noun or verb ("visits", "love"), the word before decides by the rules below:
simple, readable, and the same on any machine, which a trained tagger is not.
"""

from functools import cache, lru_cache

from holdfast.measures.arguments import Count, Share
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share, share_true
from holdfast.measures.text import folded_words, sentences_of

SUBJECTS = frozenset(
    "i you he she it we they who there everyone everybody someone nobody people".split()
)
NOT_A_VERB_AFTER = frozenset(
    "a an the my your his her its our their this that these those no some any every".split()
)
PREPOSITIONS = frozenset("of in on at for with from by into about near through around".split())
AUXILIARIES = frozenset(
    (
        "do does did don't doesn't didn't can could will would shall should may might must can't"
        " couldn't won't wouldn't shouldn't i'll you'll he'll she'll it'll we'll they'll i'd you'd"
        " he'd she'd we'd they'd let's"
    ).split()
)
PRESENT = frozenset(
    (
        "am is are isn't aren't i'm he's she's it's that's there's you're we're they're has hasn't"
        " haven't have i've you've we've they've do does don't doesn't can can't cannot will won't"
        " would wouldn't shall should shouldn't may might must i'll you'll he'll she'll it'll we'll"
        " they'll"
    ).split()
)
PAST = frozenset("was were wasn't weren't had hadn't did didn't could couldn't been".split())
DETERMINERS = frozenset("a an the my your his her its our their me us him them".split())
JOINS = frozenset("and or but then".split())
MODALS = frozenset(
    (
        "can can't cannot will won't would wouldn't shall should shouldn't may might must could "
        "couldn't"
    ).split()
)
HAVE = frozenset("have has had haven't hasn't hadn't i've you've we've they've".split())
ADVERBS = frozenset(
    "not never always often also just really then usually sometimes only still already even".split()
)
UNMARKED_PLURALS = frozenset(
    "people police cattle folk clothes trousers scissors glasses thanks".split()
)


@lru_cache(maxsize=20_000)
def lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """The lemmas of a word form by part of speech: 'went' gives {'VERB': ('go',)}."""
    from lemminflect import getAllLemmas

    by_part: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return by_part


@lru_cache(maxsize=20_000)
def past_forms(lemma: str) -> frozenset[str]:
    """The past tense and past participle of a verb."""
    from lemminflect import getAllInflections

    forms = getAllInflections(lemma, upos="VERB")
    return frozenset((*forms.get("VBD", ()), *forms.get("VBN", ())))


def previous(tokens: list[str], i: int) -> str:
    """The word before, skipping up to three adverbs; '' at the start of the sentence."""
    for j in range(i - 1, max(-1, i - 5), -1):
        if tokens[j] not in ADVERBS and not tokens[j].endswith("ly"):
            return tokens[j]
    return ""


def tense(tokens: list[str], i: int) -> str:
    """'past', 'present', 'either' (put, read, cut), or '' for a word without tense.

    Infinitives after "to", "let me" or an auxiliary, forms in -ing, and participles after a form of
    "have" have no tense of their own. A form that can also be a noun or an adjective is a verb only
    after a subject, before an object or, in the base form, at the start.
    """
    word = tokens[i]
    before = previous(tokens, i)
    if word in PAST:
        return "past"
    if word in PRESENT:
        return "present"
    kinds = lemmas(word)
    if "VERB" not in kinds or word in UNMARKED_PLURALS or is_infinitive(tokens, i):
        return ""
    if word.endswith("ing") and word not in kinds["VERB"]:
        return ""
    base = word in kinds["VERB"]
    either = base and word in past_forms(word)
    if any(word != lemma and word in past_forms(lemma) for lemma in kinds["VERB"]):
        other = "NOUN" in kinds or "ADJ" in kinds
        return "" if before in HAVE or (other and before in NOT_A_VERB_AFTER) else "past"
    if either and before in ("he", "she", "it"):
        return "past"  # "he put": the present would end in -s
    if before == "" and either and tokens[i + 1 : i + 2] and tokens[i + 1] in DETERMINERS:
        return "present"  # "put the bread on the table": an order
    if not is_verb_in_context(tokens, i, set(kinds), base):
        return ""
    return "either" if either else "present"


def is_infinitive(tokens: list[str], i: int) -> bool:
    """Whether a verb depends on the one before: "to go", "will go", "let it go"."""
    if previous(tokens, i) == "to" or previous(tokens, i) in AUXILIARIES:
        return True
    return i > 1 and tokens[i - 2] in ("let", "lets") and tokens[i - 1] in SUBJECTS | DETERMINERS


def is_verb_in_context(tokens: list[str], i: int, kinds: set[str], base: bool) -> bool:
    """Whether a form that may be a verb in the present is one, by the words around it."""
    before = previous(tokens, i)
    follows = tokens[i + 1] if i + 1 < len(tokens) else ""
    if kinds == {"VERB"} or before in SUBJECTS or (is_plural(before) and base):
        return True
    if before == "":
        return base and "ADJ" not in kinds and follows in NOT_A_VERB_AFTER | PREPOSITIONS | SUBJECTS
    if before in NOT_A_VERB_AFTER | PREPOSITIONS or follows not in DETERMINERS:
        return False
    return before in JOINS or "NOUN" in lemmas(before) or "PROPN" in lemmas(before)


def is_participle(tokens: list[str], i: int) -> bool:
    """Whether a word is the participle of a perfect tense: "have eaten"."""
    kinds = lemmas(tokens[i]).get("VERB", ())
    return previous(tokens, i) in HAVE and any(tokens[i] in past_forms(lemma) for lemma in kinds)


def is_untensed_verb(tokens: list[str], i: int) -> bool:
    """Whether a word is a verb without a tense of its own: infinitive, participle, -ing form."""
    kinds = lemmas(tokens[i])
    if "VERB" not in kinds or tokens[i] in PRESENT | PAST or tense(tokens, i):
        return False
    ing = tokens[i].endswith("ing") and tokens[i] not in kinds["VERB"]
    noun = previous(tokens, i) in NOT_A_VERB_AFTER
    infinitive = tokens[i] in kinds["VERB"] and is_infinitive(tokens, i)
    return infinitive or is_participle(tokens, i) or (ing and not noun)


def tenses(tokens: list[str]) -> list[str]:
    """The tenses of a sentence; forms of either tense follow the others; without any, past."""
    kinds = [tense(tokens, i) for i in range(len(tokens))]
    main_tense = "present" if "present" in kinds and "past" not in kinds else "past"
    return [main_tense if kind == "either" else kind for kind in kinds if kind]


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
    return (
        previous(tokens, i) not in {"he", "she", "it", "who", "which"}
        and follows not in NOT_A_VERB_AFTER
    )


def plural_noun_marks(text: str) -> list[bool]:
    """For every word of a text, whether it is a plural noun there."""
    marks = list[bool]()
    for tokens in map(folded_words, sentences_of(text)):
        marks += [is_plural_noun(tokens, i) for i in range(len(tokens))]
    return marks


@measure(loads=True)
def past_tense(text: str) -> Score:
    """Share of verbs with a tense that are past; infinitives and -ing forms have none; 1 without
    verbs.

    "Put", "read" and "cut" follow the other verbs of the sentence, and are past without any.
    """
    verbs = [kind for sentence in sentences_of(text) for kind in tenses(folded_words(sentence))]
    if not verbs:
        return Score(1.0, "there are no verbs with a tense")
    return share(verbs.count("past"), len(verbs), "verbs are in the past tense")


@measure(loads=True)
def plural_nouns(text: str, full: Share = 1.0) -> Score:
    """Share of words that are plural nouns; a share of `full` or more scores 1."""
    return share_true(plural_noun_marks(text), "words are plural nouns", full)


@cache
def commonest(number: int) -> frozenset[str]:
    """The commonest English words."""
    from wordfreq import top_n_list

    return frozenset(top_n_list("en", number))


@measure(loads=True)
def rare_words(text: str, common: Count = 10_000, full: Share = 1.0) -> Score:
    """Share of words not among the `common` commonest of English; `full` or more scores 1."""
    words = [word for word in folded_words(text) if any(character.isalpha() for character in word)]
    usual = commonest(common)
    rare = [word for word in words if word not in usual and word.removesuffix("'s") not in usual]
    return share(len(rare), len(words), "words are rare", full)
