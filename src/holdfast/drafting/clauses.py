"""The clauses of a statement, and the names in its lists."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from holdfast.drafting.commands import without_placeholder
from holdfast.drafting.forms import CODE, NEVER, one_of
from holdfast.drafting.rules_file import Statement

T = TypeVar("T")


class Clause(NamedTuple):
    """A clause of a statement.

    Args:
        rest: the other clauses, which may name exceptions.
    """

    text: str
    rest: list[str]


_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"
# "Use X (not Y)", but not "X (not available)"; "Never push (wait for approval)"
_ORDER_IN_BRACKETS = re.compile(
    r"\((not|never|(?:but )?(?:ask(?= (?:first|me|the user))|wait for))"
    r" (?!(?:available|required|recommended|supported|needed|yet)\b)([^()]+)\)",
    re.I,
)
# "(`x`)", "(e.g. `x`, `y`, etc.)"
_CODES_IN_BRACKETS = re.compile(
    rf"\((?:(?:e\.g\.,?|such as|like) )?{CODE}(?:(?:, | or | and |/){CODE})*"
    r"(?:,? etc\.?| or (?:equivalent|similar))?\)"
)
_CALLS_ATTENTION = re.compile(r"^(?:in particular|specifically|note|important),? ", re.I)
_QUOTATION = re.compile(r"\"[^\"]{1,80}\"|“[^”“]{1,80}”")
# from here on, a sentence says why, or what to do instead
_REASON_OR_CURE = re.compile(
    one_of(
        r",? (?:so that|because|otherwise)\b",
        r", (?:so|since|which|as|it|they|these|this)\b",
        r" so (?:the|it|we|you|they|a|all)\b",
        r", (?:instead|simply|just) ",
        r", (?:adding|ensuring|making sure|calling|keeping) ",
        r", (?:always |please )?(?:re-?run|regenerate|edit|change|update|modify) ",
    )
)
_CIRCUMSTANCE = re.compile(r"(?:for|in|on|when|if|during|while|after|before|inside)\b", re.I)
# the ends of clauses, in a text in which code is hidden as \0
_CUT = "|".join(
    (
        *(r"\s+[—–]\s*", r"\s+-{1,2}\s+", r";\s+", r": (?=\S)", rf"\s*{_BRACKETS}"),
        *(r",? and (?=(?:never|do not|don['’]t) )", r" with (?=no \0)"),
        r",? but (?=(?:[Nn]ever|NEVER|ALWAYS|[Aa]lways|[Dd]o not|DO NOT|don['’]t) )",
    )
)
_CUTS = re.compile(_CUT)
# in "For builds, never use X", what is before the comma limits what is after it
_CUTS_AND_COMMAS = re.compile(
    rf"{_CUT}|,(?: and| but)? (?=(?:never|no) (?:[\w-]+ )?\0)|, (?=(?:do not|don['’]t|never) )"
    r"|, (?:and |or )?(?=no [\w.-]+(?:[,.]|$))"  # "no framework, no npm"
)
_CODE_OR_BRACKETS = re.compile(rf"(`[^`]*`)|\s*{_BRACKETS}")
_PROHIBITION = re.compile(rf"{NEVER} ", re.I)
_MARKS = " .!,:"
_MAX_CUTS = 50  # of a statement, so that a long one takes time in proportion to its length
_IS_ORDER = re.compile(rf"^{NEVER} \S+ \S|\b(?:must|should|always) \S", re.I)  # of a label


def clauses_of(statement: Statement) -> Iterator[Clause]:
    """Each clause of a statement; first the whole of it, or most."""
    text = _ORDER_IN_BRACKETS.sub(r", \1 \2", statement.text).replace(" ,", ",")
    text = _CALLS_ATTENTION.sub("", text)
    masked = _without_code_and_quotations(text)
    if _IS_ORDER.search(statement.label):  # "**Never amend commits**: make new ones"
        yield Clause(statement.label, [text])
    if _CODES_IN_BRACKETS.search(text):  # they say what is meant
        yield Clause(text.strip(_MARKS), [])
    if reason := _REASON_OR_CURE.search(masked):
        yield Clause(text[: reason.start()].strip(_MARKS), [text[reason.start() :]])
    pattern = _CUTS if _CIRCUMSTANCE.match(text) else _CUTS_AND_COMMAS
    cuts = list(islice(pattern.finditer(masked), _MAX_CUTS))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    pieces = [text[start:end].strip(_MARKS) for start, end in zip(starts, ends, strict=True)]
    pieces = [piece for piece in pieces if piece]
    asides = [text[cut.start(1) : cut.end(1)] for cut in cuts if cut[1] is not None]
    whole = _CODE_OR_BRACKETS.sub(lambda match: match[1] or "", text).strip(_MARKS)
    if whole not in pieces:
        yield Clause(whole, asides)
    for index, piece in enumerate(pieces):
        yield Clause(piece, [*pieces[:index], *pieces[index + 1 :], *asides])
    for aside in filter(_PROHIBITION.match, asides):  # "Yarn (do not use npm)"
        others = [other for other in [*pieces, *asides] if other != aside]
        yield Clause(aside.strip(_MARKS), others)


def _without_code_and_quotations(text: str) -> str:
    """A text of the same length in which code spans and quotations cannot be cut."""
    without_code = re.sub(r"`[^`]*`", lambda match: "\0" * len(match[0]), text)
    return _QUOTATION.sub(lambda match: f'"{"x" * (len(match[0]) - 2)}"', without_code)


# a code span, or a word that is no conjunction
_LISTED = re.compile(r"`([^`]+)`|(?:(?<=^)|(?<=[\s/,]))(?!(?:or|and|nor)\b)([\w.@:+-]+)")


class ListedName(NamedTuple):
    """A thing of a list, and whether it is in backticks."""

    text: str
    is_code: bool


def names_in(objects: str) -> list[ListedName]:
    """The things of a list such as "npm, `yarn` or pnpm"."""
    return [
        ListedName(without_placeholder(code) or word, bool(code))
        for code, word in _LISTED.findall(objects)
    ]


def codes_in(text: str) -> list[str]:
    """The code spans of a text, without their backticks."""
    return re.findall("`([^`]+)`", text)


def all_known(values: Sequence[T | None]) -> list[T] | None:
    """The values of a list of which each is known; None if one is not, or if there is none."""
    if not values or None in values:
        return None
    return [value for value in values if value is not None]
