"""Reads a rules file (AGENTS.md, CLAUDE.md, .cursorrules, .mdc, a prompt) into its statements.

    ## Commits                     -> Statement(1, "Commits", Element.HEADING)
    - **Style**: be `brief`. Sign. -> Statement(2, "be `brief`.", label="Style", under=("Commits",))
                                      Statement(2, "Sign.", under=("Commits",))

Markdown is read as far as rules need it: headings, lists and what introduces them, code blocks,
tables, quotations and comments. The text of a statement keeps its code spans and loses all other
marks.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import islice, zip_longest
from typing import NamedTuple

from holdfast.drafting.table_rows import TableRow, rules_of_row
from holdfast.measures.number_words import NUMBER_WORDS

# --- The lines that begin something

_ITEM = re.compile(r"^(\s*)(?:[-*+•]|(\d{1,3}[.)]))\s+(?:\[[ xX]\]\s+)?(.*)$")
_FENCE = re.compile(r"^\s*(?:[-*+]\s+)?(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_BOLD_LINE = re.compile(r"^\s*(?:\*\*|__)([^*_]+)(?:\*\*|__):?\s*$")
_RULER = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_TAG = re.compile(r"^\s*<(/?)([A-Za-z][\w-]*)[^<>]*>\s*$")
# a quoted line that is an order rather than a quotation: "> **Important:** never ...", "> [!NOTE]"
_ADMONITION = re.compile(
    r"^\s*>\s*(?:\[!\w+\]|[\u2139\u26a0\u26d4\u2757\u274c\U0001f4a1\U0001f4cc\U0001f512\U0001f6a8"
    r"\U0001f6d1]|(?:\*\*|__)?(?:IMPORTANT|CRITICAL|WARNING|CAUTION|NOTE|MANDATORY)\b"
    r"|(?:\*\*|__)(?:important|critical|warning|caution|note|rule|do not|don['’]t|never|always"
    r"|must)\b)",
    re.I,
)
_QUOTED = re.compile(r"^\s*>\s?(?:\[!\w+\]\s*)?")
_ENDS = re.compile(r"[.!?:;][\"'”’)*_]*$")
# a line that has so many may continue on the next one, however that begins
_MIN_WRAPPED_CHARACTERS = 60
_MAX_BOLD_HEADING_WORDS = 5
_BOLD_HEADING_LEVEL = 7  # below all levels that Markdown has
_NUMBERED_HEADING_LEVEL = 6
_MAX_INTRODUCTION_WORDS = 12  # a longer paragraph does not introduce the list below it

# --- Sentences, labels and links

# between two sentences
_BREAK = re.compile(r"(?<=[.!?])[\"'”’)*_]*\s+(?=[^\sa-z»])")
# "e.g. GitHub", "Mr. Smith", "resp. German"
ABBREVIATIONS = (
    *("e.g", "i.e", "etc", "vs", "cf", "approx", "incl", "excl", "resp", "ca", "bzw", "z.B", "d.h"),
    *("Mr", "Mrs", "Ms", "Dr", "Prof"),
)
_ABBREVIATED = re.compile(
    rf"(?:\b(?:{'|'.join(map(re.escape, ABBREVIATIONS))})\.|\.\.\.)$", re.IGNORECASE
)
# "max. 40 words" and "rule no. 4", but not "40 words max." before another amount
_ABBREVIATED_BEFORE_NUMBER = re.compile(r"\b(?:max|min|no)\.$", re.IGNORECASE)
_AMOUNT = re.compile(rf"(?:\d|\b(?:{'|'.join(NUMBER_WORDS)})\b)[^,;:]*$", re.IGNORECASE)
_MAX_ABBREVIATION_CHARACTERS = 12  # with a few characters before it, to tell a word apart
_MAX_CHARACTERS_OF_AMOUNT = 60
# "**Commits:** ..." and "Commits: ..."
_LABEL = re.compile(r"^(?:\*\*|__)([^*_`]{1,60}?)(?::(?:\*\*|__)|(?:\*\*|__)\s*[:—–-])\s*(?=\S)")
_PLAIN_LABEL = re.compile(r"^([A-Z][\w/&-]*(?: [\w/&+-]+){0,3}):\s+(?=\S)")
# a code span, which is kept as it is, or a link, whose text is kept
_LINK = re.compile(r"(`[^`]*`)|!?\[((?:`[^`]*`|[^\]`])*)\]\([^()`]*\)")


class Element(Enum):
    """The element of Markdown that a statement is."""

    SENTENCE = "a sentence"
    HEADING = "a heading"
    CODE = "a code block"
    TABLE = "a table"
    QUOTATION = "a quotation"
    EXAMPLE = "an example"
    COMMENT = "a comment"
    METADATA = "metadata"


@dataclass(frozen=True)
class Statement:
    """A sentence of a rules file, or a line that is not a sentence.

    Args:
        line: the number of the line on which it begins.
        text: without list marks, emphasis and links; code keeps its backticks.
        label: the words before the first colon, if they only name the subject: "**Commits:** ...".
        under: the headings and the introductions of lists above it, outermost first.
        following: the next two sentences of its paragraph, and the items nested below it; of a
            heading, the first two sentences of the paragraph below it.
        opening: the first sentence of its list item; "" if it is that sentence, or in no list.
        block: the lines of the code block that it introduces.
        earlier_items: the items before it in its list; () if it is in none.
        later_items: the items after it.
        is_numbered: whether its list has numbers, as that of steps has.
        document: the whole file, which may tell the language that a line is about.
    """

    line: int
    text: str
    element: Element = Element.SENTENCE
    label: str = ""
    under: tuple[str, ...] = ()
    following: str = ""
    opening: str = ""
    block: tuple[str, ...] = ()
    earlier_items: tuple[str, ...] = ()
    later_items: tuple[str, ...] = ()
    is_numbered: bool = False
    document: str = field(default="", repr=False, compare=False)

    @property
    def context(self) -> str:
        """The text with the label and the headings above it, which may say what it is about."""
        return " ".join((self.text, self.label, *self.under))


class _Line(NamedTuple):
    """A line of a file, and its number."""

    number: int
    text: str


@dataclass
class _Block:
    """A heading, a paragraph, an item of a list, or a line of something else.

    Args:
        is_step: whether it is an item with a number.
        level: of a heading.
        code: the lines of the code block right below it.
    """

    lines: list[_Line]
    element: Element = Element.SENTENCE
    indent: int = 0
    is_item: bool = False
    is_step: bool = False
    level: int = 0
    code: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @cached_property
    def plain(self) -> str:
        """The text without marks, once all lines are read."""
        return _without_marks(self.text)


class _Above(NamedTuple):
    """A line above a block: a heading with its level, or another block with its indent."""

    depth: int
    text: str


class _Sentence(NamedTuple):
    """A sentence of a paragraph, and where it begins there."""

    position: int
    text: str


# --- The statements of a file


def read_statements(text: str) -> list[Statement]:
    """The statements of a rules file, in order."""
    blocks = _read_blocks([line.rstrip("\r") for line in text.split("\n")])
    statements: list[Statement] = []
    headings: list[_Above] = []
    parents: list[_Above] = []  # items and introductions
    columns: list[str] = []  # of the table that is being read
    for number, block in enumerate(blocks):
        columns = _columns(block, columns)
        if block.element is Element.HEADING:
            headings = [heading for heading in headings if heading.depth < block.level]
            parents = []
        elif block.element is Element.SENTENCE:
            parents = [parent for parent in parents if _is_inside(block, parent.depth)]
        under = tuple(above.text for above in (*headings, *parents))
        if block.element is Element.HEADING:
            headings.append(_Above(block.level, _without_marks(block.text)))
            nested = _paragraph_below(blocks, number)
        else:
            nested = _nested_text(blocks, number)
        of_row = _statements_of_row(block, columns, under) if columns else []
        earlier, later = _items_around(blocks, number) if block.is_item else ((), ())
        statements += (
            replace(
                statement,
                earlier_items=earlier,
                later_items=later,
                is_numbered=block.is_step,
                document=text,
            )
            for statement in of_row or _statements_of_block(block, under, nested)
        )
        if block.element is Element.SENTENCE:
            plain = block.plain
            if block.is_item or plain.endswith(":") or _may_introduce_a_list(plain):
                depth = block.indent if block.is_item else block.indent - 1
                parents.append(_Above(depth, plain))
    return statements


# --- Rows of tables


def _cells(block: _Block) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in block.text.strip().strip("|").split("|")]


def _columns(block: _Block, columns: list[str]) -> list[str]:
    """The headers of the table that a block is a row of; [] if it is none."""
    return [] if block.element is not Element.TABLE else columns or _cells(block)


def _statements_of_row(
    block: _Block, columns: Sequence[str], under: tuple[str, ...]
) -> list[Statement]:
    """The statements of a row of a table; [] for the row of headers, and if it states no rule."""
    cells = _cells(block)
    if len(cells) != len(columns) or cells == columns:
        return []
    row = TableRow([*map(_without_marks, columns)], [*map(_without_marks, cells)])
    return [
        Statement(
            block.lines[0].number,
            rule.text,
            label=rule.label,
            under=(*under, rule.heading) if rule.heading else under,
        )
        for rule in rules_of_row(row)
    ]


# --- What is above, below and around a block


def _is_inside(block: _Block, indent: int) -> bool:
    """Whether a block belongs to an item or an introduction with this indent."""
    return block.indent > indent and (block.is_item or block.indent > 1)


def _may_introduce_a_list(text: str) -> bool:
    """Whether a paragraph is one short sentence, such as "Never edit these files."."""
    return len(text.split()) <= _MAX_INTRODUCTION_WORDS and not re.search(r"[.!?] ", text)


def _paragraph_below(blocks: Sequence[_Block], number: int) -> str:
    """The first two sentences of the paragraph right below a heading; "" if there is none."""
    below = blocks[number + 1] if number + 1 < len(blocks) else None
    if below is None or below.is_item or below.element is not Element.SENTENCE:
        return ""
    sentences = islice(_split_sentences(below.text), 2)
    return " ".join(_without_marks(sentence.text) for sentence in sentences)


_MAX_ITEMS = 16  # on either side of an item
_MAX_BLOCKS_AROUND = 40  # that are searched for the other items of a list


def _items_around(blocks: Sequence[_Block], number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The items of a list before one of them, and those after it."""
    before = _items(reversed(blocks[max(0, number - _MAX_BLOCKS_AROUND) : number]), blocks[number])
    after = _items(blocks[number + 1 : number + 1 + _MAX_BLOCKS_AROUND], blocks[number])
    return tuple(reversed(before)), tuple(after)


