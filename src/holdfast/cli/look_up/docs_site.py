"""Writes the documentation as HTML files that need no network, for `holdfast docs --open`."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.files import write_whole

_FIRST = "index"  # the page that a browser opens first
_ALTERNATIVE = "another cache with XDG_CACHE_HOME"
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
        body, pictures = page_html(name, texts[name], titles, path.parent)
        write_whole(folder / f"{name}.html", body, _ALTERNATIVE)
        for picture in pictures:
            write_whole(folder / picture, (path.parent / picture).read_bytes(), _ALTERNATIVE)
    return folder / f"{_FIRST}.html"


def page_html(
    name: str, text: str, titles: Mapping[str, str], folder: Path
) -> tuple[str, list[str]]:
    """Renders a page as HTML, and lists the pictures that it shows, relative to its Markdown.

    A link to another page leads to that page's HTML. A file that the package does not contain, such
    as a source file or a record, is named rather than linked.
    """
    body, pictures = _body_html(text, titles, folder)
    names = sorted(titles, key=lambda page: (page != _FIRST, titles[page].lower()))
    links = "".join(f'<a href="{page}.html">{html.escape(titles[page])}</a>\n' for page in names)
    style = _STYLE_FILE.read_text(encoding="utf-8")
    head = (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(titles[name])}</title>\n<style>\n{style}</style>\n"
    )
    return f"{head}<nav>\n{links}</nav>\n<main>\n{body}</main></html>\n", pictures


def _body_html(text: str, titles: Mapping[str, str], folder: Path) -> tuple[str, list[str]]:
    """Renders the text of a page, and lists the pictures that it shows."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    pictures: list[str] = []
    headings = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    anchors = _anchors(tokens[at + 1].content for at in headings)
    for at, anchor in zip(headings, anchors, strict=True):
        tokens[at].attrs["id"] = anchor
    for token in tokens:
        parts = token.children or []
        for picture in (part for part in parts if part.type == "image"):
            source = str(picture.attrs["src"])
            if not source.startswith("../") and (folder / source).is_file():
                pictures.append(source)
            else:
                _describe_picture(picture)
        _relink(parts, titles)
    body = markdown.renderer.render(tokens, markdown.options, {})
    body = body.replace("<table>", '<div class="table"><table>')
    return body.replace("</table>", "</table></div>"), pictures


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


def _describe_picture(picture: Token) -> None:
    """Replaces a picture that the package does not contain by its description."""
    picture.type = "text"
    picture.tag = ""
    picture.attrs = {}
    picture.content = f"[Picture, in the repository: {picture.content}]"


def _relink(parts: list[Token], titles: Mapping[str, str]) -> None:
    """Makes links lead to the HTML pages, and turns links to files outside the package to text."""
    # The tokens of a link are its opening tag, its text and its closing tag. The closing tag has to
    # become what the opening one has become, and Markdown's links do not nest.
    tag = "a"
    for part in parts:
        if part.type == "link_open":
            _relink_tag(part, titles)
            tag = part.tag
        elif part.type == "link_close":
            part.tag = tag


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
