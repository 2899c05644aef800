"""Tells which option a reply to a multiple-choice question picks."""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from holdfast.errors import UsageError
from holdfast.measures.arguments import Letter, Letters
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, verdict
from holdfast.measures.text import lines_of

_MAX_CHARACTERS = 20_000  # that are read from either end: an answer is at one of them

# --- Parts of patterns; each pattern finds its option letter in the group "letter"

_OPENING_MARKS = r"[\"'“‘(*]{0,3}"
_PLAIN_OPENING_MARKS = r"[\"'(*]{0,3}"
_CLOSING_MARKS = r"[)\"'”’*.]{0,3}"
_CLAUSE_END = r"(?=[)\"'”’*\]]{0,3}\s{0,2}(?:[.,;:!?\n]|$))"
_CLAUSE_START = r"(?:^|[.!?,;:\n])\s*"
# words before a letter that stands alone: "easily B", "ok B"
_WORDS_BEFORE = "|".join(
    r"is was it's its that's be say ok okay sure yes hmm \w{2,14}ly".split()  # and any adverb
)
# words after a letter that stands alone: "B is", "B because"
_WORDS_AFTER = "|".join(
    "is because since as for it would please obviously definitely though without".split()
)
# after these words, "A" is the option and no article: "A because", "A is the answer"
_REASON = re.compile(r" (?:because|since|is the|is my|would be|seems|is clearly|is definitely)\b")
_DENIED = re.compile(r"\b(?:is|are|was|were)(?: not|n['’]t)\b", re.IGNORECASE)


class PickedOption(NamedTuple):
    """The option that a reply picks, None if it picks none, and the reason in words."""

    letter: str | None
    reason: str


