"""Cuts a statement into clauses, and finds the names that a clause lists.

For example:

    clauses_of "Use pnpm, never `npm` - it breaks"
        -> "Use pnpm, never `npm` - it breaks", "Use pnpm", "never `npm`", "it breaks"
    names_in "npm, `yarn` or pnpm"
        -> npm, yarn (code), pnpm

Most patterns are matched with a masked text, in which each character of a code span is \\0, so that
no clause ends within code.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from holdfast.drafting.grammar.commands import without_placeholder
from holdfast.drafting.grammar.forms import CODE, NEVER, one_of
from holdfast.drafting.grammar.instruction_words import AFTER_NAMES, VERBS
from holdfast.drafting.rules_file import Statement

# enough to tell `npm run lint:js` from `npm run lint:css`, and few enough that brackets further on
# may have been cut out of the clause
_COMPARED_CHARACTERS = 20


@dataclass(frozen=True)
class Clause:
    """A clause of a statement, from which a rule may be read.

    Args:
        text: the words of the clause, without punctuation at either end.
        statement: the statement that the clause is a part of.
        is_prohibited: whether the statement is below "Do not:", where "push to `main`" forbids
            pushing.
        others: the other clauses of the statement, which may name exceptions.
    """

    text: str
    statement: Statement
    is_prohibited: bool = False
    others: tuple[str, ...] = ()

    @property
    def begins_statement(self) -> bool:
        """Whether the clause begins like its statement, as the first clause does."""
        return self.statement.text.startswith(self.text[:_COMPARED_CHARACTERS])

    @property
    def context(self) -> str:
        """The clause with the label and the headings above it, which may say what it is about."""
        return " ".join((self.text, self.statement.label, *self.statement.under))


# --- The clauses of a statement

# "Use X (not Y)" and "Never push (wait for approval)", but not "X (not available)"
_ORDER_IN_BRACKETS = re.compile(
    r"\((not|never|instead of|rather than|(?:but )?(?:ask(?= (?:first|me|the user))|wait for))"
    r" (?!(?:available|required|recommended|supported|needed|yet)\b)((?:`[^`]*`|[^()`])+)\)",
    re.I,
)
# "Never use `print()` (except in tests)"
_EXCEPTION_IN_BRACKETS = re.compile(r" \((except (?:for |in )(?:`[^`]*`|[^()`;:])+)\)", re.I)
# "Note, never push"
_CALLS_ATTENTION = re.compile(r"^(?:in particular|specifically|note|important),? ", re.I)
# "never use `a`, but instead use `b`"
_BUT_USE = re.compile(r",? but (?:instead |rather )?(?=(?:use|prefer)\b)", re.I)
# "Never amend commits" and "No jQuery", as labels that are rules by themselves
_IS_ORDER = re.compile(rf"^{NEVER} \S+ \S|\b(?:must|should|always) \S|^no \S", re.I)
# below "Do not:", a clause that says what to do instead: "hardcode URLs — *use `home_url()`*"
_ADVISES = re.compile(r"(?:use|prefer|instead|always|call|go through|only)\b", re.I)
_PUNCTUATION = " .!,:"


def clauses_of(statement: Statement, *, is_prohibited: bool) -> Iterator[Clause]:
    """The clauses of a statement: first the whole of it, or most of it, and then its pieces.

    A piece that is a part of an earlier clause comes again, as only the piece may be a rule.
    """
    text = _ORDER_IN_BRACKETS.sub(r", \1 \2", statement.text).replace(" ,", ",")
    text = _EXCEPTION_IN_BRACKETS.sub(r" \1", text)
    text = _CALLS_ATTENTION.sub("", _BUT_USE.sub(", ", text))
    clauses = chain(_without_explanations(text), _cut_at_marks(text))
    if _IS_ORDER.search(statement.label):  # "**Never amend commits**: make new ones"
        clauses = chain([_ClauseText(statement.label, [text])], clauses)
    for words, others in clauses:
        clause = Clause(words.strip(_PUNCTUATION), statement, is_prohibited, tuple(others))
        if is_prohibited and _ADVISES.match(clause.text) and not clause.begins_statement:
            clause = replace(clause, is_prohibited=False)
        yield clause


class _ClauseText(NamedTuple):
    """The text of a clause, and the texts of the other clauses of its statement."""

    text: str
    others: Sequence[str]


# "(`x`)" or "(e.g. `x`, `y`, etc.)"
_CODES_IN_BRACKETS = re.compile(
    rf"\((?:(?:e\.g\.,?|such as|like) )?{CODE}(?:(?:, | or | and |, or |/)(?:any )?{CODE})*"
    r"(?:(?:, [\w.-]+){0,4},? etc\.?| or (?:equivalent|similar))?\)"
)
_DASH_OR_SEMICOLON = re.compile(r"\s+[—–]\s*|\s+-{1,2}\s+|;\s+")
# the rest of the sentence says why, or what to do instead
_REASON_OR_ADVICE = re.compile(
    one_of(
        r",? (?:so that|because|otherwise)\b",
        r", (?:so|since|which|as|it|they|these|this)\b",
        r" so (?:the|it|we|you|they|a|all)\b",
        r" as (?:it|they|this|these|that|we) (?!is\b|are\b)",
        r", (?:instead|simply|just|keep) ",
        r", (?:adding|ensuring|making sure|calling|keeping) ",
        r", (?:always |please )?(?:re-?run|regenerate|edit|change|update|modify) ",
    )
)
# "build with `a`, but always test with `b`"
_BUT_ALWAYS = re.compile(r",? but (?=always )", re.I)
# why an order is given: "use pnpm *to keep one lockfile in all packages*"; the purpose of a
# prohibition limits it
_PURPOSE_OF_ORDER = re.compile(
    r",? (?:in order )?to (?:ensure|avoid|prevent|guarantee|make sure|keep|maintain|preserve"
    r"|catch)\b"
)
_NOT_AN_ORDER = re.compile(rf"{NEVER}\b|no\b|avoid\b|only\b|if\b|when\b|for\b|in\b", re.I)
# "Follow PEP 8 and use type hints"
_TWO_ORDERS = re.compile(
    r"(?P<first>(?P<verb>[a-z]+) [^,;:.\0]+),? and"
    r" (?P<second>(?:use|add|include|write|run|keep|never|always) .+)",
    re.I,
)
# "use `a` for `b`, and prefer `c`"
_AND_PREFER = re.compile(r",? and prefer (?!not\b)", re.I)


def _without_explanations(text: str) -> Iterator[_ClauseText]:
    """Most of a text: without the reason, the purpose or the second order that follows."""
    masked = _mask_code_and_quotations(text)
    if _CODES_IN_BRACKETS.search(text):  # the brackets say what is meant
        yield _ClauseText(text, [])
        if mark := _DASH_OR_SEMICOLON.search(masked):
            yield _ClauseText(text[: mark.start()], [text[mark.end() :]])
    if reason := _REASON_OR_ADVICE.search(masked):
        yield _ClauseText(text[: reason.start()], [text[reason.start() :]])
    if turn := _BUT_ALWAYS.search(masked):
        yield _ClauseText(text[turn.end() :], [text[: turn.start()]])
    purpose = _PURPOSE_OF_ORDER.search(masked)
    if purpose and not _NOT_AN_ORDER.match(text):
        yield _ClauseText(text[: purpose.start()], [text[purpose.start() :]])
    if (orders := _TWO_ORDERS.fullmatch(masked)) and orders["verb"].lower() in VERBS:
        first, second = (text[slice(*orders.span(part))] for part in ("first", "second"))
        yield _ClauseText(second, [first])
    if preference := _AND_PREFER.search(masked):
        yield _ClauseText(text[: preference.start()], [text[preference.start() :]])


_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"
# where one clause ends and the next begins
_CLAUSE_END = "|".join(
    (
        *(r"\s+[—–]\s*", r"\s+-{1,2}\s+", r";\s+", r": (?=\S)", rf"\s*{_BRACKETS}"),
        *(r",? and (?=(?:never|do not|don['’]t) )", r" with (?=no \0)"),
        r",? but (?=(?:[Nn]ever|NEVER|ALWAYS|[Aa]lways|[Dd]o not|DO NOT|don['’]t) )",
    )
)
_CUTS = re.compile(_CLAUSE_END)
# the same, and commas before a prohibition
_CUTS_AND_COMMAS = re.compile(
    rf"{_CLAUSE_END}|,(?: and| but)? (?=(?:never|no) (?:[\w-]+ )?\0)"
    r"|, (?=(?:do not|don['’]t|never) )"
    r"|, (?:and |or )?(?=no [\w.-]+(?:[,.]|$))"  # "no framework, no npm"
)
# the same, in a list of things that begins with code: "No `any`, no implicit types"
_NO_CODE_FIRST = re.compile(r"no \0+, no ", re.I)
_CUTS_OF_LIST = re.compile(rf"{_CLAUSE_END}|, (?:and |or )?(?=no )")
# "For builds, never use X": a clause that begins so limits what comes after its comma
_CIRCUMSTANCE = re.compile(
    r"(?:for|in|on|when|if|during|while|after|before|inside|once|until|whenever|as soon as)\b", re.I
)
_MAX_CUTS = 50  # per statement, so that a long one takes time in proportion to its length
# to keep code as it is, with its brackets, where others are removed
_CODE_OR_BRACKETS = re.compile(rf"(`[^`]*`)|\s*{_BRACKETS}")
# "do not use npm", in the brackets of "Yarn (do not use npm)"
_FORBIDS = re.compile(rf"{NEVER} |no (?:[A-Z]|`)", re.I)
# "`make debug` runs in-process (no Docker)"
_TELLS_OF_CODE = re.compile(r"\0 (?:runs|works|starts|builds|executes|is|needs|takes)\b")


def _cut_at_marks(text: str) -> Iterator[_ClauseText]:
    """The whole of a text without its brackets, its pieces, and prohibitions in its brackets."""
    masked = _mask_code_and_quotations(text)
    pattern = _CUTS if _CIRCUMSTANCE.match(text) else _CUTS_AND_COMMAS
    if _NO_CODE_FIRST.match(masked):
        pattern = _CUTS_OF_LIST
    cuts = list(islice(pattern.finditer(masked), _MAX_CUTS))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    pieces = [text[start:end].strip(_PUNCTUATION) for start, end in zip(starts, ends, strict=True)]
    pieces = [piece for piece in pieces if piece]
    asides = [text[cut.start(1) : cut.end(1)] for cut in cuts if cut[1] is not None]
    whole = _CODE_OR_BRACKETS.sub(lambda match: match[1] or "", text).strip(_PUNCTUATION)
    if whole not in pieces:
        yield _ClauseText(whole, asides)
    for index, piece in enumerate(pieces):
        yield _ClauseText(piece, [*pieces[:index], *pieces[index + 1 :], *asides])
    for aside in filter(_FORBIDS.match, asides):  # "Yarn (do not use npm)"
        if aside.startswith("no ") and _TELLS_OF_CODE.search(masked):
            continue
        yield _ClauseText(aside, [other for other in [*pieces, *asides] if other != aside])


# --- Acts that are forbidden together

_PROHIBITION = re.compile(rf"{NEVER} ", re.I)
# what limits an act may limit the acts before it too: "never commit or push without approval"
_LIMIT = re.compile(
    r"\b(?:unless|without|until|when|if|before|after|except|only|instead|but|while|during)\b|[;:(]"
    r"|[\w\0] (?:in|on|at|for) (?!.*\bor [a-z-]+ )(?:(?:a|an|the|any) )?[\w-]+ ?[\w-]*\W*\Z",
    re.I,
)
_MAX_ACTS = 8  # of one prohibition
# a verb as in "or delete `b`" or ", delete `b`, ...", but not "or commit messages"
_NO_NAME = rf"(?![a-z-]+ {one_of(*sorted(AFTER_NAMES))}\b)"
_OR_VERB = re.compile(rf",? or {_NO_NAME}(?=([a-z-]+) )|, {_NO_NAME}(?=([a-z-]+) [^,]+(?:,| or ))")


def coordinated_prohibitions(text: str) -> list[str]:
    """Each act that a statement forbids beside others, as a prohibition; [] if it forbids only one.

    For example, of "never edit `a` or delete `b`": "never edit `a`" and "never delete `b`".
    """
    masked = _mask_code_and_quotations(text)
    never = _PROHIBITION.match(masked)
    if never is None or _LIMIT.search(masked):
        return []
    # "don't forget to run `a` or commit `b`" forbids neither
    first = re.match("[a-z-]+", masked[never.end() :], re.I)
    if first is None or first[0].lower() not in VERBS:
        return []
    cuts = [cut for cut in _OR_VERB.finditer(masked) if (cut[1] or cut[2]) in VERBS]
    starts = [never.end(), *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    pieces = [text[start:end].strip(_PUNCTUATION) for start, end in zip(starts, ends, strict=True)]
    if not 1 <= len(cuts) <= _MAX_ACTS or not all(" " in piece for piece in pieces):
        return []
    return [f"{never[0]}{piece}" for piece in pieces]


_QUOTATION = re.compile(r"\"[^\"]{1,80}\"|“[^”“]{1,80}”")


def _mask_code_and_quotations(text: str) -> str:
    """A text of the same length without code spans and quotations, where no clause ends."""
    without_code = re.sub(r"`[^`]*`", lambda match: "\0" * len(match[0]), text)
    return _QUOTATION.sub(lambda match: f'"{"x" * (len(match[0]) - 2)}"', without_code)


# --- Names in a list


class ListedName(NamedTuple):
    """One name of a list, and whether it is in backticks."""

    text: str
    is_code: bool


# a code span, or a word that is not a conjunction
_LISTED = re.compile(r"`([^`]+)`|(?:(?<=^)|(?<=[\s/,]))(?!(?:or|and|nor)\b)([\w.@:+-]+)")


def names_in(objects: str) -> list[ListedName]:
    """The names in a list such as "npm, `yarn` or pnpm"."""
    return [
        ListedName(without_placeholder(code) or word, bool(code))
        for code, word in _LISTED.findall(objects)
    ]


def codes_in(text: str) -> list[str]:
    """The code spans of a text, without their backticks."""
    return re.findall("`([^`]+)`", text)


T = TypeVar("T")


def all_known(values: Sequence[T | None]) -> list[T]:
    """The values if none of them is None; otherwise []."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []
