"""Splits texts into words and sentences, as every measure counts them.

    words_of("Don't pay $15,000.") -> ["Don't", "pay", "15,000"]
    sentences_of("Ask Dr. Lee. He knows...") -> ["Ask Dr. Lee.", "He knows..."]

A word is a run of letters or digits, joined by apostrophes or hyphens ("don't" and "well-known" are
one word each); a number with commas or a decimal point ("15,000", "3.14") is one word.

A sentence ends

- at '.', '!' or '?', or their like in other scripts ('।', '؟', '։'), before a space or the end, but
  not after an abbreviation, an initial or an ordinal number ("3. Mai"), nor in a quotation after
  which it continues in lower case;
- at a full stop of Chinese or Japanese ('。', '！', '？'), except before a closing bracket;
- at dots ("..." or "…") only if the next word is capitalised and is not 'I'; otherwise they are a
  pause;
- at a new line, unless that continues in lower case.

List markers are not part of any sentence.
"""

import re
import unicodedata
from collections.abc import Iterator

WORD = re.compile(r"[^\W_]+(?:['’‐‑-][^\W_]+|(?<=\d)[.,](?=\d)[^\W_]+)*")

_FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")  # as in "Ａ１"
LIST_MARKER = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,3}[.)])[ \t]+")  # "- ", "2. "

# --- The ends of sentences

_MARKS = ".!?…؟۔।॥։።။។"
# "?", "...", and with the quotation marks and brackets after it: '!"', ".)"
_STOP = re.compile(rf"(?<![{_MARKS}])[{_MARKS}]++[\"'”’)\]»*_]*+(?=\s|$)|[。！？]+(?![」』）])")
_DOTS = re.compile(r"[.…]{2,}|…")
_QUOTED_STOP = re.compile(r"[.!?…]+[\"'”’)\]»]+")  # '!"'
_PRONOUN_I = re.compile(r"I(?![^\W_])")  # "I" and "I'm", not "It"
_WORD_BEFORE_DOT = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")  # "Dr" and "e.g" before their last dot
_OPENING_MARKS = " \t\"'“‘(*_"  # may precede the first word of a sentence
# Abbreviations without the last dot: more text always follows the first ("Dr. Lee", "e.g. this"),
# and the second may end a sentence.
NEVER_LAST = frozenset(
    "mr mrs ms dr prof st vs e.g i.e approx mme sra sr uds bzw ca evtl ggf inkl nr bijv".split()
)
MAY_BE_LAST = frozenset("etc a.m p.m u.s u.k inc jr".split())
# abbreviations of several words, in German, Dutch and the Romance languages
_SEVERAL_WORDS = re.compile(
    r"(?<![\w.])(?:z\. ?[BT]|d\. ?h|u\. ?[aU]|o\. ?ä|i\. ?d\. ?R|[nv]\. ?Chr|b\. ?v|d\. ?w\. ?z"
    r"|p\. ?ej|p\. ?ex|EE\. ?UU|P\. ?D)\."
)
# what follows an ordinal number, as in "3. Mai"
_AFTER_ORDINAL = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|Jahrhundert|Klasse|Stock)\b"
)
_LOOKBEHIND = 12  # characters before a dot that are searched for a word
_LOOKAHEAD = 40  # characters after a stop that are searched for a word


def words_of(text: str) -> list[str]:
    """Returns the words of a text as they are written."""
    return WORD.findall(text)


def fold(text: str) -> str:
    """Removes case, typographic apostrophes and full width, to compare a text with others."""
    if _FULL_WIDTH.search(text):
        text = _FULL_WIDTH.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
    return text.casefold().replace("’", "'").replace("‘", "'").replace("i\u0307", "i")


def without_accents(text: str) -> str:
    """Removes the accents of letters: "über" is "uber"."""
    signs = unicodedata.normalize("NFD", text)
    return "".join(sign for sign in signs if not unicodedata.combining(sign))


def folded_words(text: str) -> list[str]:
    """Returns the words of a text without case and typographic apostrophes."""
    return WORD.findall(fold(text))


def lines_of(text: str) -> list[str]:
    """Returns the lines that are not blank, stripped."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def sentences_of(text: str) -> list[str]:
    """Splits a text into sentences; a piece without a word ("!!") joins the sentence before."""
    sentences: list[str] = []
    for piece in _pieces_of(text):
        if WORD.search(piece):
            sentences.append(piece)
        elif piece and sentences:
            sentences[-1] += " " + piece
    return sentences


def _pieces_of(text: str) -> Iterator[str]:
    """Yields the text up to each end of a sentence, and the rest of each block of lines."""
    for block in _join_lines(text):
        start = 0
        abbreviations = [match.span() for match in _SEVERAL_WORDS.finditer(block)]
        for stop in _STOP.finditer(block):
            if any(begin < stop.start() < end for begin, end in abbreviations):
                continue
            if _is_sentence_end(block, stop):
                yield block[start : stop.end()].strip()
                start = stop.end()
        yield block[start:].strip()


def _join_lines(text: str) -> list[str]:
    """Removes list markers, and joins a line that begins in lower case to the one before."""
    blocks: list[str] = []
    after_blank = True
    for raw in text.splitlines():
        line = LIST_MARKER.sub("", raw).strip()
        has_marker = line != raw.strip()
        continues = (
            not after_blank
            and not has_marker
            and line[:1].islower()
            and blocks[-1][-1:] not in ".!?…:"
        )
        if continues:
            blocks[-1] += " " + line
        elif line:
            blocks.append(line)
        after_blank = not line
    return blocks


def _is_sentence_end(block: str, stop: re.Match[str]) -> bool:
    """Whether a stop ends a sentence, and not an abbreviation, initial, pause or quotation."""
    mark = stop.group()
    after = block[stop.end() : stop.end() + _LOOKAHEAD]
    if mark == ".":
        word = _WORD_BEFORE_DOT.search(block, max(0, stop.start() - _LOOKBEHIND), stop.start())
        if word is not None:
            return _ends_after_word(word.group(), after.lstrip())
        is_number = block[: stop.start()][-1:].isdecimal()
        return not (is_number and _AFTER_ORDINAL.match(after.lstrip()))
    next_word = after.lstrip(_OPENING_MARKS)
    if _DOTS.match(mark) and next_word:
        return _ends_after_dots(next_word)
    return not (_QUOTED_STOP.match(mark) and next_word[:1].islower())


def _ends_after_dots(next_word: str) -> bool:
    """Whether dots end a sentence; before "I", which is always a capital, they are a pause."""
    return next_word[0].isupper() and not _PRONOUN_I.match(next_word)


def _ends_after_word(word: str, after: str) -> bool:
    """Whether the dot after `word`, which may be an abbreviation or initial, ends a sentence."""
    folded = word.casefold()
    is_initial = len(folded) == 1 and word.isupper() and folded != "i"
    if folded in NEVER_LAST or is_initial:
        return not after
    return folded not in MAY_BE_LAST or not after[:1].islower()


def closing_mark(sentence: str) -> str:
    """Returns the mark at the end of a sentence, as "?", "!" or "."; "" if there is none.

    Quotation marks and emojis after it are ignored.
    """
    for character in reversed(sentence):
        if character in f"{_MARKS}。！？":
            return {"！": "!", "？": "?", "؟": "?", "!": "!", "?": "?"}.get(character, ".")
        if character.isalnum():
            break
    return ""
