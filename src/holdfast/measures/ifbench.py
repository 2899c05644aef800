"""The verifiable instructions of IFBench (Pyatkin et al. 2025, arXiv:2507.02833) that need neither
a trained tagger, nor a dictionary of sounds, nor another download: 39 of 58.

Each is a measure of its own that scores 0 or 1. Its name is the published id in our spelling
(`count:numbers` is `ifbench_count_numbers`), and its arguments have their published names. What
each accepts follows the published checkers, whose text was read and not copied; where these let
pass what their instruction forbids, ours follow the instruction and say so.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from itertools import pairwise

from holdfast.measures.arguments import Count, Number, Text
from holdfast.measures.content import EMOJI
from holdfast.measures.ifeval import compare, count_words
from holdfast.measures.registry import Score, measure, verdict
from holdfast.measures.text import closing_mark, listed, plural, sentences_of

MARKS = string.punctuation
WITHOUT_MARKS = str.maketrans("", "", MARKS)


def bare_words(text: str) -> list[str]:
    """The words between spaces, in lower case and without any ASCII punctuation."""
    return text.lower().translate(WITHOUT_MARKS).split()


def stripped_words(text: str) -> list[str]:
    """The words between spaces, in lower case and without punctuation around them."""
    return [word for token in text.lower().split() if (word := token.strip(MARKS))]


def sentences(text: str) -> list[str]:
    """The sentences, in which a new line ends none."""
    return sentences_of(" ".join(text.split()))


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
    reason = f"{seen} words, {min_words} to {max_words} asked for"
    return verdict(min_words <= seen <= max_words, reason)


@measure
def ifbench_count_unique_word_count(text: str, N: Count) -> Score:
    """1 for at least so many different words."""
    return compare(len(set(stripped_words(text))), "at least", N, "different word")


@measure
def ifbench_count_conjunctions(text: str, small_n: Count) -> Score:
    """1 for at least so many different conjunctions of for, and, nor, but, or, yet, so.

    "And" and "and," are one; the published checker takes them for two.
    """
    seen = CONJUNCTIONS.intersection(stripped_words(text))
    return compare(len(seen), "at least", small_n, "conjunction")


@measure
def ifbench_count_person_names(text: str, N: Count) -> Score:
    """1 for at least so many different names of the fifty that the instruction lists."""
    seen = sum(re.search(rf"\b{name}\b", text) is not None for name in NAMES)
    return compare(seen, "at least", N, "name")


@measure
def ifbench_count_numbers(text: str, N: Number) -> Score:
    """1 for exactly so many numbers in digits; "1,234.5" is one."""
    seen = len(re.findall(r"\d+", text.translate(WITHOUT_MARKS)))
    return verdict(seen == N, f"{seen} numbers, {N} asked for")


@measure
def ifbench_count_pronouns(text: str, N: Count) -> Score:
    """1 for at least so many personal and possessive pronouns."""
    seen = sum(word in PRONOUNS for word in bare_words(text.replace("/", " ")))
    return compare(seen, "at least", N, "pronoun")


@measure
def ifbench_count_punctuation(text: str) -> Score:
    """1 if . , ! ? ; : and an interrobang (?!) all occur, the interrobang beside the others."""
    rest = INTERROBANG.sub("", text, count=1)
    missing = "".join(sorted(STOPS - set(rest))) + ("" if rest != text else "?!")
    return verdict(not missing, f"missing are {missing!r}" if missing else "all occur")


@measure
def ifbench_count_keywords_multiple(
    text: str, keyword1: Text, keyword2: Text, keyword3: Text, keyword4: Text, keyword5: Text
) -> Score:
    """1 if five keywords occur once, twice, three, five and seven times, in longer words too."""
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    seen = tuple(text.lower().count(keyword.lower()) for keyword in keywords)
    return verdict(seen == TIMES, f"they occur {', '.join(map(str, seen))} times")


@measure
def ifbench_count_words_japanese(text: str, N: Count) -> Score:
    """1 if every N-th word between spaces is in Japanese; numbers may stand in its place."""
    places = [token.strip(MARKS) for token in text.split()[N - 1 :: N]]
    wrong = [word for word in places if word and not word.isdigit() and not JAPANESE.search(word)]
    return verdict(not wrong, f"{len(wrong)} of {len(places)} places are not in Japanese")


@measure
def ifbench_words_repeats(text: str, small_n: Count) -> Score:
    """1 if no word stands more often than so many times."""
    word, times = next(iter(Counter(bare_words(text)).most_common(1)), ("", 0))
    return verdict(times <= small_n, f"{word!r} stands {times} times, at most {small_n} asked for")


LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
THESIS = re.compile(r"<(i|em)>([^<]*)</\1>")
LETTERED = re.compile(r"\W*a\W*b\W*c", re.IGNORECASE)


@measure
def ifbench_format_options(text: str, options: Text) -> Score:
    """1 if the reply is one of the options and nothing else.

    Options are parted by "/", "or" or commas. Case and marks do not count, save for letters "a)".
    """
    separator = "/" if "/" in options else " or " if " or " in options else ","
    choices = [option.strip() for option in options.split(separator)]
    if LETTERED.match(options):
        return verdict(text in choices, f"the reply is {text[:40]!r}")
    bare = [option.strip(MARKS + " ").lower() for option in choices]
    return verdict(text.strip(MARKS + " \n").lower() in bare, f"the reply is {text.strip()[:40]!r}")


@measure
def ifbench_format_line_indent(text: str) -> Score:
    """1 if each line that is not blank is indented further than the one before."""
    lines = [line for line in text.split("\n") if line.strip()]
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    return verdict(all(a < b for a, b in pairwise(indents)), f"indents {str(indents[:8])[1:-1]}")


@measure
def ifbench_format_list(text: str, sep: Text) -> Score:
    """1 if the sign that stands for a bullet occurs at least twice."""
    seen = text.count(sep)
    return verdict(seen >= 2, f"{sep!r} occurs {seen} times")


@measure
def ifbench_format_thesis(text: str) -> Score:
    """1 for something in HTML italics (<i> or <em>) with text behind it."""
    thesis = THESIS.search(text)
    good = thesis and thesis[2].strip() and text[thesis.end() :].strip()
    return verdict(good, "there is a thesis" if good else "no <i>thesis</i> with text behind it")


@measure
def ifbench_format_sub_bullets(text: str) -> Score:
    """1 for bullets (*), each with a sub-bullet (-); at least one, which is ours to ask."""
    blocks = text.split("*")[1:]
    without = sum("-" not in block for block in blocks)
    return verdict(blocks and not without, f"{without} of {plural(len(blocks), 'bullet')} without")


@measure
def ifbench_format_no_bullets_bullets(text: str) -> Score:
    """1 for at least two sentences and then at least two bullets (*), and nothing else behind."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("*")), len(lines))
    number, bullets = len(sentences(" ".join(lines[:first]))), lines[first:]
    good = number >= 2 and len(bullets) >= 2 and all(line.startswith("*") for line in bullets)
    return verdict(good, f"{plural(number, 'sentence')}, then {plural(len(bullets), 'line')}")


