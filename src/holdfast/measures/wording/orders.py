"""Splits a text into sentences and clauses, and tells orders from reports and permissions.

    "Please push it now, I tested it."  ->  an order, "please push it now", and a report
    "in English, please"                ->  a request without a verb

The patterns read sentences as `clause_words.plain_sentence` writes them: without case, contractions
and fixed phrases.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from holdfast.errors import cut
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.act_nouns import nouns_in
from holdfast.measures.wording.clause_words import (
    WORD,
    SignedWord,
    SignedWords,
    is_negated,
    plain_sentence,
    signed_words,
    stem,
    without_markup,
)

# --- The ends of clauses

CLAUSE_END = re.compile(
    r"([,;:()!?]+(?=\s|$)"
    r"|(?<=\s)[(\"']"
    r"|\s[-–—]+\s|—"
    r"|\b(?:and|but|so|then|while|whereas)\b)"
)
# the same in a text as it is written, where quotations and lists stay whole
WRITTEN_CLAUSE_END = re.compile(r"[,;!?]+(?=\s|$)|\s[-–—]+\s|—|\b(?:and|but|so|then|while)\b")
HARD_END = re.compile(r"[;:!?\w]")  # a clause after such an end is not joined to the one before
# begins a clause that belongs to the subject of the clause before: "... must never be used"
WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|must|may|should|can|could|shall|has|have) (?:never|not|to)\b"
    r"|(?:is|are) (?:forbidden|prohibited|banned|disallowed|off[ -]limits)\b"
)

# --- Sentences that are no rules

# lifts a rule
LIFTS = re.compile(
    r"\b(?:ignore|disregard|waive[sd]?|suspend(?:ed)?|lifted|override|exempt|exception"
    r"|never ?mind|do not bother|unnecessary|not necessary|need not|no need"
    r"|no longer (?:appl(?:y|ies)|minds?|cares?|objects?|holds?|counts?|matters?)"
    r"|(?:do|does) not (?:mind|care|object|(?:need|have) to)"
    r"|(?<!not )forget (?:the|about)"
    r"|instead of (?:the rule|following|starting|ending|finishing|beginning|answering|giving|using"
    r"|running))\b"
)
# leaves a rule open, or tells of one
WEAKENS = re.compile(
    r"\b(?:optional(?:ly)?|if you (?:like|want|prefer)|when(?:ever)? you like|up to you|used to"
    r"|(?:asked|wondered|unsure|unclear) (?:if|whether)|failed|passed|(?:was|were|did) not)\b"
)
# asks whether or why something is so
ASKS_FOR_FACT = re.compile(
    r"(?!(?:do|have) it\b(?!.*\?))"  # "do it in English" is an order
    r"(?:(?:why|how|when) )?(?:do|does|did|are|were|is|was|have|has)(?: not)?"
    r" (?:i|you|we|they|it)\b"
)
# says where things go, or which are meant: "mails that end with a question go to sales"
DESCRIBES = re.compile(
    r"^(?:\w+ ){1,4}(?:that|which|who|whose|with) (?!.*\b(?:must|should|shall)\b).*"
    r"\b(?:(?:are|is) (?:ours|mine|yours|theirs|from|for)|go(?:es)?(?! before)|belongs?)\b"
)
# begins a clause that tells of something or asks about it
REPORTS = re.compile(
    r"(?:if|whether|unless"
    r"|why (?:did|do you|are|is|was)"
    r"|(?:what|when|where|who|how) (?:did|do you|is|are|was|were|happens)"
    r"|(?:did|do|does|was|were|is|are|have|has) (?:you|we|i|it|that|this|there|the)\b"
    r"|(?:i|we) (?:already )?(?:told|asked|said|thought|saw|noticed)"
    r"|(?:my|our|the|his|her|their) \w+ (?:says?|said|told|asks|asked|thinks?|wants?))"
)

# --- How long an order holds

ONCE = re.compile(
    r"\b(?:just (?:this )?once|for once|this once|this time|for now|today|tonight|right now"
    r"|(?:this|the next|that) (?:one|commit|change|reply|answer|turn|push|file|question))\b"
)
ONWARD = re.compile(
    r"\b(?:from (?:now|here|this point) on(?:wards?)?|any ?more|no longer|always|in (?:the )?future"
    r"|for the rest|until i say)\b"
)

# --- What takes an order back

# the order of the message before
_TAKES_BACK_LAST = re.compile(
    r"\b(?:scrap|forget|ignore|disregard|cancel|undo|drop) (?:that|this|it|what i (?:just )?said"
    r"|my last (?:message|order|instruction))(?:\W*$| (?:again|please|for good)\b)"
    r"|\bi (?:(?:do )?(?:hereby )?)?take (?:that|it|this) back\b|\bi changed my mind\b"
    r"|^(?:no |oh |ok |actually |sorry )?never ?mind(?: (?:that|this|it|what i said))?\W*$"
    r"|\bon second thoughts?\b"
)
# all orders against the rules
_RETURNS = re.compile(
    r"\bback to (?:the |our |your |my )?(?:(?:original|usual|normal|old|previous|earlier|standard"
    r"|default) )*(?:rules?|instructions?|guidelines|way|style|format|usual|normal|default|limit"
    r"|(?:short(?:er)?|brief|concise) (?:answers?|replies|reply|responses?|ones?))\b"
    r"|\bthe (?:\w+ )?(?:rules?|limits?|instructions?) (?:(?:now )?(?:appl(?:y|ies)|holds?|counts?"
    r"|stands?) again|(?:is|are) back(?: on| in (?:force|place|effect))?)\b"
)


def takes_back_last(text: str) -> bool:
    """Whether a message takes back what the user said in the message before."""
    parts = (part for sentence in read_sentences(text) for part in sentence.parts)
    return any(_TAKES_BACK_LAST.search(part) for part in parts)


def returns_to_rules(text: str) -> bool:
    """Whether a message takes back all orders against the rules."""
    return any(_RETURNS.search(sentence.plain) for sentence in read_sentences(text))


# --- Orders, requests and permissions

PERMITS = re.compile(r"\byou (?:may|can|are (?:allowed|free)|do not (?:need|have) to)\b")
# words before an order: "ok, please ..."
LEADING = re.compile(
    r"^(?:(?:please|just|now|always|also|ok|okay|well|thanks|great|and|so|then|but|yes|no problem"
    r"|today|this time|(?:just )?this once|for (?:now|once)|next time|from (?:now|here) on)\W+)*"
)
# begins an order, a request or a permission
ASKS = re.compile(
    r"^(?:(?:can|could|would|will) you\b(?! mind\b)"
    r"|you (?:may|can|could|should|must|need not|do not (?:need|have) to|are (?:allowed|free) to)\b"
    r"|it is (?:ok|okay|fine) (?:to|if you)\b"
    r"|i (?:want|need|would like) you\b"
    r"|(?:there is )?no need\b"
    r"|feel free\b|let us\b|do not\b|never\b|instead of\b)"
)
# in a clause that asks for something, an order or not quite one: "I would prefer English"
ASKING = re.compile(
    r"\bplease\b"
    r"|\b(?:can|could|would|will) (?:you|we)\b(?! mind\b)"
    r"|^(?:\w+ ){0,2}?(?:i|we) (?:(?:really|just|only|do|not|would) )*"
    r"(?:want|need|like|prefer|rather|have (?:no )?time)\b"
    r"|\bcan (?:\w+ )?wait\b"
    r"|^(?:(?:what|how) about|why (?:do|can|could) (?:you )?not|let us|go ahead)\b"
    # a permission: "emojis are fine here"; but "the fix is fine now" and "which emojis are allowed
    # here" only tell of something
    r"|^(?!(?:the|th[eo]se|this|that|it|they|your|my|our|all|everything)\b)(?!.*\b(?:which|what|if"
    r"|whether|where|how|who)\b)(?:\w+ ){1,5}(?:is|are) (?:fine|okay|ok|welcome|allowed)"
    r"(?: (?:here|now|in|on|for|this|too|with)\b|$)"
    # a command as an order: "just pip install it"; but "now npm prints a warning" is a report
    r"|^(?:(?:please|just|now|simply|ok|okay|so|then)\W+)+(?:git|gh|npm|pnpm|yarn|npx|pip3?|uv|make"
    r"|cargo|docker|sudo|rm|curl)\b(?!.* (?:is|was|are|were|has|had|does|did|will|would|can|cannot"
    r"|fail(?:s|ed)|ke(?:eps|pt)|sa(?:ys|id)|work(?:s|ed)|h[au]ngs?|print(?:s|ed)|show(?:s|ed)"
    r"|gives?|gave|throws|threw|breaks|broke|needs|needed|takes|took|returns|returned"
    r"|complain(?:s|ed)|stops|stopped|crash(?:es|ed)|exit(?:s|ed)|refuses|refused)\b)"
)
QUESTION = re.compile(r"\?|^\W*(?:\w+ ){0,2}?(?:what(?:'?s)?|which|how|where|who|when) ")
# begins a request without a verb: "in English", "no tests this time"
FRAGMENT = re.compile(
    r"(?:just |but |and |only |all |answers? |everything )*"
    r"(?:in|as|with|without|no|minus|more|less|longer|shorter|\d+|one|two|three|four|five|straight"
    r"|direct(?:ly)?|onto|skip(?:ping)?)\b"
)
# a clause that begins with one of these is an imperative
VERBS = frozenset(
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

# --- Sentences, clauses and requests

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

    def ordered_beside(self, topics: Container[str]) -> SignedWords:
        """The signed words of its orders without nouns such as "push" in "push notifications".

        Args:
            topics: the stems of words that may be the head of such a noun, as "message" is if a
                rule is about commit messages.
        """
        nouns = [noun for part in self.parts for noun in nouns_in(part)]
        others = {stem(noun.word) for noun in nouns if stem(noun.head) not in topics}
        return frozenset(word for word in self.ordered if word.stem not in others)

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
        is_once = bool(ONCE.search(plain))
        lasts = bool(ONWARD.search(plain) or (PERMITS.search(plain) and not is_once))
        passage = passage_of(sentence, lasts)
        asks = bool(ASKING.search(plain) or QUESTION.search(plain)) or sentence.is_order
        for number, clause in enumerate(_clauses_of_request(sentence)):
            if REPORTS.match(clause):
                continue
            is_fragment = bool(FRAGMENT.match(clause)) and (asks or number == 0)
            if is_fragment or _is_order(clause) or ASKING.search(clause):
                yield OrderClause(clause, f"{before} {plain}", is_once, passage)
        before = plain


def _clauses_of_request(sentence: Sentence) -> list[str]:
    """Returns the clauses of a sentence, and those that a quotation splits, without it: "translate
    'Fahrrad' into English" asks for English.
    """
    unquoted = _QUOTATION.sub("it", sentence.text)
    if unquoted == sentence.text:
        return sentence.parts
    return [*sentence.parts, *Sentence(unquoted, sentence.index).parts]


_QUOTATION = re.compile(r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|\u201c[^\u201d]+\u201d)(?!\w)")


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
