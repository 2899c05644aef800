"""IFBench's instructions on sentences: their kinds, lengths and first and last words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from holdfast.measures.content import EMOJI
from holdfast.measures.ifbench.tokens import bare_words, kept, sentences, stripped_words
from holdfast.measures.kinds import Count, Text
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import closing_mark, plural


def endings(text: str) -> Counter[str]:
    """How many sentences end with each mark."""
    return Counter(map(closing_mark, sentences(text)))


@measure
def ifbench_ratio_sentence_type(text: str) -> Score:
    """1 for two statements to each question; there must be a question, which is ours to ask."""
    seen = endings(text)
    statements, questions = seen["."], seen["?"]
    return kept(
        questions and statements == 2 * questions,
        f"{plural(statements, 'statement')}, {plural(questions, 'question')}",
    )


@measure
def ifbench_ratio_sentence_balance(text: str) -> Score:
    """1 for as many statements as questions as exclamations; one of each is ours to ask."""
    seen = [endings(text)[mark] for mark in ".?!"]
    return kept(seen[0] and len(set(seen)) == 1, f"{seen[0]}, {seen[1]} and {seen[2]} of the kinds")


@measure
def ifbench_ratio_sentence_words(text: str) -> Score:
    """1 for three sentences of the same length in characters that share no word.

    The published checker does not look at the words.
    """
    found = sentences(text)
    words = [word for sentence in found for word in set(bare_words(sentence))]
    return kept(
        len(found) == 3 and len(set(map(len, found))) == 1 and len(set(words)) == len(words),
        f"{plural(len(found), 'sentence')} of {', '.join(str(len(each)) for each in found[:4])}",
    )


@measure
def ifbench_words_last_first(text: str) -> Score:
    """1 if the last word of each sentence is the first of the next; two sentences at least."""
    found = [words for sentence in sentences(text) if (words := stripped_words(sentence))]
    wrong = sum(a[-1] != b[0] for a, b in pairwise(found))
    return kept(len(found) > 1 and not wrong, f"{wrong} of {len(found)} sentences go on otherwise")


@measure
def ifbench_sentence_alliteration_increment(text: str) -> Score:
    """1 if each sentence has more alliterating neighbours than the one before."""
    seen = [alliterating(stripped_words(sentence)) for sentence in sentences(text)]
    grows = all(a < b for a, b in pairwise(seen))
    return kept(seen and grows, f"alliterating words: {', '.join(map(str, seen))}")


def alliterating(words: list[str]) -> int:
    """How many words begin like a neighbour."""
    same = [a[0] == b[0] for a, b in pairwise(words)]
    return sum(before or after for before, after in pairwise([False, *same, False]))


@measure
def ifbench_sentence_keyword(text: str, word: Text, N: Count) -> Score:
    """1 if the N-th sentence has the keyword, in longer words too."""
    found = sentences(text)
    seen = len(found) >= N and word.lower() in found[N - 1].lower()
    return kept(seen, f"{plural(len(found), 'sentence')}, {word!r} asked for in number {N}")


@measure
def ifbench_sentence_increment(text: str, small_n: Count) -> Score:
    """1 if each sentence has exactly so many words more than the one before."""
    seen = [len(bare_words(sentence)) for sentence in sentences(text)]
    return kept(
        seen and all(b - a == small_n for a, b in pairwise(seen)),
        f"words: {', '.join(map(str, seen))}",
    )


@measure
def ifbench_format_emoji(text: str) -> Score:
    """1 if an emoji ends each sentence, before its stop or behind it."""
    found = sentences(text)
    wrong = sum(not ends_with_emoji(sentence) for sentence in found)
    return kept(
        found and not wrong, f"{wrong} of {plural(len(found), 'sentence')} without an emoji"
    )


def ends_with_emoji(sentence: str) -> bool:
    """Whether an emoji stands behind the last word."""
    place = max((i for i, character in enumerate(sentence) if character.isalnum()), default=-1)
    return EMOJI.search(sentence[place + 1 :]) is not None
