"""Prohibitions that leave out some files, hold outside a folder or until somebody asks.

Every sentence is our own.
"""

import re

import pytest
import yaml
from agent_turns import asked, wrote
from drafted_measures import measures_of

from holdfast.drafting import draft_file, suite_text
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall


def broken_by(text: str, path: str, content: str) -> bool:
    """Whether a written file breaks a rule about code that a text drafts."""
    scores = [build(spec).judge_turn(wrote(path, content)) for spec in measures_of(text)]
    assert scores, text
    return any(score is not None and score.value < 1 for score in scores)


@pytest.mark.parametrize(
    ("text", "breaks", "keeps"),
    [
        # files that are left out
        ("Never use `print()` except in tests.", ("a.py", "print(1)"), ("test_a.py", "print(1)")),
        ("No `print()` (except in `bin/`).", ("a.py", "print(1)"), ("bin/a.py", "print(1)")),
        (
            "Never use `as any`, except in `a.ts` and tests.",
            ("b.ts", "x as any"),
            ("b.test.ts", "x as any"),
        ),
        (
            "No default exports, except for pages and layouts.",
            ("ui/card.tsx", "export default Card"),
            ("app/page.tsx", "export default Home"),
        ),
        (
            "Use only named exports, except in `stories/`.",
            ("ui/card.tsx", "export default Card"),
            ("stories/card.tsx", "export default Card"),
        ),
        # the only place
        (
            "Read `process.env` only in `src/env.ts`.",
            ("src/a.ts", "process.env.KEY"),
            ("src/env.ts", "process.env.KEY"),
        ),
        (
            "`process.env` is only allowed in `src/env.ts`.",
            ("src/a.ts", "process.env.KEY"),
            ("src/env.ts", "process.env.KEY"),
        ),
        (
            "Only `src/net/` may call `fetch()`.",
            ("src/a.ts", "fetch(x)"),
            ("src/net/a.ts", "fetch(x)"),
        ),
        (
            "Nothing outside `src/net/` may call `fetch()`.",
            ("src/a.ts", "fetch(x)"),
            ("src/net/a.ts", "fetch(x)"),
        ),
        # places
        (
            "Do not call `invoke()` from components.",
            ("ui/Card.tsx", "invoke('save')"),
            ("api/save.ts", "invoke('save')"),
        ),
        ("Never fetch directly from components.", ("a.tsx", "fetch(x)"), ("a.ts", "fetch(x)")),
        (
            "Never use `unwrap()` in handlers.",
            ("src/user_handler.rs", "x.unwrap()"),
            ("src/user.rs", "x.unwrap()"),
        ),
        (
            "Do not use `jest.mock()` in integration tests.",
            ("tests/integration/a.ts", "jest.mock('x')"),
            ("tests/unit/a.ts", "jest.mock('x')"),
        ),
        ("Keep `core/` free of `print()` calls.", ("core/a.py", "print(1)"), ("a.py", "print(1)")),
        (
            "`core/` must stay free of `node:fs` imports.",
            ("core/a.ts", "import x from 'node:fs'"),
            ("core/a.ts", "import x from 'node:path'"),
        ),
        # other words for it
        (
            "There must be no `eval()` in this project.",
            ("a.ts", "eval(x)"),
            ("a.ts", "evaluate(x)"),
        ),
        ("`eval` usage is strictly prohibited.", ("a.ts", "eval(x)"), ("a.ts", "evaluate(x)")),
        ("Colours come from the theme — no ad hoc hex.", ("a.css", "#fff"), ("a.css", "var(--x)")),
        ("Never use `Write-Host`.", ("a.ps1", "Write-Host 'x'"), ("a.ps1", "Write-Log 'x'")),
        (
            "Catch `error: unknown`, never use `error: any`.",
            ("a.ts", "(error: any)"),
            ("a.ts", "x"),
        ),
        (
            "Never use `os.system` for running commands; prefer `subprocess`.",
            ("a.py", "os.system('ls')"),
            ("a.py", "subprocess.run(['ls'])"),
        ),
        (
            "Don't disable lint rules with `eslint-disable`.",
            ("a.ts", "// eslint-disable-next-line"),
            ("a.ts", "// a remark"),
        ),
        ("No nested ternaries.", ("a.ts", "x = a ? b : c ? d : e"), ("a.ts", "x = a ? b : c")),
        (
            "No nested ternaries.",
            ("a.ts", "x = a ? b ? 1 : 2 : 3"),
            ("a.ts", "x = a ? b : c\ny = d ? 1 : 2"),
        ),
        (
            "Force-unwrap (`!`) is forbidden — use `guard let`.",
            ("a.swift", "x!.y"),
            ("a.swift", "x != y"),
        ),
        ("Do not add comments to the code.", ("a.ts", "x() // sums"), ("a.ts", "'https://a.b'")),
        ("No code comments.", ("a.py", "# sums\nx = 1"), ("a.py", "x = 1")),
        # a label that names what is forbidden is about all files
        (
            "**Console cleanup**: No debug `console.log` in `src/`.",
            ("src/a.ts", "console.log(1)"),
            ("src/a.ts", "log(1)"),
        ),
        (
            "| Instead of | Use |\n| --- | --- |\n| `os.path` | `pathlib` |",
            ("a.py", "os.path"),
            ("a.py", "pathlib"),
        ),
    ],
)
def test_forbidden_code_is_found_where_it_is_forbidden(text, breaks, keeps):
    assert broken_by(text, *breaks)
    assert not broken_by(text, *keeps)


