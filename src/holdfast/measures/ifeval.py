"""The verifiable instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911, Table 1): all 25.

Each is a measure that scores 0 or 1. Its name is the published id in our spelling:
`keywords:existence` is `ifeval_keywords_existence`, and its arguments have their published names.
Each accepts the replies that the published checker accepts, whose code was read but not copied;
where ours differs on purpose, the function says so (docs/suites.md counts the differences).
"""

import json
import re
from itertools import pairwise

from holdfast.measures.arguments import (
    Count,
    CountRelation,
    LanguageCode,
    Sign,
    Text,
    Texts,
    WholeNumber,
)
from holdfast.measures.language import is_in
from holdfast.measures.language_names import NAMES
from holdfast.measures.reasons import quote_words
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, verdict
from holdfast.measures.text import MAY_BE_LAST, NEVER_LAST
from holdfast.plurals import count_of

_PLACEHOLDER = re.compile(r"\[[^\]\n]*\]")
_POSTSCRIPTS = {
    "P.S.": re.compile(r"p\.\s?s\.", re.IGNORECASE),
    "P.P.S": re.compile(r"p\.\s?p\.\s?s", re.IGNORECASE),
}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCE = re.compile(r"\A```(?:json|Json|JSON)?")
_EMPHASIS = re.compile(r"\*([^*\n]*)\*")
_STRONG = re.compile(r"\*\*([^*\n]*)\*\*")
_RESPONSE_SEPARATOR = "*" * 6
_PARAGRAPH_DIVIDER = "***"
_AFTER_FIRST_WORD = re.compile(r"[.,?!'\"]")
# Hyphens, dots and slashes join words, and so do apostrophes except in English contractions: "I'M"
# is I and M, "l'AI" is one.
_TOKEN = re.compile(
    r"[^\W_]+(?:(?:[-‐‑./&’]|'(?!(?:s|m|d|t|ll|re|ve)(?!\w)))[^\W_]+)*", re.IGNORECASE
)


def compare(count: int, relation: str, target: int, noun: str) -> Score:
    """1 if a count is at least, or less than, the target."""
    is_met = count >= target if relation == "at least" else count < target
    return verdict(is_met, f"{count_of(count, noun)}, {relation} {target} asked for")


def _count_when_cut(text: str, **arguments: object) -> WhenCut:
    """Judges a minimum that is reached and a maximum that is exceeded, as more text cannot lower
    a count.
    """
    return WhenCut.IF_KEPT if "at least" in arguments.values() else WhenCut.IF_BROKEN


def occurrences(text: str, phrase: str) -> int:
    """Counts how often a phrase occurs, also inside longer words."""
    return len(re.findall(re.escape(phrase), text, re.IGNORECASE))


@measure
def ifeval_keywords_existence(text: str, keywords: Texts) -> Score:
    """1 if every keyword occurs, also inside longer words."""
    missing = [keyword for keyword in keywords if not occurrences(text, keyword)]
    return verdict(not missing, f"{quote_words(missing)} missing" if missing else "all occur")


@measure(when_cut=_count_when_cut)
def ifeval_keywords_frequency(
    text: str, keyword: Text, frequency: WholeNumber, relation: CountRelation
) -> Score:
    """1 if the keyword occurs at least, or less than, `frequency` times, also in longer words."""
    return compare(occurrences(text, keyword.strip()), relation, frequency, "occurrence")


@measure
def ifeval_keywords_forbidden_words(text: str, forbidden_words: Texts) -> Score:
    """1 if none of the words occurs as a whole word."""
    forbidden = [
        word
        for word in forbidden_words
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    ]
    reason = f"{quote_words(forbidden)} occurs" if forbidden else "none occurs"
    return verdict(not forbidden, reason)