@measure
def ifbench_format_output_template(text: str) -> Score:
    """1 if the labels "My Answer:", "My Conclusion:" and "Future Outlook:" occur."""
    missing = [label for label in LABELS if label not in text]
    return verdict(
        not missing, f"missing are {', '.join(missing)}" if missing else "all labels occur"
    )


@measure
def ifbench_ratio_sentence_type(text: str) -> Score:
    """1 for two statements to each question; there must be a question, which is ours to ask."""
    marks = [closing_mark(sentence) for sentence in sentences(text)]
    statements, questions = marks.count("."), marks.count("?")
    return verdict(
        questions and statements == 2 * questions,
        f"{plural(statements, 'statement')}, {plural(questions, 'question')}",
    )


@measure
def ifbench_ratio_sentence_balance(text: str) -> Score:
    """1 for as many statements as questions as exclamations; one of each is ours to ask."""
    marks = [closing_mark(sentence) for sentence in sentences(text)]
    seen = [marks.count(mark) for mark in ".?!"]
    return verdict(
        seen[0] and len(set(seen)) == 1, f"{seen[0]}, {seen[1]} and {seen[2]} of the kinds"
    )


@measure
def ifbench_ratio_sentence_words(text: str) -> Score:
    """1 for three sentences of the same length in characters that share no word.

    The published checker does not look at the words.
    """
    parts = sentences(text)
    words = [word for sentence in parts for word in set(bare_words(sentence))]
    return verdict(
        len(parts) == 3 and len(set(map(len, parts))) == 1 and len(set(words)) == len(words),
        f"{plural(len(parts), 'sentence')} of {', '.join(str(len(part)) for part in parts[:4])}",
    )


