"""IFBench's instructions on brackets and quotation marks within each other."""

from __future__ import annotations

from holdfast.measures.ifbench.tokens import MARKS, kept
from holdfast.measures.registry import Score, measure

PAIRS = {")": "(", "]": "[", "}": "{"}
BRACKETS, QUOTES = 5, 3  # levels that are asked for


@measure
def ifbench_format_parentheses(text: str) -> Score:
    """1 for brackets in brackets, at least five levels deep and closed again."""
    depth = deepest_closed(text)
    return kept(depth >= BRACKETS, f"{depth} levels, at least {BRACKETS} asked for")


def deepest_closed(text: str) -> int:
    """The most brackets open at a time in a group of which the innermost was closed rightly."""
    stack: list[str] = []
    depth = deepest = 0
    for character in text:
        if character in PAIRS.values():
            stack.append(character)
            depth = max(depth, len(stack))
        elif character in PAIRS:
            if stack and stack[-1] == PAIRS[character]:
                stack.pop()
                deepest = max(deepest, depth)
            else:
                stack, depth = [], 0
        if not stack:
            depth = 0
    return deepest


@measure
def ifbench_format_quotes(text: str) -> Score:
    """1 for quotations in quotations, at least three levels deep, " and ' in turn.

    An apostrophe opens a quotation, as published.
    """
    stack: list[str] = []
    depth = 0
    for character in text:
        if stack and character == stack[-1]:
            stack.pop()
            if depth - len(stack) >= QUOTES:
                return kept(True, f"{depth} levels")
        elif character in "\"'":
            stack.append(character)
            depth = max(depth, len(stack))
    return kept(False, f"{depth} levels opened, at least {QUOTES} to be closed")


@measure
def ifbench_format_quote_unquote(text: str) -> Score:
    """1 if no quotation follows another, and none ends the reply."""
    body = "".join(text.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
    end = body.rstrip(MARKS.replace('"', "") + "0123456789")
    return kept('""' not in body and not end.endswith('"'), f"ends with {end[-20:]!r}")
