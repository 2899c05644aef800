"""IFEval's instructions on the form of a reply: titles, lists, JSON, its beginning and its end.

`ifeval_keywords` says how these measures are named, and what they agree with.
"""

import json
import re

from holdfast.measures.arguments import Count, Text
from holdfast.measures.ifeval_lengths import score_relation
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, verdict
from holdfast.plurals import count_of

_PLACEHOLDER = re.compile(r"\[[^\]\n]*\]")  # "[address]"
# the markers of postscripts that may have spaces: "p. s."
_POSTSCRIPTS = {
    "P.S.": re.compile(r"p\.\s?s\.", re.IGNORECASE),
    "P.P.S": re.compile(r"p\.\s?p\.\s?s", re.IGNORECASE),
}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCE = re.compile(r"\A```(?:json|Json|JSON)?")
_EMPHASIS = re.compile(r"\*([^*\n]*)\*")  # "*so*"
_STRONG = re.compile(r"\*\*([^*\n]*)\*\*")  # "**so**"
_RESPONSE_SEPARATOR = "*" * 6


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_content_number_placeholders(text: str, num_placeholders: Count) -> Score:
    """1 for at least `num_placeholders` placeholders in square brackets, such as [address].

    With `num_placeholders: 2`, "[name], [street]" scores 1, and "[name]" 0.
    """
    count = len(_PLACEHOLDER.findall(text))
    return score_relation(count, "at least", num_placeholders, "placeholder")


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_content_postscript(text: str, postscript_marker: Text) -> Score:
    """1 if the postscript's marker occurs; its position does not matter, as published.

    With `postscript_marker: P.S.`, "Bye. P.S. Write!" scores 1, and "PS: Write!" 0.
    """
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker) or re.compile(re.escape(marker), re.IGNORECASE)
    match = pattern.search(text)
    return verdict(match is not None, f"{marker!r} {'occurs' if match else 'is missing'}")


@measure
def ifeval_detectable_format_constrained_response(text: str) -> Score:
    """1 if the reply holds "My answer is yes.", "My answer is no." or "My answer is maybe.".

    "Well. My answer is no." scores 1, and "No." 0.
    """
    answers = [answer for answer in _ANSWERS if answer in text]
    return verdict(answers, repr(answers[0]) if answers else "none of the three answers occurs")


@measure
def ifeval_detectable_format_title(text: str) -> Score:
    """1 if a line holds a title in <<double angular brackets>>.

    "<<a title>>" scores 1, and "a title" 0.
    """
    titles = [_inside_brackets(line) for line in text.split("\n")]
    title = next(filter(None, titles), "")
    return verdict(title, f"the title is {title[:60]!r}" if title else "no <<title>>")


def _inside_brackets(line: str) -> str:
    """Returns the text between the first << and the last >> of a line; "" if there is none."""
    start = line.find("<<")
    end = line.rfind(">>")
    return line[start:end].lstrip("<").rstrip(">").strip() if -1 < start < end - 1 else ""


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_detectable_format_json_format(text: str) -> Score:
    r"""1 if the reply is JSON and nothing else; a code fence around it is allowed.

    "{\"a\": [1]}" scores 1, and "Sure: {\"a\": [1]}" 0.
    """
    body = _FENCE.sub("", text.strip()).removesuffix("```").strip()
    try:
        json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        return Score(0.0, f"not JSON ({str(error)[:60]})")
    return Score(1.0, "the reply is JSON")


@measure(when_cut=lambda text, num_bullets: exceeds(_count_bullets(text), num_bullets))
def ifeval_detectable_format_number_bullet_lists(text: str, num_bullets: Count) -> Score:
    r"""1 for exactly `num_bullets` lines that begin with * or -.

    With `num_bullets: 2`, "* a\n- b" scores 1, and "- a" 0.
    """
    bullets = _count_bullets(text)
    reason = f"{count_of(bullets, 'bullet')}, {num_bullets} asked for"
    return verdict(bullets == num_bullets, reason)


def _count_bullets(text: str) -> int:
    return sum(map(_is_bullet, text.split("\n")))


def _is_bullet(line: str) -> bool:
    """Whether a line begins with a hyphen or with a single star."""
    line = line.lstrip()
    return line.startswith("-") or (line[:1] == "*" and line[1:2] not in ("", "*"))


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_format_number_highlighted_sections(text: str, num_highlights: Count) -> Score:
    """1 for at least `num_highlights` highlights, *so* or **so**, each within a line.

    With `num_highlights: 2`, "*a* and **b**" scores 1, and "*a*" 0.
    """
    highlights = [*_EMPHASIS.findall(text), *_STRONG.findall(text)]
    count = sum(bool(highlight.strip()) for highlight in highlights)
    return score_relation(count, "at least", num_highlights, "highlight")


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_format_multiple_sections(
    text: str, section_spliter: Text, num_sections: Count
) -> Score:
    """1 for at least `num_sections` sections, each marked by a word and a number: SECTION 1.

    With `section_spliter: Part, num_sections: 2`, "Part 1: a. Part 2: b." scores 1, and
    "Part one, part two" 0.
    """
    marks = re.findall(rf"{re.escape(section_spliter.strip())}\s?\d", text)
    return score_relation(len(marks), "at least", num_sections, "section")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_combination_two_responses(text: str) -> Score:
    """1 for two different responses with six stars between them.

    "yes ****** no" scores 1, and "yes ****** yes" 0.
    """
    blocks = [block.strip() for block in text.split(_RESPONSE_SEPARATOR)]
    if not all(blocks[1:-1]):
        return Score(0.0, f"there is nothing between two {_RESPONSE_SEPARATOR}")
    responses = [block for block in blocks if block]
    different = len(set(responses))
    reason = f"{count_of(len(responses), 'response')}, {different} of them distinct"
    return verdict(len(responses) == 2 and different == 2, reason)


def _repetition_when_cut(text: str, prompt_to_repeat: str) -> WhenCut:
    is_beginning = prompt_to_repeat.strip().lower().startswith(text.strip().lower())
    return WhenCut.NOT_JUDGED if is_beginning else WhenCut.JUDGED


@measure(when_cut=_repetition_when_cut)
def ifeval_combination_repeat_prompt(text: str, prompt_to_repeat: Text) -> Score:
    """1 if the reply begins with the request, word for word; case is ignored.

    With `prompt_to_repeat: Say hi.`, "say HI. Hi!" scores 1, and "Sure: Say hi." 0.
    """
    body = text.strip().lower()
    request = prompt_to_repeat.strip().lower()
    return verdict(body.startswith(request), f"begins with {body[:40]!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_startend_quotation(text: str) -> Score:
    r"""1 for a reply between double quotation marks ("...").

    "\"Hello\"" scores 1, and "Hello" 0.
    """
    body = text.strip()
    is_quoted = len(body) > 1 and body[0] == body[-1] == '"'
    return verdict(is_quoted, f"starts with {body[:12]!r}, ends with {body[-12:]!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_startend_end_checker(text: str, end_phrase: Text) -> Score:
    """1 if the reply ends with the phrase; case and quotation marks after it are ignored.

    With `end_phrase: Bye now.`, "So, bye NOW." scores 1, and "Bye now. And more." 0.
    """
    body = text.strip().strip('"').lower()
    return verdict(body.endswith(end_phrase.strip().lower()), f"ends with {body[-40:]!r}")
