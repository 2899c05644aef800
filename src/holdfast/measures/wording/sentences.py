"""Splits a text into sentences, and these into clauses with their words.

For example, "Secrets, also in tests, must never be committed. Fix it, please." has the clauses

    "secrets also in tests must never be committed."
    "fix it"    an order
    "please."

"Must never be committed" has no subject of its own, so it is joined to the clauses before it.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property, lru_cache

from holdfast.errors import cut
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.act_nouns import nouns_in
from holdfast.measures.wording.clause_words import SignedWord, SignedWords, signed_words
from holdfast.measures.wording.order_clauses import is_order
from holdfast.measures.wording.plain_text import plain_sentence, without_markup
from holdfast.measures.wording.word_stems import stem

MAX_QUOTE_CHARACTERS = 160

# a mark or a word between two clauses: ", ", " (", " - ", " and "
_CLAUSE_END = re.compile(
    r"([,;:()!?]+(?=\s|$)"
    r"|(?<=\s)[(\"']"
    r"|\s[-–—]+\s|—"
    r"|\b(?:and|but|so|then|while|whereas)\b)"
)
# a clause after such an end is not joined to the one before: "; ", "and"
_HARD_END = re.compile(r"[;:!?\w]")
# begins a clause that belongs to the subject of the clause before: "..., *must never* be used"
_WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|must|may|should|can|could|shall|has|have) (?:never|not|to)\b"
    r"|(?:is|are) (?:forbidden|prohibited|banned|disallowed|off[ -]limits)\b"
)


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
    def clauses(self) -> list[str]:
        """Its clauses; one without a subject ("must never be used") is joined to those before."""
        clauses: list[str] = []
        ends = ""  # the marks and words between the clause before and this one
        joins_from = 0
        for number, piece in enumerate(_CLAUSE_END.split(self.plain)):
            if number % 2:
                ends += piece
            elif clause := piece.strip():
                if _HARD_END.search(ends):
                    joins_from = len(clauses)
                if _WITHOUT_SUBJECT.match(clause) and clauses[joins_from:]:
                    clauses[joins_from:] = [" ".join([*clauses[joins_from:], clause])]
                else:
                    clauses.append(clause)
                ends = ""
        return clauses

    @cached_property
    def signed_clauses(self) -> list[SignedWords]:
        """The signed words of each clause."""
        return [signed_words(clause) for clause in self.clauses]

    @cached_property
    def signed(self) -> SignedWords:
        """The signed words of all clauses."""
        return SignedWords().union(*self.signed_clauses)

    @cached_property
    def decided(self) -> SignedWords:
        """The signed words, but a word that is both asked for and forbidden is only forbidden."""
        taken_back = {SignedWord(word, True) for word, is_wanted in self.signed if not is_wanted}
        return self.signed - taken_back

    @cached_property
    def ordered(self) -> SignedWords:
        """The signed words of its clauses that are orders."""
        orders = (signed_words(clause) for clause in self.clauses if is_order(clause))
        return SignedWords().union(*orders)

    def ordered_beside(self, topics: Container[str]) -> SignedWords:
        """The signed words of its orders without nouns such as "push" in "push notifications".

        Args:
            topics: the stems of words that may be the head of such a noun, as "message" is if a
                rule is about commit messages.
        """
        nouns = [noun for clause in self.clauses for noun in nouns_in(clause)]
        others = {stem(noun.word) for noun in nouns if stem(noun.head) not in topics}
        return frozenset(word for word in self.ordered if word.stem not in others)

    @property
    def is_order(self) -> bool:
        """Whether one of its clauses is an order."""
        return any(map(is_order, self.clauses))

    def quoted(self, lasts: bool = True) -> Passage:
        """The sentence as a passage, cut if it is long."""
        return Passage(cut(self.text, MAX_QUOTE_CHARACTERS), self.index, lasts)


@lru_cache(maxsize=4096)
def read_sentences(text: str) -> tuple[Sentence, ...]:
    """Splits a text into sentences; cached, as several rules are looked for in the same text."""
    sentences = sentences_of(without_markup(text))
    return tuple(Sentence(sentence, index) for index, sentence in enumerate(sentences))


def content_words(text: str) -> frozenset[str]:
    """Returns the content words of a text, without their endings."""
    return frozenset(word for sentence in read_sentences(text) for word, _ in sentence.signed)
