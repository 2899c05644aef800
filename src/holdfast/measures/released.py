"""The published measures of Li et al. 2024 where they differ from ours, defects included.

They were written from a description of what the released code computes, so that a run can be
compared with the published numbers. Each docstring says what is wrong; the corrected measure is in
the file of its theme. Where the released code raises on an empty reply, these return 0.
"""

import re
from collections import Counter
from itertools import pairwise

from holdfast.measures.arguments import (
    Count,
    Direction,
    Flag,
    Letter,
    SentimentPart,
    Text,
    Texts,
    WholeNumber,
    Words,
)
from holdfast.measures.content import never_contains
from holdfast.measures.grammar import commonest, plural_noun_marks
from holdfast.measures.layout import objects_in, score_keys
from holdfast.measures.mentioned_numbers import number_near
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share, share_true, verdict
from holdfast.measures.sentiment import sentiment, vader
from holdfast.measures.text import WORD, sentences_of, words_of
from holdfast.measures.verb_tenses import MODALS, is_participle, is_untensed_verb, tenses
from holdfast.measures.word_forms import tokens_of
from holdfast.measures.word_patterns import alternation
from holdfast.plurals import count_of

_PUNCTUATION = re.compile(r"[^\w\s]")


def _plain_words(text: str) -> list[str]:
    """Returns the lower-cased words as the released code finds them: split at spaces."""
    return _PUNCTUATION.sub("", text.lower()).split()


@measure(empty_is_zero=False)
def released_letter_absent(text: str, letter: Letter) -> Score:
    """1/(1 + how often the letter occurs in lower case); misses capitals.

    With `letter: e`, "EVA" scores 1, and "tea" 0.5.
    """
    times = text.count(letter.lower())
    return Score(1 / (1 + times), f"{letter.lower()!r} occurs {count_of(times, 'time')}")


@measure(empty_is_zero=False)
def released_repeated_words(text: str) -> Score:
    """Number of distinct words that occur twice or more, divided by all words; at most 0.5.

    "no no" scores 0.5, and "a b" 0.
    """
    times = Counter(_plain_words(text))
    return share(sum(n > 1 for n in times.values()), times.total(), "words are distinct and recur")


@measure(empty_is_zero=False)
def released_doubled_words(text: str) -> Score:
    """Share of words that consist of the next word twice ("byebye bye"); misses "bye bye".

    "haha ha" scores 0.5, and "tea tea" 0.
    """
    words = _plain_words(text)
    good = sum(a == b + b for a, b in pairwise(words))
    return share(good, len(words), "words are the next one twice")


@measure(empty_is_zero=False)
def released_starts_with(text: str, word: Text) -> Score:
    """1 if the text up to the first space is exactly this word; 'Yes,' is not 'Yes'.

    With `word: 'Yes'`, "Yes I do" scores 1, and "Yes, I do" 0.
    """
    first = "".join(text.split()[:1])
    opening = f"starts with {first[:40]!r}" if first else "is empty"
    return verdict(first == word, f"the reply {opening}")


@measure(empty_is_zero=False)
def released_every_sentence_starts_with(text: str, word: Text) -> Score:
    """Share of sentences whose lower-cased first word is `word`; 0 if `word` has a capital.

    With `word: 'yes'`, "Yes, I am." scores 1, and "So yes." 0.
    """
    firsts = [words_of(sentence)[0].lower() for sentence in sentences_of(text)]
    return share(firsts.count(word), len(firsts), f"sentences start, lower-cased, with {word!r}")


@measure(empty_is_zero=False, loads=True)
def released_vader(text: str, part: SentimentPart) -> Score:
    """VADER's share of positive, negative or neutral words; rarely above 0.6.

    With `part: pos`, "love joy" scores 1, and "table" 0.
    """
    value = vader(text)[part]
    return Score(min(1.0, max(0.0, value)), f"VADER {part} {value:.2f}")


@measure(empty_is_zero=False)
def released_long_reply(text: str) -> Score:
    """1 - 1/(1 + cube root of the number of words).

    "I do like it here by the sea, too" scores 0.68, and "Yes" 0.5.
    """
    number = len(text.split())
    return Score(round(1 - 1 / (1 + number ** (1 / 3)), 6), count_of(number, "word"))


@measure(empty_is_zero=False)
def released_words_present(text: str, words: Texts) -> Score:
    """Share of `words` among the lower-cased single words; phrases and capitals never match.

    With `words: [lamp, '57']`, "The lamp, 57." scores 1, and "none" 0.
    """
    spoken = set(_plain_words(text))
    return share_true((word in spoken for word in words), "words occur")


@measure(empty_is_zero=False)
def released_words_absent(text: str, words: Texts) -> Score:
    """1 - the share of `words` among the lower-cased single words; a listed 'I' never counts.

    With `words: [you, they]`, "None here" scores 1, and "You see" 0.5.
    """
    spoken = set(_plain_words(text))
    return share_true((word not in spoken for word in words), "words do not occur")


@measure(empty_is_zero=False)
def released_never_contains(
    text: str, words: Words, case: Flag = False, whole: Flag = True
) -> Score:
    """Like never_contains, but an empty reply scores 1.

    With `words: [and]`, "" scores 1, and "Tea and cake" 0.
    """
    return never_contains(text, words, case, whole)


