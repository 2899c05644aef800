"""Requirements on text, commands and replies, in words that people use beside the usual ones.

Every sentence is our own. Rules about code are tested on what they find in written files.
"""

import re

import pytest
from agent_turns import wrote
from drafted_measures import measures_of

from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

TEST = r"make test(?!\S)"
COMMIT, PUSH = r"git commit(?!\S)", r"git push(?!\S)"


def after(run: str, changed: str = "*") -> dict:
    return {"name": "runs_after", "changed": changed, "run": run}


def before(then: str, first: str = TEST) -> dict:
    return {"name": "runs_before", "first": first, "then": then}


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        (
            "Whenever an agent edits files in this repo, it should commit these changes and push"
            " them to the remote before ending the task.",
            [after(COMMIT), after(PUSH)],
        ),
        (
            "After completing a task, commit with a clear message and push to origin.",
            [after(COMMIT), after(PUSH)],
        ),
        ("Commit the docs before ending the task.", []),
        ("The worker should commit its changes before ending the task.", []),
        ("Push your work to `develop` at the end of each task.", []),
        ("Run `make test` after changes.", []),
        ("Lint Rust code with `make lint` after changes.", [after(r"make lint(?!\S)", "*.rs")]),
        ("It is essential to run `make test` before committing.", [before(COMMIT)]),
        (
            "Before submitting any changes, it is crucial to validate them by running `make test`.",
            [before(r"(?:git push|gh pr create)(?!\S)")],
        ),
        (
            "## Checks before commit / push\n\nRun from the repo root:\n\n```\nmake test\n```",
            [before(r"(?:git commit(?!\S)|git push(?!\S))")],
        ),
        ("## Setup\n\nRun these:\n\n```\nmake test\n```", []),
        (
            "After finishing a task, run `make test` before declaring victory.",
            [after(TEST)],
        ),
        (
            "Any change under `api/` must be followed by `make test` and a new snapshot.",
            [after(TEST, "api/*")],
        ),
        ("Any change of the design must be followed by `make test`.", []),
        ("Edit `api.yml` only.", []),
        ("Work is done only when `make test` passes.", [after(TEST)]),
        ("A task is only complete when `make test` passes.", [after(TEST)]),
        ("The migration is only done when `make test` passes.", []),
        ("Always verify your changes with `make test`.", [after(TEST)]),
        ("Always verify the schema with `make test`.", []),
    ],
)
def test_what_has_to_be_run(text, specs):
    assert measures_of(text) == specs


@pytest.mark.parametrize(
    "line",
    [
        "We use bun as the package manager.",
        "bun is our package manager.",
        "Use bun as the runtime and package manager.",
        "Use bun for all package operations.",
        "Package manager + runner: bun (`bun install`, `bun test`).",
    ],
)
def test_the_package_manager(line):
    (spec,) = measures_of(line)
    assert spec["name"] == "command_not_run"
    assert "pnpm" in spec["command"]


@pytest.mark.parametrize(
    ("line", "path", "keeps", "breaks"),
    [
        (
            "Relative imports in `api/` must use `.js` extensions (e.g., `from './a.js'`).",
            "api/b.ts",
            "import { a } from './lib/a.js';\nimport b from 'b';\nconst c = require('./c');",
            "import { a } from './lib/a';",
        ),
        (
            "Use the `.js` extension in local imports.",
            "b.ts",
            'export * from "../a.js";\nimport c from "../d.json";',
            'export * from "../a";',
        ),
        (
            "Use UPPERCASE for environment variables.",
            "a.ts",
            "process.env.API_URL; process.env.npm_package_version;",
            "process.env.apiUrl;",
        ),
        (
            "- **Environment variables**: UPPER_SNAKE_CASE",
            "a.py",
            'os.environ["API_URL"]; os.getenv("http_proxy")',
            'os.environ["api_url"]',
        ),
        (
            "# TypeScript\n\nUse single quotes.",
            "a.ts",
            "import a from 'a';\nexport const b = <p title=\"x\" />;",
            'import a from "a";',
        ),
        (
            "# TypeScript\n\nUse double quotes for strings.",
            "a.ts",
            'import a from "a";',
            "import a from 'a';",
        ),
        (
            "# JavaScript\n\nAlways use semicolons.",
            "a.js",
            'import a from "a";\nimport {\n  b,\n} from "b";',
            'import a from "a"',
        ),
        (
            "Use type hints for all functions. The tests are in `tests/test_a.py`.",
            "a.py",
            "def f(a: int): ...",
            "def f(a): ...",
        ),
    ],
)
def test_what_has_to_be_written(line, path, keeps, breaks):
    (spec,) = measures_of(line)
    measure = build(spec)
    assert measure.judge_turn(wrote(path, keeps)).value == 1
    assert measure.judge_turn(wrote(path, breaks)).value == 0


