"""Words and sentences, as every measure counts them.

A word is a run of letters or digits, joined by apostrophes or hyphens ("don't" and "well-known" are
one word each, and so is "15,000"). A sentence ends at '.', '!' or '?' before a space or the end,
but not after an abbreviation or an initial, nor in a quotation after which it continues in lower
case. Dots ("..." or "…") are a pause: they end a sentence only if the next word is capitalised and
is not 'I'. A new line also ends a sentence, unless it continues in lower case. List markers are not
part of any sentence.
"""

import re


def listed(words: str) -> tuple[str, ...]:
    """A list of words written in one string."""
    return tuple(words.split())


WORD = re.compile(r"[^\W_]+(?:['’‐‑-][^\W_]+|(?<=\d)[.,](?=\d)[^\W_]+)*")
MARKER = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,3}[.)])[ \t]+")
SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]»*_]*+(?=\s|$)|[。！？]+")
NEVER_LAST = frozenset(
    listed("mr mrs ms dr prof st vs e.g i.e approx mme sra")
)  # a name or more follows
MAY_BE_LAST = frozenset(listed("etc a.m p.m u.s u.k inc jr"))
DOTS = re.compile(r"[.…]{2,}|…")
QUOTED_END = re.compile(r"[.!?…]+[\"'”’)\]»]+")
FIRST_PERSON = re.compile(r"I(?![^\W_])")
BEFORE_DOT = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")


def words_of(text: str) -> list[str]:
    """The words of a text, as they are written."""
    return WORD.findall(text)


def fold(text: str) -> str:
    """The text without case and typographic apostrophes, for comparing."""
    return text.casefold().replace("’", "'").replace("‘", "'")


def folded_words(text: str) -> list[str]:
    """The words of a text without case and typographic apostrophes."""
    return WORD.findall(fold(text))


def lines_of(text: str) -> list[str]:
    """The lines that are not blank, stripped."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; pieces without a word ("!!", an emoji) belong to the one before."""
    sentences: list[str] = []
    for block in joined_lines(text):
        start = 0
        for end in SENTENCE_END.finditer(block):
            if not is_sentence_end(block, end):
                continue
            add_sentence(sentences, block[start : end.end()])
            start = end.end()
        add_sentence(sentences, block[start:])
    return sentences


def joined_lines(text: str) -> list[str]:
    """The lines without list markers; one that continues in lower case joins the one before."""
    blocks: list[str] = []
    joinable = False
    for raw in text.splitlines():
        line = MARKER.sub("", raw).strip()
        continues = (
            joinable
            and line[:1].islower()
            and line == raw.strip()
            and blocks[-1][-1:] not in ".!?…:"
        )
        if continues:
            blocks[-1] += " " + line
        elif line:
            blocks.append(line)
        joinable = bool(line)
    return blocks


def is_sentence_end(block: str, end: re.Match[str]) -> bool:
    """Whether a stop ends a sentence, and not an abbreviation, initial, pause or quotation."""
    follows = block[end.end() : end.end() + 40].lstrip(" \t\"'“‘(*_")
    if DOTS.match(end.group()) and follows:
        return follows[0].isupper() and not FIRST_PERSON.match(follows)
    if QUOTED_END.match(end.group()) and follows[:1].islower():
        return False
    if not end.group().startswith(".") or len(end.group()) > 1:
        return True
    before = BEFORE_DOT.search(block, max(0, end.start() - 12), end.start())
    if before is None:
        return True
    word = before.group().casefold()
    after = block[end.end() : end.end() + 40].lstrip()
    if word in NEVER_LAST or (len(word) == 1 and before.group().isupper() and word != "i"):
        return not after
    return word not in MAY_BE_LAST or not after[:1].islower()


def add_sentence(sentences: list[str], piece: str) -> None:
    """Appends a piece, or joins it to the sentence before if it holds no word."""
    piece = piece.strip()
    if WORD.search(piece):
        sentences.append(piece)
    elif piece and sentences:
        sentences[-1] += " " + piece


def closing_mark(sentence: str) -> str:
    """The mark a sentence ends with ('?', '!', '.'), quotes and emojis aside; '' if none."""
    for character in reversed(sentence):
        if character in ".!?…。！？":
            return {"。": ".", "！": "!", "？": "?", "…": "."}.get(character, character)
        if character.isalnum():
            break
    return ""


def plural(number: int, noun: str) -> str:
    """A number with its noun: "1 word", "2 words"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


ONES = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
TENS = listed("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
SCALES = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1000, "thousand"),
    (100, "hundred"),
)

READ = {word: value for value, word in enumerate(ONES)}
READ |= {word: 10 * value for value, word in enumerate(TENS) if value > 1}
READ |= {word: value for value, word in SCALES}


def spell(number: int) -> list[str]:
    """The words of a whole number, without hyphens and 'and': 97 is ['ninety', 'seven']."""
    for value, word in SCALES:
        if number >= value:
            rest = number % value
            return [*spell(number // value), word, *(spell(rest) if rest else [])]
    if number < 20:
        return [ONES[number]]
    return [TENS[number // 10], *(spell(number % 10) if number % 10 else [])]
