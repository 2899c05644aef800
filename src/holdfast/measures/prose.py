"""The prose of a text, and its sentences: without code, headings, tables and short list items.

For example, of this text only "Run it twice." is a sentence:

    ## Usage
    Run it twice.
    - npm test
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from holdfast.measures.text import LIST_MARKER, closing_mark, sentences_of, words_of

_CODE_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"`[^`\n]+`")  # "`npm test`"
_NO_SENTENCE = re.compile(
    r"[ \t]*(?:#{1,6}[ \t].*|\|.*\|[ \t]*|[-*_=]{3,}[ \t]*)"  # "## Usage", "| a | b |", "---"
)
_LABEL = re.compile(r"[ \t]*[*_]*\w+[*_]*:[*_]*[ \t]*")  # "Sources:", above a list
_MIN_WORDS_OF_ITEM = 5  # without a closing mark, an item of a list with fewer is no sentence


def prose_of(text: str) -> str:
    """Returns the lines of a text that are neither in code blocks nor headings nor tables."""
    lines = _without_indented_code(_CODE_BLOCK.sub("\n", text).splitlines())
    return "\n".join(line for line in lines if not _NO_SENTENCE.fullmatch(line))


def prose_sentences_of(text: str) -> list[str]:
    """Returns the sentences of a text. Lines of code, headings and tables are none, nor are short
    items of a list, unless the text has nothing else.
    """
    lines: list[str] = []
    lines_without_phrases: list[str] = []
    raw_lines = _without_indented_code(_CODE_BLOCK.sub("\n", text).splitlines())
    for line, following in pairwise([*raw_lines, ""]):
        is_label = _LABEL.fullmatch(line) and LIST_MARKER.match(following)
        plain = "" if is_label or _NO_SENTENCE.fullmatch(line) else _CODE.sub("code", line)
        item = LIST_MARKER.sub("", plain)
        is_short = len(words_of(item)) < _MIN_WORDS_OF_ITEM and not closing_mark(item)
        lines.append(plain)
        lines_without_phrases.append("" if item != plain and is_short else plain)
    sentences = sentences_of("\n".join(lines_without_phrases))
    return sentences or sentences_of("\n".join(lines))


def _without_indented_code(lines: list[str]) -> Iterator[str]:
    """Yields the lines, with empty ones in place of code that four spaces mark, below a blank line
    and outside of lists.
    """
    is_after_blank = True
    is_code = False
    is_in_list = False
    for line in lines:
        is_indented = line.startswith(("    ", "\t"))
        if line.strip():
            is_code = is_indented and not is_in_list and (is_after_blank or is_code)
            is_in_list = bool(LIST_MARKER.match(line)) or (is_in_list and is_indented)
        is_after_blank = not line.strip()
        yield "" if is_code else line
