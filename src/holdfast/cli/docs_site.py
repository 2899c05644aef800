"""Writes the documentation as HTML files that need no network, for `holdfast docs --open`."""

import html
import re
from collections.abc import Mapping
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.files import write_whole

_FIRST = "index"  # the page that a browser opens first
_ALTERNATIVE = "another cache with XDG_CACHE_HOME"
_NO_FILE = re.compile(r"[a-z]+:|#|/")  # links with a scheme, within the page, or from the root
_STYLE = """:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: flex; flex-wrap: wrap; }
nav { flex: 1 1 13rem; max-width: 18rem; padding: 1rem; font-size: .9rem; }
nav a { display: block; padding: .1rem 0; text-decoration: none; }
main { flex: 1 1 22rem; min-width: 0; max-width: 54rem; padding: 0 1rem 4rem; }
pre, .table { overflow-x: auto; }
pre { padding: .7rem; border: 1px solid #8886; border-radius: 6px; }
code { font-size: .9em; }
table { border-collapse: collapse; }
td, th { padding: .25rem .6rem; border-bottom: 1px solid #8886; text-align: left;
  vertical-align: top; }
img { max-width: 100%; background: #fff; }"""


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
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    pictures: list[str] = []
    counts: dict[str, int] = {}
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrs["id"] = _anchor(tokens[position + 1].content, counts)
        for part in token.children or ():
            if part.type == "image":
                _place_picture(part, folder, pictures)
        _relink(token.children or [], titles)
    body = markdown.renderer.render(tokens, markdown.options, {})
    body = body.replace("<table>", '<div class="table"><table>')
    body = body.replace("</table>", "</table></div>")
    names = sorted(titles, key=lambda page: (page != _FIRST, titles[page].lower()))
    nav = "".join(f'<a href="{page}.html">{html.escape(titles[page])}</a>\n' for page in names)
    head = (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(titles[name])}</title>\n<style>{_STYLE}</style>\n"
    )
    return f"{head}<nav>\n{nav}</nav>\n<main>\n{body}</main></html>\n", pictures


def _anchor(heading: str, counts: dict[str, int]) -> str:
    """The anchor of a heading, like the site's; a repeated heading gets a number.

    Args:
        counts: how often each anchor was used before; it is updated.
    """
    plain = re.sub(r"\]\([^)]*\)|[`*\[\]]", "", heading).lower()
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())
    count = counts[anchor] = counts.get(anchor, -1) + 1
    return f"{anchor}_{count}" if count else anchor


def _place_picture(picture: Token, folder: Path, pictures: list[str]) -> None:
    """Adds a picture of the package to `pictures`, or replaces any other by its description."""
    source = str(picture.attrs["src"])
    if not source.startswith("../") and (folder / source).is_file():
        pictures.append(source)
        return
    picture.type = "text"
    picture.tag = ""
    picture.attrs = {}
    picture.content = f"[Picture, in the repository: {picture.content}]"


def _relink(parts: list[Token], titles: Mapping[str, str]) -> None:
    """Makes links lead to the HTML pages, and turns links to files outside the package to text."""
    open_links: list[Token] = []
    for part in parts:
        if part.type == "link_open":
            open_links.append(part)
            target, mark, anchor = str(part.attrs["href"]).partition("#")
            name = target.removesuffix(".md")
            if target.endswith(".md") and name in titles:
                part.attrs["href"] = f"{name}.html{mark}{anchor}"
            elif not _NO_FILE.match(target + mark):
                file = target.removeprefix("../")
                part.tag = "span"
                part.attrs = {"title": f"{file}, in the repository"}
        elif part.type == "link_close":
            part.tag = open_links.pop().tag
