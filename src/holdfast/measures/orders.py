"""The sentences of a text, and which of their clauses are orders.

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
    Signed,
    is_negated,
    plain_sentence,
    signed_words,
    without_markup,
)
from holdfast.measures.text import sentences_of

QUOTED = 160  # characters of a text that are quoted


@dataclass(frozen=True)
class Passage:
    """A sentence of a text that says a rule, or orders otherwise.

    Args:
        index: of the sentence in its text.
        lasts: of an order: whether it lifts the rule for good, and not for one turn.
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
        return plain_sentence(self.text)

    @cached_property
    def parts(self) -> list[str]:
        """Its clauses; one without a subject ("must never be used") joins those before it."""
        parts: list[str] = []
        ends = ""  # what ends the clause before
        joins_from = 0
        for number, piece in enumerate(_CLAUSE_END.split(self.plain)):
            if number % 2:
                ends += piece
            elif part := piece.strip():
                if _HARD_END.search(ends):
                    joins_from = len(parts)
                if _WITHOUT_SUBJECT.match(part) and parts[joins_from:]:
                    parts[joins_from:] = [" ".join([*parts[joins_from:], part])]
                else:
                    parts.append(part)
                ends = ""
        return parts

    @cached_property
    def clauses(self) -> list[Signed]:
        return [signed_words(part) for part in self.parts]

    @cached_property
    def signed(self) -> Signed:
        return frozenset[tuple[str, bool]]().union(*self.clauses)

    @cached_property
    def decided(self) -> Signed:
        """The signed words without those that are asked for in one clause, and not in another."""
        taken_back = {(word, True) for word, asked in self.signed if not asked}
        return self.signed - taken_back

    @cached_property
    def ordered(self) -> Signed:
        """The signed words of its clauses that are orders."""
        orders = (signed_words(part) for part in self.parts if _is_order(part))
        return frozenset[tuple[str, bool]]().union(*orders)

    @property
    def is_order(self) -> bool:
        return any(map(_is_order, self.parts))


@dataclass(frozen=True)
class Request:
    """A clause of a message that asks for something, an order or not quite one ("in English").

    Args:
        clause: without case and contractions.
        around: its sentence and the one before, likewise; what "leave it out" refers to is there.
        passage: its sentence; it lasts if the request is for more than a turn.
    """

    clause: str
    around: str
    is_once: bool
    passage: Passage


def requests_in(text: str) -> Iterator[Request]:
    """The requests of a message, clause by clause."""
    before = ""
    for sentence in read_sentences(text):
        plain = sentence.plain
        lasts = bool(ONWARD.search(plain) or PERMITS.search(plain))
        passage = shortened(sentence, lasts)
        asks = bool(_ASKING.search(plain) or _QUESTION.search(plain)) or sentence.is_order
        for number, clause in enumerate(sentence.parts):
            is_part = (asks or not number) and bool(_FRAGMENT.match(clause))
            if not _REPORTS.match(clause) and (
                is_part or _is_order(clause) or _ASKING.search(clause)
            ):
                once = bool(ONCE.search(plain))
                yield Request(clause, f"{before} {plain}", once, passage)
        before = plain


def orders_in(text: str) -> list[str]:
    """The clauses of a text that are orders and forbid nothing, as they are written."""
    return [
        part.strip()
        for sentence in read_sentences(text)
        for part in _WRITTEN_CLAUSE_END.split(sentence.text)
        if _is_order(plain := plain_sentence(part).strip()) and not is_negated(plain)
    ]