def _items(blocks: Iterable[_Block], item: _Block) -> list[str]:
    """The items of the list of an item among the blocks that come next; items nested below them,
    and code blocks, are skipped.
    """
    items: list[str] = []
    for block in blocks:
        is_nested = block.indent > item.indent or block.element is Element.CODE
        if block.is_item and block.indent == item.indent and block.is_step == item.is_step:
            items.append(block.plain)
        elif not is_nested or len(items) >= _MAX_ITEMS:
            break
    return items[:_MAX_ITEMS]


def _nested_text(blocks: Sequence[_Block], number: int) -> str:
    """The text of the items nested below an item; "" for another block."""
    block = blocks[number]
    texts: list[str] = []
    for below in range(number + 1, len(blocks)):
        other = blocks[below]
        if not (block.is_item and other.is_item and other.indent > block.indent):
            break
        texts.append(_without_marks(other.text))
    return " ".join(texts)


# --- The sentences of a block


def _statements_of_block(block: _Block, under: tuple[str, ...], nested: str) -> Iterator[Statement]:
    """The statements of a block: its sentences, or its lines if it is not a text.

    Args:
        nested: the text of the items below it, or of the paragraph below a heading.
    """
    if block.element is Element.HEADING:
        for line in block.lines:
            yield Statement(
                line.number,
                _without_marks(line.text.strip()),
                block.element,
                under=under,
                following=nested,
                block=tuple(block.code),
            )
    elif block.element is Element.SENTENCE:
        yield from _sentences_of_block(block, under, nested)
    else:
        for line in block.lines:
            yield Statement(line.number, line.text.strip(), block.element, under=under)


