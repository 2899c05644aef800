"""Verb tense, plural nouns and rare words (English).

Word forms come from the lexicon that the package `lemminflect` carries, word ranks from `wordfreq`.
Where a form can be noun or verb ("visits", "love"), the word before decides by the rules below:
simple, readable, and the same on any machine, which a trained tagger is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from holdfast.measures.arguments import Count, Share
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share, share_true
from holdfast.measures.text import folded_words, sentences_of

Tense = Literal["past", "present", "either"]  # "either" for put, read and cut

# The lists say different things about a word, so a word may be in several: "would" has the tense
# of PRESENT, and is a modal, and makes an infinitive of the verb after it.

# a verb may follow these as its subject
_SUBJECTS = frozenset(
    "i you he she it we they who there everyone everybody someone nobody people".split()
)
# after these, a form that can also be a noun or an adjective is no verb
_NOT_A_VERB_AFTER = frozenset(
    "a an the my your his her its our their this that these those no some any every".split()
)
_PREPOSITIONS = frozenset("of in on at for with from by into about near through around".split())
# these begin the object of a verb
_DETERMINERS = frozenset("a an the my your his her its our their me us him them".split())
_CONJUNCTIONS = frozenset("and or but then".split())
# the verb after these is an infinitive
_AUXILIARIES = frozenset(
    (
        "do does did don't doesn't didn't can could will would shall should may might must can't"
        " couldn't won't wouldn't shouldn't i'll you'll he'll she'll it'll we'll they'll i'd you'd"
        " he'd she'd we'd they'd let's"
    ).split()
)
# the verb after these is a participle
_HAVE = frozenset("have has had haven't hasn't hadn't i've you've we've they've".split())
# forms whose tense is fixed
_PRESENT = frozenset(
    (
        "am is are isn't aren't i'm he's she's it's that's there's you're we're they're has hasn't"
        " haven't have i've you've we've they've do does don't doesn't can can't cannot will won't"
        " would wouldn't shall should shouldn't may might must i'll you'll he'll she'll it'll we'll"
        " they'll"
    ).split()
)
_PAST = frozenset("was were wasn't weren't had hadn't did didn't could couldn't been".split())
# the released measure of the past tense does not count these as verbs
MODALS = frozenset(
    (
        "can can't cannot will won't would wouldn't shall should shouldn't may might must could "
        "couldn't"
    ).split()
)
_ADVERBS = frozenset(
    "not never always often also just really then usually sometimes only still already even".split()
)
_UNMARKED_PLURALS = frozenset(
    "people police cattle folk clothes trousers scissors glasses thanks".split()
)
_MAX_ADVERBS = 3  # adverbs that may stand between a verb and the word before it


@dataclass(frozen=True)
class WordInSentence:
    """A word of a sentence, with the words around it."""

    words: Sequence[str]  # of the sentence, folded
    position: int

    @property
    def word(self) -> str:
        return self.words[self.position]

    @property
    def before(self) -> str:
        """The word before, skipping a few adverbs; "" at the start of the sentence."""
        start = max(0, self.position - _MAX_ADVERBS - 1)
        for word in reversed(self.words[start : self.position]):
            if word not in _ADVERBS and not word.endswith("ly"):
                return word
        return ""

    @property
    def after(self) -> str:
        """The next word; "" at the end of the sentence."""
        return "".join(self.words[self.position + 1 : self.position + 2])


def tokens_of(sentence: str) -> list[WordInSentence]:
    """Returns the words of a sentence."""
    words = folded_words(sentence)
    return [WordInSentence(words, position) for position in range(len(words))]


@lru_cache(maxsize=20_000)
def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """Returns the lemmas of a word form by part of speech: 'went' gives {'VERB': ('go',)}."""
    from lemminflect import getAllLemmas

    by_part: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return by_part


@lru_cache(maxsize=20_000)
def _past_forms(lemma: str) -> frozenset[str]:
    """Returns the past tense and past participle of a verb."""
    from lemminflect import getAllInflections

    forms = getAllInflections(lemma, upos="VERB")
    return frozenset((*forms.get("VBD", ()), *forms.get("VBN", ())))


def tense(token: WordInSentence) -> Tense | None:
    """Returns the tense of a verb; None for any other word, and for a verb without a tense.

    Infinitives after "to", "let me" or an auxiliary, forms in -ing, and participles after a form of
    "have" have no tense of their own. A form that can also be a noun or an adjective is a verb only
    after a subject, before an object or, in the base form, at the start.
    """
    word = token.word
    before = token.before
    if word in _PAST:
        return "past"
    if word in _PRESENT:
        return "present"
    kinds = _lemmas(word)
    if "VERB" not in kinds or word in _UNMARKED_PLURALS or is_infinitive(token):
        return None
    is_base = word in kinds["VERB"]
    if word.endswith("ing") and not is_base:
        return None
    if any(word != lemma and word in _past_forms(lemma) for lemma in kinds["VERB"]):
        may_be_other = "NOUN" in kinds or "ADJ" in kinds
        if before in _HAVE or (may_be_other and before in _NOT_A_VERB_AFTER):
            return None
        return "past"
    has_either_tense = is_base and word in _past_forms(word)
    if has_either_tense and before in ("he", "she", "it"):
        return "past"  # "he put": the present would end in -s
    if has_either_tense and before == "" and token.after in _DETERMINERS:
        return "present"  # "put the bread on the table": an order
    if not _is_verb_in_context(token, is_base=is_base):
        return None
    return "either" if has_either_tense else "present"


def is_infinitive(token: WordInSentence) -> bool:
    """Whether a verb depends on the one before: "to go", "will go", "let it go"."""
    if token.before == "to" or token.before in _AUXILIARIES:
        return True
    if token.position < 2:
        return False
    let, object_ = token.words[token.position - 2 : token.position]
    return let in ("let", "lets") and object_ in _SUBJECTS | _DETERMINERS


def _is_verb_in_context(token: WordInSentence, *, is_base: bool) -> bool:
    """Whether a form that may be a verb in the present is one, by the words around it."""
    kinds = _lemmas(token.word).keys()
    before = token.before
    if kinds == {"VERB"} or before in _SUBJECTS or (_is_plural(before) and is_base):
        return True
    if before == "":
        can_follow_order = _NOT_A_VERB_AFTER | _PREPOSITIONS | _SUBJECTS
        return is_base and "ADJ" not in kinds and token.after in can_follow_order
    if before in _NOT_A_VERB_AFTER | _PREPOSITIONS or token.after not in _DETERMINERS:
        return False
    return before in _CONJUNCTIONS or "NOUN" in _lemmas(before) or "PROPN" in _lemmas(before)


def is_participle(token: WordInSentence) -> bool:
    """Whether a word is the participle of a perfect tense: "have eaten"."""
    verbs = _lemmas(token.word).get("VERB", ())
    return token.before in _HAVE and any(token.word in _past_forms(verb) for verb in verbs)


def is_untensed_verb(token: WordInSentence) -> bool:
    """Whether a word is a verb without a tense of its own: infinitive, participle, -ing form."""
    word = token.word
    kinds = _lemmas(word)
    if "VERB" not in kinds or word in _PRESENT | _PAST or tense(token):
        return False
    is_base = word in kinds["VERB"]
    if is_base and is_infinitive(token):
        return True
    if word.endswith("ing") and not is_base and token.before not in _NOT_A_VERB_AFTER:
        return True
    return is_participle(token)


def tenses(tokens: Sequence[WordInSentence]) -> list[Tense]:
    """Returns the tense of each verb of a sentence that has one.

    Forms of either tense follow the other verbs; without any, they are past.
    """
    kinds = [kind for kind in map(tense, tokens) if kind is not None]
    main_tense: Tense = "present" if "present" in kinds and "past" not in kinds else "past"
    return [main_tense if kind == "either" else kind for kind in kinds]


def _is_plural(word: str) -> bool:
    """Whether a word can be a plural noun."""
    nouns = _lemmas(word).get("NOUN", ())
    if word in _UNMARKED_PLURALS:
        return True
    if not nouns or word in nouns:
        return False
    from lemminflect import getInflection

    return any(word in getInflection(noun, "NNS") for noun in nouns)


def _is_plural_noun(token: WordInSentence) -> bool:
    """Whether a word is a plural noun here; "visits" after "she" or before "the" is a verb."""
    if not _is_plural(token.word):
        return False
    if "VERB" not in _lemmas(token.word) or token.word in _UNMARKED_PLURALS:
        return True
    follows_singular = token.before in {"he", "she", "it", "who", "which"}
    return not follows_singular and token.after not in _NOT_A_VERB_AFTER


def plural_noun_marks(text: str) -> list[bool]:
    """Returns for every word of a text whether it is a plural noun there."""
    marks = list[bool]()
    for sentence in sentences_of(text):
        marks += map(_is_plural_noun, tokens_of(sentence))
    return marks


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


@cache
def commonest(number: int) -> frozenset[str]:
    """Returns the commonest English words."""
    from wordfreq import top_n_list

    return frozenset(top_n_list("en", number))


@measure(loads=True)
def rare_words(text: str, common: Count = 10_000, full: Share = 1.0) -> Score:
    """Share of words not among the `common` commonest of English; `full` or more scores 1.

    With `full: 0.5`, "Verdant sojourn" scores 1, and "We went home" 0.
    """
    words = [word for word in folded_words(text) if any(character.isalpha() for character in word)]
    usual = commonest(common)
    rare = [word for word in words if word not in usual and word.removesuffix("'s") not in usual]
    return share(len(rare), len(words), "words are rare", full)
