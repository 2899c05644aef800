"""The words for rules of length: "at most 40 words", and orders such as "explain it in detail"."""

import re
from collections.abc import Iterator, Sequence

from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.wording.wordings import (
    IN_REPLIES,
    Arguments,
    Cues,
    MeasureWords,
    Wording,
    always,
    asking_for,
)

# --- The wordings of a maximum

# says that a number is a maximum: "*keep* it to 40 words", "40 words *or fewer*"
_IS_MAXIMUM = (
    r"\b(?:most|maximum|max|limit(?:ed)?|enough|within|or (?:fewer|less)|keep|stay|short|long"
    r"|below|under|cap(?:ped)?|exceed|beyond|above|(?:more|longer) than)\b|[≤<]"
)
# a sentence that does not ask for more: without "at least 40 words"
_NO_MINIMUM = r"^(?!.*\b(?:at least|minimum|not at most)\b)"


def _maximum_of(unit: str, arguments: Arguments) -> Sequence[Wording]:
    """Returns the wordings of a maximum, as "at most 40 words" or "below 41 words".

    Args:
        unit: "word" or "sentence".
    """
    count = int(arguments["count"])
    limit = rf"\b(?:{_number(count)})[ -](?:\w+ )?{unit}s?\b"
    below = rf"\b(?:below|under|fewer than|less than|at most) (?:{_number(count + 1)}) {unit}s?\b"
    return Wording((limit, _IS_MAXIMUM, _NO_MINIMUM)), Wording((below, _NO_MINIMUM))


def _number(number: int) -> str:
    """Returns a pattern for a number in digits or in words: "4|four"."""
    words = [word for word, value in NUMBER_WORDS.items() if value == number]
    return "|".join([str(number), *map(re.escape, words)])


# --- Orders for a longer or a shorter reply

# asks for a long reply: "explain it *in detail*", "a *thorough* answer", "write two *pages*"
_LONG_REPLY = (
    r"\b(?:in (?:\w+ )?(?:detail|depth|full)|at length|(?:more|every|all the) details?|detailed"
    r"|in-depth|full(?:er)? (?:\w+ )?(?:story|explanation|answer|account|version|text|report)"
    r"|(?:explain|describe|write|tell)\b.*\bfully|whole (?:\w+ )?(?:story|explanation|thing|answer)"
    r"|thorough(?:ly)?|comprehensive(?:ly)?|elaborate|expand on|step[ -]by[ -]step|essay"
    r"|long(?:er|ish)|everything (?:you know|there is)"
    r"|long (?:\w+ )?(?:answer|reply|explanation|version|text|story|message|one|list|form)"
    r"|(?:\d+|several|a few|a couple of|two|three|four|five) (?:paragraphs|pages))\b"
)
# asks for a short reply: "*briefly*, please", "*yes or no*?", "in *one line*"
_SHORT_REPLY = (
    r"\b(?:brief(?:ly)?|short(?:er)?|concise(?:ly)?|in (?:a|one) (?:single )?(?:word|sentence|line"
    r"|nutshell)|(?:one|single) (?:word|line|sentence)|yes or no|to the point|sum it up|tl;?dr)\b"
)
# items that an order asks for by their number: "five *reasons*", "three quick *tips*"
_LIST_ITEMS = (
    r"reasons|examples|steps|points|ideas|tips|facts|options|alternatives|advantages|benefits"
    r"|bullets|bullet points|items|suggestions|questions|lines|recipes|names|ways|things"
)


def _more_than_allowed(unit: str, arguments: Arguments) -> Cues:
    """Returns the cues of orders for more words or sentences than the rule allows.

    A list of more items than words or sentences are allowed needs more of these.

    Args:
        unit: "word" or "sentence"; without a `count`, one is allowed.
    """
    count = int(arguments.get("count", 1))
    digits = rf"(?:not at most |at least )?(?:{'|'.join(_digits_above(count))})"
    in_words = "|".join(re.escape(word) for word, number in NUMBER_WORDS.items() if number > count)
    at_limit = rf"not at most (?:{count})"
    things = rf"(?:{unit}s?|(?:\w+ )?(?:{_LIST_ITEMS}))"
    more = rf"(?<!at most )\b(?:{digits}|{in_words}|{at_limit}) {things}\b"
    return Cues(forbidden=((_LONG_REPLY,), (more,)))


def _digits_above(count: int) -> Iterator[str]:
    r"""Yields patterns that together match the whole numbers above `count`, in digits.

    >>> list(_digits_above(42))
    ['[1-9]\\d{2,}', '[5-9]\\d{1}', '4[3-9]\\d{0}']
    """
    digits = str(count)
    yield rf"[1-9]\d{{{len(digits)},}}"
    for place, digit in enumerate(digits):
        if digit != "9":
            yield rf"{digits[:place]}[{int(digit) + 1}-9]\d{{{len(digits) - place - 1}}}"


LENGTH_WORDS = {
    "at_most_words": MeasureWords(
        wordings=lambda arguments: _maximum_of("word", arguments),
        orders_against=lambda arguments: _more_than_allowed("word", arguments),
    ),
    "at_most_sentences": MeasureWords(
        wordings=lambda arguments: _maximum_of("sentence", arguments),
        orders_against=lambda arguments: _more_than_allowed("sentence", arguments),
    ),
    "one_sentence": MeasureWords(
        wordings=always(asking_for(r"\b(?:1|a single) sentence\b", rf"{IN_REPLIES}|\bonly\b")),
        orders_against=lambda arguments: _more_than_allowed("sentence", arguments),
    ),
    "one_word": MeasureWords(
        orders_against=lambda arguments: _more_than_allowed("word", arguments)
    ),
    "long_reply": MeasureWords(orders_against=always(Cues(forbidden=((_SHORT_REPLY,),)))),
}