@measure
def ifbench_words_last_first(text: str) -> Score:
    """1 if the last word of each sentence is the first of the next; two sentences at least."""
    parts = [words for sentence in sentences(text) if (words := stripped_words(sentence))]
    wrong = sum(a[-1] != b[0] for a, b in pairwise(parts))
    return verdict(
        len(parts) > 1 and not wrong, f"{wrong} of {len(parts)} sentences go on otherwise"
    )


@measure
def ifbench_sentence_alliteration_increment(text: str) -> Score:
    """1 if each sentence has more alliterating neighbours than the one before."""
    seen = [alliterating(stripped_words(sentence)) for sentence in sentences(text)]
    grows = all(a < b for a, b in pairwise(seen))
    return verdict(seen and grows, f"alliterating words: {', '.join(map(str, seen))}")


def alliterating(words: list[str]) -> int:
    """How many words begin like a neighbour."""
    same = [a[0] == b[0] for a, b in pairwise(words)]
    return sum(before or after for before, after in pairwise([False, *same, False]))


@measure
def ifbench_sentence_keyword(text: str, word: Text, N: Count) -> Score:
    """1 if the N-th sentence has the keyword, in longer words too."""
    parts = sentences(text)
    seen = len(parts) >= N and word.lower() in parts[N - 1].lower()
    return verdict(seen, f"{plural(len(parts), 'sentence')}, {word!r} asked for in number {N}")


@measure
def ifbench_sentence_increment(text: str, small_n: Count) -> Score:
    """1 if each sentence has exactly so many words more than the one before."""
    seen = [len(bare_words(sentence)) for sentence in sentences(text)]
    return verdict(
        seen and all(b - a == small_n for a, b in pairwise(seen)),
        f"words: {', '.join(map(str, seen))}",
    )


@measure
def ifbench_format_emoji(text: str) -> Score:
    """1 if an emoji ends each sentence, before its stop or behind it."""
    parts = sentences(text)
    wrong = sum(not ends_with_emoji(sentence) for sentence in parts)
    return verdict(
        parts and not wrong, f"{wrong} of {plural(len(parts), 'sentence')} without an emoji"
    )


def ends_with_emoji(sentence: str) -> bool:
    """Whether an emoji stands behind the last word."""
    end = max((i for i, character in enumerate(sentence) if character.isalnum()), default=-1)
    return EMOJI.search(sentence[end + 1 :]) is not None


PAIRS = {")": "(", "]": "[", "}": "{"}
BRACKETS, QUOTES = 5, 3  # levels that are asked for


@measure
def ifbench_format_parentheses(text: str) -> Score:
    """1 for brackets in brackets, at least five levels deep and closed again."""
    return compare(deepest_closed(text), "at least", BRACKETS, "level")


def deepest_closed(text: str) -> int:
    """The most brackets open at a time in a group of which the innermost was closed rightly."""
    stack: list[str] = []
    depth = deepest = 0
    for character in text:
        if character in PAIRS.values():
            stack.append(character)
            depth = max(depth, len(stack))
        elif character in PAIRS:
            if stack and stack[-1] == PAIRS[character]:
                stack.pop()
                deepest = max(deepest, depth)
            else:
                stack, depth = [], 0
        if not stack:
            depth = 0
    return deepest


@measure
def ifbench_format_quotes(text: str) -> Score:
    """1 for quotations in quotations, at least three levels deep, " and ' in turn.

    An apostrophe opens a quotation, as published.
    """
    stack: list[str] = []
    depth = 0
    for character in text:
        if stack and character == stack[-1]:
            stack.pop()
            if depth - len(stack) >= QUOTES:
                return verdict(True, f"{depth} levels")
        elif character in "\"'":
            stack.append(character)
            depth = max(depth, len(stack))
    return verdict(False, f"{depth} levels opened, at least {QUOTES} to be closed")


