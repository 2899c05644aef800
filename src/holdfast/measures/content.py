"""The content of a reply: words, phrases, names, numbers, and sentiment.

Sentiment is that of VADER (Hutto & Gilbert 2014), whose lexicon the package `vaderSentiment` ships.
"""

import re
from functools import cache
from typing import Any

from holdfast.measures.arguments import Direction, Flag, Number, Share, Words, entries
from holdfast.measures.number_words import NUMBER_WORDS, words_for
from holdfast.measures.reasons import named
from holdfast.measures.registry import Score, measure, share, share_true, verdict
from holdfast.measures.text import fold, folded_words, sentences_of, words_of
from holdfast.plurals import plural

NUMERAL = re.compile(
    r"(?<![\w.,])[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+(?![\w])|[0-9]+(?:\.[0-9]+)?"
)
ORDINALS = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
}
EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
THANKS = re.compile(r"\bthank(?:s|ful|ing|ed)?\b", re.IGNORECASE)


def occurs(phrase: str, text: str, whole: bool) -> bool:
    """Whether a phrase occurs, as whole words or anywhere; runs of spaces count as one."""
    phrase, text = " ".join(phrase.split()), " ".join(text.split())
    if not whole:
        return phrase in text
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def present(text: str, words: Words, case: bool, whole: bool) -> tuple[list[str], list[str]]:
    """The words of a list that occur, and those that do not."""
    prepare = (lambda s: s.replace("’", "'")) if case else fold
    searched = prepare(text)
    marks = [(word, occurs(prepare(word), searched, whole)) for word in entries(words)]
    return [word for word, seen in marks if seen], [word for word, seen in marks if not seen]


def _absent(words: list[str]) -> str:
    """Says that no word or phrase of a list occurs, for a score's reason."""
    if len(words) == 1:
        return f"{named(words)} does not occur"
    return f"none of {named(words)} occurs"


@measure
def contains(
    text: str, words: Words, all: Flag = True, case: Flag = False, whole: Flag = True
) -> Score:
    """Share of the words or phrases that occur; with `all: false`, 1 if any does."""
    seen, missing = present(text, words, case, whole)
    listed = len(seen) + len(missing)
    if all and listed > 1:
        what = f"words or phrases occur{f', not {named(missing)}' if missing else ''}"
        return share(len(seen), listed, what)
    return verdict(seen, f"{named(seen)} occurs" if seen else _absent(missing))


@measure
def never_contains(
    text: str, words: Words, case: Flag = False, whole: Flag = True, partial: Flag = False
) -> Score:
    """0 if any of the words or phrases occurs; with `partial`, the share of them that do not."""
    seen, missing = present(text, words, case, whole)
    if not seen:
        return Score(1.0, _absent(missing))
    return Score(
        len(missing) / (len(seen) + len(missing)) if partial else 0.0, f"{named(seen)} occurs"
    )


@measure
def vocabulary_share(text: str, words: Words, full: Share = 1.0) -> Score:
    """Share of words that are on the list; a share of `full` or more scores 1."""
    vocabulary = {tuple(folded_words(entry)) for entry in entries(words)}
    longest = max(map(len, vocabulary))
    spoken, hits, i = folded_words(text), 0, 0
    while i < len(spoken):
        length = next(
            (n for n in range(longest, 0, -1) if tuple(spoken[i : i + n]) in vocabulary), 0
        )
        hits += min(length, len(spoken) - i)
        i += max(length, 1)
    return share(hits, len(spoken), "words are on the list", full)


@measure
def first_person(text: str) -> Score:
    """1 if a first-person pronoun occurs (I, me, my, we, our, ...)."""
    return contains(text, "first_person", all=False)


@measure
def thanks(text: str) -> Score:
    """1 if the reply thanks ("thank you", "thanks", "thankful")."""
    match = THANKS.search(text)
    return verdict(match, f"{match[0]!r} occurs" if match else "no word of thanks occurs")


@measure
def emoji(text: str) -> Score:
    """Share of sentences that contain an emoji; 1 for a reply of only emojis."""
    sentences = sentences_of(text)
    if not sentences:
        return verdict(EMOJI.search(text) is not None, "there is no sentence")
    return share_true(map(bool, map(EMOJI.search, sentences)), "sentences hold an emoji")


def numerals(text: str) -> list[str]:
    """The numbers written in digits, without separators and redundant zeros."""
    plain = [re.sub("[, \u00a0\u202f]", "", match.group()) for match in NUMERAL.finditer(text)]
    plain = [number.rstrip("0").rstrip(".") if "." in number else number for number in plain]
    return [number.lstrip("0") or "0" for number in plain]


