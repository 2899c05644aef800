"""Finds the words of a chat that are most like a text that it lacks, for error messages.

find_nearest("be kin", ["Please be kind."]) == "be kind"
"""

import difflib
import re
from collections.abc import Sequence

# The time of a search grows with both of these limits.
_MAX_SOUGHT = 200  # characters of the text that is sought
_MAX_SEARCHED = 10_000  # characters of the texts that are searched
_MAX_MATCH = 2 * _MAX_SOUGHT  # characters; some scripts write no spaces between words
_MIN_RATIO = 0.6  # less similar words are no match, as in difflib
# a word; in Chinese and Japanese, which write no spaces, a character
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+(?:[^\w\s]+\w+)*")


def find_nearest(sought: str, texts: Sequence[str]) -> str:
    """Finds the run of words in the texts that is most like `sought` and has the same number of
    words; returns "" if none is similar.
    """
    sought = sought[:_MAX_SOUGHT]
    sought_folded = sought.casefold()
    num_words = len(_WORD.findall(sought))
    best = ""
    best_ratio = _MIN_RATIO
    characters_left = _MAX_SEARCHED
    for whole_text in texts:
        text = whole_text[:characters_left]
        characters_left -= len(text)
        searched = text.casefold()
        if len(searched) != len(text):  # its positions would not be those of the text
            searched = text
        matcher = difflib.SequenceMatcher(None, searched, sought_folded, autojunk=False)
        block = matcher.find_longest_match()  # finding all blocks may take minutes
        for run in _runs_of_words(text, block, num_words):
            matcher = difflib.SequenceMatcher(None, run.casefold(), sought_folded, autojunk=False)
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best = run
                best_ratio = ratio
    return best


def _runs_of_words(text: str, block: difflib.Match, count: int) -> list[str]:
    """The runs of `count` words that overlap a block shared with the sought text, without
    surrounding punctuation.

    Those that begin nearest to where the sought text would begin, if the block were part of it, are
    first.
    """
    block_end = block.a + block.size
    words = [match.span() for match in _WORD.finditer(text)]
    runs = [
        (first_word[0], last_word[1])
        for first_word, last_word in zip(words, words[max(0, count - 1) :], strict=False)
    ]
    overlapping = [(start, end) for start, end in runs if start < block_end and end > block.a]
    overlapping.sort(key=lambda run: abs(run[0] - (block.a - block.b)))
    return [text[start:end] for start, end in overlapping if end - start <= _MAX_MATCH]
