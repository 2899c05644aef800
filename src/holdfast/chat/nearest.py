"""The words of a chat that are most like a text that it lacks, for messages."""

import difflib
import re
from collections.abc import Sequence

_MAX_WANTED = 200  # characters of an emphasised text that the search for the nearest match uses
_MAX_SEARCHED = 10_000  # characters of the messages that it searches; time grows with both
_MIN_RATIO = 0.6  # less is no match, as in difflib
# characters of a match, at most: some scripts write no spaces between words
_MAX_MATCH = 2 * _MAX_WANTED
# a word; in Chinese and Japanese, which write no spaces, a character
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+(?:[^\w\s]+\w+)*")


def nearest(wanted: str, texts: Sequence[str]) -> str:
    """The words of the texts that are most like `wanted`, as many as it has; "" if none are."""
    wanted, best, ratio, left = wanted[:_MAX_WANTED], "", _MIN_RATIO, _MAX_SEARCHED
    for whole in texts:
        text = whole[:left]
        left -= len(text)
        matcher = difflib.SequenceMatcher(
            None,
            text.casefold() if len(text.casefold()) == len(text) else text,
            wanted.casefold(),
            autojunk=False,
        )
        block = matcher.find_longest_match()  # finding all blocks may take minutes
        for part in _windows(text, block, len(_WORD.findall(wanted))):
            compared = difflib.SequenceMatcher(
                None, part.casefold(), wanted.casefold(), autojunk=False
            )
            if (alike := compared.ratio()) > ratio:
                best, ratio = part, alike
    return best


def _windows(text: str, block: difflib.Match, count: int) -> list[str]:
    """The runs of `count` words that overlap a block which the text shares with the wanted one,
    without punctuation around; the one that begins nearest to where that would begin is first.
    """
    first, last, aligned = block.a, block.a + block.size, block.a - block.b
    words = [match.span() for match in _WORD.finditer(text)]
    runs = zip(words, words[max(0, count - 1) :], strict=False)
    overlapping = [(begin[0], end[1]) for begin, end in runs if begin[0] < last and end[1] > first]
    overlapping.sort(key=lambda run: abs(run[0] - aligned))
    return [text[start:end] for start, end in overlapping if end - start <= _MAX_MATCH]
