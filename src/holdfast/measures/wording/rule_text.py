"""Tells whether a text says a rule, in its words or in others, or orders otherwise.

    rule = RuleText("Never push to main.")
    rule.find_in("Pushing to main is forbidden.")       ->  the sentence says the rule
    rule.find_counter_order("Push this one to main.")   ->  the sentence orders otherwise, once

A rule's sentence is reduced to *signed words*: its content words, each with whether the sentence
asks for it or forbids it. A text says the rule if it contains the rule's words in a row, or if one
of its sentences has most of the signed words. It orders otherwise if a sentence that is an order
has them with the other sign, or lifts the rule. No model is involved, and the only synonyms are
those of `word_stems` and `plain_text`. docs/causes.md has the same in prose.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from holdfast.errors import cut
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.clause_words import stems
from holdfast.measures.wording.plain_text import (
    IN_CONTRACTIONS,
    PlacedWord,
    placed_words,
    without_markup,
)
from holdfast.measures.wording.rule_sentences import (
    MIN_SHARE_OF_CLAUSE,
    RuleSentence,
    read_rule_sentence,
)
from holdfast.measures.wording.rule_statements import asks_for_fact
from holdfast.measures.wording.sentences import (
    MAX_QUOTE_CHARACTERS,
    Passage,
    Sentence,
    read_sentences,
)

# the share of a rule's signed words that an order against it needs
MIN_SHARE_AGAINST = 0.5
MIN_SHARE_AGAINST_IN_FILES = 0.75  # which mostly order nothing
# before a rule's words, takes it back: "you *need not* push to main"
_TAKES_BACK = re.compile(
    r"\b(?:not|no need|stop|skip|drop|ignore|forget|disregard|without|instead of|no longer)\b"
)


@dataclass(frozen=True)
class RuleText:
    """The text of a rule, which can be looked for in other texts."""

    text: str

    def find_in(self, text: str, exactly: bool = False) -> Passage | None:
        """Returns the last passage of a text that says the rule; None if no passage does.

        Args:
            exactly: whether the passage must have the rule's own words.
        """
        if self._may_have_words(text) and self._is_said_word_for_word(placed_words(text)):
            quote = cut(" ".join(self.text.split()), MAX_QUOTE_CHARACTERS)
            return Passage(quote, self._sentence_index_in(text))
        if exactly or not self._may_say(text):
            return None
        passages: list[Passage] = []
        for sentence in self._sentences:
            passage = _last_passage(sentence, read_sentences(text))
            if passage is None:
                return None
            passages.append(passage)
        return max(passages, key=lambda passage: passage.index, default=None)

    def find_counter_order(self, text: str, is_by_user: bool = True) -> Passage | None:
        """Returns the last passage of a text that lifts the rule, or orders what it forbids.

        Args:
            is_by_user: whether the user wrote the text; False for a file or a summary.
        """
        share = MIN_SHARE_AGAINST if is_by_user else MIN_SHARE_AGAINST_IN_FILES
        for sentence in reversed(read_sentences(text)):
            if not sentence.is_order or any(rule.is_said_by(sentence) for rule in self._sentences):
                continue
            for rule in self._sentences:
                if passage := rule.order_against(sentence, share):
                    return passage
        return None

    @cached_property
    def _words(self) -> str:
        return " ".join(word for word, _ in placed_words(self.text))

    @cached_property
    def _written_words(self) -> tuple[str, ...]:
        """Its words that no contraction stands for; the longest, which are rarest, come first."""
        return tuple(sorted({*self._words.split()} - IN_CONTRACTIONS, key=len, reverse=True))

    def _may_have_words(self, text: str) -> bool:
        """Whether a text may have all words of the rule, so that it has to be read.

        This saves time on long outputs. A text that is not ASCII, or has bold letters, whose marks
        may be inside a word, may always have them.
        """
        if not text.isascii() or "**" in text:
            return True
        folded = text.lower()
        return all(word in folded for word in self._written_words)

    @cached_property
    def _sentences(self) -> tuple[RuleSentence, ...]:
        """Its sentences that have content words."""
        sentences = map(read_rule_sentence, sentences_of(without_markup(self.text)))
        return tuple(sentence for sentence in sentences if sentence.signed)

    def _is_said_word_for_word(self, words: tuple[PlacedWord, ...]) -> bool:
        """Whether the rule's words occur in a row, and the words before them in their sentence do
        not take the rule back.
        """
        if not self._words:
            return False
        whole = f" {' '.join(word for word, _ in words)} "
        start = whole.rfind(f" {self._words} ")
        while start >= 0:
            first = whole.count(" ", 0, start + 1) - 1  # the index of the first of these words
            lead = " ".join(word for word, number in words[:first] if number == words[first][1])
            if not (_TAKES_BACK.search(lead) or asks_for_fact(lead)):
                return True
            start = whole.rfind(f" {self._words} ", 0, start + 1)
        return False

    def _sentence_index_in(self, text: str) -> int:
        """Returns the index of the last sentence with the first words of the rule; else 0."""
        first_words = f" {' '.join(self._words.split()[:3])} "
        sentences = read_sentences(text)
        for sentence in reversed(sentences):
            words = " ".join(word for word, _ in placed_words(sentence.text))
            if first_words in f" {words} ":
                return sentence.index
        return 0

    def _may_say(self, text: str) -> bool:
        """Whether the whole text has enough of the words, so that its sentences have to be read."""
        words = stems(text)
        return all(
            len(rule.stems & words) >= MIN_SHARE_OF_CLAUSE * len(rule.signed)
            for rule in self._sentences
        )


def _last_passage(rule: RuleSentence, sentences: tuple[Sentence, ...]) -> Passage | None:
    """Returns the last of some sentences that says a sentence of a rule; None without one."""
    for sentence in reversed(sentences):
        if rule.is_said_by(sentence):
            return sentence.quoted()
    return None
