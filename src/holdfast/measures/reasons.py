"""The reasons of scores: what was looked for in a text, and what was found.

A regular expression is put in words where its form is simple: a literal text, perhaps with an
anchor; what may not occur; the characters or the length that are allowed.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from holdfast.errors import UsageError, cut
from holdfast.measures.patterns import find
from holdfast.plurals import count_of

_SHOWN = 60  # characters of a text
_LISTED = 4  # words of a list


def quoted(text: str) -> str:
    """A text on one line, in quotes; only its beginning if it is long."""
    return repr(cut(" ".join(text.split()), _SHOWN))


def named(words: Sequence[str]) -> str:
    """The first words of a list, in quotes."""
    others = len(words) - _LISTED
    return ", ".join(map(repr, words[:_LISTED])) + (f" and {others} more" if others > 0 else "")


def mismatch(what: str, text: str, pattern: str, flags: str = "") -> str:
    r"""A sentence on a text that a regular expression does not match.

    Args:
        what: the text is, such as "the reply".

    >>> mismatch("the reply", "Bye now!", r"Best, Pip\W*\Z")
    "the reply 'Bye now!' does not end with 'Best, Pip'"
    >>> mismatch("the reply", "Bye now!", r"(?s)\A(?!.*!).*\S")
    "'!' occurs in the reply"
    """
    inline = _INLINE_FLAGS.match(pattern)
    if inline:
        pattern = pattern[inline.end() :]
        flags = flags + inline[1]
    for reason_of in (_literal, _forbidden, _strange_character, _too_long):
        reason = reason_of(what, text, pattern, flags)
        if reason is not None:
            return reason
    return f"{what} {quoted(text)} does not match the rule's pattern"


_INLINE_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_LITERAL = re.compile(
    r"(?P<start>\\A|\^)?(?:\\W\*\??)?"
    r"(?P<literal>(?:[^\\.^$*+?{}\[\]|()]|\\[^A-Za-z0-9]|\\s[*+]?)+)"  # escaped signs, spaces
    r"(?:\\W\*)?(?P<end>\\Z|\$)?"
)
_STRANGE = re.compile(r"\\A(?P<allowed>\\P\{\w+\}|\[\^(?:\\.|[^\]\\])+\])[*+]\\Z")
_LENGTH = re.compile(r"\\A\.\{1,(?P<most>\d+)\}(?:\\Z|(?P<of_line>\(\?:\\n\|\\Z\)))")


def _literal(what: str, text: str, pattern: str, flags: str) -> str | None:
    r"""Of a literal that has to occur, perhaps at an end: `STOCK\(`, `\AOnce`, `the end\W*\Z`."""
    parts = _LITERAL.fullmatch(pattern)
    if parts is None:
        return None
    literal = re.sub(r"\\(\W)", r"\1", re.sub(r"\\s[*+]?", " ", parts["literal"])).strip()
    if parts["start"] and parts["end"]:
        return f"{what} {quoted(text)} is not {literal!r}"
    if parts["start"]:
        return f"{what} {quoted(text)} does not begin with {literal!r}"
    if parts["end"]:
        line = " ".join(text.split())
        end = line if len(line) <= _SHOWN else f"…{line[1 - _SHOWN :]}"
        return f"{what} {end!r} does not end with {literal!r}"
    return f"{literal!r} does not occur in {what}"


def _first_match(pattern: str, text: str, flags: str) -> str:
    """The first match of a part of a pattern; "" if there is none, or no time to find it."""
    with suppress(UsageError):
        match = find(pattern, text, flags)
        return match[0] if match else ""
    return ""


@cache
def _lookahead() -> Any:
    """A pattern that forbids another one, in which brackets are balanced."""
    import regex

    return regex.compile(
        r"\\A\(\?!(?P<anywhere>\.\*)?"
        r"(?P<forbidden>(?:[^()\[\\]|\\.|\[(?:\\.|[^\]\\])*\]|\((?&forbidden)\))*)\).*"
    )


def _forbidden(what: str, text: str, pattern: str, flags: str) -> str | None:
    r"""Of what may not occur, anywhere or at the start: `\A(?!.*TODO)`, `\A(?!fix:)`."""
    parts = _lookahead().fullmatch(pattern)
    if parts is None:
        return None
    if parts["anywhere"]:
        passage = _first_match(parts["forbidden"], text, flags)
        return f"{quoted(passage)} occurs in {what}" if passage.strip() else None
    start = _first_match(rf"\A(?:{parts['forbidden']})", text, flags)
    return f"{what} begins with {quoted(start)}" if start.strip() else None


def _strange_character(what: str, text: str, pattern: str, flags: str) -> str | None:
    r"""For patterns that forbid characters: `\A[^!]*\Z`, `\A\P{Lu}*\Z`."""
    parts = _STRANGE.fullmatch(pattern)
    if parts is None:
        return None
    strange = parts["allowed"].replace(r"\P", r"\p", 1).replace("[^", "[", 1)
    character = _first_match(strange, text, flags)
    return f"{character!r} occurs in {what}" if character else None


def _too_long(what: str, text: str, pattern: str, flags: str) -> str | None:
    r"""Of a number of characters: `\A.{1,72}\Z`, or of the first line `\A.{1,72}(?:\n|\Z)`."""
    parts = _LENGTH.fullmatch(pattern)
    if parts is None:
        return None
    if parts["of_line"]:
        what = f"the first line of {what}"
        text = text.partition("\n")[0]
    if len(text) <= int(parts["most"]):
        return None
    return f"{what} has {count_of(len(text), 'character')}, at most {parts['most']} asked for"
