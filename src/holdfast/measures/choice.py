"""Which option a reply to a multiple-choice question picks."""

from __future__ import annotations

import re
from functools import cache

from holdfast.errors import UsageError
from holdfast.measures.kinds import Letter, Letters
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import lines_of

NEGATED = (
    r"\b(?:not|never|neither|nor|instead of|rather than|than|isn['’]t)\s+(?:option\s+|answer\s+)?"
    r"[\"'(*]*(?:{L})\b[)\"'*]*"
)
STATED = (
    r"(?i:\b(?:answer|choice|option|choose|chose|pick|select|go with|going with|say|reply|respond)\b)"
    r"(?i:\s+(?:is|was|would be|will be|with|option|letter|the))*\s*[:=]?\s*[\"'“‘(*]*({L})(?![\w'’])"
)
MARKED = r"(?<!\w)({L})(?=\)|\*\*|[\"'”’](?!\w))"
FIRST = r"[\W_]*({L})(?:\s*[).:\]\-–—,*\"”]|\s*$|\n)"
SEVERAL = r"[\W_]*(?:{L})[).]?(?: ?(?:,|/|\bor\b|\band\b|&| ) ?(?:or |and )?(?:{L})\b[).]?)+"
ALONE = r"(?<![\w'’])({L})(?![\w'’])"
PRONOUN = re.compile(r"I \w")


def letter_is_among(letter: str, among: str) -> None:
    """Refuses a letter that no reply could pick."""
    if letter.upper() not in among.upper():
        raise UsageError(f"The letter {letter!r} of the measure 'choice' is not among {among!r}; add it to 'among'.")


@measure(check=letter_is_among)
def choice(text: str, letter: Letter, among: Letters = "ABCDE") -> Score:
    """1 if the reply picks this option: "B", "(b)", "B) jolly", "The answer is B."; no chance capital counts."""
    picked, why = read_choice(text, among.upper())
    if picked is None:
        return Score(0.0, why)
    return Score(float(picked == letter.upper()), f"picks {picked} ({why})")


def read_choice(text: str, among: str) -> tuple[str | None, str]:
    """The option a reply picks and how it was read, or None and why not.

    In this order: the letter alone; a statement ("the answer is B"); a letter that opens the reply
    ("B) jolly"); the only letter that is marked ("fire (C)"); the only capital that stands alone,
    where 'A' and 'I' count only at the end, since both are words.
    """
    find = patterns(among)
    body = "\n".join(" ".join(line.split()) for line in lines_of(text))
    body = find["negated"].sub(" ", body).strip()
    bare = re.sub(r"[\W_]+", "", body).upper()
    if len(bare) == 1 and bare in among:
        return bare, "the letter alone"
    stated = {match.group(1) for match in find["stated"].finditer(body) if not PRONOUN.match(body, match.start(1))}
    if len(stated) == 1:
        return stated.pop(), "stated"
    marked = {match.group(1).upper() for match in find["marked"].finditer(body)}
    if find["several"].match(body) or len(stated) > 1 or len(marked) > 2:
        return None, "names several options"
    first = find["first"].match(body)
    if first:
        return first.group(1).upper(), "opens the reply"
    if len(marked) == 1:
        return marked.pop(), "the only letter marked"
    alone = {match.group(1) for match in find["alone"].finditer(body) if stands_for_option(match, body)}
    if len(alone) == 1:
        return alone.pop(), "the only letter that stands alone"
    return None, "names several options" if alone or marked else "names no option"


def stands_for_option(match: re.Match[str], body: str) -> bool:
    """Whether a lone capital is an option: 'A' and 'I' are words unless the reply ends there."""
    return match.group(1) not in "AI" or not re.search(r"\w", body[match.end() :])


@cache
def patterns(among: str) -> dict[str, re.Pattern[str]]:
    """The patterns for one set of letters; opening and marked letters may be lower case."""
    upper, either = f"[{among}]", f"[{among}{among.lower()}]"
    return {
        "negated": re.compile(NEGATED.replace("{L}", upper), re.IGNORECASE),
        "stated": re.compile(STATED.replace("{L}", upper)),
        "marked": re.compile(MARKED.replace("{L}", either)),
        "first": re.compile(FIRST.replace("{L}", either)),
        "several": re.compile(SEVERAL.replace("{L}", upper)),
        "alone": re.compile(ALONE.replace("{L}", upper)),
    }
