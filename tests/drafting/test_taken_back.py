"""Statements that take a rule back, and wordings that state one after all."""

import pytest
from drafted_measures import measures_of

from holdfast.drafting.grammar.named_files import SCRIPT, TESTS, TYPED
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

NOT_RULES = [
    "## Commits\n\n- Conventional commits — we don't use them.",
    "## Commits\n\n- Conventional Commits (we don't use them)",
    "## Commits\n\n- Conventional Commits, which we no longer use",
    "## Commits\n\n- Conventional Commits - not needed",
    "## Commits\n\nConventional Commits; we dropped them in 2023.",
    "## Commits\n\n- Conventional commits. We don't use them.",
    "## Commits\n\nUse Conventional Commits. (We don't enforce this.)",
    "- Use pnpm (no longer needed).",
    "- Use pnpm - not any more.",
    "- Never push to `main` — this rule was dropped.",
    "- Never edit `vendor/` (obsolete).",
    "- Run `make test` before committing (no longer required).",
    "- Run `make test` before committing — optional.",
    "- Don't use `any`: we dropped this rule.",
    "- Never use `any` (old rule)",
    "- Never use `any` (was the rule in v1)",
    "- Once we migrate, never use npm.",
    "## Not used any more\n\n- Use Conventional Commits.",
    "## Rules that no longer apply\n\n- Never edit `vendor/`.",
    "## Rejected proposals\n\n- Use Conventional Commits.",
    "## What we don't do\n\n- Use Conventional Commits.\n- Run `make test` before committing.",
    "## Things we don't require\n\n- Conventional Commits",
    "## Non-goals\n\n- Use Conventional Commits.",
    "## Optional\n\n- Run `make test` before committing.",
    "## Not required\n\n- Run `make test` before committing.",
    "## Upstream's rules (not ours)\n\n- Use pnpm, not npm.",
]
# beside rules that stay, although something else is taken back, or is not needed
RULES = [
    "- Use pnpm; npm is no longer used.",
    "- Never edit `vendor/` (generated).",
    "- Run `make test` before committing. It takes a minute.",
    "- Never use `any` (see #12).",
    "## Commits\n\n- Use Conventional Commits. We don't use scopes.",
]


@pytest.mark.parametrize("text", NOT_RULES)
def test_a_rule_that_is_taken_back_is_not_drafted(text):
    assert measures_of(text) == []


@pytest.mark.parametrize("text", RULES)
def test_a_rule_beside_another_remark_is_drafted(text):
    assert measures_of(text)


