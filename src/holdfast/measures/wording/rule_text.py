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
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from holdfast.errors import cut
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.clause_words import SignedWord, SignedWords, anchors, stems
from holdfast.measures.wording.orders import is_for_good, is_for_once
from holdfast.measures.wording.plain_text import (
    IN_CONTRACTIONS,
    PlacedWord,
    placed_words,
    without_markup,
)
from holdfast.measures.wording.rule_statements import asks_for_fact, is_no_rule, lifts_rule
from holdfast.measures.wording.sentences import (
    MAX_QUOTE_CHARACTERS,
    Passage,
    Sentence,
    read_sentences,
)

# the share of a rule's signed words that a text needs
MIN_SHARE_TO_SAY = 0.6  # for a sentence to say the rule
MIN_SHARE_OF_CLAUSE = 0.5  # for a clause without other content words to say the rule
MIN_SHARE_AGAINST = 0.5  # for an order to be against the rule
MIN_SHARE_AGAINST_IN_FILES = 0.75  # the same in a file or a summary, which is not written to order
# for an order to be against a rule such as "use this, not that", the share of the words for "that":
# "install it" does not ask for `pip install`
MIN_SHARE_OF_CHOICE = 0.75
# an example at the end of a rule: "Use short names, *such as `i`.*"
_EXAMPLE = re.compile(r",?\s*\(?(?:such as|e\.g\.|for example|for instance|like)\b.*$", re.I | re.S)
# before a rule's words, takes it back: "you *need not* push to main"
_TAKES_BACK = re.compile(
    r"\b(?:not|no need|stop|skip|drop|ignore|forget|disregard|without|instead of|no longer)\b"
)
# where a rule holds, which is neither asked for nor forbidden: "in `admin/`", "under src/api/"
_IN_FOLDER = re.compile(
    r"\b(?:in|under|inside|within|below|into)"
    r" ([`\"']?[\w./-]++(?:(?<=\w/)|(?<=/\.))(?!\S*\w))"
)
# stems that count only in a sentence without other content words
_LIGHT = frozenset(("us", "use", "keep", "let", "get", "run"))


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
        sentences = read_sentences(text)
        passages: list[Passage] = []
        for part in self._parts:
            passage = _last_passage(part, sentences)
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
            if not sentence.is_order or any(part.is_said_by(sentence) for part in self._parts):
                continue
            for part in self._parts:
                if passage := part.order_against(sentence, share):
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
    def _parts(self) -> tuple["_RuleSentence", ...]:
        """Its sentences that have content words."""
        parts = map(_read_rule_sentence, sentences_of(without_markup(self.text)))
        return tuple(part for part in parts if part.signed)

    def _is_said_word_for_word(self, words: tuple[PlacedWord, ...]) -> bool:
        """Whether the rule's words occur in a row, and the words before them in their sentence do
        not take the rule back.
        """
        if not self._words:
            return False
        whole = f" {' '.join(word for word, _ in words)} "
        start = whole.rfind(f" {self._words} ")
        while start >= 0:
            first = whole.count(" ", 0, start + 1) - 1
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
            len(part.stems & words) >= MIN_SHARE_OF_CLAUSE * len(part.signed)
            for part in self._parts
        )


@dataclass(frozen=True)
class _RuleSentence:
    """A sentence of a rule.

    Args:
        signed: its signed words.
        anchors: the stems among them that a text must have.
        folders: those anchors that say where the rule holds.
    """

    signed: SignedWords
    anchors: frozenset[str]
    folders: frozenset[str]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its signed words."""
        return _stems_of(self.signed)

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The stems that it asks for."""
        return _stems_of(word for word in self.signed if word.is_wanted)

    @cached_property
    def forbidden(self) -> frozenset[str]:
        """The stems that it forbids."""
        return _stems_of(word for word in self.signed if not word.is_wanted)

    def is_said_by(self, sentence: Sentence) -> bool:
        """Whether another sentence says this one."""
        if is_no_rule(sentence.plain):
            return False
        if self._is_covered_by(sentence.decided, MIN_SHARE_TO_SAY):
            return True
        return any(
            _without_light_words(clause) <= self.signed
            and self._is_covered_by(clause, MIN_SHARE_OF_CLAUSE)
            for clause in sentence.signed_clauses
        )

    def _is_covered_by(self, signed: SignedWords, share: float) -> bool:
        """Whether signed words have at least this share of the sentence's, and all its anchors.

        The folders that the sentence is about may be in a clause that forbids something.
        """
        same = self.signed & signed
        folders = self.folders & _stems_of(signed)
        return self._are_enough(same, share) and self.anchors <= _stems_of(same) | folders

    def _are_enough(self, words: SignedWords, share: float) -> bool:
        """Whether there are words, and at least this share of the sentence's."""
        return len(words) >= share * len(self.signed) and len(words) > 0

    def order_against(self, sentence: Sentence, share: float) -> Passage | None:
        """Returns a sentence that is an order, if it goes against this sentence of a rule.

        Args:
            share: the share of the signed words that the order needs.

        Returns:
            A passage that lasts if the order lifts the rule for good, rather than for this turn.
        """
        is_lasting = not is_for_once(sentence.plain)
        is_permanent = is_lasting and is_for_good(sentence.plain)
        shared = self.stems & _stems_of(sentence.signed)
        if lifts_rule(sentence.plain) and len(shared) >= share * len(self.signed):
            return sentence.quoted(is_lasting)
        ordered = sentence.ordered_beside(self.stems)
        if self.forbidden and self.wanted:
            is_against = self._is_other_choice(ordered, share)
            return sentence.quoted(is_permanent) if is_against else None
        if not self._is_reversed_by(ordered, share):
            return None
        return sentence.quoted(is_permanent if self.forbidden else is_lasting)

    def _is_other_choice(self, ordered: SignedWords, share: float) -> bool:
        """Whether an order asks for "that", if this sentence says "use this, not that"."""
        words = _stems_of(word for word in ordered if word.is_wanted)
        needed = max(share, MIN_SHARE_OF_CHOICE) * len(self.forbidden)
        return len(self.forbidden & words) >= needed and not self.wanted <= words

    def _is_reversed_by(self, ordered: SignedWords, share: float) -> bool:
        """Whether an order has this share of the signed words with the other sign, and at least
        two of them.
        """
        against = {SignedWord(word, not is_wanted) for word, is_wanted in self.signed}
        opposite = ordered & against
        if len(opposite) < min(2, len(self.signed)):
            return False
        return self._are_enough(opposite, share) and self.anchors <= _stems_of(opposite)


def _read_rule_sentence(sentence: str) -> _RuleSentence:
    """Reads a sentence of a rule, without an example at its end."""
    plain = _EXAMPLE.sub("", sentence)
    signed = Sentence(plain, 0).signed
    content = _without_light_words(signed)
    signed = content if len(content) > 1 else signed
    all_anchors = _stems_of(signed) & anchors(plain)
    folders = anchors(" ".join(match[1] for match in _IN_FOLDER.finditer(plain)))
    return _RuleSentence(signed, all_anchors, all_anchors & folders)


def _stems_of(words: Iterable[SignedWord]) -> frozenset[str]:
    return frozenset(word.stem for word in words)


def _without_light_words(signed: SignedWords) -> SignedWords:
    return frozenset(word for word in signed if word.stem not in _LIGHT)


def _last_passage(part: _RuleSentence, sentences: tuple[Sentence, ...]) -> Passage | None:
    """Returns the last of some sentences that says a sentence of the rule; None without one."""
    for sentence in reversed(sentences):
        if part.is_said_by(sentence):
            return sentence.quoted()
    return None
