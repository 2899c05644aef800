"""What the README alone promises; `test_documents.py` runs its code, with that of the pages."""

from __future__ import annotations

import pkgutil
import re

from code_blocks import README, ROOT, blocks_of, commands_of

TEXT = README.read_text()


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_the_commands_stand_on_top_and_exist():
    first = blocks_of(README, "")[0].text.split("\n")
    targets = (ROOT / "Makefile").read_text()
    assert [line.split("#")[0].strip() for line in first if line] == [
        "make demo-real",
        "make demo",
        "make test",
    ]
    assert "\ndemo:" in targets and "\ntest:" in targets
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_command_line_is_shown_in_five_examples():
    assert len({words[0] for words in commands_of(README)}) >= 4
    assert len(commands_of(README)) == 5


def test_the_first_screen_says_how_to_install_and_where_the_command_is():
    first_screen = TEXT.partition("## In Python")[0]
    for promised in ("pip install .", ".venv/bin/holdfast", "--dry-run", "minutes"):
        assert promised in first_screen
    for page in ("measuring", "checking", "serving", "vllm", "why"):  # which of them is for whom
        assert f"docs/{page}.md" in first_screen


def test_every_page_is_linked():
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "index.md":
            assert f"(docs/{page.name}" in TEXT, f"README.md has no link to {page.name}"


def test_every_object_of_the_python_page_exists():
    page = (ROOT / "docs" / "python.md").read_text()
    names = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        assert pkgutil.resolve_name(name) is not None
