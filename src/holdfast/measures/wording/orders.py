"""Finds what a message asks for: orders, requests and permissions, and for how long they hold.

For example:

    "Please push it now, I tested it."  ->  an order, "please push it now", and a report
    "In English from now on, please."   ->  a request without a verb, which lasts
    "Never mind."                       ->  takes back what was ordered before
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.measures.wording.clause_words import is_negated
from holdfast.measures.wording.order_clauses import is_order
from holdfast.measures.wording.plain_text import plain_sentence
from holdfast.measures.wording.sentences import Passage, Sentence, read_sentences

# --- Requests, besides clauses that are orders

# in a clause that asks for something, an order or not quite one: "I *would prefer* English"
_ASKING = re.compile(
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
_QUESTION = re.compile(r"\?|^\W*(?:\w+ ){0,2}?(?:what(?:'?s)?|which|how|where|who|when) ")
# begins a request without a verb: "*in* English", "*no* tests this time"
_FRAGMENT = re.compile(
    r"(?:just |but |and |only |all |answers? |everything )*"
    r"(?:in|as|with|without|no|minus|more|less|longer|shorter|\d+|one|two|three|four|five|straight"
    r"|direct(?:ly)?|onto|skip(?:ping)?)\b"
)
# begins a clause that tells of something or asks about it: "*why did* you push", "*my boss says*"
_REPORTS = re.compile(
    r"(?:if|whether|unless"
    r"|why (?:did|do you|are|is|was)"
    r"|(?:what|when|where|who|how) (?:did|do you|is|are|was|were|happens)"
    r"|(?:did|do|does|was|were|is|are|have|has) (?:you|we|i|it|that|this|there|the)\b"
    r"|(?:i|we) (?:already )?(?:told|asked|said|thought|saw|noticed)"
    r"|(?:my|our|the|his|her|their) \w+ (?:says?|said|told|asks|asked|thinks?|wants?))"
)
# a text in quotation marks, but not the apostrophes in "don't": "translate *'Fahrrad'*"
_QUOTATION = re.compile(r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|\u201c[^\u201d]+\u201d)(?!\w)")

# --- How long an order holds

# for one turn: "*just this once*", "push *this commit*"
_ONCE = re.compile(
    r"\b(?:just (?:this )?once|for once|this once|this time|for now|today|tonight|right now"
    r"|(?:this|the next|that) (?:one|commit|change|reply|answer|turn|push|file|question))\b"
)
# for good: "*from now on*", "*no longer*"
_ONWARD = re.compile(
    r"\b(?:from (?:now|here|this point) on(?:wards?)?|any ?more|no longer|always|in (?:the )?future"
    r"|for the rest|until i say)\b"
)
_PERMITS = re.compile(r"\byou (?:may|can|are (?:allowed|free)|do not (?:need|have) to)\b")


def is_for_once(plain: str) -> bool:
    """Whether a plain sentence says that an order holds for one turn only."""
    return _ONCE.search(plain) is not None


def is_for_good(plain: str) -> bool:
    """Whether a plain sentence orders something for good, or permits it: "you may use emojis"."""
    if _ONWARD.search(plain):
        return True
    return _PERMITS.search(plain) is not None and not is_for_once(plain)


# --- Requests and orders of a message


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
        passage = sentence.quoted(lasts=is_for_good(plain))
        asks = bool(_ASKING.search(plain) or _QUESTION.search(plain)) or sentence.is_order
        for number, clause in enumerate(_clauses_of_request(sentence)):
            if _REPORTS.match(clause):
                continue
            is_fragment = bool(_FRAGMENT.match(clause)) and (asks or number == 0)
            if is_fragment or is_order(clause) or _ASKING.search(clause):
                yield OrderClause(clause, f"{before} {plain}", is_for_once(plain), passage)
        before = plain


def _clauses_of_request(sentence: Sentence) -> list[str]:
    """Returns the clauses of a sentence, and those that a quotation splits, without it: "translate
    'Fahrrad' into English" asks for English.
    """
    unquoted = _QUOTATION.sub("it", sentence.text)
    if unquoted == sentence.text:
        return sentence.clauses
    return [*sentence.clauses, *Sentence(unquoted, sentence.index).clauses]


# between the clauses of a text as it is written, where quotations and lists stay whole
_WRITTEN_CLAUSE_END = re.compile(r"[,;!?]+(?=\s|$)|\s[-–—]+\s|—|\b(?:and|but|so|then|while)\b")


def orders_in(text: str) -> list[str]:
    """Returns the clauses of a text that are orders and forbid nothing, as they are written."""
    return [
        clause.strip()
        for sentence in read_sentences(text)
        for clause in _WRITTEN_CLAUSE_END.split(sentence.text)
        if is_order(plain := plain_sentence(clause).strip()) and not is_negated(plain)
    ]


# --- Messages that take orders back

# "*scrap that*", "*I changed my mind*", "*never mind*"
_TAKES_BACK_LAST = re.compile(
    r"\b(?:scrap|forget|ignore|disregard|cancel|undo|drop) (?:that|this|it|what i (?:just )?said"
    r"|my last (?:message|order|instruction))(?:\W*$| (?:again|please|for good)\b)"
    r"|\bi (?:(?:do )?(?:hereby )?)?take (?:that|it|this) back\b|\bi changed my mind\b"
    r"|^(?:no |oh |ok |actually |sorry )?never ?mind(?: (?:that|this|it|what i said))?\W*$"
    r"|\bon second thoughts?\b"
)
# "*back to the usual rules*", "*the limit applies again*"
_RETURNS_TO_RULES = re.compile(
    r"\bback to (?:the |our |your |my )?(?:(?:original|usual|normal|old|previous|earlier|standard"
    r"|default) )*(?:rules?|instructions?|guidelines|way|style|format|usual|normal|default|limit"
    r"|(?:short(?:er)?|brief|concise) (?:answers?|replies|reply|responses?|ones?))\b"
    r"|\bthe (?:\w+ )?(?:rules?|limits?|instructions?) (?:(?:now )?(?:appl(?:y|ies)|holds?|counts?"
    r"|stands?) again|(?:is|are) back(?: on| in (?:force|place|effect))?)\b"
)


def takes_back_last(text: str) -> bool:
    """Whether a message takes back what the user said in the message before."""
    clauses = (clause for sentence in read_sentences(text) for clause in sentence.clauses)
    return any(_TAKES_BACK_LAST.search(clause) for clause in clauses)


def returns_to_rules(text: str) -> bool:
    """Whether a message takes back all orders against the rules."""
    return any(_RETURNS_TO_RULES.search(sentence.plain) for sentence in read_sentences(text))
