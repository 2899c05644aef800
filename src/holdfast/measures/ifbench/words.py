"""IFBench's instructions on every word of a reply, or on the words that stand side by side."""

from __future__ import annotations

import re
import string
from itertools import pairwise

from holdfast.measures.ifbench.tokens import WITHOUT_MARKS, bare_words, kept, stripped_words
from holdfast.measures.kinds import Text
from holdfast.measures.registry import Score, measure

CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
PALINDROMES, LETTERS = 10, 5  # at least so many, of at least so many letters


@measure
def ifbench_words_alphabet(text: str) -> Score:
    """1 if each word begins with the letter after that of the word before; A follows Z."""
    firsts = [word[0] for word in bare_words(text)]
    letters = string.ascii_lowercase
    steps = [b == letters[(letters.find(a) + 1) % 26] for a, b in pairwise(firsts)]
    return kept(
        firsts and firsts[0] in letters and all(steps),
        f"{sum(steps)} of {len(steps)} words go on in the alphabet",
    )


@measure
def ifbench_words_vowel(text: str) -> Score:
    """1 for one paragraph with at most three of the vowels a, e, i, o, u."""
    lines, vowels = text.strip().count("\n") + 1, set("aeiou") & set(text.lower())
    return kept(lines == 1 and len(vowels) <= 3, f"{lines} lines, {len(vowels)} vowels")


@measure
def ifbench_words_consonants(text: str) -> Score:
    """1 if each word between spaces has two consonants side by side."""
    words = text.lower().split()
    without = [word for word in words if not CLUSTER.search(word)]
    return kept(not without, f"{len(without)} of {len(words)} words have no two consonants")


@measure
def ifbench_words_palindrome(text: str) -> Score:
    """1 for at least ten palindromes of at least five letters."""
    seen = sum(len(word) >= LETTERS and word == word[::-1] for word in bare_words(text))
    return kept(seen >= PALINDROMES, f"{seen} palindromes, at least {PALINDROMES} asked for")


@measure
def ifbench_words_prime_lengths(text: str) -> Score:
    """1 if the length of each word is a prime number."""
    lengths = [len(word) for word in bare_words(text)]
    other = [length for length in lengths if not is_prime(length)]
    return kept(not other, f"{len(other)} of {len(lengths)} lengths are not prime")


def is_prime(number: int) -> bool:
    """Whether a number has no divisor but 1 and itself."""
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


@measure
def ifbench_words_no_consecutive(text: str) -> Score:
    """1 if no two words side by side begin with the same letter."""
    firsts = [word[0] for word in bare_words(text)]
    same = sum(a == b for a, b in pairwise(firsts))
    return kept(not same, f"{same} neighbours begin alike")


@measure
def ifbench_words_words_position(text: str, keyword: Text) -> Score:
    """1 if the second word and the second to last are the keyword.

    Marks are no words; to the published checker the last full stop is one.
    """
    words = stripped_words(text)
    seen = {words[1], words[-2]} if len(words) > 1 else set()
    return kept(seen == {keyword.lower()}, f"there stands {', '.join(sorted(seen)) or 'nothing'}")


@measure
def ifbench_words_paragraph_last_first(text: str) -> Score:
    """1 if each line ends with the word that it begins with."""
    lines = [words for line in text.split("\n") if (words := stripped_words(line))]
    wrong = sum(words[0] != words[-1] for words in lines)
    return kept(lines and not wrong, f"{wrong} of {len(lines)} lines end with another word")


@measure
def ifbench_format_newline(text: str) -> Score:
    """1 if each word stands in a line of its own."""
    lines = [line for line in text.translate(WITHOUT_MARKS).split("\n") if line.strip()]
    longest = max((len(line.split()) for line in lines), default=0)
    return kept(longest == 1, f"{longest} words in the longest line")


@measure
def ifbench_format_title_case(text: str) -> Score:
    """1 if no word begins with a small letter; "a" alone may be one."""
    small = re.findall(r"(?<![^\W_])(?<!['’])[a-z][^\W_]+", text)
    return kept(not small, f"{len(small)} words begin with a small letter")


@measure
def ifbench_format_no_whitespace(text: str) -> Score:
    """1 for a reply without a space, tab or new line, also around it."""
    seen = sum(map(str.isspace, text))
    return kept(not seen, f"{seen} characters of whitespace")