def _sentences_of_block(block: _Block, under: tuple[str, ...], nested: str) -> Iterator[Statement]:
    """The statements of a paragraph or an item: its sentences."""
    text = ""
    starts: list[int] = []
    for line in block.lines:
        starts.append(len(text))
        text += line.text.strip() + " "
    sentences = list(_split_sentences(text.rstrip()))
    for index, sentence in enumerate(sentences):
        line = block.lines[bisect_right(starts, sentence.position) - 1]
        rest = [_without_marks(other.text) for other in sentences[index + 1 : index + 3]]
        label, plain = _split_label(sentence.text)
        is_last = index == len(sentences) - 1
        yield Statement(
            line.number,
            plain,
            label=label,
            under=under,
            following=" ".join(filter(None, [*rest, nested])),
            opening=_without_marks(sentences[0].text) if block.is_item and index else "",
            block=tuple(block.code) if is_last else (),
        )


def _split_sentences(text: str) -> Iterator[_Sentence]:
    """The sentences of a paragraph; code spans and brackets stay whole."""
    masked = re.sub(r"`[^`]*`|\([^()]*\)", lambda match: "X" * len(match[0]), text)
    start = 0
    for match in _BREAK.finditer(masked):
        before = masked[max(start, match.start() - _MAX_CHARACTERS_OF_AMOUNT) : match.start()]
        if before and not _is_abbreviated(before, masked[match.end() : match.end() + 1]):
            yield _Sentence(start, text[start : match.end()].strip())
            start = match.end()
    if text[start:].strip():
        yield _Sentence(start, text[start:].strip())


