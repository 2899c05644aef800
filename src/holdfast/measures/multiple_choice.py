"""Which option a reply to a multiple-choice question picks."""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from holdfast.errors import UsageError
from holdfast.measures.arguments import Letter, Letters
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, verdict
from holdfast.measures.text import lines_of

SIGHT = 20_000  # characters that are read from either end: an answer is at one of them
_END = r"(?=[)\"'”’*\]]{0,3}\s{0,2}(?:[.,;:!?\n]|$))"  # of a clause, closing marks aside
_OPENS = r"[\"'“‘(*]{0,3}"  # marks before a letter
_DENIED = re.compile(r"\b(?:is|are|was|were)(?: not|n['’]t)\b", re.IGNORECASE)
# words beside a letter that stands alone: "easily B", "B is"
_BEFORE = "|".join(r"is was it's its that's be say ok okay sure yes hmm \w{2,14}ly".split())
_AFTER = "|".join(
    "is because since as for it would please obviously definitely though without".split()
)


def letter_is_among(letter: str, among: str) -> None:
    """Refuses a letter that no reply could pick."""
    if letter.upper() not in among.upper():
        raise UsageError(
            f"The letter {letter!r} of the measure 'choice' is not among {among!r}; add it to"
            " 'among'."
        )


def _choice_when_cut(text: str, letter: str, among: str) -> WhenCut:
    """An answer may come at the end, after the reasons."""
    pick = read_choice(text, among.upper())
    return WhenCut.NOT_JUDGED if pick.letter is None else WhenCut.JUDGED


@measure(check=letter_is_among, when_cut=_choice_when_cut)
def choice(text: str, letter: Letter, among: Letters = "ABCDE") -> Score:
    """1 if the reply picks this option: "B", "(b)", "B! Sure", "the answer is b", "B is best".

    A capital that is part of a name ("vitamin C", "plan B") or a word ("A day") picks nothing.
    """
    pick = read_choice(text, among.upper())
    if pick.letter is None:
        return Score(0.0, pick.reason)
    return verdict(pick.letter == letter.upper(), f"picks {pick.letter} ({pick.reason})")


class Pick(NamedTuple):
    """The option that a reply picks, if any, and the words that pick it or why none do."""

    letter: str | None
    reason: str


def read_choice(text: str, among: str) -> Pick:
    """The option that a reply picks.

    Options that are refused ("not A", "A is wrong") are left out. Then in this order: the letter
    alone; a statement ("the answer is B", "A is the answer"); the only option that is not denied
    ("A) is not a fruit. B) is."); a letter that opens the reply ("B) jolly"), unless others open
    other lines; the only letter that is marked ("fire (C)"); the only capital that stands alone, at
    the start of a clause or after a word like "is" or "definitely". 'A' and 'I', which are words,
    count only if a clause ends after them.
    """
    find = patterns(among)
    if len(text) > 2 * SIGHT:
        text = text[:SIGHT] + "\n" + text[-SIGHT:]
    body = "\n".join(" ".join(line.split()) for line in lines_of(text))
    clauses = find.clause.findall(body)
    body = find.negated.sub(" ", find.refused.sub(" ", find.answer.sub("", body))).strip()
    bare = re.sub(r"[\W_]+", "", body).upper()
    if len(bare) == 1 and bare in among:
        return Pick(bare, "the letter alone")
    stated = letters(find.stated, body) | letters(find.verdict, body)
    if len(stated) == 1:
        return Pick(stated.pop(), "stated")
    denied = [letter for letter, words in clauses if _DENIED.search(words)]
    others = {letter.upper() for letter, words in clauses if not _DENIED.search(words)}
    if len(others) == 1 and len(clauses) > 1 and denied:
        return Pick(others.pop(), "the only option that is not denied")
    marked = letters(find.marked, body)
    has_list = len(letters(find.opening, body)) > 1
    if has_list or find.several.match(body) or len(stated) > 1 or len(marked) > 2:
        return Pick(None, "names several options")
    first = find.first.match(body)
    if first and not is_word(first):
        return Pick(first.group(1).upper(), "opens the reply")
    if len(marked) == 1:
        return Pick(marked.pop(), "the only letter marked")
    alone = letters(find.alone, body)
    if len(alone) == 1:
        return Pick(alone.pop(), "the only letter that stands alone")
    return Pick(None, "names several options" if alone or marked else "names no option")


def letters(pattern: re.Pattern[str], body: str) -> set[str]:
    """The letters that a pattern finds, in upper case."""
    return {
        match.group(match.lastindex or 1).upper()
        for match in pattern.finditer(body)
        if not is_word(match)
    }