@measure(when_cut=_count_when_cut)
def ifeval_keywords_letter_frequency(
    text: str, letter: Sign, let_frequency: WholeNumber, let_relation: CountRelation
) -> Score:
    """1 if a letter or sign occurs at least, or less than, `let_frequency` times."""
    count = text.lower().count(letter.lower())
    return compare(count, let_relation, let_frequency, "occurrence")


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_content_number_placeholders(text: str, num_placeholders: Count) -> Score:
    """1 for at least `num_placeholders` placeholders in square brackets, such as [address]."""
    count = len(_PLACEHOLDER.findall(text))
    return compare(count, "at least", num_placeholders, "placeholder")


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_content_postscript(text: str, postscript_marker: Text) -> Score:
    """1 if the postscript's marker occurs; its position does not matter, as published."""
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker) or re.compile(re.escape(marker), re.IGNORECASE)
    match = pattern.search(text)
    return verdict(match is not None, f"{marker!r} {'occurs' if match else 'is missing'}")


@measure
def ifeval_detectable_format_constrained_response(text: str) -> Score:
    """1 if the reply holds "My answer is yes.", "My answer is no." or "My answer is maybe."."""
    answers = [answer for answer in _ANSWERS if answer in text]
    return verdict(answers, repr(answers[0]) if answers else "none of the three answers occurs")


@measure
def ifeval_detectable_format_title(text: str) -> Score:
    """1 if a line holds a title in <<double angular brackets>>."""
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
    """1 if the reply is JSON and nothing else; a code fence around it is allowed."""
    body = _FENCE.sub("", text.strip()).removesuffix("```").strip()
    try:
        json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        return Score(0.0, f"not JSON ({str(error)[:60]})")
    return Score(1.0, "the reply is JSON")


def _is_bullet(line: str) -> bool:
    """Whether a line begins with a hyphen or with a single star."""
    line = line.lstrip()
    return line.startswith("-") or (line[:1] == "*" and line[1:2] not in ("", "*"))


def _count_bullets(text: str) -> int:
    return sum(map(_is_bullet, text.split("\n")))


@measure(when_cut=lambda text, num_bullets: exceeds(_count_bullets(text), num_bullets))
def ifeval_detectable_format_number_bullet_lists(text: str, num_bullets: Count) -> Score:
    """1 for exactly `num_bullets` lines that begin with * or -."""
    bullets = _count_bullets(text)
    reason = f"{count_of(bullets, 'bullet')}, {num_bullets} asked for"
    return verdict(bullets == num_bullets, reason)


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_format_number_highlighted_sections(text: str, num_highlights: Count) -> Score:
    """1 for at least `num_highlights` highlights, *so* or **so**, each within a line."""
    highlights = [*_EMPHASIS.findall(text), *_STRONG.findall(text)]
    count = sum(bool(highlight.strip()) for highlight in highlights)
    return compare(count, "at least", num_highlights, "highlight")


@measure(when_cut=WhenCut.IF_KEPT)
def ifeval_detectable_format_multiple_sections(
    text: str, section_spliter: Text, num_sections: Count
) -> Score:
    """1 for at least `num_sections` sections, each marked by a word and a number: SECTION 1."""
    marks = re.findall(rf"{re.escape(section_spliter.strip())}\s?\d", text)
    return compare(len(marks), "at least", num_sections, "section")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_combination_two_responses(text: str) -> Score:
    """1 for two different responses with six stars between them."""
    blocks = [block.strip() for block in text.split(_RESPONSE_SEPARATOR)]
    if not all(blocks[1:-1]):
        return Score(0.0, f"there is nothing between two {_RESPONSE_SEPARATOR}")
    responses = [block for block in blocks if block]
    different = len(set(responses))
    reason = f"{count_of(len(responses), 'response')}, {different} of them distinct"
    return verdict(len(responses) == 2 and different == 2, reason)


def count_words(text: str) -> int:
    """Counts the words of a text: "don't" and "well-known" are two each.

    The package `regex` treats vowel signs, as in Hindi, as part of their word.
    """
    import regex

    return len(regex.findall(r"\w+", text))


