"""The code blocks of the README, of the pages under docs/ and of other folders' README."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paths import ROOT

README = ROOT / "README.md"
PAGES = (
    README,
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples" / "README.md",
    ROOT / "benchmarks" / "README.md",
)
_BLOCK = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SHELL = ("", "sh", "bash")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language ("" if none), its text, and the line where the text starts."""

    language: str
    text: str
    line: int


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in order; all blocks if no language is named."""
    text = page.read_text()
    return [
        Block(match[1], match[2], text[: match.start(2)].count("\n") + 1)
        for match in _BLOCK.finditer(text)
        if not languages or match[1] in languages
    ]


def commands_of(page: Path) -> list[list[str]]:
    """The words of every `holdfast ...` on a page's command lines, without `holdfast` itself."""
    return [
        words
        for block in blocks_of(page, *_SHELL)
        for line in block.text.replace("\\\n", " ").splitlines()
        for words in _calls(line)
    ]


def _calls(line: str) -> Iterator[list[str]]:
    if re.search(r"(^|\| *)holdfast ", line):
        for part in _piped(shlex.split(line, comments=True)):
            if part[:1] == ["holdfast"]:
                end = part.index(">") if ">" in part else len(part)  # into a file
                yield part[1:end]


def _piped(words: list[str]) -> Iterator[list[str]]:
    """Yields the words of each command in a pipeline."""
    while "|" in words:
        end = words.index("|")
        yield words[:end]
        words = words[end + 1 :]
    yield words


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    text = _BLOCK.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[\s]+", "-", heading) for heading in plain}
