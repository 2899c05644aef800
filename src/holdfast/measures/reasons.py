"""Words the reasons of scores: the text that was found, and why it does not match.

A regular expression is put in words where its form is simple: a literal text, perhaps with an
anchor; a text that may not occur; the characters or the length that are allowed.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from holdfast.errors import UsageError, cut
from holdfast.measures.patterns import find
from holdfast.plurals import count_of

_MAX_CHARACTERS = 60  # of a text that is quoted
_MAX_WORDS = 4  # of a list that are quoted

# --- The forms of patterns that are put in words

_INLINE_FLAGS = re.compile(r"\(\?(?P<flags>[aimsux]+)\)")
# a literal that has to occur, perhaps at an end: `STOCK\(`, `\AOnce`, `the end\W*\Z`,
# `\A(?:#!.*\n)?# SPDX`
_LITERAL = re.compile(
    r"""
    (?P<start> \\A | \^ )?
    (?: \(\?:\#!\.\*\\n\)\? )?  # `(?:#!.*\n)?`, a line that names the interpreter
    (?: \\W\*\?? )?
    (?P<literal> (?:
        [^\\.^$*+?{}\[\]|()]  # any character without a meaning of its own
        | \\[^A-Za-z0-9]  # an escaped sign
        | \\s[*+]?  # spaces
    )+ )
    (?: \\W\* )?
    (?P<end> \\Z | \$ )?
    """,
    re.VERBOSE,
)
# the only characters that may occur: `\A[^!]*\Z`, `\A\P{Lu}*\Z`
_ALLOWED_CHARACTERS = re.compile(
    r"\\A(?P<allowed>\\P\{\w+\}|\[\^(?:\\.|[^\]\\])+\])[*+]\\Z",
)
# the most characters: `\A.{1,72}\Z`, or of the first line `\A.{1,72}(?:\n|\Z)`
_LENGTH = re.compile(r"\\A\.\{1,(?P<most>\d+)\}(?:\\Z|(?P<of_line>\(\?:\\n\|\\Z\)))")


@cache
def _forbidding_form() -> Any:
    r"""The form of a pattern for what may not occur: `\A(?!.*TODO)`, or at the start `\A(?!fix:)`.

    Brackets inside the forbidden pattern are balanced, which only the package `regex` can match.
    """
    import regex

    return regex.compile(
        r"\\A\(\?!(?P<anywhere>\.\*)?"
        r"(?P<forbidden>(?:[^()\[\\]|\\.|\[(?:\\.|[^\]\\])*\]|\((?&forbidden)\))*)\).*"
    )


def quote(text: str) -> str:
    """Quotes a text on one line; only its beginning if it is long."""
    return repr(cut(" ".join(text.split()), _MAX_CHARACTERS))


def quote_pattern(pattern: str) -> str:
    """Quotes a regular expression as it is written, without more backslashes; cut if it is long."""
    return f"'{cut(pattern, _MAX_CHARACTERS)}'"


def quote_words(words: Sequence[str]) -> str:
    """Quotes the first words of a list, and says how many more there are."""
    quoted = ", ".join(map(repr, words[:_MAX_WORDS]))
    others = len(words) - _MAX_WORDS
    return f"{quoted} and {others} more" if others > 0 else quoted


def explain_mismatch(subject: str, text: str, pattern: str, flags: str = "") -> str:
    r"""Says why a regular expression does not match a text.

    Args:
        subject: what to call the text, such as "the reply".

    >>> explain_mismatch("the reply", "Bye now!", r"Best, Pip\W*\Z")
    "the reply 'Bye now!' does not end with 'Best, Pip'"
    >>> explain_mismatch("the reply", "Bye now!", r"(?s)\A(?!.*!).*\S")
    "'!' occurs in the reply"
    """
    inline = _INLINE_FLAGS.match(pattern)
    if inline:
        pattern = pattern[inline.end() :]
        flags = flags + inline["flags"]
    reason = (
        missing_literal(subject, text, pattern)
        or _forbidden_text(subject, text, pattern, flags)
        or _forbidden_character(subject, text, pattern, flags)
        or _too_long(subject, text, pattern)
    )
    return reason or f"{subject} {quote(text)} does not match the rule's pattern"


def missing_literal(subject: str, text: str, pattern: str) -> str:
    """Says that a literal is missing; "" for a pattern of another form."""
    form = _LITERAL.fullmatch(pattern)
    if form is None:
        return ""
    literal = re.sub(r"\\(\W)", r"\1", re.sub(r"\\s[*+]?", " ", form["literal"])).strip()
    if form["start"] and form["end"]:
        return f"{subject} {quote(text)} is not {literal!r}"
    if form["start"]:
        return f"{subject} {quote(text)} does not begin with {literal!r}"
    if form["end"]:
        line = " ".join(text.split())
        end = line if len(line) <= _MAX_CHARACTERS else f"…{line[1 - _MAX_CHARACTERS :]}"
        return f"{subject} {end!r} does not end with {literal!r}"
    return f"{literal!r} does not occur in {subject}"


def _forbidden_text(subject: str, text: str, pattern: str, flags: str) -> str:
    """Quotes a text that may not occur, or not at the start; "" for a pattern of another form."""
    form = _forbidding_form().fullmatch(pattern)
    if form is None:
        return ""
    if form["anywhere"]:
        passage = _first_match(form["forbidden"], text, flags)
        return f"{quote(passage)} occurs in {subject}" if passage.strip() else ""
    start = _first_match(rf"\A(?:{form['forbidden']})", text, flags)
    return f"{subject} begins with {quote(start)}" if start.strip() else ""


def _forbidden_character(subject: str, text: str, pattern: str, flags: str) -> str:
    """Quotes a character that may not occur; "" for a pattern of another form."""
    form = _ALLOWED_CHARACTERS.fullmatch(pattern)
    if form is None:
        return ""
    forbidden = form["allowed"].replace(r"\P", r"\p", 1).replace("[^", "[", 1)
    character = _first_match(forbidden, text, flags)
    return f"{character!r} occurs in {subject}" if character else ""


def _too_long(subject: str, text: str, pattern: str) -> str:
    """Says that a text is too long; "" for a pattern of another form, or a shorter text."""
    form = _LENGTH.fullmatch(pattern)
    if form is None:
        return ""
    if form["of_line"]:
        subject = f"the first line of {subject}"
        text = text.partition("\n")[0]
    if len(text) <= int(form["most"]):
        return ""
    return f"{subject} has {count_of(len(text), 'character')}, at most {form['most']} asked for"


def _first_match(pattern: str, text: str, flags: str) -> str:
    """Returns the first match of a part of a pattern; "" if there is none, or no time left."""
    with suppress(UsageError):
        match = find(pattern, text, flags)
        return match[0] if match else ""
    return ""
