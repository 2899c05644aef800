"""Splits a text into sentences and clauses, and tells which clauses are orders.

An order is an imperative, a request or a permission; a request may be less than a sentence ("in
English, please").
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from holdfast.errors import cut
from holdfast.measures.clause_words import (
    WORD,
    SignedWord,
    SignedWords,
    is_negated,
    plain_sentence,
    signed_words,
    without_markup,
)
from holdfast.measures.order_patterns import (
    ASKING,
    ASKS,
    ASKS_FOR_FACT,
    CLAUSE_END,
    DESCRIBES,
    FRAGMENT,
    HARD_END,
    LEADING,
    LIFTS,
    ONCE,
    ONWARD,
    PERMITS,
    QUESTION,
    REPORTS,
    VERBS,
    WEAKENS,
    WITHOUT_SUBJECT,
    WRITTEN_CLAUSE_END,
)
from holdfast.measures.text import sentences_of

MAX_QUOTE_CHARACTERS = 160


@dataclass(frozen=True)
class Passage:
    """A sentence of a text that states a rule, or orders something against it.

    Args:
        quote: the sentence, cut if it is long.
        index: the number of the sentence in its text.
        lasts: whether an order lifts the rule for good, and not for one turn only.
    """

    quote: str
    index: int
    lasts: bool = True


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text."""

    text: str
    index: int

    @cached_property
    def plain(self) -> str:
        """The text without case, markup and contractions."""
        return plain_sentence(self.text)

    @cached_property
    def parts(self) -> list[str]:
        """Its clauses; one without a subject ("must never be used") is joined to those before."""
        parts: list[str] = []
        ends = ""  # the marks and words between the clause before and this one
        joins_from = 0
        for number, piece in enumerate(CLAUSE_END.split(self.plain)):
            if number % 2:
                ends += piece
            elif part := piece.strip():
                if HARD_END.search(ends):
                    joins_from = len(parts)
                if WITHOUT_SUBJECT.match(part) and parts[joins_from:]:
                    parts[joins_from:] = [" ".join([*parts[joins_from:], part])]
                else:
                    parts.append(part)
                ends = ""
        return parts

    @cached_property
    def clauses(self) -> list[SignedWords]:
        """The signed words of each clause."""
        return [signed_words(part) for part in self.parts]

    @cached_property
    def signed(self) -> SignedWords:
        """The signed words of all clauses."""
        return SignedWords().union(*self.clauses)

    @cached_property
    def decided(self) -> SignedWords:
        """The signed words, but a word that is both asked for and forbidden is only forbidden."""
        taken_back = {SignedWord(word, True) for word, is_wanted in self.signed if not is_wanted}
        return self.signed - taken_back

    @cached_property
    def ordered(self) -> SignedWords:
        """The signed words of its clauses that are orders."""
        orders = (signed_words(part) for part in self.parts if _is_order(part))
        return SignedWords().union(*orders)

    @property
    def is_order(self) -> bool:
        """Whether one of its clauses is an order."""
        return any(map(_is_order, self.parts))


@dataclass(frozen=True)
class OrderClause:
    """A clause of a message that asks for something: an order, or a fragment ("in English").

    Args:
        clause: the clause without case and contractions.
        around: its sentence and the one before, which name the thing in "leave it out".
        is_once: whether it is said to be for one turn only.
        passage: its sentence, which lasts if the request is said to be for more than a turn.
    """

    clause: str
    around: str
    is_once: bool
    passage: Passage


def requests_in(text: str) -> Iterator[OrderClause]:
    """Yields the requests of a message, clause by clause."""
    before = ""
    for sentence in read_sentences(text):
        plain = sentence.plain
        lasts = bool(ONWARD.search(plain) or PERMITS.search(plain))
        passage = passage_of(sentence, lasts)
        is_once = bool(ONCE.search(plain))
        asks = bool(ASKING.search(plain) or QUESTION.search(plain)) or sentence.is_order
        for number, clause in enumerate(sentence.parts):
            if REPORTS.match(clause):
                continue
            is_fragment = bool(FRAGMENT.match(clause)) and (asks or number == 0)
            if is_fragment or _is_order(clause) or ASKING.search(clause):
                yield OrderClause(clause, f"{before} {plain}", is_once, passage)
        before = plain


def orders_in(text: str) -> list[str]:
    """Returns the clauses of a text that are orders and forbid nothing, as they are written."""
    return [
        part.strip()
        for sentence in read_sentences(text)
        for part in WRITTEN_CLAUSE_END.split(sentence.text)
        if _is_order(plain := plain_sentence(part).strip()) and not is_negated(plain)
    ]


@lru_cache(maxsize=4096)
def read_sentences(text: str) -> tuple[Sentence, ...]:
    """Splits a text into sentences; cached, as several rules are looked for in the same text."""
    sentences = sentences_of(without_markup(text))
    return tuple(Sentence(sentence, index) for index, sentence in enumerate(sentences))


def content_words(text: str) -> frozenset[str]:
    """Returns the content words of a text, without their endings."""
    return frozenset(word for sentence in read_sentences(text) for word, _ in sentence.signed)


def passage_of(sentence: Sentence, lasts: bool = True) -> Passage:
    """Quotes a sentence, cut if it is long."""
    return Passage(cut(sentence.text, MAX_QUOTE_CHARACTERS), sentence.index, lasts)


def is_no_rule(plain: str) -> bool:
    """Whether a sentence lifts a rule, leaves it open, asks for a fact, or describes something."""
    if LIFTS.search(plain) or WEAKENS.search(plain) or ASKS_FOR_FACT.match(plain):
        return True
    return bool(DESCRIBES.search(plain)) and not is_negated(plain)


@lru_cache(maxsize=65536)
def _is_order(clause: str) -> bool:
    """Whether a clause is an imperative, a request or a permission."""
    text = LEADING.sub("", clause).lstrip("\"'` ")
    if ASKS.match(text):
        return True
    first = WORD.match(text)
    return first is not None and first[0] in VERBS and not text.startswith(("do you ", "do we "))


def words_before_paths(clause: str) -> Iterator[tuple[str, str]]:
    """Yields the first word of an order with each path in it; "" if it has no word."""
    text = LEADING.sub("", plain_sentence(clause).strip())
    text = ASKS.sub("", text).strip()
    first = WORD.match(text)
    for path in re.findall(r"(?<![\w/])[\w.-]*[./][\w./-]*\w", clause):
        yield first[0] if first else "", path
