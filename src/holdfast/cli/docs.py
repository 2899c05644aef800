"""`holdfast docs`: prints the pages of the documentation."""

from pathlib import Path
from typing import Annotated

from holdfast.cli.json_output import write_document
from holdfast.cli.options import Arg, Command, Options
from holdfast.errors import UnknownName
from holdfast.report.wording import aligned

_PACKAGE = Path(__file__).parents[1]
# The wheel holds a copy of the pages (pyproject.toml); a checkout has the pages themselves.
_FOLDERS = (_PACKAGE / "assets" / "docs", _PACKAGE.parents[1] / "docs")


class DocsArguments(Options):
    page: Annotated[str | None, Arg("PAGE", positional=True, nargs="?")] = None
    """print this page (default: the list of pages)"""


def pages() -> dict[str, Path]:
    """The files of the documentation, by the page names that `holdfast docs` takes."""
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _run(arguments: DocsArguments) -> None:
    files = pages()
    if arguments.page is None:
        titles = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
        rows = [(name, text.splitlines()[0].removeprefix("# ")) for name, text in titles.items()]
        print("\n".join(aligned(rows)))
        write_document(dict(rows))
        return
    name = arguments.page.removesuffix(".md")
    if name not in files:
        raise UnknownName("page", name, files)
    text = files[name].read_text(encoding="utf-8")
    print(text, end="")
    write_document({"page": name, "text": text})


COMMAND = Command(
    "docs",
    "read the documentation",
    _run,
    DocsArguments,
    description="Lists the pages of the documentation; with a name, prints that page as Markdown.",
    examples="examples:\n  holdfast docs\n  holdfast docs logs",
)
