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


# "Use X (not Y)", but not "X (not available)"
_NOT_IN_BRACKETS = re.compile(
    r"\((not|never) (?!(?:available|required|recommended|supported|needed|yet)\b)([^()]+)\)", re.I
)
_QUOTATION = re.compile(r"\"[^\"]{1,80}\"|“[^”“]{1,80}”")
_CIRCUMSTANCE = re.compile(r"(?:for|in|on|when|if|during|while|after|before|inside)\b", re.I)


_CUT = (
    r"\s+[—–]\s*|\s+-{1,2}\s+|;\s+|,? and (?=(?:never|do not|don['’]t) )| with (?=no \0)|: (?=\S)"
    r"|\s*\(((?:[^()]|\([^()]*\))*)\)"
)
# in "For builds, never use X", what is before the comma limits what is after it
_CUT_AT_COMMAS = (
    rf"{_CUT}|,(?: and| but)? (?=(?:never|no) (?:[\w-]+ )?\0)|, (?=(?:do not|don['’]t|never) )"
)


def clauses_of(statement: Statement) -> Iterator[tuple[str, list[str]]]:
    """Each clause of a statement, with the others."""
    text = _NOT_IN_BRACKETS.sub(r", \1 \2", statement.text)
    text = text.replace(" ,", ",")
    text = re.sub(r"^(?:in particular|specifically|note|important),? ", "", text, flags=re.I)
    hidden = re.sub(r"`[^`]*`", lambda match: "\0" * len(match[0]), text)
    # of a quotation, the marks stay, for words may depend on its being one
    hidden = re.sub(
        r"(?<=\")[^\"]{1,80}(?=\")|(?<=“)[^”“]{1,80}(?=”)",
        lambda match: "x" * len(match[0]),
        hidden,
    )
    if re.search(rf"\({CODE}(?:(?:, | or | and |/){CODE})*\)", text):  # it says what is meant
        yield text.strip(" .!,:"), []
    if reason := re.search(
        r",? (?:so that|because|otherwise)\b|, (?:so|since|which|as|it|they|these|this)\b"
        r"| so (?:the|it|we|you|they|a|all)\b"
        r"|, (?:instead|simply|just|(?:always |please )?(?:re-?run|regenerate|edit|change|update|modify) )",
        hidden,
    ):
        yield text[: reason.start()].strip(" .!,:"), [text[reason.start() :]]
    cuts = [0]
    aside: list[str] = []
    for match in re.finditer(_CUT if _CIRCUMSTANCE.match(text) else _CUT_AT_COMMAS, hidden):
        cuts += [match.start(), match.end()]
        if match[1] is not None:
            aside.append(text[match.start(1) : match.end(1)])
    pieces = [text[a:b] for a, b in zip(cuts[::2], [*cuts[1::2], len(text)], strict=True)]
    pieces = [piece.strip(" .!,:") for piece in pieces if piece.strip(" .!,:")]
    aside_or_code = r"(`[^`]*`)|\s*\((?:[^()]|\([^()]*\))*\)"
    whole = re.sub(aside_or_code, lambda match: match[1] or "", text).strip(" .!,:")
    if whole not in pieces:
        yield whole, aside
    for index, piece in enumerate(pieces):
        yield piece, [*pieces[:index], *pieces[index + 1 :], *aside]
    for text in aside:  # "Yarn (do not use npm)"
        if re.match(rf"{NEVER} ", text, re.I):
            yield text.strip(" .!,:"), [other for other in [*pieces, *aside] if other != text]


def _listed(objects: str) -> list[tuple[str, str]]:
    return re.findall(r"`([^`]+)`|(?:(?<=^)|(?<=[\s/,]))(?!(?:or|and|nor)\b)([\w.@:+-]+)", objects)


def names_in(objects: str) -> list[tuple[str, bool]]:
    """The things of a list, and whether each is in backticks."""
    return [(without_placeholder(code) or word, bool(code)) for code, word in _listed(objects)]


def all_known(values: Sequence[T | None]) -> list[T] | None:
    """The values of a list of which each is known; None if one is not, or if there is none."""
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None
