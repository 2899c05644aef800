"""Tells the tenses of the verbs of an English sentence.

For example:

    "She visits us."           ->  "visits" is present, as it follows a subject
    "Her visits are short."    ->  "are" is present; "visits", after "her", is a noun
    "He put it there."         ->  "put" is past, as the present would be "puts"
    "I want to go."            ->  "want" is present; the infinitive "go" has no tense

Where a form can be noun or verb ("visits", "love"), the word before decides by the rules below:
simple, readable, and the same on any machine, which a trained tagger is not.
"""

from collections.abc import Sequence
from typing import Literal

from holdfast.measures.word_forms import (
    UNMARKED_PLURALS,
    WordInSentence,
    is_plural,
    lemmas_by_part,
    past_forms,
)

Tense = Literal["past", "present", "either"]  # "either" for put, read and cut

# The lists say different things about a word, so a word may be in several: "would" has the tense
# of _PRESENT, and is a modal, and makes an infinitive of the verb after it.

# a verb may follow these as its subject
_SUBJECTS = frozenset(
    "i you he she it we they who there everyone everybody someone nobody people".split()
)
# after these, a form that can also be a noun or an adjective is no verb
NOT_A_VERB_AFTER = frozenset(
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


def tenses(tokens: Sequence[WordInSentence]) -> list[Tense]:
    """Returns the tense of each verb of a sentence that has one.

    Forms of either tense follow the other verbs; without any, they are past.
    """
    kinds = [kind for kind in map(tense, tokens) if kind is not None]
    main_tense: Tense = "present" if "present" in kinds and "past" not in kinds else "past"
    return [main_tense if kind == "either" else kind for kind in kinds]


def tense(token: WordInSentence) -> Tense | None:
    """Returns the tense of a verb; None for any other word, and for a verb without a tense.

    Infinitives after "to", "let me" or an auxiliary, forms in -ing, and participles after a form of
    "have" have no tense of their own. A form that can also be a noun or an adjective is a verb only
    after a subject, before an object or, in the base form, at the start.
    """
    word = token.word
    if word in _PAST:
        return "past"
    if word in _PRESENT:
        return "present"
    parts = lemmas_by_part(word)
    if "VERB" not in parts or word in UNMARKED_PLURALS or is_infinitive(token):
        return None
    is_base = word in parts["VERB"]
    if word.endswith("ing") and not is_base:
        return None
    if any(word != verb and word in past_forms(verb) for verb in parts["VERB"]):
        may_be_other = "NOUN" in parts or "ADJ" in parts
        is_other = may_be_other and token.before in NOT_A_VERB_AFTER
        return None if token.before in _HAVE or is_other else "past"
    if is_base and word in past_forms(word):
        return _tense_of_unchanged(token)
    return "present" if _is_verb_in_context(token, is_base=is_base) else None


def _tense_of_unchanged(token: WordInSentence) -> Tense | None:
    """Returns the tense of a form that present and past share, such as "put"."""
    if token.before in ("he", "she", "it"):
        return "past"  # "he put": the present would end in -s
    if token.before == "" and token.after in _DETERMINERS:
        return "present"  # "put the bread on the table": an order
    return "either" if _is_verb_in_context(token, is_base=True) else None


def _is_verb_in_context(token: WordInSentence, *, is_base: bool) -> bool:
    """Whether a form that may be a verb in the present is one, by the words around it."""
    parts = lemmas_by_part(token.word).keys()
    before = token.before
    if parts == {"VERB"} or before in _SUBJECTS or (is_plural(before) and is_base):
        return True
    if before == "":
        can_follow_order = NOT_A_VERB_AFTER | _PREPOSITIONS | _SUBJECTS
        return is_base and "ADJ" not in parts and token.after in can_follow_order
    if before in NOT_A_VERB_AFTER | _PREPOSITIONS or token.after not in _DETERMINERS:
        return False
    parts_before = lemmas_by_part(before)
    return before in _CONJUNCTIONS or "NOUN" in parts_before or "PROPN" in parts_before


def is_infinitive(token: WordInSentence) -> bool:
    """Whether a verb depends on the one before: "to go", "will go", "let it go"."""
    if token.before == "to" or token.before in _AUXILIARIES:
        return True
    if token.position < 2:
        return False
    let, object_ = token.words[token.position - 2 : token.position]
    return let in ("let", "lets") and object_ in _SUBJECTS | _DETERMINERS


def is_participle(token: WordInSentence) -> bool:
    """Whether a word is the participle of a perfect tense: "have eaten"."""
    verbs = lemmas_by_part(token.word).get("VERB", ())
    return token.before in _HAVE and any(token.word in past_forms(verb) for verb in verbs)


def is_untensed_verb(token: WordInSentence) -> bool:
    """Whether a word is a verb without a tense of its own: infinitive, participle, -ing form."""
    word = token.word
    parts = lemmas_by_part(word)
    if "VERB" not in parts or word in _PRESENT | _PAST or tense(token):
        return False
    is_base = word in parts["VERB"]
    if is_base and is_infinitive(token):
        return True
    if word.endswith("ing") and not is_base and token.before not in NOT_A_VERB_AFTER:
        return True
    return is_participle(token)
