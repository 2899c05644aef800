"""How many: sentences, words, paragraphs."""

from __future__ import annotations

import re

from holdfast.measures.kinds import Count, Counts, Text
from holdfast.measures.registry import Score, measure, share
from holdfast.measures.text import closing_mark, fold, folded_words, plural, sentences_of, words_of


def closeness(seen: int, wanted: int, noun: str) -> Score:
    """1 - min(|seen - wanted| / wanted, 1)."""
    return Score(
        1 - min(abs(seen - wanted) / wanted, 1), f"{plural(seen, noun)}, {wanted} asked for"
    )


@measure
def sentence_count(text: str, count: Count) -> Score:
    """1 for exactly `count` sentences, falling to 0 at none or twice as many."""
    return closeness(len(sentences_of(text)), count, "sentence")


@measure
def one_sentence(text: str) -> Score:
    """1 if the reply is exactly one sentence."""
    found = len(sentences_of(text))
    return Score(float(found == 1), plural(found, "sentence"))


@measure
def word_count(text: str, count: Count) -> Score:
    """1 for exactly `count` words, falling to 0 at none or twice as many."""
    return closeness(len(words_of(text)), count, "word")


@measure
def one_word(text: str) -> Score:
    """1/words: 1 for a single word, 0.5 for two, 0 for none."""
    found = len(words_of(text))
    return Score(1 / found if found else 0.0, plural(found, "word"))


@measure
def paragraph_count(text: str, count: Count) -> Score:
    """1 for exactly `count` paragraphs (parted by blank lines), falling to 0 at none or twice as
    many.
    """
    return closeness(
        sum(bool(words_of(block)) for block in re.split(r"\n\s*\n", text)), count, "paragraph"
    )


@measure
def sentence_word_counts(text: str, counts: Counts) -> Score:
    """Match of the words of each sentence with `counts`: 1 exact, 0.5 off by one; 0 for another
    number of sentences.
    """
    seen = [len(words_of(sentence)) for sentence in sentences_of(text)]
    if len(seen) != len(counts):
        return Score(0.0, f"{plural(len(seen), 'sentence')}, {len(counts)} asked for")
    points = [{0: 1.0, 1: 0.5}.get(abs(a - b), 0.0) for a, b in zip(seen, counts, strict=True)]
    return Score(sum(points) / len(points), f"words per sentence: {', '.join(map(str, seen))}")


@measure
def growing_sentences(text: str) -> Score:
    """Share of sentences with one word more than the one before, the first having one word."""
    seen = [len(words_of(sentence)) for sentence in sentences_of(text)]
    good = sum(n == before + 1 for before, n in zip([0, *seen], seen, strict=False))
    return share(good, len(seen), "sentences are one word longer than the one before")


@measure
def all_questions(text: str) -> Score:
    """Share of sentences that end with a question mark."""
    return ending_with(text, "?")


@measure
def all_exclamations(text: str) -> Score:
    """Share of sentences that end with an exclamation mark."""
    return ending_with(text, "!")


def ending_with(text: str, mark: str) -> Score:
    """Share of sentences that end with a mark."""
    found = sentences_of(text)
    return share(
        sum(closing_mark(sentence) == mark for sentence in found),
        len(found),
        f"sentences end with {mark!r}",
    )


@measure
def asks_back(text: str) -> Score:
    """1 if the last sentence is a question."""
    last = sentences_of(text)[-1:]
    asks = any(closing_mark(sentence) == "?" for sentence in last)
    return Score(float(asks), f"the last sentence is {''.join(last)[-60:]!r}")


@measure
def every_sentence_starts_with(text: str, word: Text) -> Score:
    """Share of sentences that start with this word or phrase, case and punctuation ignored."""
    target = folded_words(word) or [fold(word)]
    found = [folded_words(sentence)[: len(target)] for sentence in sentences_of(text)]
    return share(found.count(target), len(found), f"sentences start with {word!r}")


@measure
def long_reply(text: str, words: Count) -> Score:
    """Words of the reply / `words`, at most 1."""
    found = len(words_of(text))
    return Score(min(1.0, found / words), f"{plural(found, 'word')}, at least {words} asked for")


@measure
def short_reply(text: str, words: Count) -> Score:
    """1 for at most `words` words, then `words` / words of the reply."""
    found = len(words_of(text))
    return Score(
        min(1.0, words / found) if found else 0.0,
        f"{plural(found, 'word')}, at most {words} asked for",
    )


@measure
def at_most_sentences(text: str, count: Count) -> Score:
    """1 for one to `count` sentences, else 0."""
    seen = len(sentences_of(text))
    reason = f"{plural(seen, 'sentence')}, at most {count} asked for"
    return Score(float(0 < seen <= count), reason)


@measure
def at_most_words(text: str, count: Count) -> Score:
    """1 for one to `count` words, else 0."""
    found = len(words_of(text))
    return Score(float(0 < found <= count), f"{plural(found, 'word')}, at most {count} asked for")
