"""IFEval's instructions on parts that a reply must have, whatever it is about."""

from __future__ import annotations

import re

from holdfast.measures.ifeval.keywords import compare
from holdfast.measures.kinds import Count, Text
from holdfast.measures.registry import Score, measure

PLACEHOLDER = re.compile(r"\[[^\]\n]*\]")
POSTSCRIPTS = {
    "P.S.": re.compile(r"p\.\s?s\.", re.IGNORECASE),
    "P.P.S": re.compile(r"p\.\s?p\.\s?s", re.IGNORECASE),
}
ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


@measure
def ifeval_detectable_content_number_placeholders(text: str, num_placeholders: Count) -> Score:
    """1 for at least so many placeholders in square brackets, as [address]."""
    seen = len(PLACEHOLDER.findall(text))
    return compare(seen, "at least", num_placeholders, "placeholder")


@measure
def ifeval_detectable_content_postscript(text: str, postscript_marker: Text) -> Score:
    """1 if the postscript's marker occurs; where it stands does not count, as published."""
    marker = postscript_marker.strip()
    pattern = POSTSCRIPTS.get(marker) or re.compile(re.escape(marker), re.IGNORECASE)
    seen = pattern.search(text)
    return Score(float(seen is not None), f"{marker!r} {'occurs' if seen else 'is missing'}")


@measure
def ifeval_detectable_format_constrained_response(text: str) -> Score:
    """1 if the reply holds "My answer is yes.", "My answer is no." or "My answer is maybe."."""
    seen = [answer for answer in ANSWERS if answer in text]
    return Score(float(bool(seen)), f"{seen[0]!r}" if seen else "none of the three answers occurs")


@measure
def ifeval_detectable_format_title(text: str) -> Score:
    """1 if a line holds a title in <<double angular brackets>>."""
    titles = [inside_brackets(line) for line in text.split("\n")]
    title = next(filter(None, titles), "")
    return Score(float(bool(title)), f"the title is {title[:60]!r}" if title else "no <<title>>")


def inside_brackets(line: str) -> str:
    """What stands between the first << and the last >> of a line; '' where there is nothing."""
    start, end = line.find("<<"), line.rfind(">>")
    return line[start:end].lstrip("<").rstrip(">").strip() if -1 < start < end - 1 else ""
