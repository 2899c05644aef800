"""Whether a text says a rule, in its words or in others, or orders otherwise (docs/causes.md).

A rule's sentence is reduced to *signed words*: its content words, each with whether the sentence
asks for it or forbids it. A text says the rule if it contains the rule's words in a row, or if one
of its sentences has most of the signed words. It orders otherwise if a sentence that is an order
has them with the other sign, or lifts the rule. No model is involved, and only the synonyms of
`rule_words`.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from holdfast.errors import cut
from holdfast.measures.clause_words import (
    IN_CONTRACTIONS,
    PlacedWord,
    Signed,
    SignedWord,
    anchors,
    placed_words,
    stems,
    without_markup,
)
from holdfast.measures.order_patterns import ASKS_FOR_FACT, LIFTS, ONCE, ONWARD, PERMITS
from holdfast.measures.orders import (
    QUOTED,
    Passage,
    Sentence,
    is_no_rule,
    passage_of,
    read_sentences,
)
from holdfast.measures.text import sentences_of

SHARE_SAID = 0.6  # of a rule's signed words that a sentence needs to say the rule
SHARE_OF_SHORT = 0.5  # the same for a clause that has no other content words
SHARE_AGAINST = 0.5  # of the words that an order needs to be one against the rule
# The same of what a rule of "this, not that" forbids: "install it" does not ask for `pip install`.
SHARE_OF_CHOICE = 0.75
SHARE_AGAINST_IN_FILES = 0.75  # the same for a file or a summary, which nobody wrote as an order
_EXAMPLE = re.compile(r",?\s*\(?(?:such as|e\.g\.|for example|for instance|like)\b.*$", re.I | re.S)
_TAKES_BACK = re.compile(
    r"\b(?:not|no need|stop|skip|drop|ignore|forget|disregard|without|instead of|no longer)\b"
)
_LIGHT = frozenset(("us", "use", "keep", "let", "get", "run"))  # count if nothing else does


@dataclass(frozen=True)
class RuleText:
    """The text of a rule, ready to be looked for."""

    text: str

    def said_in(self, text: str, exactly: bool = False) -> Passage | None:
        """The last passage of a text that says the rule.

        Args:
            exactly: whether only its own words count.
        """
        if self._may_have_words(text) and self._is_said_word_for_word(placed_words(text)):
            return Passage(cut(" ".join(self.text.split()), QUOTED), self._place_in(text))
        if exactly or not self._may_say(text):
            return None
        sentences = read_sentences(text)
        passages: list[Passage] = []
        for part in self._parts:
            passage = _last(part, sentences)
            if passage is None:
                return None
            passages.append(passage)
        return max(passages, key=lambda passage: passage.index, default=None)

    def ordered_otherwise_in(self, text: str, is_by_user: bool = True) -> Passage | None:
        """The last passage of a text that lifts the rule, or orders what it forbids."""
        share = SHARE_AGAINST if is_by_user else SHARE_AGAINST_IN_FILES
        for sentence in reversed(read_sentences(text)):
            if not sentence.is_order or any(part.is_said_by(sentence) for part in self._parts):
                continue
            for part in self._parts:
                if (lifts := part.is_lifted_by(sentence, share)) is not None:
                    return passage_of(sentence, lifts)
        return None

    @cached_property
    def _words(self) -> str:
        return " ".join(word for word, _ in placed_words(self.text))

    @cached_property
    def _written_words(self) -> tuple[str, ...]:
        """Its words that no contraction stands for; the longest, which are the rarest, first."""
        return tuple(sorted({*self._words.split()} - IN_CONTRACTIONS, key=len, reverse=True))

    def _may_have_words(self, text: str) -> bool:
        """Whether a text may have all words of the rule; saves the reading of long outputs.

        Only plain ASCII is told without reading, and no bold letters, whose marks may be in a word.
        """
        if not text.isascii() or "**" in text:
            return True
        folded = text.lower()
        return all(word in folded for word in self._written_words)

    @cached_property
    def _parts(self) -> tuple["_RuleSentence", ...]:
        """Its sentences that have content words."""
        parts = [_RuleSentence(sentence) for sentence in sentences_of(without_markup(self.text))]
        return tuple(part for part in parts if part.signed)

    def _is_said_word_for_word(self, words: tuple[PlacedWord, ...]) -> bool:
        """Whether the rule's words stand in a row, and what precedes them in their sentence does
        not take them back.
        """
        if not self._words:
            return False
        whole = f" {' '.join(word for word, _ in words)} "
        start = whole.rfind(f" {self._words} ")
        while start >= 0:
            first = whole.count(" ", 0, start + 1) - 1
            lead = " ".join(word for word, number in words[:first] if number == words[first][1])
            if not (_TAKES_BACK.search(lead) or ASKS_FOR_FACT.match(lead)):
                return True
            start = whole.rfind(f" {self._words} ", 0, start + 1)
        return False

    def _place_in(self, text: str) -> int:
        """The last sentence of a text that has the first words of the rule."""
        begins = f" {' '.join(self._words.split()[:3])} "
        sentences = read_sentences(text)
        for sentence in reversed(sentences):
            words = " ".join(word for word, _ in placed_words(sentence.text))
            if begins in f" {words} ":
                return sentence.index
        return 0

    def _may_say(self, text: str) -> bool:
        """Whether the whole text has enough of the words; saves the reading of its sentences."""
        words = stems(text)
        return all(
            len({word for word, _ in part.signed} & words) >= SHARE_OF_SHORT * len(part.signed)
            for part in self._parts
        )


class _RuleSentence:
    """A sentence of a rule: its signed words, and the words that a text must have."""

    def __init__(self, sentence: str) -> None:
        plain = _EXAMPLE.sub("", sentence)
        signed = Sentence(plain, 0).signed
        content = _without_light_words(signed)
        self.signed: Signed = content if len(content) > 1 else signed
        self.anchors = anchors(plain) & {word for word, _ in self.signed}

    def is_said_by(self, sentence: Sentence) -> bool:
        if is_no_rule(sentence.plain):
            return False
        if self._has_enough(sentence.decided, SHARE_SAID):
            return True
        return any(
            _without_light_words(clause) <= self.signed and self._has_enough(clause, SHARE_OF_SHORT)
            for clause in sentence.clauses
        )

    def _has_enough(self, signed: Signed, share: float) -> bool:
        same = self.signed & signed
        return self._is_enough({word for word, _ in same}, len(same), share)

    def _is_enough(self, words: set[str], count: int, share: float) -> bool:
        return self.anchors <= words and count >= share * len(self.signed) and count > 0

    def is_lifted_by(self, sentence: Sentence, share: float) -> bool | None:
        """Whether a sentence that is an order lifts the rule for good (True) or asks for what it
        forbids, this time (False); None if it does neither.
        """
        lasts = not ONCE.search(sentence.plain)
        words = {word for word, _ in self.signed} & {word for word, _ in sentence.signed}
        if LIFTS.search(sentence.plain) and len(words) >= share * len(self.signed):
            return lasts
        forbidden = {word for word, is_wanted in self.signed if not is_wanted}
        wanted = {word for word, is_wanted in self.signed if is_wanted}
        ordered = {word for word, is_wanted in sentence.ordered if is_wanted}
        for_good = lasts and bool(PERMITS.search(sentence.plain) or ONWARD.search(sentence.plain))
        if forbidden and wanted:  # "use this, not that": an order for that
            has_forbidden = len(forbidden & ordered) >= max(share, SHARE_OF_CHOICE) * len(forbidden)
            return for_good if has_forbidden and not wanted <= ordered else None
        against = {SignedWord(word, not is_wanted) for word, is_wanted in self.signed}
        opposite = against & sentence.ordered
        has_enough = self._is_enough({word for word, _ in opposite}, len(opposite), share)
        if not has_enough or len(opposite) < min(2, len(self.signed)):
            return None
        return for_good if forbidden else lasts


def _without_light_words(signed: Signed) -> Signed:
    return frozenset(item for item in signed if item.stem not in _LIGHT)


def _last(part: _RuleSentence, sentences: tuple[Sentence, ...]) -> Passage | None:
    """The last sentence that says a sentence of the rule."""
    for sentence in reversed(sentences):
        if part.is_said_by(sentence):
            return passage_of(sentence)
    return None
