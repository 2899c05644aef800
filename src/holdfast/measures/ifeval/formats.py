"""IFEval's instructions on the shape of a reply: JSON, lists, highlights, sections."""

from __future__ import annotations

import json
import re

from holdfast.measures.ifeval.keywords import compare
from holdfast.measures.kinds import Count, Text
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural

FENCE = re.compile(r"\A```(?:json|Json|JSON)?")
EMPHASIS = re.compile(r"\*([^*\n]*)\*")
STRONG = re.compile(r"\*\*([^*\n]*)\*\*")
SEPARATOR = "*" * 6


@measure
def ifeval_detectable_format_json_format(text: str) -> Score:
    """1 if the reply is JSON and nothing else; a code fence around it is allowed."""
    body = FENCE.sub("", text.strip()).removesuffix("```").strip()
    try:
        json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        return Score(0.0, f"not JSON ({str(error)[:60]})")
    return Score(1.0, "the reply is JSON")


def is_bullet(line: str) -> bool:
    """Whether a line begins with a hyphen or with a single star."""
    line = line.lstrip()
    return line.startswith("-") or (line[:1] == "*" and line[1:2] not in ("", "*"))


@measure
def ifeval_detectable_format_number_bullet_lists(text: str, num_bullets: Count) -> Score:
    """1 for exactly so many lines that begin with * or -."""
    seen = sum(map(is_bullet, text.split("\n")))
    return Score(float(seen == num_bullets), f"{plural(seen, 'bullet')}, {num_bullets} asked for")


@measure
def ifeval_detectable_format_number_highlighted_sections(text: str, num_highlights: Count) -> Score:
    """1 for at least so many highlights, *so* or **so**, each within a line."""
    marked = [*EMPHASIS.findall(text), *STRONG.findall(text)]
    return compare(
        sum(bool(part.strip()) for part in marked), "at least", num_highlights, "highlight"
    )


@measure
def ifeval_detectable_format_multiple_sections(
    text: str, section_spliter: Text, num_sections: Count
) -> Score:
    """1 for at least so many sections, each marked by a word and a number, as SECTION 1."""
    marks = re.findall(rf"{re.escape(section_spliter.strip())}\s?\d", text)
    return compare(len(marks), "at least", num_sections, "section")


@measure
def ifeval_combination_two_responses(text: str) -> Score:
    """1 for two different responses with six stars between them."""
    blocks = [block.strip() for block in text.split(SEPARATOR)]
    if not all(blocks[1:-1]):
        return Score(0.0, f"there is nothing between two {SEPARATOR}")
    responses = [block for block in blocks if block]
    return Score(
        float(len(responses) == 2 and len(set(responses)) == 2),
        f"{len(set(responses))} different of {plural(len(responses), 'response')}",
    )
