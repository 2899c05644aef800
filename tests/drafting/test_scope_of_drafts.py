"""A draft covers the part of a sentence, of a file or of the repository that its line names.

Every sentence is our own.
"""

import re
import time

import pytest
import yaml
from agent_turns import wrote
from drafted_measures import measures_of

from holdfast.drafting import draft_file, suite_text
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements
from holdfast.measures import build

NOTICE = "// Copyright Weatherline"


def bot_measures(text: str) -> list[dict]:
    drafts = [draft(statement, of_bot=True) for statement in read_statements(text)]
    return [rule.measure.entry for rules in drafts if isinstance(rules, list) for rule in rules]


@pytest.mark.parametrize(
    ("text", "path", "kept", "broken"),
    [
        (
            f"New Go files start with `{NOTICE}`.",
            "a.go",
            [f"{NOTICE}\npackage a\n"],
            [f"package a\n{NOTICE}\n", f"\n\nfunc a() {{}} {NOTICE}"],
        ),
        (
            "All Ruby files begin with `# frozen_string_literal: true`.",
            "a.rb",
            ["#!/usr/bin/env ruby\n# frozen_string_literal: true\nputs 1\n"],
            ["puts 1\n# frozen_string_literal: true\n"],
        ),
        (
            "Every PHP file starts with `declare(strict_types=1)`.",
            "a.php",
            ["<?php\n\n/* A * b */\n// c\ndeclare(strict_types=1);\n"],
            ["<?php\necho 1;\ndeclare(strict_types=1);\n"],
        ),
        (
            "`from __future__ import annotations` at the top of every module.",
            "a.py",
            ['"""Doc "quoted"."""\n\nfrom __future__ import annotations\n'],
            ["import os\nfrom __future__ import annotations\n"],
        ),
        (f"Every Go file must contain `{NOTICE}`.", "a.go", [f"package a\n{NOTICE}\n"], ["a"]),
    ],
)
def test_the_beginning_of_a_file(text, path, kept, broken):
    [spec] = measures_of(text)
    measure = build(spec)
    assert [measure.judge_turn(wrote(path, content)).value for content in kept] == [1] * len(kept)
    assert {measure.judge_turn(wrote(path, content)).value for content in broken} == {0}


def test_the_parts_of_a_commit_message_and_those_that_are_not_tested(tmp_path):
    line = (
        "Commit messages: imperative, at most 60 characters, prefixed with the area, e.g."
        " `map: fix zoom`."
    )
    path = tmp_path / "AGENTS.md"
    path.write_text(f"# App\n\n{line}\n")
    text = suite_text([draft_file(path)])
    patterns = [rule["measure"]["pattern"] for rule in yaml.safe_load(text)["cases"][0]["rules"]]
    assert patterns == [r"\A.{1,60}(?:\n|\Z)", r"\A[\w./-]+: \S"]
    assert re.search(patterns[1], "map: fix zoom") and not re.search(patterns[1], "Fix the zoom")
    assert f"{line} (not tested: imperative)" in text
    path.write_text("# Commits\n\n- At most 60 characters, prefixed with the area.\n")
    assert "(not tested: prefixed with the area)" in suite_text([draft_file(path)])


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        (
            "**Never** touch anything below `deploy/secrets/`.",
            [{"name": "file_not_touched", "path": "deploy/secrets/*"}],
        ),
        (
            "Generated files (`*.gen.go`) are off limits.",
            [{"name": "file_not_touched", "path": "*.gen.go"}],
        ),
        ("Generated files (`*.gen.go`) are off limits for formatters.", []),
        ("Generated files (`*.gen.go`) are not off limits.", []),
        (
            "Keep your final summaries short (max. 5 sentences).",
            [{"name": "at_most_sentences", "count": 5, "prose": True}],
        ),
        ("Keep your summaries of logs short (max. 5 sentences).", []),
        ("Keep your summary short (max. 5 sentences) unless asked.", []),
        # checks of one kind of changes, and of all
        ("Validate IAM changes with `cdk diff` before deployment.", []),
        ("Check SQL changes with `sqlfluff lint` before pushing.", []),
        ("Test Python syntax with `python -m py_compile` after changes to the parser.", []),
        (
            "Validate your changes with `make check` before committing.",
            [{"name": "runs_before", "first": r"make check(?!\S)", "then": r"git commit(?!\S)"}],
        ),
        # of some code only
        ("Tests use `pytest`, not `unittest`, for new modules only.", []),
        ("## Commits\n\n- Subject: at most 60 characters, or so.", []),
    ],
)
def test_what_a_line_covers(text, specs):
    assert measures_of(f"# App\n\n{text}") == specs


