"""The number of words, sentences and paragraphs of a reply, and how its sentences begin and end."""

import re
from itertools import pairwise

from holdfast.measures.arguments import Count, Counts, Flag, Text
from holdfast.measures.prose import prose_of, prose_sentences_of
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, share, share_true, verdict
from holdfast.measures.text import (
    closing_mark,
    fold,
    folded_words,
    sentences_of,
    words_of,
)
from holdfast.plurals import count_of


def closeness(count: int, target: int, noun: str) -> Score:
    """1 - min(|count - target| / target, 1); `noun` is what is counted, in the singular."""
    return Score(
        1 - min(abs(count - target) / target, 1), f"{count_of(count, noun)}, {target} asked for"
    )


@measure(when_cut=lambda text, count: exceeds(len(sentences_of(text)), count))
def sentence_count(text: str, count: Count) -> Score:
    """1 for exactly `count` sentences, falling to 0 at none or twice as many.

    With `count: 2`, "Hi! I am Tony." scores 1, and "Hi!" 0.5.
    """
    return closeness(len(sentences_of(text)), count, "sentence")


@measure(when_cut=WhenCut.IF_BROKEN)
def one_sentence(text: str) -> Score:
    """1 if the reply is exactly one sentence.

    "I saw Dr. Smith at 3 p.m. today." scores 1, and "Yes. No." 0.
    """
    number = len(sentences_of(text))
    return verdict(number == 1, count_of(number, "sentence"))


@measure(when_cut=lambda text, count: exceeds(len(words_of(text)), count))
def word_count(text: str, count: Count) -> Score:
    """1 for exactly `count` words, falling to 0 at none or twice as many.

    With `count: 2`, "Not now." scores 1, and "Not now, no." 0.5.
    """
    return closeness(len(words_of(text)), count, "word")


@measure(when_cut=WhenCut.IF_BROKEN)
def one_word(text: str) -> Score:
    """1 divided by the number of words: 1 for one word, 0.5 for two; 0 for none.

    "Yes." scores 1, and "I agree." 0.5.
    """
    number = len(words_of(text))
    return Score(1 / number if number else 0.0, count_of(number, "word"))


def paragraphs_of(text: str) -> list[str]:
    """Returns the parts of a text between blank lines that have a word."""
    return [block for block in re.split(r"\n\s*\n", text) if words_of(block)]


@measure(when_cut=lambda text, count: exceeds(len(paragraphs_of(text)), count))
def paragraph_count(text: str, count: Count) -> Score:
    r"""1 for exactly `count` paragraphs (split at blank lines), falling to 0 at none or double.

    With `count: 2`, "One.\n\nTwo." scores 1, and "One." 0.5.
    """
    return closeness(len(paragraphs_of(text)), count, "paragraph")


