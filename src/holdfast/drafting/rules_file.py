"""A rules file (AGENTS.md, CLAUDE.md, .cursorrules, .mdc, a prompt) as statements with their lines.

Markdown is read as far as rules need it: headings, lists and what introduces them, code blocks,
tables, quotations and comments. The text of a statement keeps its code spans and loses all other
marks.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Part(Enum):
    """The kind of a statement in its file."""

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
    """A sentence of a rules file, or a line that is none.

    Args:
        line: the number of the line on which it begins.
        text: without list marks, emphasis and links; code keeps its backticks.
        part: what it is.
        label: the words before its first colon, if they only name it: "**Commits:** ...".
        under: the headings and the introductions of lists that it stands under, outermost first.
        following: the next two sentences of its paragraph, or what is nested below it.
        opening: the first sentence of the item of a list in which it is a later one.
        block: the lines of the code block that it introduces.
    """

    line: int
    text: str
    part: Part = Part.SENTENCE
    label: str = ""
    under: tuple[str, ...] = ()
    following: str = ""
    opening: str = ""
    block: tuple[str, ...] = ()


@dataclass
class _Block:
    """A paragraph or an item of a list, with the number of each of its lines."""

    indent: int
    is_item: bool
    lines: list[tuple[int, str]] = field(default_factory=list)
    part: Part = Part.SENTENCE
    level: int = 0  # of a heading
    code: list[str] = field(default_factory=list)  # of the code block right below it

    @property
    def text(self) -> str:
        return " ".join(text for _, text in self.lines)


_ITEM = re.compile(r"^(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_FENCE = re.compile(r"^\s*(?:[-*+]\s+)?(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_BOLD_LINE = re.compile(r"^\s*(?:\*\*|__)([^*_]+)(?:\*\*|__):?\s*$")
_RULER = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_TAG = re.compile(r"^\s*<(/?)([A-Za-z][\w-]*)[^<>]*>\s*$")
_ENDS = re.compile(r"[.!?:;][\"'”’)*_]*$")
_WRAPPED = 60  # a line of at least as many characters may go on in the next one


def read_statements(text: str) -> list[Statement]:
    """The statements of a rules file, in order."""
    blocks = list(_blocks([line.rstrip("\r") for line in text.split("\n")]))
    statements: list[Statement] = []
    headings: list[_Above] = []
    parents: list[_Above] = []  # items and introductions
    for number, block in enumerate(blocks):
        if block.part is Part.HEADING:
            headings = [heading for heading in headings if heading.depth < block.level]
            parents = []
        elif block.part is Part.SENTENCE:
            parents = [parent for parent in parents if _is_inside(block, parent.depth)]
        under = tuple(above.text for above in (*headings, *parents))
        if block.part is Part.HEADING:
            headings.append(_Above(block.level, _plain(block.text)))
        nested = _nested(blocks, number)
        statements += _statements(block, under, nested)
        if block.part is Part.SENTENCE:
            text = _plain(block.text)
            if block.is_item or text.endswith(":") or _is_short(text):
                depth = block.indent if block.is_item else block.indent - 1
                parents.append(_Above(depth, text))
    return statements


class _Above(NamedTuple):
    """A line above a block: a heading with its level, or another block with its indent."""

    depth: int
    text: str


def _is_inside(block: _Block, indent: int) -> bool:
    """Whether a block belongs to the item or the introduction with this indent."""
    return block.indent > indent and (block.is_item or block.indent > 1)


def _is_short(text: str) -> bool:
    """Whether a paragraph is one sentence that may introduce a list: "Never edit these files."."""
    return len(text.split()) <= 12 and not re.search(r"[.!?] ", text)


def _nested(blocks: Sequence[_Block], number: int) -> str:
    """The text of the items nested below an item."""
    block = blocks[number]
    texts: list[str] = []
    for below in range(number + 1, len(blocks)):
        other = blocks[below]
        if not (block.is_item and other.is_item and other.indent > block.indent):
            break
        texts.append(_plain(other.text))
    return " ".join(texts)


def _statements(block: _Block, under: tuple[str, ...], nested: str) -> Iterator[Statement]:
    if block.part is not Part.SENTENCE:
        for number, source in block.lines:
            code = tuple(block.code) if block.part is Part.HEADING else ()
            yield Statement(number, source.strip(), block.part, under=under, block=code)
        return
    joined = ""
    starts = list[int]()
    for _, source in block.lines:
        starts.append(len(joined))
        joined += source.strip() + " "
    pieces = list(_sentences(joined.rstrip()))
    for index, (position, piece) in enumerate(pieces):
        line, _ = block.lines[bisect_right(starts, position) - 1]
        rest = [_plain(other) for _, other in pieces[index + 1 : index + 3]]
        label, text = _labelled(piece)
        is_last = index == len(pieces) - 1
        yield Statement(
            line,
            text,
            label=label,
            under=under,
            following=" ".join(filter(None, [*rest, nested])),
            opening=_plain(pieces[0][1]) if block.is_item and index else "",
            block=tuple(block.code) if is_last else (),
        )


_BREAK = re.compile(r"(?<=[.!?])[\"'”’)*_]*\s+(?=[^\sa-z»])")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|incl)\.|\.\.\.)$", re.IGNORECASE)
_MAX_ABBREVIATION_CHARACTERS = 12  # characters, with those before it that tell a word apart


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a paragraph with their positions; code spans and brackets stay whole."""
    hidden = re.sub(r"`[^`]*`|\([^()]*\)", lambda match: "X" * len(match[0]), text)
    start = 0
    for match in _BREAK.finditer(hidden):
        before = hidden[max(start, match.start() - _MAX_ABBREVIATION_CHARACTERS) : match.start()]
        if not _ABBREVIATED.search(before) and match.start() > start:
            yield start, text[start : match.end()].strip()
            start = match.end()
    if text[start:].strip():
        yield start, text[start:].strip()