@pytest.mark.parametrize(
    "text",
    [
        "Never use `print()`, except for debugging.",
        "Never use `print()`, except in the CLI.",
        "`process.env` is only used in `src/env.ts`.",
        "Only use `clsx` in `src/ui/`.",
        '**Typed errors**: never bare `print("error")`.',
        "Do not add `deleteAll()` calls without confirmation.",
        "No comments.",
        "## Communication\n\n- Do not add comments.",
        "Never use `Content-Type`.",
        "Never commit `out/` except for releases.",
        "Never use `--quiet`.",
        "Never create summaries.",
        "Do not use the new tool.",
        "Do NOT run `build` or `serve` commands.",
    ],
)
def test_what_is_limited_otherwise_is_not_drafted(text):
    assert measures_of(text) == []


def lifted(text: str) -> dict:
    """The only rule that a text drafts."""
    (statement, *_) = read_statements(text)
    (rule,) = draft(statement)
    return {"unless": rule.unless, **rule.measure.entry}


@pytest.mark.parametrize(
    ("text", "request_", "other"),
    [
        ("No `useMemo` unless explicitly requested.", "Add useMemo here", "Make it faster"),
        (
            "NEVER use `any` without explicit instruction.",
            "You may use any here",
            "Is any test red?",
        ),
        ("No Redux unless the user asks for it.", "Add Redux", "Add a store"),
        ("Do not add comments unless asked.", "Comment the code", "Explain the code"),
        ("Do not create documentation files unless explicitly requested.", "Write docs", "Fix it"),
        (
            "NEVER proactively create README files. Only create one if the user explicitly asks.",
            "Write a README",
            "Fix it",
        ),
    ],
)
def test_a_request_of_the_user_lifts_a_prohibition(text, request_, other, tmp_path):
    words = lifted(text)["unless"]["user"]
    assert re.search(words, request_)
    assert not re.search(words, other)
    path = tmp_path / "AGENTS.md"
    path.write_text(text)
    suite = yaml.safe_load(suite_text([draft_file(path)]))
    assert suite["cases"][0]["rules"][0]["unless"] == {"user": words}


def test_a_file_that_is_changed_only_on_request_needs_approval():
    rule = lifted("`sdk.json`: the version of the SDK - never modify it without explicit request.")
    assert rule["name"] == "asks_before"
    assert rule["changed"] == "sdk.json"


