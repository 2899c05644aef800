"""An MkDocs hook that adds repository files to the site if pages link to them.

On a page, `../benchmarks/results/census.md` is a file beside docs/. On the site it becomes
`repository/benchmarks/results/census.md`: pages are rendered; everything else (pictures, records,
sources) is copied unchanged. So the same links work in a checkout and on the site, and the site
does not need a repository URL.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PREFIX = "repository"
ALWAYS = (  # files that the navigation refers to
    "examples/README.md",
    "CHANGELOG.md",
    "SECURITY.md",
)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z]+:|/")


def on_files(files: Files, config: Any) -> Files:
    """Adds the linked files, and the files that these link to."""
    left = [ROOT / name for name in ALWAYS]
    for page in files.documentation_pages():
        left += linked(Path(page.abs_src_path))
    added: set[Path] = set()
    while left:
        file = left.pop()
        if file not in added and not in_docs(file):
            added.add(file)
            place = f"{PREFIX}/{file.relative_to(ROOT).as_posix()}"
            files.append(File.generated(config, place, abs_src_path=str(file)))
            if file.suffix == ".md":
                left += linked(file)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrites links to their targets on the site."""
    source, here = source_of(page.file.src_uri), posixpath.dirname(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        before, target, behind = link.groups()
        if _ELSEWHERE.match(target):
            return link[0]
        there = posixpath.relpath(place_of(reached(source, target)), here or ".")
        return f"{before}{there}{behind}"

    pieces = _CODE.split(markdown)
    codes = [*_CODE.findall(markdown), ""]
    return "".join(
        _LINK.sub(moved, piece) + code for piece, code in zip(pieces, codes, strict=True)
    )


def linked(page: Path) -> Iterator[Path]:
    """The files that a page links to.

    Raises:
        FileNotFoundError: a linked file does not exist.
    """
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.finditer(text):
        if not _ELSEWHERE.match(link[2]):
            yield reached(page, link[2])


def reached(page: Path, target: str) -> Path:
    """The file that a page's link points to; for a folder, its README.

    Raises:
        FileNotFoundError: it does not exist.
    """
    file = (page.parent / target).resolve()
    file = file / "README.md" if file.is_dir() else file
    if not file.is_file() or not file.is_relative_to(ROOT):
        raise FileNotFoundError(f"{page.relative_to(ROOT)} links to {target}, which is not there")
    return file


def in_docs(file: Path) -> bool:
    return file.is_relative_to(ROOT / "docs")


def place_of(file: Path) -> str:
    """The path of a file among MkDocs' sources."""
    if in_docs(file):
        return file.relative_to(ROOT / "docs").as_posix()
    return f"{PREFIX}/{file.relative_to(ROOT).as_posix()}"


def source_of(src_uri: str) -> Path:
    """The repository file that a page of the site is made from."""
    inside = src_uri.removeprefix(f"{PREFIX}/")
    return ROOT / inside if inside != src_uri else ROOT / "docs" / src_uri
