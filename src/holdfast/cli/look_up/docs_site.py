"""Writes the documentation as HTML files that need no network, for `holdfast docs --open`.

docs/logs.md, with a link to suites.md#judges  ->  logs.html, with a link to suites.html#judges
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.files import write_whole

_FIRST_PAGE = "index"
_ALTERNATIVE = "another cache with XDG_CACHE_HOME"  # if the folder cannot be written
_STYLE_FILE = Path(__file__).with_name("docs_site.css")
# a link with a scheme, within the page, or from the root; any other leads to a file
_KEPT_LINK = re.compile(r"[a-z]+:|#|/")


def write_site(pages: Mapping[str, Path], folder: Path) -> Path:
    """Writes every page, and the pictures that the pages show, into a folder.

    Args:
        pages: the Markdown files by name.
        folder: created if it does not exist.

    Returns:
        The file of the first page.
    """
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    titles = {name: text.splitlines()[0].removeprefix("# ") for name, text in texts.items()}
    for name, path in pages.items():
        page = page_html(name, texts[name], titles, path.parent)
        write_whole(folder / f"{name}.html", page.html, _ALTERNATIVE)
        for picture in page.pictures:
            write_whole(folder / picture, (path.parent / picture).read_bytes(), _ALTERNATIVE)
    return folder / f"{_FIRST_PAGE}.html"


class RenderedPage(NamedTuple):
    """HTML, and the pictures that it shows, relative to the Markdown that it was made from."""

    html: str
    pictures: list[str]


def page_html(name: str, text: str, titles: Mapping[str, str], folder: Path) -> RenderedPage:
    """Renders a page as HTML.

    A link to another page leads to that page's HTML. A file that the package does not contain, such
    as a source file or a record, is named rather than linked.

    Args:
        titles: the title of every page, by its name.
        folder: that of the Markdown file.
    """
    body = _body_html(text, titles, folder)
    names = sorted(titles, key=lambda page: (page != _FIRST_PAGE, titles[page].lower()))
    links = "".join(f'<a href="{page}.html">{html.escape(titles[page])}</a>\n' for page in names)
    style = _STYLE_FILE.read_text(encoding="utf-8")
    head = (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(titles[name])}</title>\n<style>\n{style}</style>\n"
    )
    page = f"{head}<nav>\n{links}</nav>\n<main>\n{body.html}</main></html>\n"
    return RenderedPage(page, body.pictures)


def _body_html(text: str, titles: Mapping[str, str], folder: Path) -> RenderedPage:
    """Renders the text of a page."""
    markdown = MarkdownIt("commonmark").enable("table")
    blocks = markdown.parse(text)
    _add_anchors(blocks)
    pictures: list[str] = []
    for block in blocks:
        inline = block.children or []
        pictures += _shown_pictures(inline, folder)
        _relink(inline, titles)
    body = markdown.renderer.render(blocks, markdown.options, {})
    # a wide table scrolls in a box of its own
    body = body.replace("<table>", '<div class="table"><table>')
    return RenderedPage(body.replace("</table>", "</table></div>"), pictures)


# Each of the functions below changes the tokens of a page in place.


def _add_anchors(blocks: Sequence[Token]) -> None:
    """Gives each heading an anchor; its text is in the token after its opening tag."""
    headings = [number for number, block in enumerate(blocks) if block.type == "heading_open"]
    anchors = _anchors(blocks[number + 1].content for number in headings)
    for number, anchor in zip(headings, anchors, strict=True):
        blocks[number].attrs["id"] = anchor


def _anchors(headings: Iterable[str]) -> Iterator[str]:
    """The anchors of a page's headings, like the site's; a repeated heading gets a number.

    >>> list(_anchors(["The `--json` option", "See [Runs](runs.md)", "The `--json` option"]))
    ['the-json-option', 'see-runs', 'the-json-option_1']
    """
    repeated = Counter[str]()
    for heading in headings:
        plain = re.sub(r"\]\([^)]*\)|[`*\[\]]", "", heading).lower()
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())
        number = repeated[anchor]
        repeated[anchor] += 1
        yield f"{anchor}_{number}" if number else anchor


def _shown_pictures(inline: Sequence[Token], folder: Path) -> list[str]:
    """Returns the pictures that are beside the page; replaces all others by their descriptions."""
    shown: list[str] = []
    for picture in inline:
        if picture.type != "image":
            continue
        source = str(picture.attrs["src"])
        if not source.startswith("../") and (folder / source).is_file():
            shown.append(source)
        else:
            picture.type = "text"
            picture.tag = ""
            picture.attrs = {}
            picture.content = f"[Picture, in the repository: {picture.content}]"
    return shown


def _relink(inline: Sequence[Token], titles: Mapping[str, str]) -> None:
    """Makes links lead to the HTML pages, and turns links to files outside the package to text.

    A link is an opening tag, its text and a closing tag, which has to be of the same kind. Links do
    not nest in Markdown.
    """
    tag = "a"
    for token in inline:
        if token.type == "link_open":
            _relink_tag(token, titles)
            tag = token.tag
        elif token.type == "link_close":
            token.tag = tag


def _relink_tag(opening: Token, titles: Mapping[str, str]) -> None:
    """Changes the opening tag of a link: its target, or the whole tag to that of plain text."""
    link = str(opening.attrs["href"])
    if _KEPT_LINK.match(link):
        return
    target, mark, anchor = link.partition("#")
    page = target.removesuffix(".md")
    if target.endswith(".md") and page in titles:
        opening.attrs["href"] = f"{page}.html{mark}{anchor}"
        return
    file = target.removeprefix("../")
    opening.tag = "span"
    opening.attrs = {"title": f"{file}, in the repository"}
