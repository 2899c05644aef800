"""Rules below headings that name a part of the repository, and rows of tables that state rules.

Every sentence is our own.
"""

import time

import pytest
from agent_turns import wrote
from drafted_measures import measures_of

from holdfast.drafting.drafted_files import draft_lines
from holdfast.measures import build

LINES_ABOUT_MANAGERS = (
    "It uses pnpm for package management.",
    "Use pnpm, not npm.",
    "Use pnpm.",
    "- pnpm",
)


@pytest.mark.parametrize(
    "heading",
    [
        *("## web", "## Backend", "### packages/api", "## `apps/site`", "## Frontend (React)"),
        *(
            "## Mobile app",
            "## Dashboard (`apps/dashboard/`)",
            "## API",
            "### services/mail - jobs",
        ),
    ],
)
@pytest.mark.parametrize("title", ["# Kiosk\n\n", ""])
def test_a_part_of_the_repository_has_a_package_manager_of_its_own(heading, title):
    for line in LINES_ABOUT_MANAGERS:
        assert measures_of(f"{title}{heading}\n\n{line}") == [], line


@pytest.mark.parametrize("heading", ["", "# Backend\n\n", "# Kiosk\n\n## Package manager\n\n"])
def test_the_title_of_a_file_names_no_part(heading):
    for line in LINES_ABOUT_MANAGERS[:3]:
        assert len(measures_of(f"{heading}{line}")) == 1, line


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("# Kiosk\n\n### packages/api\n\nNever use `console.log`.", "packages/api/*.{ts,"),
        ("# Kiosk\n\n### `libs/log/`\n\nNever use `console.log`.", "libs/log/*.{ts,"),
        (
            "# Kiosk\n\nSee `backend/a.py`.\n\n## Backend\n\nUse `pathlib`, not `os.path`.",
            "backend/",
        ),
        ("# Kiosk\n\n## Backend\n\nUse `pathlib`, not `os.path`.", "*.py"),
        (
            "See `server/a.ts`.\n\n## Server components\n\nNever use `console.log`.",
            "*.{ts,",
        ),
        ("# Kiosk\n\n## Settings (`/settings`)\n\nNever use `console.log`.", "*.{ts,"),
        ("`web/`\n\n## Site (`/web`)\n\nNever use `console.log`.", "web/*.{ts,"),
        ("# Kiosk\n\n## Unit/integration\n\nUse `pathlib`, not `os.path`.", "*.py"),
    ],
)
def test_rules_about_code_are_narrowed_to_the_folder_of_a_part(text, files):
    (spec,) = measures_of(text)
    assert spec["files"].startswith(files)


@pytest.mark.parametrize(
    "line",
    [
        "Use kebab-case for file names.",
        "Always run `make lint` after changing code.",
        "Run `make test` before committing.",
        "Never use em-dashes.",
    ],
)
def test_a_rule_for_a_part_whose_files_are_unknown_is_none(line):
    assert measures_of(f"# Kiosk\n\n## Web\n\n{line}") == []
    assert measures_of(f"# Kiosk\n\n## Style\n\n{line}")


def test_changes_of_code_in_a_part_are_those_of_its_folder():
    text = "# Kiosk\n\n## Web (`apps/web/`)\n\nAlways run `make lint` after changing code."
    (spec,) = measures_of(text)
    assert spec["changed"] == "apps/web/*"


def test_components_in_typescript_leave_other_javascript_alone():
    for line in ("Use TypeScript for React components.", "All components must be TypeScript."):
        (spec,) = measures_of(line)
        for path, value in (
            ("src/components/Card.js", 0),
            ("src/Card.jsx", 0),
            ("src/server.js", 1),
            ("scripts/build.js", 1),
            ("src/components/Card.tsx", 1),
        ):
            assert build(spec).judge_turn(wrote(path, "1")).value == value, (line, path)
    assert measures_of("Use TypeScript for logic.") == []


def test_application_code_in_typescript_leaves_tools_alone():
    (spec,) = measures_of("Use TypeScript for application code.")
    for path, value in (("src/a.js", 0), ("app/b/c.jsx", 0), ("tools/a.js", 1), ("a.js", 1)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("| Package manager | pnpm |", "command_not_run"),
        ("| **Commits** | Conventional Commits |", "commit_message"),
        ("| Communication | Chinese |", "language"),
        ("| Line length | 100 |", "code_not_written"),
        ("| Database | PostgreSQL |", None),
        ("| Commits | done |", None),
    ],
)
def test_a_row_of_a_table_is_read_as_a_labelled_sentence(row, name):
    table = "| Area | Convention |\n| --- | --- |\n"
    assert [spec["name"] for spec in measures_of(f"{table}{row}")] == ([name] if name else [])
    assert measures_of(f"| Area | Status |\n| --- | --- |\n{row}") == []
    assert measures_of(f"| Area | Convention | Since |\n| - | - | - |\n{row} 2 |") == []


@pytest.mark.parametrize("word", ["the ", "your ", "any of the ", "do not use a, b or "])
def test_long_paragraphs_take_little_time(word, tmp_path):
    paragraph = word * (4_000 // len(word))
    path = tmp_path / "AGENTS.md"
    path.write_text(f"Never edit `vendor/`.\n\n{paragraph}.\n\n" * 4)
    start = time.process_time()
    assert len(draft_lines(path).rules) == 1
    assert time.process_time() - start < 1