@pytest.mark.parametrize(
    ("text", "breaks", "keeps"),
    [
        (
            "Never pass `--no-cache` to `docker build`.",
            "docker build --no-cache .",
            "docker build .",
        ),
        ("Never use `--legacy-peer-deps` with npm.", "npm ci --legacy-peer-deps", "npm ci"),
        ("Never use `--legacy-peer-deps`.", "npm ci --legacy-peer-deps", "npm ci"),
        (
            "Do not pass `--schema db/schema` to Prisma CLI commands.",
            "npx prisma generate --schema=db/schema",
            "npx prisma generate",
        ),
        ("No `emerge`, `apt`, `pip install`, or any other installer.", "emerge vim", "ls"),
        (
            "It builds with `npm run build`. Do NOT run `build` or `serve` commands.",
            "pnpm serve",
            "pnpm test",
        ),
        ("Never install packages globally.", "npm i -g tsx", "npm i tsx"),
    ],
)
def test_forbidden_commands_are_found(text, breaks, keeps):
    (spec,) = measures_of(text)
    assert build(spec).judge_turn(asked("", breaks)).value == 0
    assert build(spec).judge_turn(asked("", keeps)).value == 1


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("Never use the `Search` tool.", [{"name": "tool_not_called", "tool": "Search"}]),
        ("Never call `mcp__db__query`.", [{"name": "tool_not_called", "tool": "mcp__db__query"}]),
        (
            "Do not spawn subagents.",
            [{"name": "tool_not_called", "tool": name} for name in ("Task", "Agent")],
        ),
        ("Stay out of `old/`.", [{"name": "file_not_touched", "path": "old/*"}]),
        ("Everything in `old/` is frozen.", [{"name": "file_not_touched", "path": "old/*"}]),
        ("Do not edit `old/` in place.", [{"name": "file_not_touched", "path": "old/*"}]),
        (
            "`old/` — built files; do not edit or move.",
            [{"name": "file_not_touched", "path": "old/*"}],
        ),
        ("Keep `.env` out of version control.", [{"name": "commit_excludes", "paths": ".env"}]),
        ("Secrets live in `.env` (never commit).", [{"name": "commit_excludes", "paths": ".env"}]),
        ("Never commit changes to `a.lock`.", [{"name": "commit_excludes", "paths": "a.lock"}]),
        (
            "Never commit `out/*` other than `out/README.md`.",
            [{"name": "commit_excludes", "paths": ["out/*", "!out/README.md"]}],
        ),
        (
            "Do not commit built `src/**/*.d.ts` artifacts inside source trees.",
            [],
        ),
        (
            "Do not commit generated `src/**/*.d.ts` artifacts inside source trees.",
            [{"name": "commit_excludes", "paths": "src/**/*.d.ts"}],
        ),
    ],
)
def test_files_and_tools_that_are_left_alone(text, specs):
    assert measures_of(text) == specs


