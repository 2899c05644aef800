"""Finds sentences that state what a measure demands, whatever words they use.

"40 words is the most that an answer may have" states `at_most_words: 40`, even if it shares no word
with the text of the rule. `measure_words` has the wordings for each measure.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.wording.clause_words import is_negated
from holdfast.measures.wording.measure_words import MEASURE_WORDS
from holdfast.measures.wording.orders import (
    Passage,
    Sentence,
    is_no_rule,
    passage_of,
    read_sentences,
)
from holdfast.measures.wording.wordings import Wording

_FORBIDS = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|avoid|forbids?|forbade|forbidden|prohibited"
    r"|banned|disallowed|untouched|off[ -]limits|leave\b.*\balone)\b"
)
# says that something is not so, and forbids nothing
_DENIES = re.compile(
    r"^(?:i|it|they|he|she|there|this|that) (?:\w+ )?(?:do|does|is|are|can|will) not\b"
    r"|\bnot (?:have|work|exist|need|know|see|think|find|mind|matter)\b"
    r"|\bno (?:need|problem|idea|longer)\b"
)
# says that something happened or failed, and orders nothing
_HAPPENED = re.compile(
    r"\b(?:did|was|were|could|had) not\b|\b(?:has|have) not (?!to\b)"
    r"|\bnot (?:yet|found|installed|available|working)\b|\bfailed\b|\balready\b"
)
# refers to what the sentence before names
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
            return passage_of(sentence)
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
        clauses = [clause for clause in sentence.parts if _forbids(clause)]
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
