"""Whether a text says a rule, in its words or in others, or orders otherwise (docs/logs.md, "Why").

A rule's sentence is reduced to *signed words*: its content words, each with whether the sentence
asks for it or forbids it. A text says the rule if it contains the rule's words in a row, or if one
of its sentences has most of the signed words. It orders otherwise if a sentence that is an order
has them with the other sign, or lifts the rule. No model is involved, and only the synonyms of
`rule_words`.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from holdfast.errors import cut
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.rule_words import PHRASES, stem
from holdfast.measures.text import fold, sentences_of

SHARE_SAID = 0.6  # of a rule's signed words that a sentence needs to say the rule
SHARE_OF_SHORT = 0.5  # the same for a clause that has no other content words
SHARE_AGAINST = 0.5  # of the words that an order needs to be one against the rule
# The same of what a rule of "this, not that" forbids: "install it" does not ask for `pip install`.
SHARE_OF_CHOICE = 0.75
SHARE_AGAINST_IN_FILES = 0.75  # the same for a file or a summary, which nobody wrote as an order
_QUOTED = 160  # characters of a text that are quoted

Signed = frozenset[tuple[str, bool]]  # content words, and whether they are asked for


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
class RuleText:
    """The text of a rule, ready to be looked for."""

    text: str

    def said_in(self, text: str, exactly: bool = False) -> Passage | None:
        """The last passage of a text that says the rule.

        Args:
            exactly: whether only its own words count.
        """
        if self._may_have_words(text) and self._is_said_word_for_word(_numbered_words(text)):
            return Passage(cut(" ".join(self.text.split()), _QUOTED), self._place_in(text))
        if exactly or not self._may_say(text):
            return None
        sentences = read_sentences(text)
        passages = [_last(part, sentences) for part in self._parts]
        if not passages or None in passages:
            return None
        return max((p for p in passages if p is not None), key=lambda passage: passage.index)

    def ordered_otherwise_in(self, text: str, is_by_user: bool = True) -> Passage | None:
        """The last passage of a text that lifts the rule, or orders what it forbids."""
        share = SHARE_AGAINST if is_by_user else SHARE_AGAINST_IN_FILES
        for sentence in reversed(read_sentences(text)):
            if not sentence.is_order or any(part.is_said_by(sentence) for part in self._parts):
                continue
            for part in self._parts:
                if (lifts := part.is_lifted_by(sentence, share)) is not None:
                    return shortened(sentence, lifts)
        return None

    @cached_property
    def _words(self) -> str:
        return " ".join(words for words, _ in _numbered_words(self.text))

    @cached_property
    def _written_words(self) -> tuple[str, ...]:
        """Its words that no contraction stands for; the longest, which are the rarest, first."""
        return tuple(sorted({*self._words.split()} - _IN_CONTRACTIONS, key=len, reverse=True))

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
        parts = [_RuleSentence(sentence) for sentence in sentences_of(_without_markup(self.text))]
        return tuple(part for part in parts if part.signed)

    def _is_said_word_for_word(self, words: tuple[tuple[str, int], ...]) -> bool:
        """Whether the rule's words are there in a row, and what precedes them in their sentence
        does not take them back.
        """
        joined = f" {' '.join(word for word, _ in words)} "
        at = joined.rfind(f" {self._words} ") if self._words else -1
        while at >= 0:
            first = joined.count(" ", 0, at + 1) - 1
            before = [word for word, number in words[:first] if number == words[first][1]]
            if not _TAKES_BACK.search(" ".join(before)):
                return True
            at = joined.rfind(f" {self._words} ", 0, at + 1)
        return False

    def _place_in(self, text: str) -> int:
        """The last sentence of a text that has the first words of the rule."""
        begins = f" {' '.join(self._words.split()[:3])} "
        sentences = read_sentences(text)
        for sentence in reversed(sentences):
            words = " ".join(word for word, _ in _numbered_words(sentence.text))
            if begins in f" {words} ":
                return sentence.index
        return 0

    def _may_say(self, text: str) -> bool:
        """Whether the whole text has enough of the words; saves the reading of its sentences."""
        stems = _stems(text)
        return all(
            len({word for word, _ in part.signed} & stems) >= SHARE_OF_SHORT * len(part.signed)
            for part in self._parts
        )


class _RuleSentence:
    """A sentence of a rule: its signed words, and those that a text may not lack."""

    def __init__(self, sentence: str) -> None:
        shown = _EXAMPLE.sub("", sentence)
        signed = Sentence(shown, 0).signed
        content = frozenset(item for item in signed if item[0] not in _LIGHT)
        self.signed: Signed = content if len(content) > 1 else signed
        self.anchors = _anchors(shown) & {word for word, _ in self.signed}

    def is_said_by(self, sentence: "Sentence") -> bool:
        if is_no_rule(sentence.plain):
            return False
        return self._has_enough(sentence.decided, SHARE_SAID) or any(
            {item for item in clause if item[0] not in _LIGHT} <= self.signed
            and self._has_enough(clause, SHARE_OF_SHORT)
            for clause in sentence.clauses
        )

    def _has_enough(self, signed: Signed, share: float) -> bool:
        same = self.signed & signed
        return self._is_enough({word for word, _ in same}, len(same), share)

    def _is_enough(self, words: set[str], count: int, share: float) -> bool:
        return self.anchors <= words and count >= share * len(self.signed) and count > 0

    def is_lifted_by(self, sentence: "Sentence", share: float) -> bool | None:
        """Whether a sentence that is an order lifts the rule for good (True) or asks for what it
        forbids, this time (False); None if it does neither.
        """
        lasts = not _ONCE.search(sentence.plain)
        words = {word for word, _ in self.signed} & {word for word, _ in sentence.signed}
        if _LIFTS.search(sentence.plain) and len(words) >= share * len(self.signed):
            return lasts
        forbidden = {word for word, asked in self.signed if not asked}
        wanted = {word for word, asked in self.signed if asked}
        ordered = {word for word, asked in sentence.ordered if asked}
        for_good = lasts and bool(_PERMITS.search(sentence.plain) or _ONWARD.search(sentence.plain))
        if forbidden and wanted:  # "use this, not that": asked for that
            named = len(forbidden & ordered) >= max(share, SHARE_OF_CHOICE) * len(forbidden)
            asks = named and not wanted <= ordered
            return for_good if asks else None
        opposite = {(word, not asked) for word, asked in self.signed} & sentence.ordered
        enough = self._is_enough({word for word, _ in opposite}, len(opposite), share)
        if not enough or len(opposite) < min(2, len(self.signed)):
            return None
        return for_good if forbidden else lasts


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text."""

    text: str
    index: int

    @cached_property
    def plain(self) -> str:
        return _plain(self.text)

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
        return [_signed(part) for part in self.parts]

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
        orders = (_signed(part) for part in self.parts if _is_order(part))
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
        lasts = bool(_ONWARD.search(plain) or _PERMITS.search(plain))
        passage = shortened(sentence, lasts)
        asks = bool(_ASKING.search(plain) or _QUESTION.search(plain)) or sentence.is_order
        for number, clause in enumerate(sentence.parts):
            is_part = (asks or not number) and bool(_FRAGMENT.match(clause))
            if not _REPORTS.match(clause) and (
                is_part or _is_order(clause) or _ASKING.search(clause)
            ):
                once = bool(_ONCE.search(plain))
                yield Request(clause, f"{before} {plain}", once, passage)
        before = plain