_LABEL = re.compile(r"^(?:\*\*|__)([^*_`]{1,60}?)(?::(?:\*\*|__)|(?:\*\*|__)\s*[:—–-])\s*(?=\S)")
_PLAIN_LABEL = re.compile(r"^([A-Z][\w/&-]*(?: [\w/&-]+){0,3}):\s+(?=\S)")


def _labelled(text: str) -> tuple[str, str]:
    """A sentence as its label, "" if it has none, and the rest."""
    text = re.sub(r"^[^\w`*_\"'“(\[<~/.$@#-]+", "", text)  # a leading emoji or sign
    match = _LABEL.match(text)
    if match is None:
        text = _plain(text)
        match = _PLAIN_LABEL.match(text)
    if match is None:
        return "", _plain(text)
    return match[1].strip(), _plain(text[match.end() :])


# a code span, which is kept, or a link, of which the text is kept
_LINK = re.compile(r"(`[^`]*`)|!?\[((?:`[^`]*`|[^\]`])*)\]\([^()`]*\)")


def _plain(text: str) -> str:
    """A text without the marks of emphasis and links, which stay inside code."""
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


def _is_bold_heading(line: str) -> re.Match[str] | None:
    """A line in bold that is a heading, and no sentence."""
    bold = _BOLD_LINE.match(line)
    return bold if bold and len(bold[1].split()) <= 5 else None


def _blocks(lines: list[str]) -> Iterator[_Block]:
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        reader.read(number, line)
    reader.close()
    yield from reader.blocks


@dataclass
class _Reader:
    """Joins lines into blocks."""

    blocks: list[_Block] = field(default_factory=list)
    open: _Block | None = None  # the paragraph or item that the next line may continue
    fence: str = ""  # the marks that end the code block
    until: str = ""  # the text that ends a comment, metadata or an example
    part: Part = Part.COMMENT  # of the lines before that
    introduces: _Block | None = None  # the block right above the code block

    def read(self, number: int, line: str) -> None:
        if self.until:
            self._add(number, line, self.part)
            if self.until in line:
                self.until = ""
        elif self.fence:
            if re.match(rf"\s*{self.fence}", line):
                self.fence = ""
            else:
                if self.introduces is not None:
                    self.introduces.code.append(line.strip())
                self._add(number, line, Part.CODE)
        elif not line.strip() or (_RULER.match(line) and number > 1):
            self.close()
        elif not self._opens(number, line):
            self._read_text(number, line)

    def close(self) -> None:
        self.open = None

    def _add(self, number: int, line: str, part: Part) -> None:
        self.open = None
        if line.strip():
            self.blocks.append(_Block(0, False, [(number, line)], part))

    def _opens(self, number: int, line: str) -> bool:
        """Reads a line that begins a code block, a comment, metadata, an example or a table."""
        if fence := _FENCE.match(line):
            self.fence = fence[1]
            last = self.blocks[-1] if self.blocks else None
            introduces = last is not None and last.part in (Part.SENTENCE, Part.HEADING)
            self.introduces = last if introduces else None
            self.open = None
            return True
        tag = _TAG.match(line)
        if number == 1 and line.strip() == "---":
            self.until = "---"
            self.part = Part.METADATA
        elif line.lstrip().startswith("<!--"):
            self._add(number, line, Part.COMMENT)
            self.until = "" if "-->" in line else "-->"
            self.part = Part.COMMENT
        elif tag and not tag[1] and re.search("example|bad|wrong|incorrect", tag[2], re.I):
            self._add(number, line, Part.EXAMPLE)
            self.until = f"</{tag[2]}>"
            self.part = Part.EXAMPLE
        elif tag:
            self._add(number, line, Part.COMMENT)
        elif line.lstrip().startswith("|"):
            self._add(number, line, Part.TABLE)
        elif line.lstrip().startswith(">"):
            self._add(number, line, Part.QUOTATION)
        else:
            return False
        return True

    def _read_text(self, number: int, line: str) -> None:
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if heading := _HEADING.match(line):
            block = _Block(0, False, [(number, heading[2])], Part.HEADING, len(heading[1]))
            self.blocks.append(block)
            self.open = None
        elif (bold := _is_bold_heading(line)) and self.open is None and not indent:
            self.blocks.append(_Block(0, False, [(number, bold[1])], Part.HEADING, 7))
        elif item := _ITEM.match(line):
            self._begin(_Block(indent, True, [(number, item[2])]))
        elif self.open is not None and self._continues(self.open, line):
            self.open.lines.append((number, line))
        elif indent >= 4 and self.open is None and not self._is_in_list(indent):
            self._add(number, line, Part.CODE)
        else:
            self._begin(_Block(indent, False, [(number, line)]))

    def _is_in_list(self, indent: int) -> bool:
        last = next((block for block in reversed(self.blocks) if not block.code), None)
        return last is not None and last.is_item

    def _begin(self, block: _Block) -> None:
        self.blocks.append(block)
        self.open = block

    def _continues(self, block: _Block, line: str) -> bool:
        before = block.lines[-1][1]
        if block.is_item:
            return True
        starts_low = bool(re.match(r"\s*[a-z(`]", line))
        if _ENDS.search(before.rstrip()):
            return starts_low or (len(before) >= _WRAPPED and not before.rstrip().endswith(":"))
        return starts_low or len(before) >= _WRAPPED
