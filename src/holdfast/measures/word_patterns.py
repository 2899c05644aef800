"""Patterns among the letters and words of a reply: their case, alternations and repetitions."""

from collections import Counter

from holdfast.measures.arguments import Count, Flag, Letter, Text
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, share, share_true, verdict
from holdfast.measures.text import fold, folded_words, words_of
from holdfast.plurals import count_of


def cased_letters(text: str) -> list[str]:
    """Returns the letters of a text that have a case."""
    return [character for character in text if character.isupper() or character.islower()]


@measure
def upper_case(text: str) -> Score:
    """Share of letters that are upper case.

    "HI 5!" scores 1, and "Hi" 0.5.
    """
    return share_true(map(str.isupper, cased_letters(text)), "letters are upper case")


@measure
def lower_case(text: str) -> Score:
    """Share of letters that are lower case.

    "hi 5!" scores 1, and "Hi" 0.5.
    """
    return share_true(map(str.islower, cased_letters(text)), "letters are lower case")


@measure
def title_case(text: str) -> Score:
    """Share of words that begin with a capital and continue in lower case.

    "I Like Tea" scores 1, and "i like tea" 0.
    """
    cased = [word for word in words_of(text) if cased_letters(word)]
    capitalised = (word[:1].isupper() and not word[1:].isupper() for word in cased)
    return share_true(capitalised, "words are capitalised")


@measure
def letter_absent(text: str, letter: Letter) -> Score:
    """1/(1 + how often the letter occurs, in either case).

    With `letter: e`, "A big boat" scores 1, and "Tea" 0.5.
    """
    times = text.casefold().count(letter.casefold())
    return Score(1 / (1 + times), f"{letter!r} occurs {count_of(times, 'time')}")


@measure
def no_letters(text: str, spaces: Flag = False) -> Score:
    """Share of characters that are not letters; spaces count only with `spaces`.

    "12 + 3" scores 1, and "1 a" 0.5.
    """
    marks = (not c.isalpha() for c in text if spaces or not c.isspace())
    return share_true(marks, "characters are not letters")


@measure
def digits_only(text: str, spaces: Flag = False) -> Score:
    """Share of characters that are digits; spaces count only with `spaces`.

    "1 2 3" scores 1, and "1a" 0.5.
    """
    marks = (c.isdigit() for c in text if spaces or not c.isspace())
    return share_true(marks, "characters are digits")


@measure
def same_first_letter(text: str) -> Score:
    """Share of words that begin with the commonest first letter.

    "Peter picks peppers" scores 1, and "Peter sees" 0.5.
    """
    firsts = [word[0].casefold() for word in words_of(text)]
    letter, times = Counter(firsts).most_common(1)[0] if firsts else ("", 0)
    return share(times, len(firsts), f"words begin with {letter!r}")


@measure
def starts_with_letter(text: str, letter: Letter) -> Score:
    """1 if the first letter or digit of the reply is this letter, in either case.

    With `letter: A`, "'A' it is" scores 1, and "B or A" 0.
    """
    first = next((c for c in text if c.isalnum()), "")
    return verdict(first.casefold() == letter.casefold(), f"the reply starts with {first!r}")


def alternation(kinds: list[int], pair: str) -> Score:
    """Share of words of one of two kinds whose kind differs from that of the word before.

    Args:
        kinds: of each word: 1 or -1, or 0 for neither.
        pair: the two kinds in words, such as "short and long".
    """
    differs = (
        kind != 0 and kind != before for before, kind in zip([0, *kinds], kinds, strict=False)
    )
    return share_true(differs, f"words alternate {pair}")


@measure
def alternating_case(text: str) -> Score:
    """Share of words that continue an alternation of UPPER and lower case.

    "YOU can SEE" scores 1, and "YOU CAN" 0.5.
    """
    cased = [word for word in words_of(text) if word.upper() != word.lower()]
    return alternation([word.isupper() - word.islower() for word in cased], "upper and lower case")


@measure
def alternating_length(text: str, limit: Count = 4) -> Score:
    """Share of words that continue an alternation of short (up to `limit` letters) and long.

    Apostrophes and hyphens are not letters: "can't" has four.

    "My favourite is chocolate" scores 1, and "I am" 0.5.
    """
    lengths = [sum(map(str.isalnum, word)) for word in words_of(text)]
    return alternation([1 if length <= limit else -1 for length in lengths], "short and long")


@measure
def alternating_word(text: str, word: Text) -> Score:
    """Share of words that continue an alternation of this word and any other.

    With `word: banana`, "I banana love banana" scores 1, and "banana banana" 0.5.
    """
    target = fold(word.strip())
    return alternation(
        [1 if other == target else -1 for other in folded_words(text)], f"{word!r} and others"
    )


@measure
def doubled_words(text: str) -> Score:
    """Share of words that are in a pair of the same word twice.

    "Yes yes, tea tea" scores 1, and "Yes yes, no tea" 0.5.
    """
    words = folded_words(text)
    paired = 0
    position = 0
    while position + 1 < len(words):
        if words[position] == words[position + 1]:
            paired += 2
            position += 2
        else:
            position += 1
    return share(paired, len(words), "words stand in a pair")


@measure
def no_repeated_words(text: str) -> Score:
    """Share of words that occur only once.

    "Tea tastes nice" scores 1, and "No, no." 0.
    """
    times = Counter(folded_words(text))
    return share(sum(n for n in times.values() if n == 1), times.total(), "words occur once only")


@measure
def repeated_words(text: str) -> Score:
    """Share of words that occur twice or more.

    "tea for me, me for tea" scores 1, and "tea for me" 0.
    """
    times = Counter(folded_words(text))
    repeated = sum(n for n in times.values() if n > 1)
    return share(repeated, times.total(), "words occur twice or more")


@measure(when_cut=WhenCut.NOT_JUDGED)
def same_first_last(text: str) -> Score:
    """1 if the first and the last word are the same, case and punctuation ignored.

    "Tea, I like tea!" scores 1, and "Tea is nice." 0.
    """
    words = folded_words(text)
    if not words:
        return Score(0.0, "there is no word")
    return verdict(words[0] == words[-1], f"first word {words[0]!r}, last word {words[-1]!r}")