def orders_in(text: str) -> list[str]:
    """The clauses of a text that are orders and forbid nothing, as they are written."""
    return [
        part.strip()
        for sentence in read_sentences(text)
        for part in _WRITTEN_CLAUSE_END.split(sentence.text)
        if _is_order(plain := _plain(part).strip()) and not is_negated(plain)
    ]


@lru_cache(maxsize=4096)
def read_sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text; several rules are looked for in the same ones."""
    sentences = sentences_of(_without_markup(text))
    return tuple(Sentence(sentence, index) for index, sentence in enumerate(sentences))


def content_words(text: str) -> frozenset[str]:
    """The content words of a text, without their endings."""
    return frozenset(word for sentence in read_sentences(text) for word, _ in sentence.signed)


def shortened(sentence: Sentence, lasts: bool = True) -> Passage:
    """A sentence as evidence."""
    return Passage(cut(sentence.text, _QUOTED), sentence.index, lasts)


def _last(part: _RuleSentence, sentences: tuple[Sentence, ...]) -> Passage | None:
    for sentence in reversed(sentences):
        if part.is_said_by(sentence):
            return shortened(sentence)
    return None


# --- Reading words

# a line of a file as tools show it, with its number
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:→|\t|\|[ \t])", re.MULTILINE)
_MARKUP = re.compile(r"^[ \t]*(?:>[ \t]?|#+[ \t]+)+|\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", re.M)
_TAG = re.compile(r"</?[a-z][\w-]*>", re.IGNORECASE)
_ESCAPED = re.compile(r'\\[nrt"]')  # in a tool result that is JSON
_EXAMPLE = re.compile(r",?\s*\(?(?:such as|e\.g\.|for example|for instance|like)\b.*$", re.I | re.S)
_WORD = re.compile(r"[^\W_]+")
_STOP_BETWEEN = re.compile(r"[.!?;]\s|\n\s*(?:[-*•>#]|\d+[.)]|\n)")


@lru_cache(maxsize=4096)
def _without_markup(text: str) -> str:
    text = _ESCAPED.sub(lambda found: "\n" if found[0] in (r"\n", r"\r") else " ", text)
    return _MARKUP.sub("", _TAG.sub("\n", _LINE_NUMBER.sub("", text)))


@lru_cache(maxsize=256)
def _folded(text: str) -> str:
    """A text without markup, case and contractions."""
    return _expanded(fold(unicodedata.normalize("NFKC", _without_markup(text))))


@lru_cache(maxsize=4096)
def _numbered_words(text: str) -> tuple[tuple[str, int], ...]:
    """The words of a text without case, contractions and punctuation, each with the number of its
    sentence.
    """
    plain = _folded(text)
    words: list[tuple[str, int]] = []
    index, end = 0, 0
    for found in _WORD.finditer(plain):
        index += words != [] and _STOP_BETWEEN.search(plain, end, found.start()) is not None
        words.append((found[0], index))
        end = found.end()
    return tuple(words)


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The words of a text without their endings, and those that stand for its phrases."""
    words = _WORD.findall(_folded(text))
    joined = " ".join(words)
    if not _ANY_PHRASE.search(joined):
        return frozenset(map(stem, words))
    phrases = (plain for pattern, plain in PHRASES if re.search(pattern, joined))
    return frozenset(map(stem, [*words, *" ".join(phrases).split()]))