@measure(when_cut=_count_when_cut)
def ifeval_length_constraints_number_words(
    text: str, num_words: WholeNumber, relation: CountRelation
) -> Score:
    """1 for at least, or less than, `num_words` words; apostrophes and hyphens separate words."""
    return compare(count_words(text), relation, num_words, "word")


@measure(when_cut=_count_when_cut)
def ifeval_length_constraints_number_sentences(
    text: str, num_sentences: WholeNumber, relation: CountRelation
) -> Score:
    """1 for at least, or less than, `num_sentences` sentences; a line break does not end one."""
    return compare(count_sentences(text), relation, num_sentences, "sentence")


def _paragraphs_when_cut(text: str, num_paragraphs: int) -> WhenCut:
    blocks = text.split(_PARAGRAPH_DIVIDER)
    return exceeds(sum(bool(block.strip()) for block in blocks), num_paragraphs)


@measure(when_cut=_paragraphs_when_cut)
def ifeval_length_constraints_number_paragraphs(text: str, num_paragraphs: Count) -> Score:
    """1 for exactly `num_paragraphs` paragraphs, none empty, with *** between them."""
    blocks = [block.strip() for block in text.split(_PARAGRAPH_DIVIDER)]
    if not all(blocks[1:-1]):
        return Score(0.0, f"there is nothing between two {_PARAGRAPH_DIVIDER}")
    count = sum(map(bool, blocks))
    reason = f"{count_of(count, 'paragraph')}, {num_paragraphs} asked for"
    return verdict(count == num_paragraphs, reason)


def _nth_paragraph_when_cut(text: str, num_paragraphs: int, **arguments: object) -> WhenCut:
    return exceeds(sum(bool(block.strip()) for block in text.split("\n\n")), num_paragraphs)


@measure(when_cut=_nth_paragraph_when_cut)
def ifeval_length_constraints_nth_paragraph_first_word(
    text: str, num_paragraphs: Count, nth_paragraph: Count, first_word: Text
) -> Score:
    """1 for exactly `num_paragraphs` paragraphs (split at blank lines), one with this first word.

    Empty paragraphs count in neither number; the published checker counts them in the second.
    """
    blocks = [block.strip() for block in text.split("\n\n") if block.strip()]
    if len(blocks) != num_paragraphs or nth_paragraph > len(blocks):
        return Score(0.0, f"{count_of(len(blocks), 'paragraph')}, {num_paragraphs} asked for")
    opening = blocks[nth_paragraph - 1].split()[0].lstrip("'\"")
    word = _AFTER_FIRST_WORD.split(opening)[0].lower()
    return verdict(word == first_word.lower(), f"paragraph {nth_paragraph} begins {word!r}")


@measure(loads=True)
def ifeval_language_response_language(text: str, language: LanguageCode) -> Score:
    """1 if the reply reads as this language rather than another.

    A reply without words is in no language; the published checker lets it pass.
    """
    reads = is_in(text.replace("-", " "), language)
    return verdict(reads, f"{'reads' if reads else 'does not read'} as {NAMES[language]}")


@measure(loads=True)
def ifeval_change_case_english_capital(text: str) -> Score:
    """1 for an English reply in capital letters only."""
    return _score_english(text, "capital", has_case=text.isupper())


@measure(loads=True)
def ifeval_change_case_english_lowercase(text: str) -> Score:
    """1 for an English reply without a capital letter."""
    return _score_english(text, "lower-case", has_case=text.islower())


def _score_english(text: str, case: str, *, has_case: bool) -> Score:
    """1 for a reply in the right case that reads as English."""
    if not has_case:
        return Score(0.0, f"not all letters are {case}")
    is_english = is_in(text.replace("-", " "), "en")
    language = "English" if is_english else "not English"
    return verdict(is_english, f"{case} letters, {language}")


