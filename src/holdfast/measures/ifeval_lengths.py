"""IFEval's instructions on the length of a reply: its words, sentences and paragraphs.

`ifeval_keywords` says how these measures are named, and what they agree with.
"""

import re

from holdfast.measures.arguments import Count, CountRelation, Text, WholeNumber
from holdfast.measures.ifeval_sentences import count_sentences
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, verdict
from holdfast.plurals import count_of

_PARAGRAPH_DIVIDER = "***"
_AFTER_FIRST_WORD = re.compile(r"[.,?!'\"]")  # ends the first word of a paragraph: "firms,"


def score_relation(count: int, relation: str, target: int, noun: str) -> Score:
    """1 if a count is at least, or less than, the target."""
    is_met = count >= target if relation == "at least" else count < target
    return verdict(is_met, f"{count_of(count, noun)}, {relation} {target} asked for")


def relation_when_cut(text: str, **arguments: object) -> WhenCut:
    """Judges a minimum that is reached and a maximum that is exceeded, as more text cannot lower
    a count.
    """
    return WhenCut.IF_KEPT if "at least" in arguments.values() else WhenCut.IF_BROKEN


def _count_words(text: str) -> int:
    """Counts the words of a text: "don't" and "well-known" are two each.

    The package `regex` treats vowel signs, as in Hindi, as part of their word.
    """
    import regex

    return len(regex.findall(r"\w+", text))


@measure(when_cut=relation_when_cut)
def ifeval_length_constraints_number_words(
    text: str, num_words: WholeNumber, relation: CountRelation
) -> Score:
    """1 for at least, or less than, `num_words` words; apostrophes and hyphens separate words.

    With `num_words: 3, relation: less than`, "Not now." scores 1, and "I don't." 0.
    """
    return score_relation(_count_words(text), relation, num_words, "word")


@measure(when_cut=relation_when_cut)
def ifeval_length_constraints_number_sentences(
    text: str, num_sentences: WholeNumber, relation: CountRelation
) -> Score:
    r"""1 for at least, or less than, `num_sentences` sentences; a line break does not end one.

    With `num_sentences: 2, relation: at least`, "Yes. I do." scores 1, and "Yes,\nI do." 0.
    """
    return score_relation(count_sentences(text), relation, num_sentences, "sentence")


def _paragraphs_when_cut(text: str, num_paragraphs: int) -> WhenCut:
    blocks = text.split(_PARAGRAPH_DIVIDER)
    return exceeds(sum(bool(block.strip()) for block in blocks), num_paragraphs)


@measure(when_cut=_paragraphs_when_cut)
def ifeval_length_constraints_number_paragraphs(text: str, num_paragraphs: Count) -> Score:
    r"""1 for exactly `num_paragraphs` paragraphs, none empty, with *** between them.

    With `num_paragraphs: 2`, "a***b" scores 1, and "a\n\nb" 0.
    """
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
    r"""1 for exactly `num_paragraphs` paragraphs (split at blank lines), one with this first word.

    Empty paragraphs count in neither number; the published checker counts them in the second.

    With `num_paragraphs: 2, nth_paragraph: 2, first_word: firms`, "One.\n\nFirms, two." scores 1,
    and "One.\n\nTwo firms." 0.
    """
    blocks = [block.strip() for block in text.split("\n\n") if block.strip()]
    if len(blocks) != num_paragraphs or nth_paragraph > len(blocks):
        return Score(0.0, f"{count_of(len(blocks), 'paragraph')}, {num_paragraphs} asked for")
    opening = blocks[nth_paragraph - 1].split()[0].lstrip("'\"")
    word = _AFTER_FIRST_WORD.split(opening)[0].lower()
    return verdict(word == first_word.lower(), f"paragraph {nth_paragraph} begins {word!r}")
