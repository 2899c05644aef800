"""The content of a reply: words, phrases, thanks and emojis."""

import re
from collections.abc import Sequence

from holdfast.measures.arguments import Flag, Share, Words, entries
from holdfast.measures.reasons import quote_words
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, share, share_true, verdict
from holdfast.measures.text import fold, folded_words, sentences_of

_EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
_THANKS = re.compile(r"\bthank(?:s|ful|ing|ed)?\b", re.IGNORECASE)  # "thank you", "thanks"


def _occurs(phrase: str, text: str, *, whole: bool) -> bool:
    """Whether a phrase occurs, as `whole` words or anywhere; runs of spaces count as one.

    An end of the phrase that is no letter or digit may touch a word: "!" occurs in "Welcome!".
    """
    phrase = " ".join(phrase.split())
    text = " ".join(text.split())
    if not whole:
        return phrase in text
    before = r"(?<!\w)" if re.match(r"\w", phrase) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", phrase) else ""
    return re.search(f"{before}{re.escape(phrase)}{after}", text) is not None


def _occurring(text: str, words: Words, *, case: bool, whole: bool) -> list[str]:
    """Returns the words of a list that occur, as `whole` words, and in the same `case`."""
    prepare = _with_plain_apostrophes if case else fold
    plain = prepare(text)
    return [word for word in entries(words) if _occurs(prepare(word), plain, whole=whole)]


def _with_plain_apostrophes(text: str) -> str:
    return text.replace("’", "'")


def _none_occurs(words: Sequence[str]) -> str:
    """Says that no word or phrase of a list occurs, as a score's reason."""
    if len(words) == 1:
        return f"{quote_words(words)} does not occur"
    return f"none of {quote_words(words)} occurs"


@measure
def contains(
    text: str, words: Words, all: Flag = True, case: Flag = False, whole: Flag = True
) -> Score:
    """Share of the words or phrases that occur; with `all: false`, 1 if any does.

    With `words: [Tony, sea]`, "Tony loves the sea." scores 1, and "Tony sails." 0.5.
    """
    required = entries(words)
    present = _occurring(text, words, case=case, whole=whole)
    missing = [word for word in required if word not in present]
    if all and len(required) > 1:
        exceptions = f", not {quote_words(missing)}" if missing else ""
        return share(len(present), len(required), f"words or phrases occur{exceptions}")
    return verdict(present, f"{quote_words(present)} occurs" if present else _none_occurs(missing))


@measure
def never_contains(
    text: str, words: Words, case: Flag = False, whole: Flag = True, partial: Flag = False
) -> Score:
    """0 if any of the words or phrases occurs; with `partial`, the share of them that do not.

    With `words: [and]`, "Sand, sea" scores 1, and "Tea and cake" 0.
    """
    forbidden = entries(words)
    present = _occurring(text, words, case=case, whole=whole)
    if not present:
        return Score(1.0, _none_occurs(forbidden))
    value = 1 - len(present) / len(forbidden) if partial else 0.0
    return Score(value, f"{quote_words(present)} occurs")


@measure
def vocabulary_share(text: str, words: Words, full: Share = 1.0) -> Score:
    """Share of words that are on the list; a share of `full` or more scores 1.

    With `words: [meow, purr]`, "Meow, purr!" scores 1, and "I meow." 0.5.
    """
    vocabulary = {tuple(folded_words(entry)) for entry in entries(words)}
    lengths = range(max(map(len, vocabulary)), 0, -1)
    reply = folded_words(text)
    hits = 0
    position = 0
    while position < len(reply):
        phrases = (tuple(reply[position : position + length]) for length in lengths)
        phrase = next((phrase for phrase in phrases if phrase in vocabulary), ())
        hits += len(phrase)
        position += max(len(phrase), 1)
    return share(hits, len(reply), "words are on the list", full)


@measure
def first_person(text: str) -> Score:
    """1 if a first-person pronoun occurs (I, me, my, we, our, ...).

    "I am fine." scores 1, and "You are fine." 0.
    """
    return contains(text, "first_person", all=False)


@measure
def thanks(text: str) -> Score:
    """1 if the reply has a word of thanks ("thank you", "thanks", "thankful").

    "Many thanks!" scores 1, and "You are welcome." 0.
    """
    match = _THANKS.search(text)
    return verdict(match, f"{match[0]!r} occurs" if match else "no word of thanks occurs")


@measure
def emoji(text: str) -> Score:
    """Share of sentences that contain an emoji; 1 for a reply of only emojis.

    "Hi 😀! Bye 🎉." scores 1, and "Hi 😀! Bye." 0.5.
    """
    sentences = sentences_of(text)
    if not sentences:
        return verdict(_EMOJI.search(text) is not None, "there is no sentence")
    return share_true(map(bool, map(_EMOJI.search, sentences)), "sentences hold an emoji")