@pytest.mark.parametrize(
    "text",
    [
        "## Repository layer\n\nIt lives in `src/db/`.\nIt must not import `pg`.",
        "## Widgets\n\nWidgets are small. They must not import `redux`.",
        "## Models\n\n- They never call `fetch()`.",
        "## Domain\n\n- Must not import `pg`.",
        "- **Scheduler**: must not import `flask`.",
        "- The scheduler: it must not call `time.sleep()`.",
        "For plugins:\n- Never use `eval()`.",
        "## Examples of bad rules\n\n- Never use `eval()`.",
        "## What we used to do\n\n- Never run `npm install`.",
        "## Before committing (optional)\n\nRun from the root:\n\n```bash\nmake lint\n```",
        "## TypeScript\n\n### JSX\n\n- Use double quotes.",
        "## TypeScript\n\n### CSV export\n\n- Always use semicolons.",
    ],
)
def test_rules_of_something_that_is_named_elsewhere(text):
    assert measures_of(f"# App\n\n{text}") == []


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("## `src/ui/`\n\n- It must not import `pg`.", ["src/ui/*", "!*.{md,mdx,txt,rst,json}"]),
        ("## Security\n\n- Must not use `eval()`.", ["*", "!*.{md,mdx,txt,rst}"]),
        ("## Domain\n\n- Code must not use `eval()`.", ["*", "!*.{md,mdx,txt,rst}"]),
    ],
)
def test_rules_whose_subject_is_known(text, files):
    assert [spec["files"] for spec in measures_of(f"# App\n\n{text}")] == [files]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            'Your answers start with "Ahoy!" and have no more than two sentences before the'
            " signature.",
            ["starts_with"],
        ),
        ("No emoji, no exclamation marks except in the greeting.", ["regex"]),
        ("Prices are always given in SEK; don't mention euros.", ["never_contains"]),
        ("No emoji except in the greeting, no exclamation marks except in the greeting.", []),
        ('Start with "Hi" and sign off with "Bye" after the greeting is returned.', []),
        ("When asked, use no emoji, no exclamation marks except in the greeting.", []),
        ("If the guest asks, prices are in SEK; don't mention euros.", []),
        ("Prices are in SEK; don't mention euros unless asked.", []),
        ("Never mention dollars to dealers.", []),
    ],
)
def test_the_unlimited_part_of_a_bots_sentence(text, names):
    assert [spec["name"] for spec in bot_measures(text)] == names


def test_forbidden_currencies():
    measure = build(bot_measures("Never mention euros.")[0])
    replies = ["That is 40 SEK.", "That is 4 euros.", "That is €4.", "Neurosis is no currency."]
    assert [measure.score(reply).value for reply in replies] == [1, 0, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "- Module {n} must not import `pg{n}`; it must stay small.\n",
        "- Commit messages: imperative, at most {n} characters, prefixed with the area.\n",
        "- Generated files (`*.gen{n}.go`) are off limits.\n",
    ],
)
def test_time_grows_with_the_number_of_lines(text):
    def seconds(count: int) -> float:
        statements = read_statements("# App\n\n" + "".join(text.format(n=n) for n in range(count)))
        start = time.process_time()
        for statement in statements:
            draft(statement)
        return time.process_time() - start

    seconds(10)
    assert seconds(800) < 9 * seconds(200) + 0.2