@measure(when_cut=_count_when_cut)
def ifeval_change_case_capital_word_frequency(
    text: str, capital_frequency: WholeNumber, capital_relation: CountRelation
) -> Score:
    """1 for at least, or less than, this many words in capital letters, "I" and "A" included."""
    count = sum(word.isupper() for word in _TOKEN.findall(text))
    return compare(count, capital_relation, capital_frequency, "capital word")


@measure
def ifeval_punctuation_no_comma(text: str) -> Score:
    """1 for a reply without a comma."""
    count = text.count(",")
    return verdict(not count, f"{count} commas")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_startend_quotation(text: str) -> Score:
    """1 for a reply between double quotation marks ("...")."""
    body = text.strip()
    is_quoted = len(body) > 1 and body[0] == body[-1] == '"'
    return verdict(is_quoted, f"starts with {body[:12]!r}, ends with {body[-12:]!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ifeval_startend_end_checker(text: str, end_phrase: Text) -> Score:
    """1 if the reply ends with the phrase; case and quotation marks after it are ignored."""
    body = text.strip().strip('"').lower()
    return verdict(body.endswith(end_phrase.strip().lower()), f"ends with {body[-40:]!r}")


def _repetition_when_cut(text: str, prompt_to_repeat: str) -> WhenCut:
    is_beginning = prompt_to_repeat.strip().lower().startswith(text.strip().lower())
    return WhenCut.NOT_JUDGED if is_beginning else WhenCut.JUDGED


@measure(when_cut=_repetition_when_cut)
def ifeval_combination_repeat_prompt(text: str, prompt_to_repeat: Text) -> Score:
    """1 if the reply begins with the request, word for word; case is ignored."""
    body = text.strip().lower()
    request = prompt_to_repeat.strip().lower()
    return verdict(body.startswith(request), f"begins with {body[:40]!r}")


# --- Sentences, as IFEval counts them: a line break does not end one

_OPENING = "\"'“‘([{*_«"
_CLOSING = "\"')]}*_:;”’»"
_CLOSING_ALONE = frozenset("\"')]}")  # a token of only these belongs to the sentence before
_INITIAL = re.compile(r"[^\W\d_]")
_APOSTROPHE = re.compile(r"['’]")
_NUMBER = re.compile(r"\d[\d.,]*")
_ABBREVIATIONS = MAY_BE_LAST | frozenset(
    (
        "messrs gen sen rep gov col capt lt sgt rev hon pres ave blvd rd corp ltd co bros sr"
        " ph.d m.d b.a m.a u.k d.c n.y l.a no vol fig ed jan feb aug sept oct nov dec"
    ).split()
)
_OPENERS = frozenset(
    (
        "i you he she it we they this that these those there here my your his her its our their"
        " the a an and but or so yet if when while as after before since because although though"
        " in on at by for from with to of no not yes what why how who where which is are was do"
        " does did can could would should will may let please then now also however some many"
        " most all each every one another even just such"
    ).split()
)


def count_sentences(text: str) -> int:
    """Counts the sentences of a text; 0 only if it is blank."""
    tokens = [token for token in text.split() if not set(token) <= _CLOSING_ALONE]
    ends = sum(_ends_sentence(token, follower) for token, follower in pairwise(tokens))
    return ends + bool(text.strip())


def _ends_sentence(token: str, follower: str) -> bool:
    """Whether a sentence ends after a token, given the next token."""
    word = token.rstrip(_CLOSING)
    if word.endswith(("?", "!")):
        return True
    if not word.endswith("."):
        return False
    stem = word.rstrip(".").lstrip(_OPENING).lower()
    follower = _APOSTROPHE.split(follower.lstrip(_OPENING))[0]  # "I" of "I'm"
    if stem in NEVER_LAST:
        return False
    if _NUMBER.fullmatch(stem):
        return not follower[:1].islower()
    if word.endswith("..") or stem in _ABBREVIATIONS or _INITIAL.fullmatch(stem):
        return follower[:1].isupper() and follower.rstrip(".,?!" + _CLOSING).lower() in _OPENERS
    return True
