"""IFBench's instructions that count: words, names, numbers, marks."""

from __future__ import annotations

import re
from collections import Counter

from holdfast.measures.ifbench.tokens import MARKS, WITHOUT_MARKS, bare_words, kept, stripped_words
from holdfast.measures.ifeval.lengths import count_words
from holdfast.measures.kinds import Count, Number, Text
from holdfast.measures.registry import Score, measure
from holdfast.measures.text import listed

CONJUNCTIONS = frozenset(listed("for and nor but or yet so"))
PRONOUNS = frozenset(
    listed(
        "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his"
        " himself she her hers herself it its itself they them their theirs themselves"
    )
)
NAMES = listed(  # which the instruction itself lists
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander"
    " Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel"
    " Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher"
    " Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan"
)
TIMES = (1, 2, 3, 5, 7)  # of the five keywords
STOPS = frozenset(".,!?;:")
INTERROBANG = re.compile(r"\?!|!\?|‽")
JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


@measure
def ifbench_count_word_count_range(text: str, min_words: Number, max_words: Count) -> Score:
    """1 for between so many and so many words."""
    seen = count_words(text)
    return kept(
        min_words <= seen <= max_words, f"{seen} words, {min_words} to {max_words} asked for"
    )


@measure
def ifbench_count_unique_word_count(text: str, N: Count) -> Score:
    """1 for at least so many different words."""
    seen = len(set(stripped_words(text)))
    return kept(seen >= N, f"{seen} different words, at least {N} asked for")


@measure
def ifbench_count_conjunctions(text: str, small_n: Count) -> Score:
    """1 for at least so many different conjunctions of for, and, nor, but, or, yet, so.

    "And" and "and," are one; the published checker takes them for two.
    """
    seen = CONJUNCTIONS.intersection(stripped_words(text))
    return kept(len(seen) >= small_n, f"{len(seen)} conjunctions, at least {small_n} asked for")


@measure
def ifbench_count_person_names(text: str, N: Count) -> Score:
    """1 for at least so many different names of the fifty that the instruction lists."""
    seen = [name for name in NAMES if re.search(rf"\b{name}\b", text)]
    return kept(len(seen) >= N, f"{len(seen)} names, at least {N} asked for")


@measure
def ifbench_count_numbers(text: str, N: Number) -> Score:
    """1 for exactly so many numbers in digits; "1,234.5" is one."""
    seen = len(re.findall(r"\d+", text.translate(WITHOUT_MARKS)))
    return kept(seen == N, f"{seen} numbers, {N} asked for")


@measure
def ifbench_count_pronouns(text: str, N: Count) -> Score:
    """1 for at least so many personal and possessive pronouns."""
    seen = sum(word in PRONOUNS for word in bare_words(text.replace("/", " ")))
    return kept(seen >= N, f"{seen} pronouns, at least {N} asked for")


@measure
def ifbench_count_punctuation(text: str) -> Score:
    """1 if . , ! ? ; : and an interrobang (?!) all occur, the interrobang beside the others."""
    rest = INTERROBANG.sub("", text, count=1)
    missing = "".join(sorted(STOPS - set(rest))) + ("" if rest != text else "?!")
    return kept(not missing, f"missing are {missing!r}" if missing else "all occur")


@measure
def ifbench_count_keywords_multiple(
    text: str, keyword1: Text, keyword2: Text, keyword3: Text, keyword4: Text, keyword5: Text
) -> Score:
    """1 if five keywords occur once, twice, three, five and seven times, in longer words too."""
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    seen = tuple(text.lower().count(keyword.lower()) for keyword in keywords)
    return kept(seen == TIMES, f"they occur {', '.join(map(str, seen))} times")


@measure
def ifbench_count_words_japanese(text: str, N: Count) -> Score:
    """1 if every N-th word between spaces is in Japanese; numbers may stand in its place."""
    places = [token.strip(MARKS) for token in text.split()[N - 1 :: N]]
    wrong = [word for word in places if word and not word.isdigit() and not JAPANESE.search(word)]
    return kept(not wrong, f"{len(wrong)} of {len(places)} places are not in Japanese")


@measure
def ifbench_words_repeats(text: str, small_n: Count) -> Score:
    """1 if no word stands more often than so many times."""
    word, times = next(iter(Counter(bare_words(text)).most_common(1)), ("", 0))
    return kept(times <= small_n, f"{word!r} stands {times} times, at most {small_n} asked for")