_CONTRACTIONS = (
    (re.compile(r"\b(?:pls|plz)\b"), "please"),
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bdont\b"), "do not"),
    (re.compile(r"(?<=\w)n't\b"), " not"),
)
_IN_CONTRACTIONS = {word for _, plain in _CONTRACTIONS for word in plain.split()}


def _expanded(text: str) -> str:
    """The text with "do not" for "don't" and the like."""
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return text


def is_no_rule(plain: str) -> bool:
    """Whether a sentence lifts a rule, leaves it open, or describes something."""
    if _LIFTS.search(plain) or _WEAKENS.search(plain):
        return True
    return bool(_DESCRIBES.search(plain)) and not is_negated(plain)


_A_NUMBER = rf"(?= (?:\d|(?:{'|'.join(NUMBER_WORDS)})\b))"
_FIXED = (
    (r"\b(?:no|not) more than\b", "at most"),
    (r"\bno (\w+ )?(?:(?:has|is|with|may have|may be) )?(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:never|not) (\w+ )(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:no|not) (?:fewer|less) than\b", "at least"),
    (rf"\b(?:under|fewer than|less than|shorter than){_A_NUMBER}", "at most"),
    (rf"\b(?:more|longer) than{_A_NUMBER}", "not at most"),
    (r"\b(?:do not|never) forget to\b", ""),
    (r"\bwithout (?:exception|fail)\b|\bno exceptions?\b", ""),
    (r"\bof any (?:kind|sort)\b|\bany (?:kind|sort)s? of\b", ""),
)

