"""IFEval's instructions on length: words, sentences and paragraphs, as it counts them."""

from __future__ import annotations

import re

from holdfast.measures.ifeval.keywords import compare
from holdfast.measures.ifeval.sentences import count_sentences
from holdfast.measures.kinds import Count, Number, Relation, Text
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import plural

DIVIDER = "***"
AFTER_FIRST_WORD = re.compile(r"[.,?!'\"]")


def count_words(text: str) -> int:
    """The words of a text: "don't" and "well-known" are two each.

    The package `regex` counts the signs of a vowel, as Hindi has them, to the word they are in.
    """
    import regex

    return len(regex.findall(r"\w+", text))


@measure
def ifeval_length_constraints_number_words(
    text: str, num_words: Number, relation: Relation
) -> Score:
    """1 for at least, or less than, so many words; an apostrophe or a hyphen parts two words."""
    return compare(count_words(text), relation, num_words, "word")


@measure
def ifeval_length_constraints_number_sentences(
    text: str, num_sentences: Number, relation: Relation
) -> Score:
    """1 for at least, or less than, so many sentences; a new line ends none."""
    return compare(count_sentences(text), relation, num_sentences, "sentence")


@measure
def ifeval_length_constraints_number_paragraphs(text: str, num_paragraphs: Count) -> Score:
    """1 for exactly so many paragraphs with *** between them, none of which is empty."""
    blocks = [block.strip() for block in text.split(DIVIDER)]
    if not all(blocks[1:-1]):
        return Score(0.0, f"there is nothing between two {DIVIDER}")
    seen = sum(map(bool, blocks))
    return Score(
        float(seen == num_paragraphs), f"{plural(seen, 'paragraph')}, {num_paragraphs} asked for"
    )


@measure
def ifeval_length_constraints_nth_paragraph_first_word(
    text: str, num_paragraphs: Count, nth_paragraph: Count, first_word: Text
) -> Score:
    """1 for exactly so many paragraphs, parted by blank lines, of which one begins with a word.

    Empty paragraphs count in neither number; the published checker counts them in the second.
    """
    blocks = [block.strip() for block in text.split("\n\n") if block.strip()]
    if len(blocks) != num_paragraphs or nth_paragraph > len(blocks):
        return Score(0.0, f"{plural(len(blocks), 'paragraph')}, {num_paragraphs} asked for")
    opening = blocks[nth_paragraph - 1].split()[0].lstrip("'\"")
    word = AFTER_FIRST_WORD.split(opening)[0].lower()
    return Score(float(word == first_word.lower()), f"paragraph {nth_paragraph} begins {word!r}")
