"""Tells which option a reply to a multiple-choice question picks.

For example, of the options "ABCD":

    read_choice("The answer is B.", "ABCD")  ->  B, "stated"
    read_choice("A day at sea", "ABCD")      ->  none, as "A" is a word
"""

import re
from typing import NamedTuple

from holdfast.errors import UsageError
from holdfast.measures.arguments import Letter, Letters
from holdfast.measures.choice_patterns import ChoicePatterns, patterns_for
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, verdict
from holdfast.measures.text import lines_of

_MAX_CHARACTERS = 20_000  # that are read from either end: an answer is at one of them
# after these words, "A" is the option and no article: "A because", "A is the answer"
_REASON = re.compile(r" (?:because|since|is the|is my|would be|seems|is clearly|is definitely)\b")
_DENIED = re.compile(r"\b(?:is|are|was|were)(?: not|n['’]t)\b", re.IGNORECASE)


class PickedOption(NamedTuple):
    """The option that a reply picks, None if it picks none, and the reason in words."""

    letter: str | None
    reason: str


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
    patterns = patterns_for(among)
    lines = _join_lines(text)
    body = _without_refused_options(lines, patterns)
    bare = re.sub(r"[\W_]+", "", body).upper()
    if len(bare) == 1 and bare in among:
        return PickedOption(bare, "the letter alone")
    stated = _letters(patterns.stated, body) | _letters(patterns.verdict, body)
    if len(stated) == 1:
        return PickedOption(stated.pop(), "stated")
    if undenied := _only_undenied_option(lines, patterns):
        return PickedOption(undenied, "the only option that is not denied")
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


def _join_lines(text: str) -> str:
    """Returns the lines of a reply that are not blank, without its middle if it is very long."""
    if len(text) > 2 * _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS] + "\n" + text[-_MAX_CHARACTERS:]
    return "\n".join(" ".join(line.split()) for line in lines_of(text))


def _without_refused_options(body: str, patterns: ChoicePatterns) -> str:
    """Removes options that are refused, and an "A:" that begins an answer."""
    body = patterns.answer.sub("", body)
    body = patterns.refused.sub(" ", body)
    return patterns.negated.sub(" ", body).strip()


def _only_undenied_option(body: str, patterns: ChoicePatterns) -> str:
    """Returns the letter of the only option that no clause denies, if one denies another; else "".

    "A) is not a fruit. B) is." gives B.
    """
    denied: set[str] = set()
    others: set[str] = set()
    for clause in patterns.clause.finditer(body):
        letters = denied if _DENIED.search(clause["words"]) else others
        letters.add(clause["letter"].upper())
    return others.pop() if len(others) == 1 and denied else ""


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
