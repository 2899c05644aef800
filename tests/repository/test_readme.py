"""Promises that only the README makes; `test_documents.py` runs its code and that of the pages."""

import pkgutil
import re

from code_blocks import README, ROOT, commands_of

TEXT = README.read_text()


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 120


def test_the_targets_of_make_exist():
    targets_named = re.findall(r"`make ([\w-]+)`", TEXT)
    targets = (ROOT / "Makefile").read_text()
    assert targets_named and all(f"\n{target}:" in targets for target in targets_named)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_first_command_is_shown():
    assert [words[0] for words in commands_of(README)] == ["try", "try"]


def test_numbers_are_few():
    prose = re.sub(r"```.*?```|!?\[[^]]*\]\([^)]*\)|`[^`]*`|<!--.*?-->", "", TEXT, flags=re.DOTALL)
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", prose)
    assert len(numbers) <= 15, numbers  # those of versions, years and parameters included


def test_the_first_screen_says_how_to_install_and_where_the_command_is():
    first_screen = TEXT.partition("## Where to start")[0]
    for promised in ("pip install '.[serve", "holdfast-llm", ".venv/bin/holdfast", "minutes"):
        assert promised in first_screen


def test_pages_listed_for_assistants_exist():
    index = (ROOT / "docs" / "llms.txt").read_text()
    pages = re.findall(r"\]\((\w+)/\)", index)
    assert len(pages) > 10
    assert all((ROOT / "docs" / f"{page}.md").is_file() for page in pages)


def test_every_page_is_linked():
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "index.md":
            assert f"(docs/{page.name}" in TEXT, f"README.md has no link to {page.name}"


def test_every_object_of_the_python_page_exists():
    page = (ROOT / "docs" / "python.md").read_text()
    names = re.findall(r"^- `(holdfast[\w.]+)`", page, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        assert pkgutil.resolve_name(name) is not None