def is_word(match: re.Match[str]) -> bool:
    """Whether a letter is the word 'a' or 'I' here: a word follows, or for 'I' a comma."""
    letter = match.group(match.lastindex or 1)
    end = match.end(match.lastindex or 1)
    after = match.string[end : end + 2]
    if letter in "aA":
        return after[:1] == " " and after[1:].isalnum() and not REASON.match(match.string, end)
    return letter in "iI" and (after[:1] == "," or (after[:1] == " " and after[1:].isalnum()))


REASON = re.compile(r" (?:because|since|is the|is my|would be|seems|is clearly|is definitely)\b")


@dataclass(frozen=True)
class _Patterns:
    """The patterns for one set of letters; opening and marked letters may be lower case.

    Args:
        negated: "not A", "rather than B".
        refused: "A) is wrong", "A and B) are incorrect", "B cannot be the answer".
        answer: "A:" after a "Q:", which is not the option.
        clause: an option, and what is said about it.
        opening: a letter that opens a line: "B) a boat".
        stated: "the answer is B", "I would go with (b)".
        verdict: "A is the answer", "B would be my pick".
        marked: "fire (C)", "**B**".
        first: a letter that opens the reply.
        several: "A, B or C".
        alone: a capital at the start of a clause, or behind a word such as "definitely".
    """

    negated: re.Pattern[str]
    refused: re.Pattern[str]
    answer: re.Pattern[str]
    clause: re.Pattern[str]
    opening: re.Pattern[str]
    stated: re.Pattern[str]
    verdict: re.Pattern[str]
    marked: re.Pattern[str]
    first: re.Pattern[str]
    several: re.Pattern[str]
    alone: re.Pattern[str]


@cache
def patterns(among: str) -> _Patterns:
    """The patterns for one set of letters."""
    upper = f"[{among}]"
    lower = f"[{among.lower()}]"
    either = f"[{among}{among.lower()}]"
    return _Patterns(
        negated=re.compile(
            r"\b(?:not|never|neither|nor|so is|instead of|rather than|than|isn['’]t)\s+"
            rf"(?:option\s+|answer\s+)?[\"'(*]{{0,3}}(?:{upper})\b[)\"'*]{{0,3}}",
            re.IGNORECASE,
        ),
        refused=re.compile(
            rf"(?<!\w){either}[)\"'”’*.]{{0,3}}"
            rf"(?:(?:,|,? and|,? or)\s+[\"'(*]{{0,3}}{either}[)\"'”’*]{{0,3}})*\s+"
            r"(?:(?:is|are|was|were|seems?|looks?)\s+(?:\w+ly\s+)?"
            r"(?:wrong|incorrect|false|untrue)"
            r"|(?:can(?:not|['’]t)|could(?: not|n['’]t))\s+be"
            r"|(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:(?:the|a|an|my)\s+)?"
            r"(?:right|correct|true|answer|choice|option|it))\b[^.,;:!?\n]*",
            re.IGNORECASE,
        ),
        answer=re.compile(rf"\AA:\s+(?=(?:[AI]|Yes|No)\b|[\"'(*]*{upper}\))"),
        clause=re.compile(rf"(?:^|[.!?;\n]\s*)[\"'(*]{{0,3}}({either})\)([^.!?;\n]*)"),
        opening=re.compile(rf"^{_OPENS}({either})[):]", re.MULTILINE),
        stated=re.compile(
            r"(?i:\b(?:answer|choice|option|choose|chose|pick|select|go with|going with|say|reply"
            r"|respond)\b)"
            r"(?i:\s+(?:is|was|would be|will be|with|option|letter|the|to|that))*\s*[:=]?\s*"
            rf"{_OPENS}(?:({upper})(?![\w'’]|-\w)|({lower}){_END})"
        ),
        verdict=re.compile(
            rf"(?:^|[.!?,;:\n])\s*{_OPENS}({upper})[)\"'”’*.]{{0,3}}\s+"
            r"(?i:is|was|would be|seems|looks)\s+"
            r"(?i:(?:the|my|our|clearly|definitely|most|only|best|right|correct)\s+){0,4}"
            r"(?i:answer|choice|option|pick|one|correct|right|best)\b"
        ),
        marked=re.compile(rf"(?<!\w)({either})(?=\)|\*\*|[\"'”’](?!\w))"),
        first=re.compile(
            rf"[\W_]{{0,20}}({either})(?:\s*[).:\]!?*\"”]|,|\s*[–—]|\s*-(?!\w)|\s*$|\n)"
        ),
        several=re.compile(
            rf"[\W_]{{0,20}}(?:{upper})[).]?"
            rf"(?: ?(?:,|/|\bor\b|\band\b|&| ) ?(?:or |and )?(?:{upper})\b[).]?)+"
        ),
        alone=re.compile(
            rf"(?:^|[.!?,;:\n(]\s*|(?i:\b(?:{_BEFORE})\s+)){_OPENS}"
            rf"({upper})(?:{_END}|(?=\s+(?:{_AFTER})\b))"
        ),
    )
