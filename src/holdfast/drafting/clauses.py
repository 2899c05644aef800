"""The clauses of a statement, and the words that commands, paths and prohibitions are made of."""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from holdfast.drafting.commands import without_placeholder
from holdfast.drafting.rules_file import Statement

T = TypeVar("T")

NEVER = (
    r"(?:(?:you|we|agents?|claude|assistants?|it) )?(?:never(?: ever)?|(?:do not|don['’]t|must not"
    r"|mustn['’]t|must never|should not|shouldn['’]t|should never|may not|cannot"
    r"|can['’]t)(?: ever)?"
    r")"
)
ADVERBS = (
    r"(?:(?:always|please|also|only|then|instead|and|you must|must|make sure to|be sure to) )*"
)
REASON = (
    r"directly|locally|manually|by hand|here|anywhere|at all|ever|yourself|under any circumstances?"
    r"|for any reason|in this (?:repo|repository|project|codebase|workspace|monorepo)|in the repo"
)
TAIL = rf"(?: (?:{REASON}))*"
CODE = r"`[^`]+`"
OBJECT = rf"(?:{CODE}|[\w./@:+-]+)"
OBJECTS = rf"{OBJECT}(?:(?:,? (?:or|and|nor)|,|/| /) ?{OBJECT})*"
CODES = rf"{CODE}(?:(?:,? (?:then|and then|and|or|&&|&|\+|→|->)|,) ?{CODE})*"
_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"
# "Use X (not Y)", but not "X (not available)"
_NOT_IN_BRACKETS = re.compile(
    r"\((not|never) (?!(?:available|required|recommended|supported|needed|yet)\b)([^()]+)\)", re.I
)
_CODES_IN_BRACKETS = re.compile(rf"\({CODE}(?:(?:, | or | and |/){CODE})*\)")
_CALLS_ATTENTION = re.compile(r"^(?:in particular|specifically|note|important),? ", re.I)
_QUOTATION = re.compile(r"\"[^\"]{1,80}\"|“[^”“]{1,80}”")
# from here on, a sentence says why, or what to do instead
_REASON_OR_CURE = re.compile(
    r",? (?:so that|because|otherwise)\b|, (?:so|since|which|as|it|they|these|this)\b"
    r"| so (?:the|it|we|you|they|a|all)\b|, (?:instead|simply|just) "
    r"|, (?:always |please )?(?:re-?run|regenerate|edit|change|update|modify) "
)
_CIRCUMSTANCE = re.compile(r"(?:for|in|on|when|if|during|while|after|before|inside)\b", re.I)
# code is hidden as \0
_CUT = (
    r"\s+[—–]\s*|\s+-{1,2}\s+|;\s+|,? and (?=(?:never|do not|don['’]t) )| with (?=no \0)|: (?=\S)"
    rf"|\s*{_BRACKETS}"
)
_CUTS = re.compile(_CUT)
# in "For builds, never use X", what is before the comma limits what is after it
_CUTS_AND_COMMAS = re.compile(
    rf"{_CUT}|,(?: and| but)? (?=(?:never|no) (?:[\w-]+ )?\0)|, (?=(?:do not|don['’]t|never) )"
)
_CODE_OR_BRACKETS = re.compile(rf"(`[^`]*`)|\s*{_BRACKETS}")
_PROHIBITION = re.compile(rf"{NEVER} ", re.I)
_MARKS = " .!,:"


def clauses_of(statement: Statement) -> Iterator[tuple[str, list[str]]]:
    """Each clause of a statement, with the others; first the whole of it, or most."""
    text = _NOT_IN_BRACKETS.sub(r", \1 \2", statement.text).replace(" ,", ",")
    text = _CALLS_ATTENTION.sub("", text)
    hidden = _without_code_and_quotations(text)
    if _CODES_IN_BRACKETS.search(text):  # they say what is meant
        yield text.strip(_MARKS), []
    if reason := _REASON_OR_CURE.search(hidden):
        yield text[: reason.start()].strip(_MARKS), [text[reason.start() :]]
    cuts = list((_CUTS if _CIRCUMSTANCE.match(text) else _CUTS_AND_COMMAS).finditer(hidden))
    starts, ends = [0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(text)]
    pieces = [text[start:end].strip(_MARKS) for start, end in zip(starts, ends, strict=True)]
    pieces = [piece for piece in pieces if piece]
    asides = [text[cut.start(1) : cut.end(1)] for cut in cuts if cut[1] is not None]
    whole = _CODE_OR_BRACKETS.sub(lambda match: match[1] or "", text).strip(_MARKS)
    if whole not in pieces:
        yield whole, asides
    for index, piece in enumerate(pieces):
        yield piece, [*pieces[:index], *pieces[index + 1 :], *asides]
    for aside in filter(_PROHIBITION.match, asides):  # "Yarn (do not use npm)"
        yield aside.strip(_MARKS), [other for other in [*pieces, *asides] if other != aside]


def _without_code_and_quotations(text: str) -> str:
    """A text of the same length in which code spans and quotations cannot be cut."""
    hidden = re.sub(r"`[^`]*`", lambda match: "\0" * len(match[0]), text)
    return _QUOTATION.sub(lambda match: f'"{"x" * (len(match[0]) - 2)}"', hidden)


def _listed(objects: str) -> list[tuple[str, str]]:
    return re.findall(r"`([^`]+)`|(?:(?<=^)|(?<=[\s/,]))(?!(?:or|and|nor)\b)([\w.@:+-]+)", objects)


def names_in(objects: str) -> list[tuple[str, bool]]:
    """The things of a list, and whether each is in backticks."""
    return [(without_placeholder(code) or word, bool(code)) for code, word in _listed(objects)]


def all_known(values: Sequence[T | None]) -> list[T] | None:
    """The values of a list of which each is known; None if one is not, or if there is none."""
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None
