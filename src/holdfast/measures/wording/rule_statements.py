"""Finds sentences that state what a measure demands, whatever words they use.

    measure:   at_most_words, with count 40
    sentence:  "40 words is the most that an answer may have."  ->  states it
               "You may ignore the limit of 40 words."          ->  lifts a rule, and states none

Such a sentence may share no word with the text of the rule. `measure_words` has the wordings for
each measure.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.wording.clause_words import is_negated
from holdfast.measures.wording.measure_words import MEASURE_WORDS
from holdfast.measures.wording.sentences import Passage, Sentence, read_sentences
from holdfast.measures.wording.wordings import Wording

# --- Sentences that state no rule

# lifts a rule: "*ignore* the limit", "there is *no need* to ask"
_LIFTS = re.compile(
    r"\b(?:ignore|disregard|waive[sd]?|suspend(?:ed)?|lifted|override|exempt|exception"
    r"|never ?mind|do not bother|unnecessary|not necessary|need not|no need"
    r"|no longer (?:appl(?:y|ies)|minds?|cares?|objects?|holds?|counts?|matters?)"
    r"|(?:do|does) not (?:mind|care|object|(?:need|have) to)"
    r"|(?<!not )forget (?:the|about)"
    r"|instead of (?:the rule|following|starting|ending|finishing|beginning|answering|giving|using"
    r"|running))\b"
)
# leaves a rule open, or tells of one: "end with a joke *if you like*", "the check *failed*"
_WEAKENS = re.compile(
    r"\b(?:optional(?:ly)?|if you (?:like|want|prefer)|when(?:ever)? you like|up to you|used to"
    r"|(?:asked|wondered|unsure|unclear) (?:if|whether)|failed|passed|(?:was|were|did) not)\b"
)
# asks whether or why something is so: "*did you* push it?", "*why is it* in English?"
_ASKS_FOR_FACT = re.compile(
    r"(?!(?:do|have) it\b(?!.*\?))"  # "do it in English" is an order
    r"(?:(?:why|how|when) )?(?:do|does|did|are|were|is|was|have|has)(?: not)?"
    r" (?:i|you|we|they|it)\b"
)
# says where things go, or which are meant: "mails that end with a question go to sales"
_DESCRIBES = re.compile(
    r"^(?:\w+ ){1,4}(?:that|which|who|whose|with) (?!.*\b(?:must|should|shall)\b).*"
    r"\b(?:(?:are|is) (?:ours|mine|yours|theirs|from|for)|go(?:es)?(?! before)|belongs?)\b"
)
# says that something happened or failed: "the tests *have not* run", "it is *already* in English"
_HAPPENED = re.compile(
    r"\b(?:did|was|were|could|had) not\b|\b(?:has|have) not (?!to\b)"
    r"|\bnot (?:yet|found|installed|available|working)\b|\bfailed\b|\balready\b"
)


def lifts_rule(plain: str) -> bool:
    """Whether a plain sentence lifts a rule."""
    return _LIFTS.search(plain) is not None


def asks_for_fact(plain: str) -> bool:
    """Whether a plain sentence asks whether or why something is so."""
    return _ASKS_FOR_FACT.match(plain) is not None


def is_no_rule(plain: str) -> bool:
    """Whether a plain sentence lifts a rule, leaves it open, asks for a fact, or describes
    something.
    """
    if lifts_rule(plain) or _WEAKENS.search(plain) or asks_for_fact(plain):
        return True
    return _DESCRIBES.search(plain) is not None and not is_negated(plain)


# --- Sentences that state a rule

_FORBIDS = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|avoid|forbids?|forbade|forbidden|prohibited"
    r"|banned|disallowed|untouched|off[ -]limits|leave\b.*\balone)\b"
)
# says that something is not so, and forbids nothing: "*it is not* in German", "I do *not know*"
_DENIES = re.compile(
    r"^(?:i|it|they|he|she|there|this|that) (?:\w+ )?(?:do|does|is|are|can|will) not\b"
    r"|\bnot (?:have|work|exist|need|know|see|think|find|mind|matter)\b"
    r"|\bno (?:need|problem|idea|longer)\b"
)
# refers to what the sentence before names: "never mention *that shop*"
_REFERS = re.compile(r"\b(?:it|them|that (?:name|word|shop|one)|this|these|those)\b")


def find_statement(text: str, measure: Measure) -> Passage | None:
    """Returns the last sentence of a text that states what a measure demands; None without one."""
    wordings = _wordings_of(measure)
    sentences = read_sentences(text) if wordings else ()
    for number in range(len(sentences) - 1, -1, -1):
        sentence = sentences[number]
        before = sentences[number - 1].plain if number else ""
        if not any(_has_wording(sentence, before, wording) for wording in wordings):
            continue
        if not is_no_rule(sentence.plain) and not _HAPPENED.search(sentence.plain):
            return sentence.quoted()
    return None


@lru_cache(maxsize=256)
def _wordings_of(measure: Measure) -> Sequence[Wording]:
    """Returns the wordings of a measure's rule; cached, as they take time to build."""
    if measure.name == "never":
        return _negate(_wordings_of(build(measure.arguments["measure"])))
    words = MEASURE_WORDS.get(measure.name)
    return words.wordings(measure.arguments) if words else ()


def _negate(wordings: Sequence[Wording]) -> Sequence[Wording]:
    """Turns the wordings of a requirement into wordings that forbid the same thing."""
    return [
        Wording(wording.patterns, forbidden=wording.patterns[-1:])
        for wording in wordings
        if wording.asks
    ]


def _has_wording(sentence: Sentence, before: str, wording: Wording) -> bool:
    """Whether a sentence, or it with the sentence before, has a wording."""
    plain = sentence.plain
    if not all(re.search(pattern, plain) for pattern in wording.patterns):
        return False
    if wording.asks and is_negated(plain):
        return False
    if wording.forbidden:
        clauses = [clause for clause in sentence.clauses if _forbids(clause)]
        if not any(_matches_all(clause, wording.forbidden) for clause in clauses):
            return False
    if not wording.named or re.search(wording.named, plain):
        return True
    return bool(_REFERS.search(plain) and re.search(wording.named, before))


def _matches_all(clause: str, patterns: Sequence[str]) -> bool:
    return all(re.search(pattern, clause) for pattern in patterns)


def _forbids(clause: str) -> bool:
    """Whether a clause forbids something, rather than denies it."""
    return bool(_FORBIDS.search(clause)) and not _DENIES.search(clause)