@dataclass(frozen=True)
class _Patterns:
    """The patterns for one set of letters; opening and marked letters may be lower case.

    Args:
        negated: "not A", "rather than B".
        refused: "A) is wrong", "A and B) are incorrect", "B cannot be the answer".
        answer: "A:" after a "Q:", which is not the option.
        clause: an option, and the words that are said about it.
        opening: a letter that opens a line: "B) a boat".
        stated: "the answer is B", "I would go with (b)".
        verdict: "A is the answer", "B would be my pick".
        marked: "fire (C)", "**B**".
        first: a letter that opens the reply.
        several: "A, B or C".
        alone: a capital at the start of a clause, or after a word such as "definitely".
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


def _check_letter(letter: str, among: str) -> None:
    """Refuses a letter that no reply could pick."""
    if letter.upper() not in among.upper():
        raise UsageError(
            f"The letter {letter!r} of the measure 'choice' is not among {among!r}; add it to"
            " 'among'."
        )


def _choice_when_cut(text: str, letter: str, among: str) -> WhenCut:
    """Judges a cut reply that picks an option; another may pick one at its end, after reasons."""
    pick = read_choice(text, among.upper())
    return WhenCut.NOT_JUDGED if pick.letter is None else WhenCut.JUDGED


@measure(check=_check_letter, when_cut=_choice_when_cut)
def choice(text: str, letter: Letter, among: Letters = "ABCDE") -> Score:
    """1 if the reply picks this option: "B", "(b)", "B! Sure", "the answer is b", "B is best".

    A capital that is part of a name ("vitamin C", "plan B") or a word ("A day") picks nothing.

    With `letter: B`, "The answer is B." scores 1, and "A) sad" 0.
    """
    pick = read_choice(text, among.upper())
    if pick.letter is None:
        return Score(0.0, pick.reason)
    return verdict(pick.letter == letter.upper(), f"picks {pick.letter} ({pick.reason})")


def read_choice(text: str, among: str) -> PickedOption:
    """Returns the option that a reply picks.

    Options that are refused ("not A", "A is wrong") are left out. Then these rules are tried in
    order: the letter alone; a statement ("the answer is B", "A is the answer"); the only option
    that is not denied ("A) is not a fruit. B) is."); a letter that opens the reply ("B) jolly"),
    unless others open other lines; the only letter that is marked ("fire (C)"); the only capital
    that stands alone, at the start of a clause or after a word like "is" or "definitely". 'A' and
    'I', which are words, count only if a clause ends after them.

    Args:
        among: the letters of the options, as capitals.
    """
    patterns = _patterns_for(among)
    if len(text) > 2 * _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS] + "\n" + text[-_MAX_CHARACTERS:]
    body = "\n".join(" ".join(line.split()) for line in lines_of(text))
    clauses = list(patterns.clause.finditer(body))
    body = patterns.answer.sub("", body)
    body = patterns.refused.sub(" ", body)
    body = patterns.negated.sub(" ", body).strip()
    bare = re.sub(r"[\W_]+", "", body).upper()
    if len(bare) == 1 and bare in among:
        return PickedOption(bare, "the letter alone")
    stated = _letters(patterns.stated, body) | _letters(patterns.verdict, body)
    if len(stated) == 1:
        return PickedOption(stated.pop(), "stated")
    denied = {match["letter"].upper() for match in clauses if _DENIED.search(match["words"])}
    others = {match["letter"].upper() for match in clauses if not _DENIED.search(match["words"])}
    if len(others) == 1 and denied:
        return PickedOption(others.pop(), "the only option that is not denied")
    marked = _letters(patterns.marked, body)
    opens_lines = _letters(patterns.opening, body)
    if len(opens_lines) > 1 or patterns.several.match(body) or len(stated) > 1 or len(marked) > 2:
        return PickedOption(None, "names several options")
    first = patterns.first.match(body)
    if first and not _is_word(first):
        return PickedOption(first["letter"].upper(), "opens the reply")
    if len(marked) == 1:
        return PickedOption(marked.pop(), "the only letter marked")
    alone = _letters(patterns.alone, body)
    if len(alone) == 1:
        return PickedOption(alone.pop(), "the only letter that stands alone")
    return PickedOption(None, "names several options" if alone or marked else "names no option")


def _letters(pattern: re.Pattern[str], body: str) -> set[str]:
    """Returns the option letters that a pattern finds, as capitals."""
    matches = pattern.finditer(body)
    return {match["letter"].upper() for match in matches if not _is_word(match)}


def _is_word(match: re.Match[str]) -> bool:
    """Whether a letter is the word "a" or "I" here: a word follows, or for "I" a comma."""
    letter = match["letter"]
    end = match.end("letter")
    after = match.string[end : end + 2]
    is_before_word = after[:1] == " " and after[1:].isalnum()
    if letter in "aA":
        return is_before_word and not _REASON.match(match.string, end)
    return letter in "iI" and (after[:1] == "," or is_before_word)


@cache
def _patterns_for(among: str) -> _Patterns:
    """Builds the patterns for the letters of the options, given as capitals."""
    upper = f"[{among}]"
    lower = f"[{among.lower()}]"
    either = f"[{among}{among.lower()}]"
    return _Patterns(
        negated=re.compile(
            r"\b(?:not|never|neither|nor|so is|instead of|rather than|than|isn['’]t)\s+"
            rf"(?:option\s+|answer\s+)?{_PLAIN_OPENING_MARKS}(?:{upper})\b[)\"'*]{{0,3}}",
            re.IGNORECASE,
        ),
        refused=re.compile(
            # one option or several
            rf"(?<!\w){either}{_CLOSING_MARKS}"
            rf"(?:(?:,|,? and|,? or)\s+{_PLAIN_OPENING_MARKS}{either}[)\"'”’*]{{0,3}})*\s+"
            r"(?:"
            # "is clearly wrong"
            r"(?:is|are|was|were|seems?|looks?)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|untrue)"
            # "cannot be"
            r"|(?:can(?:not|['’]t)|could(?: not|n['’]t))\s+be"
            # "is not the right"
            r"|(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:(?:the|a|an|my)\s+)?"
            r"(?:right|correct|true|answer|choice|option|it)"
            r")\b[^.,;:!?\n]*",
            re.IGNORECASE,
        ),
        answer=re.compile(rf"\AA:\s+(?=(?:[AI]|Yes|No)\b|[\"'(*]*{upper}\))"),
        clause=re.compile(
            rf"(?:^|[.!?;\n]\s*){_PLAIN_OPENING_MARKS}(?P<letter>{either})\)(?P<words>[^.!?;\n]*)"
        ),
        opening=re.compile(rf"^{_OPENING_MARKS}(?P<letter>{either})[):]", re.MULTILINE),
        stated=re.compile(
            r"(?i:\b(?:answer|choice|option|choose|chose|pick|select|go with|going with|say|reply"
            r"|respond)\b)"
            r"(?i:\s+(?:is|was|would be|will be|with|option|letter|the|to|that))*\s*[:=]?\s*"
            # a capital that is no part of a word, or a small letter at the end of the clause
            rf"{_OPENING_MARKS}(?P<letter>{upper}(?![\w'’]|-\w)|{lower}{_CLAUSE_END})"
        ),
        verdict=re.compile(
            rf"{_CLAUSE_START}{_OPENING_MARKS}(?P<letter>{upper}){_CLOSING_MARKS}\s+"
            r"(?i:is|was|would be|seems|looks)\s+"
            r"(?i:(?:the|my|our|clearly|definitely|most|only|best|right|correct)\s+){0,4}"
            r"(?i:answer|choice|option|pick|one|correct|right|best)\b"
        ),
        marked=re.compile(rf"(?<!\w)(?P<letter>{either})(?=\)|\*\*|[\"'”’](?!\w))"),
        first=re.compile(
            rf"[\W_]{{0,20}}(?P<letter>{either})"
            r"(?:\s*[).:\]!?*\"”]|,|\s*[–—]|\s*-(?!\w)|\s*$|\n)"  # and what ends it
        ),
        several=re.compile(
            rf"[\W_]{{0,20}}(?:{upper})[).]?"
            rf"(?: ?(?:,|/|\bor\b|\band\b|&| ) ?(?:or |and )?(?:{upper})\b[).]?)+"
        ),
        alone=re.compile(
            rf"(?:^|[.!?,;:\n(]\s*|(?i:\b(?:{_WORDS_BEFORE})\s+)){_OPENING_MARKS}"
            rf"(?P<letter>{upper})(?:{_CLAUSE_END}|(?=\s+(?:{_WORDS_AFTER})\b))"
        ),
    )