FLUTTER = "# A Flutter app\n\n"
WORDINGS = [
    (f"{FLUTTER}- Never use `print()`.", {"files": "*.dart"}),
    ("- Treat `dist/` as a generated snapshot.", {"path": "dist/*"}),
    ("- Treat `a.json` as read-only; update it only with `make a`.", {"path": "a.json"}),
    ("- Only change `VERSION` through `make bump`.", {"path": "VERSION"}),
    ("### Do not edit vendored paths\n\n`dist/` and `a/b/` (from upstream).", {"path": "dist/*"}),
    ("- **Use yarn**: `yarn install`, `yarn test`", {"name": "command_not_run"}),
    ("- Use `uv run python ...` for Python commands.", {"name": "command_not_run"}),
    ("- Write clear commit messages using Conventional Commits.", {"name": "commit_message"}),
    ("- Follow Conventional Commits with the package as scope.", {"name": "commit_message"}),
    ("## Commit style\n\n- Use lowercase after the colon", {"name": "commit_message"}),
    (
        "If you modify `ui/`, run checks for that package too:\n\n```\ncd ui\nmake test\n```",
        {"changed": "ui/*"},
    ),
    ("- Always commit your work at the end of each turn", {"run": r"git commit(?!\S)"}),
    ("- All patches must include `Change-Id:` tag", {"name": "commit_includes"}),
    ("- `main` - Production. Do not push directly.", {"name": "command_not_run"}),
    ("- Do not leave whitespace at the end of lines", {"name": "code_not_written"}),
    ("- All packages use uv as the package manager.", {"name": "command_not_run"}),
    ("- **pnpm** - Preferred package manager", {"name": "prefers"}),
    ("- All tests must pass: `npm run test:all`", {"name": "runs_after"}),
    (
        "- Never use destructive commands like `git reset --hard` or `git checkout --` unless"
        " specifically requested or approved by the user.",
        {"name": "asks_before"},
    ),
    ("- Never run destructive commands like `git clean -fd`.", {"name": "command_not_run"}),
    ("- Prefer `rg` for search.", {"name": "prefers"}),
    (
        "- **MUST run `gitnexus_detect_changes()` before committing** to verify your changes.",
        {"name": "runs_before", "first": r"(?:mcp__)?gitnexus_+detect_changes\b"},
    ),
    (
        "- NEVER commit changes without running `gitnexus_detect_changes()` to check them.",
        {"name": "runs_before"},
    ),
    ("- No direct pushes to main allowed", {"name": "command_not_run"}),
    ("- Never add agent/AI attribution to commits.", {"name": "commit_message"}),
    (
        "- Always use `python -m pytest`, not `pytest`, to ensure tests run in the venv.",
        {"name": "command_not_run"},
    ),
    ("- Commit messages: short subject prefixed `fix:` or `feat:`.", {"name": "commit_message"}),
    ("- Never edit `.xcodeproj` files directly.", {"path": "*.xcodeproj/*"}),
    ("- Do not edit `.docx` or PDF files directly.", {"path": "*.docx"}),
    ("- No `.ts`, `.tsx` files.", {"path": "*.ts"}),
    ("- `data/raw/` - exports; never modify raw files in place", {"path": "data/raw/*"}),
    ("- Never overwrite or mutate files in `data/raw/`.", {"path": "data/raw/*"}),
    ("- Never use `print` in production `src/`.", {"files": ["src/*", f"!{TESTS[0]}"]}),
    ("- Never use `eval` in production TypeScript code.", {"name": "code_not_written"}),
    ("- Prefer const over let; never use var", {"name": "code_not_written"}),
    ("- No `any`, no implicit types, no unused imports.", {"files": TYPED[0]}),
    ("### Avoid this\n\n- Using any types in TypeScript", {"files": TYPED[0]}),
    ("### Avoid this\n\n- Using inline styles instead of Tailwind", {"name": "code_not_written"}),
    ("- Use functional components with hooks exclusively", {"files": SCRIPT[0]}),
    ("- Use React with functional components only.", {"files": SCRIPT[0]}),
    ("- All new components should use functional components.", {"files": SCRIPT[0]}),
    ("- Do not generate class components.", {"files": SCRIPT[0]}),
    ("# TypeScript\n\n- camelCase for functions/variables: `loadAll`", {"files": TYPED[0]}),
    ("# Rust\n\n- Variables, functions, modules: `snake_case`", {"files": "*.rs"}),
    ("# Rust\n\n- Constants and statics: `SCREAMING_SNAKE_CASE`", {"files": "*.rs"}),
    ("- Use consistent file naming conventions (kebab-case for files)", {"tool": "*rite*"}),
    (
        "```\nfrontend/\nbackend/\n```\n\n- Frontend must NOT import from backend.",
        {"files": "frontend/*"},
    ),
    ("- Commit with conventional format", {"name": "commit_message"}),
    ("- Use conventional commit format: `<type>(<scope>): <text>`", {"name": "commit_message"}),
    ("## Commit message rules\n\n- Types: feat, fix, docs", {"name": "commit_message"}),
    (
        "- Write clear, concise commit messages following conventional commits.",
        {"name": "commit_message"},
    ),
    (
        "## Runtime files (never commit)\n\nThe app creates these files at runtime. They are"
        " ignored:\n\n- `a.json`",
        {"name": "commit_excludes", "paths": "a.json"},
    ),
    ("- Request confirmation before `git commit`, `git push`", {"name": "asks_before"}),
    ("- When editing CSS, bump the version in `index.html`.", {"also": "index.html"}),
    ("- `ui/` (our own), `ui/base/` (generated - do not edit)", {"path": "ui/base/*"}),
    ("- **Files**: kebab-case (`user-card.tsx`, `load.ts`)", {"name": "tool_not_called"}),
    ("# TypeScript\n\n- **Functions**: camelCase, with tests", {"files": TYPED[0]}),
    ("## Git commits\n\n- Using conventional commits for messages", {"name": "commit_message"}),
    ("- Do not push any change, keep your work here", {"name": "command_not_run"}),
    ("- Never use `any`; use `unknown` where possible", {"files": TYPED[0]}),
    ("## ✅ 10. Forbidden actions\n\n- Using `any`", {"files": TYPED[0]}),
]


@pytest.mark.parametrize(("text", "part"), WORDINGS)
def test_a_wording_is_read(text, part):
    first, *_ = measures_of(text)
    assert part.items() <= first.items()