@measure(when_cut=lambda text, counts: exceeds(len(sentences_of(text)), len(counts)))
def sentence_word_counts(text: str, counts: Counts) -> Score:
    """Mean over sentences: 1 for the number of words in `counts`, 0.5 if off by one; 0 for too many
    or too few sentences.

    With `counts: [2, 3]`, "I am. You are too." scores 1, and "I am. You are." 0.75.
    """
    lengths = [len(words_of(sentence)) for sentence in sentences_of(text)]
    if len(lengths) != len(counts):
        return Score(0.0, f"{count_of(len(lengths), 'sentence')}, {len(counts)} asked for")
    points = [{0: 1.0, 1: 0.5}.get(abs(a - b), 0.0) for a, b in zip(lengths, counts, strict=True)]
    return Score(sum(points) / len(points), f"words per sentence: {', '.join(map(str, lengths))}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def growing_sentences(text: str) -> Score:
    """Share of sentences with one word more than the one before, the first having one word.

    "Go. Go there. Go there now." scores 1, and "Go. Now." 0.5.
    """
    lengths = [len(words_of(sentence)) for sentence in sentences_of(text)]
    grows = (length == before + 1 for before, length in pairwise([0, *lengths]))
    return share_true(grows, "sentences are one word longer than the one before")


@measure(when_cut=WhenCut.NOT_JUDGED)
def all_questions(text: str) -> Score:
    """Share of sentences that end with a question mark.

    "Who? Why?" scores 1, and "Who? You." 0.5.
    """
    return ending_with(text, "?")


@measure(when_cut=WhenCut.NOT_JUDGED)
def all_exclamations(text: str) -> Score:
    """Share of sentences that end with an exclamation mark.

    "Hi! Lovely day!" scores 1, and "Hi! I see." 0.5.
    """
    return ending_with(text, "!")


def ending_with(text: str, mark: str) -> Score:
    """Share of sentences that end with a mark."""
    endings = map(closing_mark, sentences_of(text))
    return share_true((ending == mark for ending in endings), f"sentences end with {mark!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def asks_back(text: str) -> Score:
    """1 if the last sentence is a question.

    "I am fine. And you?" scores 1, and "Who knows? I do." 0.
    """
    last = sentences_of(text)[-1:]
    asks = any(closing_mark(sentence) == "?" for sentence in last)
    return verdict(asks, f"the last sentence is {''.join(last)[-60:]!r}")


@measure
def every_sentence_starts_with(text: str, word: Text) -> Score:
    """Share of sentences that start with this word or phrase, case and punctuation ignored.

    With `word: 'Yes'`, "Yes, I am. Yes!" scores 1, and "Yes. I am." 0.5.
    """
    target = folded_words(word) or [fold(word)]
    openings = [folded_words(sentence)[: len(target)] for sentence in sentences_of(text)]
    return share(openings.count(target), len(openings), f"sentences start with {word!r}")


@measure(when_cut=WhenCut.IF_KEPT)
def long_reply(text: str, words: Count) -> Score:
    """The number of words divided by `words`, at most 1.

    With `words: 4`, "I like the sea." scores 1, and "I do." 0.5.
    """
    number = len(words_of(text))
    reason = f"{count_of(number, 'word')}, at least {words} asked for"
    return Score(min(1.0, number / words), reason)


@measure(when_cut=WhenCut.IF_BROKEN)
def short_reply(text: str, words: Count) -> Score:
    """1 for at most `words` words, else `words` divided by the number of words.

    With `words: 2`, "Oh no!" scores 1, and "I like the sea." 0.5.
    """
    number = len(words_of(text))
    return Score(
        min(1.0, words / number) if number else 0.0,
        f"{count_of(number, 'word')}, at most {words} asked for",
    )


@measure(when_cut=WhenCut.IF_BROKEN)
def at_most_sentences(text: str, count: Count, prose: Flag = False) -> Score:
    """1 for one to `count` sentences, else 0. With `prose`, lines of code, headings, tables and
    items of a list that are only phrases are no sentences, and a reply may consist of these.

    With `count: 2`, "Yes. Dr. Smith is in." scores 1, and "Yes. No. Perhaps." 0.
    """
    number = len(prose_sentences_of(text) if prose else sentences_of(text))
    is_reply = bool(words_of(text)) if prose else number > 0
    reason = f"{count_of(number, 'sentence')}, at most {count} asked for"
    return verdict(is_reply and number <= count, reason)


@measure(when_cut=WhenCut.IF_BROKEN)
def at_most_words(text: str, count: Count, prose: Flag = False) -> Score:
    """1 for one to `count` words, else 0. With `prose`, the words of code blocks, headings and
    tables do not count, and a reply may consist of these.

    With `count: 3`, "Yes, it is." scores 1, and "Yes, it is so." 0.
    """
    number = len(words_of(prose_of(text) if prose else text))
    is_reply = bool(words_of(text)) if prose else number > 0
    reason = f"{count_of(number, 'word')}, at most {count} asked for"
    return verdict(is_reply and number <= count, reason)
