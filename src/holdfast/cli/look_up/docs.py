"""`holdfast docs`: shows the pages of the documentation, in the terminal or in a browser."""

import re
from pathlib import Path
from typing import Annotated

from holdfast.cli.look_up.docs_site import write_site
from holdfast.cli.shared.browser import has_display, open_in_browser
from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.errors import UnknownName
from holdfast.files import user_cache
from holdfast.report.wording import aligned
from holdfast.version import __version__

_PACKAGE = Path(__file__).parents[2]
# The wheel holds a copy of the pages (pyproject.toml); a checkout has the pages themselves.
_FOLDERS = (_PACKAGE / "assets" / "docs", _PACKAGE.parents[1] / "docs")


class DocsArguments(Options):
    page: Annotated[str | None, Arg("PAGE", positional=True, nargs="?")] = None
    """print this page (default: the list of pages)"""
    open: bool = False
    """open the pages in a browser instead, as HTML files that need no network"""


def pages() -> dict[str, Path]:
    """The files of the documentation, by the page names that `holdfast docs` takes."""
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _run(arguments: DocsArguments) -> None:
    files = pages()
    if arguments.page is not None:
        _check_page(arguments.page, files)
    if arguments.open:
        _open(arguments.page, files)
        return
    if arguments.page is None:
        texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
        rows = [
            (name, texts[name].splitlines()[0].removeprefix("# ")) for name in _reading_order(texts)
        ]
        print("\n".join(aligned(rows)))
        write_document(dict(rows))
        return
    name = _name_of(arguments.page)
    text = files[name].read_text(encoding="utf-8")
    print(text, end="")
    write_document({"page": name, "text": text})


def _reading_order(pages: dict[str, str]) -> list[str]:
    """The names of the pages: those that `index` links to in its order, then the others."""
    linked = re.findall(r"\((\w+)\.md\b", pages["index"])
    return [name for name in dict.fromkeys(["index", *linked, *pages]) if name in pages]


def _name_of(page: str) -> str:
    return page.removesuffix(".md")


def _check_page(page: str, files: dict[str, Path]) -> None:
    if _name_of(page) not in files:
        raise UnknownName("page", _name_of(page), files)


def _open(page: str | None, files: dict[str, Path]) -> None:
    """Writes all pages as HTML into the user's cache, and opens one in a browser, if possible."""
    folder = user_cache() / f"docs-{__version__}"
    file = write_site(files, folder)
    if page is not None:
        file = folder / f"{_name_of(page)}.html"
    print(f"Page: {file}")
    write_document({"page": file})
    if has_display():
        open_in_browser(file)


COMMAND = Command(
    "docs",
    _run,
    DocsArguments,
    description=(
        "Lists the pages of the documentation; with a name, prints that page as Markdown. With"
        " --open, opens them in a browser."
    ),
    examples="examples:\n  holdfast docs\n  holdfast docs logs\n  holdfast docs --open",
)
