"""Sentences that state what a measure demands, in words that the rule's text need not share.

"40 words is the most that an answer may have" states `at_most_words: 40`, whatever the text of the
rule. `measure_words` has the wordings of each measure's rules.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from holdfast.measures.clause_words import is_negated
from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.measure_words import MEASURE_WORDS, Wording
from holdfast.measures.orders import Passage, Sentence, is_no_rule, passage_of, read_sentences


def stated_in(text: str, measure: Measure) -> Passage | None:
    """The last sentence of a text that states what a measure demands."""
    wordings = _wordings_of(measure)
    sentences = read_sentences(text) if wordings else ()
    for number in range(len(sentences) - 1, -1, -1):
        sentence = sentences[number]
        before = sentences[number - 1].plain if number else ""
        is_stated = any(_states(sentence, before, wording) for wording in wordings)
        if is_stated and not (is_no_rule(sentence.plain) or _HAPPENED.search(sentence.plain)):
            return passage_of(sentence)
    return None


@lru_cache(maxsize=256)
def _wordings_of(measure: Measure) -> Sequence[Wording]:
    """How sentences state a measure, made once."""
    if measure.name == "never":
        return _forbidding(_wordings_of(build(measure.arguments["measure"])))
    words = MEASURE_WORDS.get(measure.name)
    return words.wordings(measure.arguments) if words else ()


def _forbidding(wordings: Sequence[Wording]) -> Sequence[Wording]:
    """The wordings of what is asked for, in a clause that forbids it."""
    return [
        Wording(wording.patterns, forbidden=wording.patterns[-1:])
        for wording in wordings
        if wording.asks
    ]


def _states(sentence: Sentence, before: str, wording: Wording) -> bool:
    plain = sentence.plain
    if not all(re.search(pattern, plain) for pattern in wording.patterns):
        return False
    if wording.asks and is_negated(plain):
        return False
    if wording.forbidden and not any(
        all(re.search(pattern, clause) for pattern in wording.forbidden)
        for clause in filter(_forbids, sentence.parts)
    ):
        return False
    if not wording.named or re.search(wording.named, plain):
        return True
    return bool(_REFERS.search(plain) and re.search(wording.named, before))


def _forbids(clause: str) -> bool:
    """Whether a clause forbids something, and does not only deny it."""
    return bool(_FORBIDS.search(clause)) and not _DENIES.search(clause)


_FORBIDS = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|avoid|forbidden|prohibited|banned|disallowed"
    r"|untouched|off[ -]limits|leave\b.*\balone)\b"
)
_DENIES = re.compile(
    r"^(?:i|it|they|he|she|there|this|that) (?:\w+ )?(?:do|does|is|are|can|will) not\b"
    r"|\bnot (?:have|work|exist|need|know|see|think|find|mind|matter)\b"
    r"|\bno (?:need|problem|idea|longer)\b"
)
# of a sentence that says what happened or failed, and orders nothing
_HAPPENED = re.compile(
    r"\b(?:did|was|were|could|had) not\b|\b(?:has|have) not (?!to\b)|\bnot (?:yet|found|installed"
    r"|available|working)\b|\bfailed\b|\balready\b"
)
_REFERS = re.compile(r"\b(?:it|them|that (?:name|word|shop|one)|this|these|those)\b")
