"""The tokens of a clause: words, code spans, brackets and marks.

For example:

    "Use `a, b` (not c) - please" -> read_tokens -> Use | `a, b` | (not c) | - | please
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"`[^`]*`|\((?:[^()`]|`[^`]*`)*\)"  # a code span, brackets
    r"|(?<=\s)[-–—]{1,2}(?=\s)|[,;:](?=[\s`]|$)"  # marks
    r"|(?:[^\s`(),;:]|[,;:](?![\s`]|$))+|[`()]"  # a word, or a mark without its pair
)


class ClauseToken(NamedTuple):
    """A word, a code span, a pair of brackets or a mark of a text.

    Args:
        text: as it is written.
        word: in lower case, without marks around it; "" for code and brackets.
        start: where it begins in the text.
        end: where it ends.
    """

    text: str
    word: str
    start: int
    end: int

    @property
    def is_code(self) -> bool:
        return self.text.startswith("`") and len(self.text) > 1


def read_tokens(text: str) -> list[ClauseToken]:
    """The tokens of a text.

    >>> [token.text for token in read_tokens("Use `a, b` (not c), please")]
    ['Use', '`a, b`', '(not c)', ',', 'please']
    """
    tokens: list[ClauseToken] = []
    for match in _TOKEN.finditer(text):
        word = ""
        if match[0][0] not in "`(":
            word = match[0].lower().replace("’", "'").strip('"“”').rstrip(".!?")
        tokens.append(ClauseToken(match[0], word, match.start(), match.end()))
    return tokens


class ClauseWords(NamedTuple):
    """A text with its tokens and their words."""

    text: str
    tokens: list[ClauseToken]
    words: list[str]

    def word(self, position: int) -> str:
        """The word of a token; "" for code and brackets, and after the last token."""
        return self.words[position] if position < len(self.words) else ""

    def text_between(self, start: int, end: int) -> str:
        """The text from one token up to another."""
        if start >= end:
            return ""
        begin = self.tokens[start].start
        return self.text[begin : self.tokens[end - 1].end].strip(" ,").rstrip(".")

    def slice(self, start: int, end: int) -> "ClauseWords":
        """The tokens from one up to another."""
        return self._replace(tokens=self.tokens[start:end], words=self.words[start:end])


def clause_words(text: str) -> ClauseWords:
    """A text with its tokens."""
    tokens = read_tokens(text)
    return ClauseWords(text, tokens, [token.word for token in tokens])