@measure
def ifbench_format_quote_unquote(text: str) -> Score:
    """1 if no quotation follows another, and none ends the reply."""
    body = "".join(text.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
    end = body.rstrip(MARKS.replace('"', "") + "0123456789")
    return verdict('""' not in body and not end.endswith('"'), f"ends with {end[-20:]!r}")


CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
PALINDROMES, LETTERS = 10, 5  # at least so many, of at least so many letters


@measure
def ifbench_words_alphabet(text: str) -> Score:
    """1 if each word begins with the letter after that of the word before; A follows Z."""
    firsts = [word[0] for word in bare_words(text)]
    letters = string.ascii_lowercase
    steps = [b == letters[(letters.find(a) + 1) % 26] for a, b in pairwise(firsts)]
    return verdict(
        firsts and firsts[0] in letters and all(steps),
        f"{sum(steps)} of {len(steps)} words go on in the alphabet",
    )


@measure
def ifbench_words_vowel(text: str) -> Score:
    """1 for one paragraph with at most three of the vowels a, e, i, o, u."""
    lines, vowels = text.strip().count("\n") + 1, set("aeiou") & set(text.lower())
    return verdict(lines == 1 and len(vowels) <= 3, f"{lines} lines, {len(vowels)} vowels")


@measure
def ifbench_words_consonants(text: str) -> Score:
    """1 if each word between spaces has two consonants side by side."""
    words = text.lower().split()
    without = [word for word in words if not CLUSTER.search(word)]
    return verdict(not without, f"{len(without)} of {len(words)} words have no two consonants")


@measure
def ifbench_words_palindrome(text: str) -> Score:
    """1 for at least ten palindromes of at least five letters."""
    seen = sum(len(word) >= LETTERS and word == word[::-1] for word in bare_words(text))
    return compare(seen, "at least", PALINDROMES, "palindrome")


@measure
def ifbench_words_prime_lengths(text: str) -> Score:
    """1 if the length of each word is a prime number."""
    lengths = [len(word) for word in bare_words(text)]
    other = [n for n in lengths if n < 2 or not all(n % k for k in range(2, int(n**0.5) + 1))]
    return verdict(not other, f"{len(other)} of {len(lengths)} lengths are not prime")


@measure
def ifbench_words_no_consecutive(text: str) -> Score:
    """1 if no two words side by side begin with the same letter."""
    firsts = [word[0] for word in bare_words(text)]
    same = sum(a == b for a, b in pairwise(firsts))
    return verdict(not same, f"{same} neighbours begin alike")


@measure
def ifbench_words_words_position(text: str, keyword: Text) -> Score:
    """1 if the second word and the second to last are the keyword.

    Marks are no words; to the published checker the last full stop is one.
    """
    words = stripped_words(text)
    seen = {words[1], words[-2]} if len(words) > 1 else set()
    return verdict(
        seen == {keyword.lower()}, f"there stands {', '.join(sorted(seen)) or 'nothing'}"
    )


@measure
def ifbench_words_paragraph_last_first(text: str) -> Score:
    """1 if each line ends with the word that it begins with."""
    lines = [words for line in text.split("\n") if (words := stripped_words(line))]
    wrong = sum(words[0] != words[-1] for words in lines)
    return verdict(lines and not wrong, f"{wrong} of {len(lines)} lines end with another word")


@measure
def ifbench_format_newline(text: str) -> Score:
    """1 if each word stands in a line of its own."""
    lines = [line for line in text.translate(WITHOUT_MARKS).split("\n") if line.strip()]
    longest = max((len(line.split()) for line in lines), default=0)
    return verdict(longest == 1, f"{longest} words in the longest line")


@measure
def ifbench_format_title_case(text: str) -> Score:
    """1 if no word begins with a small letter; "a" alone may be one."""
    small = re.findall(r"(?<![^\W_])(?<!['’])[a-z][^\W_]+", text)
    return verdict(not small, f"{len(small)} words begin with a small letter")


@measure
def ifbench_format_no_whitespace(text: str) -> Score:
    """1 for a reply without a space, tab or new line, also around it."""
    seen = sum(map(str.isspace, text))
    return verdict(not seen, f"{seen} characters of whitespace")