def test_files_of_a_kind_are_not_created():
    (spec,) = measures_of("Never create new `.html` files: all views are in `index.html`.")
    wrote_it = [
        AssistantTurn("", (ToolCall("Write", {"file_path": path, "content": "x"}),))
        for path in ("/app/b.html", "/app/index.html", "/app/b.css")
    ]
    assert [build(spec).judge_turn(turn).value for turn in wrote_it] == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Do not use squash merge unless requested.", "gh pr merge 3 --squash"),
        ("Do not use SSH commands unless explicitly requested.", "ssh host ls"),
    ],
)
def test_acts_that_need_a_request(text, command):
    (spec,) = measures_of(text)
    assert spec["name"] == "asks_before"
    assert build(spec).judge_turn(asked("Fix it", command)).value == 0


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        # what is asked first
        (
            "Force push (ask first)",
            [
                {
                    "name": "asks_before",
                    "command": r"git push(?=.* (?:--force\S*|-f)(?!\S))",
                    "asking": "(?i)force",
                    "ordered": "(?i)force",
                }
            ],
        ),
        ("The cache is warm (ask first)", []),
        # tables
        (
            "## What NOT to do\n\n| Anti-pattern | Why |\n| --- | --- |\n| Edit `gen/` | built |",
            [{"name": "file_not_touched", "path": "gen/*"}],
        ),
        (
            "| Part | Notes |\n| --- | --- |\n| API | `api.ts` (generated - do not edit), `b.ts` |",
            [{"name": "file_not_touched", "path": "api.ts"}],
        ),
        ("| Part | Notes |\n| --- | --- |\n| API | `load()` never returns `null` |", []),
        # flags, tests, secrets beside other code
        (
            "When running commands, do not use flags like `git -C`.",
            [{"name": "command_not_run", "command": r"git(?=.* -C(?:=|(?!\S)))(?!\S)"}],
        ),
        (
            "Rust tests use `cargo nextest` exclusively (not `cargo test`).",
            [{"name": "command_not_run", "command": r"cargo test(?!\S)"}],
        ),
        (
            "Make one with `openssl rand`, put it in `.env` only (never commit), and restart.",
            [{"name": "commit_excludes", "paths": ".env"}],
        ),
        # what is only told
        ("The runner starts in a sandbox and has a cache, no `shell=True`, and a timeout.", []),
        ("The reply contains `masked_key` and never `encrypted_key`.", []),
        ("SHA-256 hashing (no external dependencies)", []),
    ],
)
def test_lists_of_permissions_tables_and_descriptions(text, specs):
    assert measures_of(text) == specs


@pytest.mark.parametrize(
    ("text", "breaks", "keeps"),
    [
        (
            "The domain layer never imports FastAPI.",
            ("app/domain/a.py", "import fastapi"),
            ("app/api/a.py", "import fastapi"),
        ),
        (
            "`loadAll()` is deprecated; do not use it in new code.",
            ("a.ts", "loadAll()"),
            ("a.ts", "load()"),
        ),
        (
            "Calling `store.reset` directly is prohibited.",
            ("a.ts", "store.reset()"),
            ("a.ts", "store.clear()"),
        ),
        ("## Code style\n\n- No comments", ("a.ts", "x() // y"), ("a.ts", "x()")),
        (
            "All colors use tokens (`var(--x)`), never hardcoded values.",
            ("a.css", "color: #fff"),
            ("a.css", "color: var(--x)"),
        ),
        (
            "- Builders. `Build(x => x.Set(a))` — never `SetArgument(...)`.",
            ("a.cs", "SetArgument(a)"),
            ("a.cs", "Set(a)"),
        ),
    ],
)
def test_what_code_never_does_is_forbidden(text, breaks, keeps):
    assert broken_by(text, *breaks)
    assert not broken_by(text, *keeps)


@pytest.mark.parametrize(
    ("text", "breaks", "keeps"),
    [
        (
            "**Memory leaks**: never use `libc::free`.",
            ("a.rs", "libc::free(x)"),
            ("a.rs", "free(x)"),
        ),
        (
            "Use `?`, never `unwrap()` in production.",
            ("a.rs", "x.unwrap()"),
            ("tests/a.rs", "x.unwrap()"),
        ),
        (
            "Pages are in `src/routes/`. Never hardcode ad hoc colors in routes or components.",
            ("src/routes/a.ts", "'#fff'"),
            ("src/theme/a.ts", "'#fff'"),
        ),
    ],
)
def test_topics_and_lists_of_places(text, breaks, keeps):
    assert broken_by(text, *breaks)
    assert not broken_by(text, *keeps)


@pytest.mark.parametrize(
    "text",
    [
        "- No allocations in `poll` and `tick`. No `Vec::push`, `Box::new`.",
        "No `build.gradle`, `package.json`, or wrappers exist yet.",
    ],
)
def test_what_holds_elsewhere_or_is_only_missing_is_not_forbidden(text):
    assert measures_of(text) == []