@pytest.mark.parametrize(
    ("line", "path", "keeps", "breaks"),
    [
        (
            "Every module starts with `from __future__ import annotations`.",
            "a.py",
            '"""A."""\n\nfrom __future__ import annotations\n',
            "import os\n",
        ),
        (
            "All Python files must start with a module docstring.",
            "a.py",
            "#!/usr/bin/env python\n# Ours\n\n'''A.'''\n",
            "import os\n",
        ),
        (
            "Every shell script must start with `set -euo pipefail`.",
            "a.sh",
            "#!/bin/bash\nset -euo pipefail\n",
            "#!/bin/bash\n",
        ),
    ],
)
def test_what_new_files_begin_with(line, path, keeps, breaks):
    (spec,) = measures_of(line)
    measure = build(spec)
    assert measure.judge_turn(wrote(path, keeps)).value == 1
    assert measure.judge_turn(wrote(path, breaks)).value == 0
    assert measures_of("Every file must have a docstring.") == []


def test_the_width_of_the_body_of_a_commit():
    (spec,) = measures_of("Wrap the commit body at 72 characters.")
    long_line = "word " * 15
    for body, keeps in (
        ("Short.", True),
        (f"{long_line.strip()[:72]}\n\nCo-authored-by: {'x' * 80}", True),
        (f"See https://example.org/{'a' * 90}", True),
        (long_line, False),
        (f"Short.\n{long_line}\nShort.", False),
    ):
        assert bool(re.match(spec["pattern"], f"{long_line}\n\n{body}")) == keeps, body


@pytest.mark.parametrize("line", ["PRs go against `dev`.", "PRs must be merged into `dev`."])
def test_the_base_of_pull_requests(line):
    assert measures_of(line) == [{"name": "pull_request", "base": r"\Adev\Z"}]


def test_the_files_of_a_folder_whose_imports_have_an_ending():
    (spec,) = measures_of("All local imports in `api/` must use `.js` extensions.")
    assert spec["files"] == "api/*.{ts,tsx,mts,js,jsx,mjs}"


@pytest.mark.parametrize(
    "line",
    [
        "Imports use `.js`.",
        "Use double quotes in JSX.",
        "Use single quotes.",
        "Use type hints for all functions.",
        "Use the sections `Why` and `Testing`.",
        "Use UPPERCASE for headings.",
    ],
)
def test_what_names_no_language_or_place_is_no_rule(line):
    assert measures_of(line) == []


@pytest.mark.parametrize(
    "line",
    ["Use `uv` for all Python commands.", "Use uv for installs and all Python commands."],
)
def test_the_program_through_which_python_is_run(line):
    (spec,) = measures_of(line)
    assert spec == {"name": "command_not_run", "command": r"(?!uv run )python3?(?!\S)"}


def test_a_preferred_program_through_which_python_is_run():
    (spec,) = measures_of("Prefer `uv run` for Python commands in this repo.")
    for command, value in (("uv run python a.py", 1), ("python a.py", 0), ("python3 b.py", 0)):
        call = ToolCall("Bash", {"command": command})
        assert build(spec).judge_turn(AssistantTurn("", (call,))).value == value, command
    (search,) = measures_of("Prefer `rg`/`rg --files` for search.")
    assert search["name"] == "prefers"


def test_markers_that_stay():
    (spec,) = measures_of("Preserve the `// BEGIN` and `// END` markers.")
    assert spec == {"name": "text_kept", "pattern": "(?:// BEGIN|// END)"}
    assert measures_of("Keep the `// BEGIN` markers in place.")
    assert measures_of("Keep the `// BEGIN` comments short.") == []
    assert measures_of("Preserve the `save` behavior.") == []


def test_an_order_beside_a_preference():
    (spec,) = measures_of("Use Conventional Commits for all commits and prefer short subjects.")
    assert spec["name"] == "commit_message"
    (spec,) = measures_of("React components are function components with hooks.")
    assert spec["name"] == "code_not_written"


def test_files_named_in_a_case():
    (spec,) = measures_of("Name files in kebab-case.")
    for path, value in (("src/user-card.ts", 1), ("src/userCard.ts", 0)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("All communication with the user must be in German.", "de"),
        ("Antworte immer auf Deutsch.", "de"),
        ("parle en français", "fr"),
        ("Responde siempre en español.", "es"),
        ("Rispondi sempre in italiano.", "it"),
    ],
)
def test_the_language_of_replies(line, code):
    assert measures_of(line) == [{"name": "language", "code": code}]


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [
        ("Include the ticket number in the commit message.", "commit_message", "pattern"),
        ("Link the related issue in the PR description.", "pull_request", "body"),
        (
            "- Write PR descriptions for reviewers. Use the sections `Why` and `Risks`.",
            "pull_request",
            "sections",
        ),
    ],
)
def test_what_commits_and_pull_requests_have(line, name, argument):
    (spec,) = measures_of(line)
    assert spec["name"] == name
    assert argument in spec