@pytest.mark.parametrize(
    "text",
    [
        "- Follow Conventional Commits if you can.",
        "- Use Conventional Commits and squash.",
        "- Follow Conventional Commits to name branches.",
        "- Treat `dist/` as a starting point.",
        "- Only change `package.json` through `npm install`.",
        "- **Use yarn**: `yarn install`, `npm test`",
        "- Commit your work after each logical step.",
        "- Push to your fork after committing.",
        "- `main` - Production. Do not push there after a release.",
        "- Use `rg` for searching only in `src/`.",
        "- Never use `sed` to keep files in order.",
        "- Use pnpm to ensure one lockfile in all folders, except in `docs/`.",
        "- `load` returns `Rows` (a list), not `RowSet`.",
        "- `src/api.ts` uses `fetchAll()`, not `fetchOne()`.",
        "- **Discord/WhatsApp:** No markdown tables!",
        "## Slack\n\n- No markdown tables",
        "- No `.env` files.",
        "- Frontend must NOT import from backend.",
        "## Branches\n\n- Feature: `feature/name`",
        "## Branches\n\n- Feature: `feature/name`\n- Anything else: ask",
        "## Runtime files (never commit)\n\nThese files are fine:\n\n- `a.json`",
        "# Haskell\n\n- camelCase for functions",
        "# Tailwind\n\n- UPPER_SNAKE_CASE for constants",
        "- Pull requests for `main`, no direct push.",
        "- Plain HTML, no build step, no npm packages",
        "- Use Tailwind, not inline styles, where possible",
        "- It reads the claim - this is NOT `auth.uid()`",
        "### `/hud` - the view\n\n- No Tailwind",
        "# PR review skill\n\n- Never use `git push --force`.",
        "# Debugging\n\n1. Check that all tests pass (`make test`), then commit.",
        "- **Files**: `PascalCase` for classes",
        "### Title and description\n\n- Adhere to Conventional Commits",
    ],
)
def test_a_like_wording_is_not_read(text):
    assert measures_of(text) == []


def test_kinds_of_branches_have_one_rule_together():
    specs = measures_of(
        "## Branches\n\n- Feature: `feat/name` or `feat/AB-1-name`\n- Bugfix: `fix/name`"
    )
    assert specs[0] == specs[1]
    measure = build(specs[0])
    for name, value in (("feat/a", 1), ("fix/b", 1), ("docs/c", 0)):
        call = ToolCall("Bash", {"command": f"git switch -c {name}"})
        assert measure.score_turn(AssistantTurn("", (call,))).value == value


def test_unit_tests_of_rust_are_no_production_code():
    (spec,) = measures_of("- Never `unwrap()` in production Rust code.")
    unit_test = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() { g().unwrap(); }\n}"
    for path, code, value in (
        ("src/a.rs", "fn f() { g().unwrap(); }", 0),
        ("src/a.rs", f"fn f() {{ g().unwrap(); }}\n\n{unit_test}", 0),
        ("src/a.rs", f"fn f() {{ g(); }}\n\n{unit_test}", 1),
        ("src/a.rs", "#[tokio::test]\nasync fn f() { g().unwrap(); }", 1),
    ):
        call = ToolCall("Write", {"file_path": path, "content": code})
        assert build(spec).score_turn(AssistantTurn("", (call,))).value == value


def test_files_of_a_project_of_xcode_are_left_alone():
    (spec,) = measures_of("- Never edit `.xcodeproj` files.")
    for path, value in (("App.xcodeproj/project.pbxproj", 0), ("App/App.swift", 1)):
        call = ToolCall("Write", {"file_path": path, "content": "x"})
        assert build(spec).score_turn(AssistantTurn("", (call,))).value == value


def test_one_question_may_be_about_the_commit_that_files_are_staged_for():
    specs = measures_of("- Ask before `git add`, `git commit`.")
    call = ToolCall("Bash", {"command": "git add a && git commit -m x"})
    turn = AssistantTurn("", (call,), user="Yes.", previous="Shall I commit this?")
    assert [build(spec).judge_turn(turn).value for spec in specs] == [1, 1]


def test_a_tool_that_has_to_run_first_is_known_by_its_name():
    (spec,) = measures_of("- Run `gitnexus_detect_changes()` before committing.")
    commit = ToolCall("Bash", {"command": "git commit -m x"})
    for name in ("gitnexus_detect_changes", "mcp__gitnexus__detect_changes"):
        turn = AssistantTurn("", (ToolCall(name, {"scope": "all"}), commit))
        assert build(spec).score_turn(turn).value == 1
    assert build(spec).score_turn(AssistantTurn("", (commit,))).value == 0


@pytest.mark.parametrize(
    "line",
    [
        "Don't use `enzyme`. We no longer use it.",
        "Do not use yarn; we dropped it.",
        "Do not edit `dist/`; it is not used.",
    ],
)
def test_the_reason_of_a_prohibition_does_not_take_it_back(line):
    assert measures_of(f"- {line}")


@pytest.mark.parametrize(
    "line",
    [
        "Do not use yarn; this is no longer enforced.",
        "Prefer `rg` for searching, fall back to grep if needed.",
        "Use `rg` for search in the docs folder.",
    ],
)
def test_a_rule_that_is_not_in_force_or_is_limited_is_not_drafted(line):
    assert not measures_of(f"- {line}")