@measure(empty_is_zero=False, loads=True)
def released_sentiment(text: str, direction: Direction) -> Score:
    """Like sentiment, but an empty reply scores 0.5.

    With `direction: negative`, "I hate you" scores 0.79, and "I love you" 0.18.
    """
    return sentiment(text, direction)


@measure(empty_is_zero=False, loads=True)
def released_past_tense(text: str) -> Score:
    """Share of verbs that are past, including infinitives and -ing forms; 1 without verbs.

    "I walked." scores 1, and "I walk." 0.
    """
    past = 0
    verbs = 0
    for tokens in map(tokens_of, sentences_of(text)):
        kinds = tenses(tokens)
        past += kinds.count("past") + sum(map(is_participle, tokens))
        verbs += len(kinds) - sum(token.word in MODALS for token in tokens)
        verbs += sum(map(is_untensed_verb, tokens))
    return share(past, verbs, "verbs are past") if verbs > 0 else Score(1.0, "there are no verbs")


@measure(empty_is_zero=False)
def released_alternating_case(text: str) -> Score:
    """Share of words that differ from the word before in being all upper case; 'The' is not.

    "YES no" scores 1, and "yes no" 0.5.
    """
    words = _PUNCTUATION.sub("", text).split()
    return alternation([1 if word.isupper() else -1 for word in words], "upper case and not")


@measure(empty_is_zero=False)
def released_alternating_length(text: str, limit: Count = 4) -> Score:
    """Share of words that differ from the word before in being short; "don't" has four letters.

    "don't always" scores 1, and "I am" 0.5.
    """
    words = _plain_words(text)
    return alternation([1 if len(word) <= limit else -1 for word in words], "short and long")


@measure(empty_is_zero=False)
def released_no_letters(text: str) -> Score:
    """Share of characters that are not letters, spaces included; a reply of spaces scores 1.

    "12 3" scores 1, and "abc" 0.
    """
    return share_true((not c.isalpha() for c in text), "characters are not letters")


@measure(empty_is_zero=False, loads=True)
def released_plural_nouns(text: str) -> Score:
    """Share of tokens that are plural nouns; punctuation marks are tokens.

    "Museums" scores 1, and "Museums!" 0.5.
    """
    marks = plural_noun_marks(text)
    signs = len(_PUNCTUATION.findall(WORD.sub(" ", text)))
    return share(sum(marks), len(marks) + signs, "tokens are plural nouns")


@measure(empty_is_zero=False)
def released_json_object(text: str, keys: Texts) -> Score:
    r"""1 if the reply holds a JSON object with these keys in this order, whatever else it holds.

    With `keys: [a, b]`, "Sure: {\"a\": 1, \"c\": 2, \"b\": 3}" scores 1, and "{\"b\": 1, \"a\": 2}"
    0.
    """
    items = list(objects_in(text))
    for item in items:
        if [key for key in item if key in keys] == list(keys):
            return score_keys(item, keys, are_right=True)
    if not items:
        return Score(0.0, "there is no JSON object")
    return score_keys(items[-1], keys, are_right=False)


@measure(empty_is_zero=False)
def released_comma_list(text: str) -> Score:
    """Share of comma-separated items in the first [...] that are one word; one item is enough.

    "See [tea, milk]" scores 1, and "tea, milk" 0.
    """
    begin = text.find("[")
    end = text.find("]", begin)
    if begin < 0 or end < 0:
        return Score(0.0, "there are no [brackets]")
    items = text[begin + 1 : end].split(",")
    return share_true((len(item.split()) == 1 for item in items), "items are one word")


@measure(empty_is_zero=False)
def released_dashed_characters(text: str) -> Score:
    """Share of pieces between dashes that are a single character; empty pieces are not.

    "H-e-y" scores 1, and "H-ey" 0.5.
    """
    return share_true((len(piece) == 1 for piece in text.split("-")), "pieces are one character")


@measure(empty_is_zero=False)
def released_number_near(text: str, number: WholeNumber) -> Score:
    """Like number_near, but only the first run of digits is read.

    With `number: 8`, "I say 8" scores 1, and "Eight" 0.
    """
    digits = re.search("[0-9]+", text)
    return number_near(digits.group(), number) if digits else Score(0.0, "no number occurs")


@measure(empty_is_zero=False, loads=True)
def released_rare_words(text: str, common: Count = 10_000) -> Score:
    """1 - share of words among the `common` commonest of English; a number is not among them.

    "verdant sojourn 57" scores 1, and "We went home" 0.
    """
    usual = commonest(common)
    return share_true((word not in usual for word in _plain_words(text)), "words are rare")


@measure(empty_is_zero=False)
def released_contains(text: str, words: Texts, all: Flag = True, case: Flag = True) -> Score:
    """Like contains, but matches anywhere, even inside words: "13" contains "3".

    With `words: ['3']`, "13" scores 1, and "three" 0.
    """
    if not case:
        text = text.lower()
        words = [word.lower() for word in words]
    marks = [word in text for word in words]
    if all:
        return share_true(marks, "texts occur")
    return verdict(any(marks), f"{sum(marks)} of {len(marks)} texts occur")
