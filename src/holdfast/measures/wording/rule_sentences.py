"""The sentences of a rule, by whose signed words other sentences say the rule or order otherwise.

For example:

    read_rule_sentence("Use uv, not pip.")   ->  +uv -pip
    "Install it with uv rather than pip."    ->  says it
    "Please use pip for now."                ->  orders otherwise, for one turn
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from holdfast.measures.wording.clause_words import SignedWord, SignedWords, anchors
from holdfast.measures.wording.orders import is_for_good, is_for_once
from holdfast.measures.wording.rule_statements import is_no_rule, lifts_rule
from holdfast.measures.wording.sentences import Passage, Sentence

# the share of a rule's signed words that a sentence needs
MIN_SHARE_TO_SAY = 0.6  # for a sentence to say the rule
MIN_SHARE_OF_CLAUSE = 0.5  # for a clause without other content words to say the rule
# for an order to be against a rule such as "use this, not that", the share of the words for "that":
# "install it" does not ask for `pip install`
MIN_SHARE_OF_CHOICE = 0.75
# an example at the end of a rule: "Use short names, *such as `i`.*"
_EXAMPLE = re.compile(r",?\s*\(?(?:such as|e\.g\.|for example|for instance|like)\b.*$", re.I | re.S)
# where a rule holds, which is neither asked for nor forbidden: "in `admin/`", "under src/api/"
_IN_FOLDER = re.compile(
    r"\b(?:in|under|inside|within|below|into)"
    r" ([`\"']?[\w./-]++(?:(?<=\w/)|(?<=/\.))(?!\S*\w))"
)
# stems that count only in a sentence without other content words
_LIGHT = frozenset(("us", "use", "keep", "let", "get", "run"))


@dataclass(frozen=True)
class RuleSentence:
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


def read_rule_sentence(sentence: str) -> RuleSentence:
    """Reads a sentence of a rule, without an example at its end."""
    plain = _EXAMPLE.sub("", sentence)
    signed = Sentence(plain, 0).signed
    content = _without_light_words(signed)
    signed = content if len(content) > 1 else signed
    all_anchors = _stems_of(signed) & anchors(plain)
    folders = anchors(" ".join(match[1] for match in _IN_FOLDER.finditer(plain)))
    return RuleSentence(signed, all_anchors, all_anchors & folders)


def _stems_of(words: Iterable[SignedWord]) -> frozenset[str]:
    return frozenset(word.stem for word in words)


def _without_light_words(signed: SignedWords) -> SignedWords:
    return frozenset(word for word in signed if word.stem not in _LIGHT)