def occurs_in_words(number: int, text: str) -> bool:
    """Whether a number occurs in English words and not as part of a longer number."""
    tokens = [
        token for token in re.split(r"[\s-]+", " ".join(words_of(fold(text)))) if token != "and"
    ]
    wanted = words_for(number)
    for i in range(len(tokens) - len(wanted) + 1):
        around = tokens[max(0, i - 1) : i] + tokens[i + len(wanted) : i + len(wanted) + 1]
        if tokens[i : i + len(wanted)] == wanted and not any(
            token in NUMBER_WORDS for token in around
        ):
            return True
    return False


@measure
def mentions_number(text: str, number: Number) -> Score:
    """1 if this number occurs, in digits (1,234 or 1234) or in English words."""
    seen = numerals(text)
    if str(number) in seen or occurs_in_words(number, text):
        return Score(1.0, f"{number} occurs")
    return Score(0.0, f"{number} does not occur" + (f", but {named(seen)}" if seen else ""))


@measure
def never_mentions_number(text: str, number: Number) -> Score:
    """0 if this number occurs, in digits (1,234 or 1234) or in English words, else 1."""
    mentioned = mentions_number(text, number)
    return Score(1.0 - mentioned.value, mentioned.reason)


def cardinal(part: str) -> str:
    """The number word of an ordinal: 'first' is one, 'sixth' is six."""
    return ORDINALS.get(part) or re.sub(r"ie$", "y", part.removesuffix("th"))


def is_number_word(word: str) -> bool:
    """Whether a word is a number: 'two', 'twenty-one', 'twenty-first'."""
    parts = word.split("-")
    return {
        *parts[:-1],
        cardinal(parts[-1]) if len(parts) > 1 else parts[-1],
    } <= NUMBER_WORDS.keys()


@measure
def mentions_any_number(text: str) -> Score:
    """1 if any number occurs, in digits or in English words ("two", "twenty-first")."""
    seen = numerals(text) + [word for word in folded_words(text) if is_number_word(word)]
    return verdict(seen, f"{named(seen)} occurs" if seen else "no number occurs")


@measure
def number_near(text: str, number: Number) -> Score:
    """1 - |x - number| / number for the first number x of the reply, at least 0."""
    seen = numerals(text) or [
        str(NUMBER_WORDS[word]) for word in folded_words(text) if word in NUMBER_WORDS
    ]
    if not seen:
        return Score(0.0, "no number occurs")
    distance = abs(float(seen[0]) - number) / max(number, 1)
    return Score(max(0.0, 1 - distance), f"the first number is {seen[0][:20]}, {number} asked for")


FULL = 0.5  # the compound of one clear word ("I love London": 0.64) is full marks for a sentence
LONGEST = 5_000  # characters that are read
# symbols that are read, such as emojis: VADER spells each out, in time quadratic in the words
SYMBOLS = 100


@cache
def analyzer() -> Any:
    """VADER, its lexicon read once."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def vader(text: str) -> dict[str, float]:
    """VADER's shares `pos`, `neg`, `neu` and its `compound` from -1 to 1."""
    kept, symbols = [], 0
    for character in text[:LONGEST]:
        symbols += ord(character) > 0x2100 and not character.isalnum()
        if symbols <= SYMBOLS or character.isalnum() or character.isspace():
            kept.append(character)
    scores: dict[str, float] = analyzer().polarity_scores("".join(kept))
    return scores


@measure(loads=True)
def sentiment(text: str, direction: Direction) -> Score:
    """(1 + VADER compound) / 2 for 'positive', (1 - compound) / 2 for 'negative'."""
    compound = vader(text)["compound"]
    signed = compound if direction == "positive" else -compound
    return Score((1 + signed) / 2, f"VADER compound {compound:+.2f}")


@measure(loads=True)
def joyful(text: str) -> Score:
    """Mean over sentences of VADER's compound above 0, where 0.5 is full marks."""
    return feeling(text, +1, "joyful")


@measure(loads=True)
def sad(text: str) -> Score:
    """Mean over sentences of VADER's compound below 0, where -0.5 is full marks."""
    return feeling(text, -1, "negative")


def feeling(text: str, sign: int, what: str) -> Score:
    """Mean over sentences of the strength of one sentiment; unlike VADER's shares it reaches 1."""
    strengths = [
        min(1.0, max(0.0, sign * vader(sentence)["compound"]) / FULL)
        for sentence in sentences_of(text)
    ]
    if not strengths:
        return Score(0.0, "there is no sentence")
    value = round(sum(strengths) / len(strengths), 4)
    return Score(
        value,
        f"{sum(s > 0 for s in strengths)} of {plural(len(strengths), 'sentence')} sound {what}",
    )