_PHRASES = [(re.compile(pattern), plain) for pattern, plain in (*_FIXED, *PHRASES)]
_ANY_PHRASE = re.compile(rf"\b(?=\w)(?:{'|'.join(pattern for pattern, _ in (*_FIXED, *PHRASES))})")


@lru_cache(maxsize=65536)
def _plain(sentence: str) -> str:
    """A sentence without case, contractions, and phrases whose negation negates nothing."""
    text = _expanded(fold(unicodedata.normalize("NFKC", sentence)))
    text = " ".join(text.split())
    if _ANY_PHRASE.search(text):
        for pattern, plain in _PHRASES:
            text = pattern.sub(plain, text)
    return text


_CLAUSE_END = re.compile(
    r"([,;:()!?]+(?=\s|$)|(?<=\s)[(\"']|\s[-–—]+\s|—|\b(?:and|but|so|then|while|whereas)\b)"
)
_HARD_END = re.compile(r"[;:!?\w]")  # after which a clause is no part of the one before
_WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|must|may|should|can|could|shall|has|have) (?:never|not|to)\b"
    r"|(?:is|are) (?:forbidden|prohibited|banned|disallowed|off[ -]limits)\b"
)
_WRITTEN_CLAUSE_END = re.compile(r"[,;!?]+(?=\s|$)|\s[-–—]+\s|—|\b(?:and|but|so|then|while)\b")
# negates all of its clause: "the main branch must never be pushed to", "pip is forbidden"
_NEGATES_CLAUSE = re.compile(
    r"\b(?:forbidden|prohibited|banned|disallowed|off[ -]limits|untouched)\b"
    r"|\b(?:is|are|be|been|must|may|should|can|could|shall|has|have) (?:never|not)\b"
    r"|\bleave\b.*\balone\b"
)
# negates what follows it in its clause
_NEGATES_REST = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|without|avoid(?:ing|s)?|stop|skip|drop"
    r"|instead of|rather than|forget(?: about)?|prefers?\b.*?\bover)\b"
)
_TAKES_BACK = re.compile(
    r"\b(?:not|no need|stop|skip|drop|ignore|forget|disregard|without|instead of|no longer)\b"
)
_STOP_WORDS = frozenset(
    "a an the this that these those it its i me my we us our you your he she they them their and or"
    " but so if then than as of in on at to for from with by into through under over up about be is"
    " are was were been being am do does did done has have had having will would shall should can"
    " could may might must always ever every each all any some please also just only when where"
    " which who what how there here too very such other another own never not no nothing none"
    " neither nor without avoid stop skip drop instead rather forget ignore user users rule rules"
    " want wants asked asks said remember mind note sure make sure forbidden prohibited banned"
    " allowed permitted alone leave said now again directly".split()
) - {"make"}
_LIGHT = frozenset({"us", "use", "keep", "let", "get"} | {"run"})  # count if nothing else does


def _content(text: str) -> set[str]:
    return {stem(word) for word in _WORD.findall(text) if word not in _STOP_WORDS}


