"""IFBench's instructions on the shape of a reply: options, lists, templates, indents."""

from __future__ import annotations

import re
from itertools import pairwise

from holdfast.measures.ifbench.tokens import MARKS, kept, sentences
from holdfast.measures.kinds import Text
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural

LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
THESIS = re.compile(r"<(i|em)>([^<]*)</\1>")
LETTERED = re.compile(r"\W*a\W*b\W*c", re.IGNORECASE)


@measure
def ifbench_format_options(text: str, options: Text) -> Score:
    """1 if the reply is one of the options and nothing else.

    Options are parted by "/", "or" or commas. Case and marks do not count, save for letters "a)".
    """
    separator = "/" if "/" in options else " or " if " or " in options else ","
    choices = [option.strip() for option in options.split(separator)]
    if LETTERED.match(options):
        return kept(text in choices, f"the reply is {text[:40]!r}")
    bare = [option.strip(MARKS + " ").lower() for option in choices]
    return kept(text.strip(MARKS + " \n").lower() in bare, f"the reply is {text.strip()[:40]!r}")


@measure
def ifbench_format_line_indent(text: str) -> Score:
    """1 if each line that is not blank is indented further than the one before."""
    lines = [line for line in text.split("\n") if line.strip()]
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    return kept(all(a < b for a, b in pairwise(indents)), f"indents {str(indents[:8])[1:-1]}")


@measure
def ifbench_format_list(text: str, sep: Text) -> Score:
    """1 if the sign that stands for a bullet occurs at least twice."""
    seen = text.count(sep)
    return kept(seen >= 2, f"{sep!r} occurs {seen} times")


@measure
def ifbench_format_thesis(text: str) -> Score:
    """1 for something in HTML italics (<i> or <em>) with text behind it."""
    found = THESIS.search(text)
    good = found and found[2].strip() and text[found.end() :].strip()
    return kept(good, "there is a thesis" if good else "no <i>thesis</i> with text behind it")


@measure
def ifbench_format_sub_bullets(text: str) -> Score:
    """1 for bullets (*), each with a sub-bullet (-); at least one, which is ours to ask."""
    blocks = text.split("*")[1:]
    without = sum("-" not in block for block in blocks)
    return kept(blocks and not without, f"{without} of {plural(len(blocks), 'bullet')} without")


@measure
def ifbench_format_no_bullets_bullets(text: str) -> Score:
    """1 for at least two sentences and then at least two bullets (*), and nothing else behind."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("*")), len(lines))
    said, bullets = len(sentences(" ".join(lines[:first]))), lines[first:]
    good = said >= 2 and len(bullets) >= 2 and all(line.startswith("*") for line in bullets)
    return kept(good, f"{plural(said, 'sentence')}, then {plural(len(bullets), 'line')}")


@measure
def ifbench_format_output_template(text: str) -> Score:
    """1 if the labels "My Answer:", "My Conclusion:" and "Future Outlook:" occur."""
    missing = [label for label in LABELS if label not in text]
    return kept(not missing, f"missing are {', '.join(missing)}" if missing else "all labels occur")