def _is_abbreviated(before: str, after: str) -> bool:
    """Whether the full stop at the end of `before` belongs to an abbreviation.

    Args:
        before: the last characters of the sentence, enough for an amount.
        after: the next character.
    """
    if _ABBREVIATED.search(before[-_MAX_ABBREVIATION_CHARACTERS:]):
        return True
    abbreviation = _ABBREVIATED_BEFORE_NUMBER.search(before[-_MAX_ABBREVIATION_CHARACTERS:])
    if abbreviation is None or not after.isdigit():
        return False
    return not _AMOUNT.search(before)


def _split_label(text: str) -> tuple[str, str]:
    """The label of a sentence, "" if it has none, and the rest of it without marks."""
    text = re.sub(r"^[^\w`*_\"'“(\[<~/.$@#-]+", "", text)  # a leading emoji or sign
    match = _LABEL.match(text)
    if match is None:
        text = _without_marks(text)
        match = _PLAIN_LABEL.match(text)
    if match is None:
        return "", _without_marks(text)
    return match[1].strip(), _without_marks(text[match.end() :])


def _without_marks(text: str) -> str:
    """A text without the marks of emphasis and links; code spans are not changed."""
    text = re.sub(r"</?[A-Z][A-Z_-]+>", "", text)
    text = _LINK.sub(lambda match: match[0] if match[1] else match[2], text)
    parts = re.split(r"(`[^`]*`)", text)
    plain = (
        part
        if part.startswith("`")
        else re.sub(r"\*{1,3}|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)", "", part)
        for part in parts
    )
    return " ".join("".join(plain).split())


# --- The blocks of a file


def _read_blocks(lines: Sequence[str]) -> list[_Block]:
    """The blocks of a file's lines."""
    reader = _BlockReader()
    for number, line in enumerate(lines, start=1):
        reader.read(number, line)
    return [
        _as_heading(block, below) for block, below in zip_longest(reader.blocks, reader.blocks[1:])
    ]


# "4. C# style", above a list that is not nested below it
_NUMBERED_TITLE = re.compile(r"[A-Z](?:[^`.:;!?]|\.(?=\w)){2,60}")


def _as_heading(block: _Block, below: _Block | None) -> _Block:
    """A block, as a heading if it is an item with a number that stands above a list of its own."""
    is_above = below is not None and below.is_item and not below.is_step and not below.indent
    if not (block.is_step and not block.indent and is_above and below):
        return block
    is_apart = below.lines[0].number > block.lines[-1].number + 1
    if not is_apart or not _NUMBERED_TITLE.fullmatch(block.plain):
        return block
    return _Block(block.lines, Element.HEADING, level=_NUMBERED_HEADING_LEVEL)


