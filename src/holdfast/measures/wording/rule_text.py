"""Tells whether a text says a rule, in its words or in others, or orders otherwise.

A rule's sentence is reduced to *signed words*: its content words, each with whether the sentence
asks for it or forbids it. A text says the rule if it contains the rule's words in a row, or if one
of its sentences has most of the signed words. It orders otherwise if a sentence that is an order
has them with the other sign, or lifts the rule. No model is involved, and the only synonyms are
those of `clause_words`. docs/causes.md has the same in prose.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from holdfast.errors import cut
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.clause_words import (
    IN_CONTRACTIONS,
    PlacedWord,
    SignedWord,
    SignedWords,
    anchors,
    placed_words,
    stems,
    without_markup,
)
from holdfast.measures.wording.orders import (
    ASKS_FOR_FACT,
    LIFTS,
    MAX_QUOTE_CHARACTERS,
    ONCE,
    ONWARD,
    PERMITS,
    Passage,
    Sentence,
    is_no_rule,
    passage_of,
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
_EXAMPLE = re.compile(r",?\s*\(?(?:such as|e\.g\.|for example|for instance|like)\b.*$", re.I | re.S)
_TAKES_BACK = re.compile(
    r"\b(?:not|no need|stop|skip|drop|ignore|forget|disregard|without|instead of|no longer)\b"
)
# where a rule holds: "in `admin/`", which is neither asked for nor forbidden
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
                if (lifts := part.is_lifted_by(sentence, share)) is not None:
                    return passage_of(sentence, lifts)
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
        parts = [_RuleSentence(sentence) for sentence in sentences_of(without_markup(self.text))]
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
            if not (_TAKES_BACK.search(lead) or ASKS_FOR_FACT.match(lead)):
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
            len({word for word, _ in part.signed} & words) >= MIN_SHARE_OF_CLAUSE * len(part.signed)
            for part in self._parts
        )


class _RuleSentence:
    """A sentence of a rule: its signed words, and those that a text must have (`anchors`)."""

    def __init__(self, sentence: str) -> None:
        plain = _EXAMPLE.sub("", sentence)
        signed = Sentence(plain, 0).signed
        content = _without_light_words(signed)
        self.signed: SignedWords = content if len(content) > 1 else signed
        self.anchors = anchors(plain) & {word for word, _ in self.signed}
        folders = anchors(" ".join(match[1] for match in _IN_FOLDER.finditer(plain)))
        self._folders = folders & self.anchors

    def is_said_by(self, sentence: Sentence) -> bool:
        """Whether another sentence says this one."""
        if is_no_rule(sentence.plain):
            return False
        if self._is_covered_by(sentence.decided, MIN_SHARE_TO_SAY):
            return True
        return any(
            _without_light_words(clause) <= self.signed
            and self._is_covered_by(clause, MIN_SHARE_OF_CLAUSE)
            for clause in sentence.clauses
        )

    def _is_covered_by(self, signed: SignedWords, share: float) -> bool:
        """Whether signed words have at least this share of the sentence's, and all its anchors.

        The folders that the sentence is about may be in a clause that forbids something.
        """
        same = self.signed & signed
        folders = {word for word, _ in signed} & self._folders
        return self._is_enough({word for word, _ in same} | folders, len(same), share)

    def _is_enough(self, words: set[str], count: int, share: float) -> bool:
        """Whether `count` words are at least this share, and `words` has all anchors."""
        return self.anchors <= words and count >= share * len(self.signed) and count > 0

    def is_lifted_by(self, sentence: Sentence, share: float) -> bool | None:
        """Tells whether a sentence that is an order goes against this sentence of a rule.

        Returns:
            True if it lifts the rule for good, False if it lifts it or asks for what it forbids for
            this turn only, None if it does neither.
        """
        lasts = not ONCE.search(sentence.plain)
        ordered_words = sentence.ordered_beside({word for word, _ in self.signed})
        words = {word for word, _ in self.signed} & {word for word, _ in sentence.signed}
        if LIFTS.search(sentence.plain) and len(words) >= share * len(self.signed):
            return lasts
        forbidden = {word for word, is_wanted in self.signed if not is_wanted}
        wanted = {word for word, is_wanted in self.signed if is_wanted}
        ordered = {word for word, is_wanted in ordered_words if is_wanted}
        for_good = lasts and bool(PERMITS.search(sentence.plain) or ONWARD.search(sentence.plain))
        if forbidden and wanted:  # "use this, not that": goes against it if it orders "that"
            needed = max(share, MIN_SHARE_OF_CHOICE) * len(forbidden)
            orders_that = len(forbidden & ordered) >= needed and not wanted <= ordered
            return for_good if orders_that else None
        against = {SignedWord(word, not is_wanted) for word, is_wanted in self.signed}
        opposite = against & ordered_words
        has_enough = self._is_enough({word for word, _ in opposite}, len(opposite), share)
        if not has_enough or len(opposite) < min(2, len(self.signed)):
            return None
        return for_good if forbidden else lasts


def _without_light_words(signed: SignedWords) -> SignedWords:
    return frozenset(item for item in signed if item.stem not in _LIGHT)


def _last_passage(part: _RuleSentence, sentences: tuple[Sentence, ...]) -> Passage | None:
    """Returns the last of some sentences that says a sentence of the rule; None without one."""
    for sentence in reversed(sentences):
        if part.is_said_by(sentence):
            return passage_of(sentence)
    return None