@lru_cache(maxsize=65536)
def _signed(clause: str) -> Signed:
    """The content words of a clause, each with whether it is asked for."""
    if _NEGATES_CLAUSE.search(clause):
        rest = _NEGATES_CLAUSE.sub(_without_negation, clause)
        return frozenset((word, False) for word in _content(rest))
    negation = _NEGATES_REST.search(clause)
    if negation is None:
        return frozenset((word, True) for word in _content(clause))
    asked, forbidden = _content(clause[: negation.start()]), _content(clause[negation.end() :])
    return frozenset({(word, True) for word in asked} | {(word, False) for word in forbidden})


def _without_negation(found: re.Match[str]) -> str:
    return re.sub(r"\boff[ -]limits\b", "", found[0])


def is_negated(clause: str) -> bool:
    return bool(_NEGATES_CLAUSE.search(clause) or _NEGATES_REST.search(clause))


_NAMED = re.compile(
    r"[\"“`']([^\"”`']+)[\"”`']"  # in quotes
    r"|(?<![\w.])(\.?\w+(?:[./_-]\w+)+/?|\.\w+|\w+/)(?!\w)"  # a path or an identifier
    r"|(?<=[\w,] )([A-Z]\w+)"  # a name
    r"|\b(\d+)\b"
)


def _anchors(sentence: str) -> set[str]:
    """The words that a paraphrase does not replace: numbers, names, paths, and what is quoted."""
    anchors: set[str] = set()
    for found in _NAMED.finditer(sentence):
        anchors |= _content(fold(next(filter(None, found.groups()))))
    words = {stem(word) for word in _WORD.findall(fold(sentence))}
    return anchors | {word for word in words if word.isdecimal()}


# --- Orders

_LIFTS = re.compile(
    r"\b(?:ignore|disregard|waive[sd]?|suspend(?:ed)?|lifted|override|never ?mind|exempt|exception"
    r"|no longer appl(?:y|ies)|(?:do|does) not (?:need|have) to|need not|no need|not necessary"
    r"|unnecessary|do not bother|(?<!not )forget (?:the|about)|instead of (?:the rule|following"
    r"|starting|ending|finishing|beginning|answering|giving|using|running))\b"
)
# of a sentence that is no rule, or a weaker one
_WEAKENS = re.compile(
    r"\b(?:optional(?:ly)?|if you (?:like|want|prefer)|when(?:ever)? you like|up to you|used to"
    r"|(?:asked|wondered|unsure|unclear) (?:if|whether)|failed|passed|(?:was|were|did) not)\b"
)
# says where things go, or which are meant: "mails that end with a question go to sales"
_DESCRIBES = re.compile(
    r"^(?:\w+ ){1,4}(?:that|which|who|whose|with) (?!.*\b(?:must|should|shall)\b).*"
    r"\b(?:(?:are|is) (?:ours|mine|yours|theirs|from|for)|go(?:es)?(?! before)|belongs?)\b"
)
_ONCE = re.compile(
    r"\b(?:just (?:this )?once|for once|this once|this time|for now|today|tonight|right now"
    r"|(?:this|the next|that) (?:one|commit|change|reply|answer|turn|push|file|question))\b"
)
_ONWARD = re.compile(
    r"\b(?:from (?:now|here|this point) on(?:wards?)?|any ?more|no longer|always|in (?:the )?future"
    r"|for the rest|until i say)\b"
)
_PERMITS = re.compile(r"\byou (?:may|can|are (?:allowed|free)|do not (?:need|have) to)\b")
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
    first = _WORD.match(text)
    return first is not None and first[0] in _VERBS and not text.startswith(("do you ", "do we "))


def words_before_paths(clause: str) -> Iterator[tuple[str, str]]:
    """The first verb of an order, with each path in it."""
    text = _LEADING.sub("", _plain(clause).strip())
    text = _ASKS.sub("", text).strip()
    first = _WORD.match(text)
    for path in re.findall(r"(?<![\w/])[\w.-]*[./][\w./-]*\w", clause):
        yield first[0] if first else "", path