@dataclass
class _BlockReader:
    """Joins lines into blocks.

    Args:
        open: the paragraph or item that the next line may continue.
        fence: the marks that end the code block in which the reader is; None outside of one.
        introduces: the block right above the code block, whose text may introduce it.
        until: the text that ends the comment, metadata or example in which the reader is; None
            outside of one.
        element: what the lines up to that text are.
        is_in_admonition: whether the line before was a part of an admonition.
    """

    blocks: list[_Block] = field(default_factory=list)
    open: _Block | None = None
    fence: str | None = None
    introduces: _Block | None = None
    until: str | None = None
    element: Element = Element.COMMENT
    is_in_admonition: bool = False

    def read(self, number: int, line: str) -> None:
        """Adds a line to the blocks."""
        if self.until:
            self._add(number, line, self.element)
            if self.until in line:
                self.until = None
        elif self.fence:
            if re.match(rf"\s*{self.fence}", line):
                self.fence = None
            else:
                if self.introduces is not None:
                    self.introduces.code.append(line.strip())
                self._add(number, line, Element.CODE)
        elif self._is_of_admonition(line):
            self._read_admonition(number, _QUOTED.sub("", line))
        elif not line.strip() or (_RULER.match(line) and number > 1):
            self.open = None
        elif not self._opens(number, line):
            self._read_text(number, line)

    def _is_of_admonition(self, line: str) -> bool:
        """Whether a line begins an admonition or continues one: "> **Important:** never ..."."""
        is_quoted = line.lstrip().startswith(">")
        self.is_in_admonition = is_quoted and (
            self.is_in_admonition or _ADMONITION.match(line) is not None
        )
        return self.is_in_admonition

    def _read_admonition(self, number: int, line: str) -> None:
        """Reads a line of an admonition, without its mark, as a text."""
        if line.strip():
            self._read_text(number, line)
        else:
            self.open = None

    def _add(self, number: int, line: str, element: Element) -> None:
        """Adds a line that is not a text, as a block of its own."""
        self.open = None
        if line.strip():
            self.blocks.append(_Block([_Line(number, line)], element))

    def _opens(self, number: int, line: str) -> bool:
        """Reads a line that begins a code block, a comment, metadata, an example or a table, and
        returns whether it does.
        """
        if fence := _FENCE.match(line):
            self.fence = fence[1]
            last = self.blocks[-1] if self.blocks else None
            introduces = last is not None and last.element in (Element.SENTENCE, Element.HEADING)
            self.introduces = last if introduces else None
            self.open = None
            return True
        tag = _TAG.match(line)
        if number == 1 and line.strip() == "---":
            self.until = "---"
            self.element = Element.METADATA
        elif line.lstrip().startswith("<!--"):
            self._add(number, line, Element.COMMENT)
            self.until = None if "-->" in line else "-->"
            self.element = Element.COMMENT
        elif tag and not tag[1] and re.search("example|bad|wrong|incorrect", tag[2], re.I):
            self._add(number, line, Element.EXAMPLE)
            self.until = f"</{tag[2]}>"
            self.element = Element.EXAMPLE
        elif tag:
            self._add(number, line, Element.COMMENT)
        elif line.lstrip().startswith("|"):
            self._add(number, line, Element.TABLE)
        elif line.lstrip().startswith(">"):
            self._add(number, line, Element.QUOTATION)
        else:
            return False
        return True

    def _read_text(self, number: int, line: str) -> None:
        """Reads a heading, or a line of a paragraph, an item or an indented code block."""
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if heading := _HEADING.match(line):
            self._add_heading(number, heading[2], len(heading[1]))
            self.open = None
        elif self.open is None and not indent and (bold := _bold_heading(line)):
            self._add_heading(number, bold, _BOLD_HEADING_LEVEL)
        elif item := _ITEM.match(line):
            for text in _items_in(line.strip(), item[3]):
                block = _Block([_Line(number, text)], indent=indent, is_item=True)
                block.is_step = bool(item[2])
                self._begin(block)
        elif self.open is not None and _continues(self.open, line):
            self.open.lines.append(_Line(number, line))
        elif indent >= 4 and self.open is None and not self._is_in_list():
            self._add(number, line, Element.CODE)
        else:
            self._begin(_Block([_Line(number, line)], indent=indent))

    def _add_heading(self, number: int, text: str, level: int) -> None:
        self.blocks.append(_Block([_Line(number, text)], Element.HEADING, level=level))

    def _begin(self, block: _Block) -> None:
        self.blocks.append(block)
        self.open = block

    def _is_in_list(self) -> bool:
        """Whether the last block is an item of a list; a block that introduces code is skipped."""
        last = next((block for block in reversed(self.blocks) if not block.code), None)
        return last is not None and last.is_item


_NUMBER = re.compile(r"(?:^|(?<=\s))(\d)\. (?=\S)")


def _items_in(line: str, item: str) -> list[str]:
    """The items of a line that enumerates several: "1. `make fmt` 2. `make lint`"."""
    marks = list(_NUMBER.finditer(line))
    numbers = [int(mark[1]) for mark in marks]
    if len(marks) < 2 or numbers != list(range(1, len(marks) + 1)) or line.count("`") % 2:
        return [item]
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    return [line[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]


def _bold_heading(line: str) -> str:
    """The text of a line in bold that is a heading; "" if it is a sentence, or not in bold."""
    bold = _BOLD_LINE.match(line)
    return bold[1] if bold and len(bold[1].split()) <= _MAX_BOLD_HEADING_WORDS else ""


def _continues(block: _Block, line: str) -> bool:
    """Whether a line goes on with a paragraph or an item rather than beginning a new one."""
    before = block.lines[-1].text
    if block.is_item:
        indent = len(line) - len(line.lstrip())
        is_short = len(before) < _MIN_WRAPPED_CHARACTERS
        return indent > block.indent or not (is_short and re.match(r"\s*[A-Z]", line))
    starts_low = bool(re.match(r"\s*[a-z(`]", line))
    is_wrapped = len(before) >= _MIN_WRAPPED_CHARACTERS
    if _ENDS.search(before.rstrip()):
        return starts_low or (is_wrapped and not before.rstrip().endswith(":"))
    return starts_low or is_wrapped