@lru_cache(maxsize=4096)
def read_sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text; several rules are looked for in the same ones."""
    sentences = sentences_of(without_markup(text))
    return tuple(Sentence(sentence, index) for index, sentence in enumerate(sentences))


def content_words(text: str) -> frozenset[str]:
    """The content words of a text, without their endings."""
    return frozenset(word for sentence in read_sentences(text) for word, _ in sentence.signed)


def shortened(sentence: Sentence, lasts: bool = True) -> Passage:
    """A sentence as evidence."""
    return Passage(cut(sentence.text, QUOTED), sentence.index, lasts)


def is_no_rule(plain: str) -> bool:
    """Whether a sentence lifts a rule, leaves it open, asks for a fact, or describes something."""
    if LIFTS.search(plain) or _WEAKENS.search(plain) or ASKS_FOR_FACT.match(plain):
        return True
    return bool(_DESCRIBES.search(plain)) and not is_negated(plain)


_CLAUSE_END = re.compile(
    r"([,;:()!?]+(?=\s|$)|(?<=\s)[(\"']|\s[-–—]+\s|—|\b(?:and|but|so|then|while|whereas)\b)"
)
_HARD_END = re.compile(r"[;:!?\w]")  # after which a clause is no part of the one before
_WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|must|may|should|can|could|shall|has|have) (?:never|not|to)\b"
    r"|(?:is|are) (?:forbidden|prohibited|banned|disallowed|off[ -]limits)\b"
)
_WRITTEN_CLAUSE_END = re.compile(r"[,;!?]+(?=\s|$)|\s[-–—]+\s|—|\b(?:and|but|so|then|while)\b")
LIFTS = re.compile(
    r"\b(?:ignore|disregard|waive[sd]?|suspend(?:ed)?|lifted|override|never ?mind|exempt|exception"
    r"|no longer (?:appl(?:y|ies)|minds?|cares?|objects?|holds?|counts?|matters?)|need not|no need"
    r"|(?:do|does) not (?:mind|care|object|(?:need|have) to)|not necessary"
    r"|unnecessary|do not bother|(?<!not )forget (?:the|about)|instead of (?:the rule|following"
    r"|starting|ending|finishing|beginning|answering|giving|using|running))\b"
)
# of a sentence that is no rule, or a weaker one
_WEAKENS = re.compile(
    r"\b(?:optional(?:ly)?|if you (?:like|want|prefer)|when(?:ever)? you like|up to you|used to"
    r"|(?:asked|wondered|unsure|unclear) (?:if|whether)|failed|passed|(?:was|were|did) not)\b"
)
ASKS_FOR_FACT = re.compile(
    r"(?!(?:do|have) it\b(?!.*\?))"  # "do it in English" is an order
    r"(?:(?:why|how|when) )?(?:do|does|did|are|were|is|was|have|has)(?: not)?"
    r" (?:i|you|we|they|it)\b"
)
# says where things go, or which are meant: "mails that end with a question go to sales"
_DESCRIBES = re.compile(
    r"^(?:\w+ ){1,4}(?:that|which|who|whose|with) (?!.*\b(?:must|should|shall)\b).*"
    r"\b(?:(?:are|is) (?:ours|mine|yours|theirs|from|for)|go(?:es)?(?! before)|belongs?)\b"
)
ONCE = re.compile(
    r"\b(?:just (?:this )?once|for once|this once|this time|for now|today|tonight|right now"
    r"|(?:this|the next|that) (?:one|commit|change|reply|answer|turn|push|file|question))\b"
)
ONWARD = re.compile(
    r"\b(?:from (?:now|here|this point) on(?:wards?)?|any ?more|no longer|always|in (?:the )?future"
    r"|for the rest|until i say)\b"
)
PERMITS = re.compile(r"\byou (?:may|can|are (?:allowed|free)|do not (?:need|have) to)\b")
_LEADING = re.compile(
    r"^(?:(?:please|just|now|also|ok|okay|well|thanks|great|and|so|then|but|yes|no problem|today"
    r"|this time|(?:just )?this once|for (?:now|once)|next time|from (?:now|here) on)\W+)*"
)
_ASKS = re.compile(
    r"^(?:(?:can|could|would|will) you\b(?! mind\b)|you (?:may|can|could|should|must|need not"
    r"|do not (?:need|have) to|are (?:allowed|free) to)\b|feel free\b|(?:there is )?no need\b"
    r"|it is (?:ok|okay|fine) (?:to|if you)\b|i (?:want|need|would like) you\b|let us\b|do not\b"
    r"|never\b|instead of\b)"
)
_ASKING = re.compile(
    r"\bplease\b|\b(?:can|could|would|will) (?:you|we)\b(?! mind\b)|^(?:\w+ ){0,2}?(?:i|we)"
    r" (?:(?:really|just|only|do|not|would) )*(?:want|need|like|prefer|rather|have (?:no )?time)\b"
    r"|^(?:(?:what|how) about|why (?:do|can|could) (?:you )?not|let us|go ahead)\b"
)
_QUESTION = re.compile(r"\?|^\W*(?:\w+ ){0,2}?(?:what(?:'?s)?|which|how|where|who|when) ")
# begins what is asked for without a verb: "in English", "no tests this time"
_FRAGMENT = re.compile(
    r"(?:just |but |and |only |all |answers? |everything )*(?:in|as|with|without|no|more|less"
    r"|\d+|one|two|three|four|five|longer|shorter|straight|direct(?:ly)?|onto|skip(?:ping)?|minus)\b"
)
_REPORTS = re.compile(
    r"(?:if|whether|unless|why (?:did|do you|are|is|was)|(?:what|when|where|who|how) (?:did"
    r"|do you|is|are|was|were|happens)|(?:did|do|does|was|were|is|are|have|has) (?:you|we|i|it|that"
    r"|this|there|the)\b|(?:i|we) (?:already )?(?:told|asked|said|thought|saw|noticed)"
    r"|(?:my|our|the|his|her|their) \w+ (?:says?|said|told|asks|asked|thinks?|wants?))"
)
_VERBS = frozenset(
    "add adjust allow answer append apply avoid begin bring build bump call change check clear"
    " close combine commit compare connect continue convert copy create cut delete deploy describe"
    " destroy discard disregard ditch do download drop edit elaborate end erase execute expand"
    " explain fetch fill finish fix force forget format get give go ignore include insert install"
    " keep land leave list lose make mention merge modify move name offer open override overwrite"
    " paste patch post prepend print provide provision publish pull push put quote recommend"
    " reformat release remove rename repeat replace reply reset respond restart revert rewrite roll"
    " run save say send set share ship show skip spare speak start stop submit suggest summarise"
    " summarize switch talk tell test throw touch translate try tweak undo update upgrade upload"
    " use waive wipe work write".split()
)


@lru_cache(maxsize=65536)
def _is_order(clause: str) -> bool:
    """Whether a clause is an imperative, a request or a permission."""
    text = _LEADING.sub("", clause).lstrip("\"'` ")
    if _ASKS.match(text):
        return True
    first = WORD.match(text)
    return first is not None and first[0] in _VERBS and not text.startswith(("do you ", "do we "))


def words_before_paths(clause: str) -> Iterator[tuple[str, str]]:
    """The first verb of an order, with each path in it."""
    text = _LEADING.sub("", plain_sentence(clause).strip())
    text = _ASKS.sub("", text).strip()
    first = WORD.match(text)
    for path in re.findall(r"(?<![\w/])[\w.-]*[./][\w./-]*\w", clause):
        yield first[0] if first else "", path
