"""Rules in words that people use beside the usual ones, and what only looks like a rule.

Every sentence is our own. Rules about code are tested on what they find in written files.
"""

import time

import pytest
from agent_turns import wrote
from drafted_measures import measures_of

from holdfast.drafting.drafted_files import draft_lines
from holdfast.drafting.suite_text import suite_text
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

COMMIT, PUSH, REQUEST = r"git commit(?!\S)", r"git push(?!\S)", r"gh pr create(?!\S)"
TEST = r"make test(?!\S)"
CODE = ["*", "!*.{md,mdx,txt,rst}"]
TRAILER = "(?i)^Signed-off-by:"
TYPES = (
    r"(?:build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test|deps|release|wip|improvement)"
    r"(?:\([^)\n]+\))?!?:"
)
TYPES_AND_DATA = TYPES.replace("ement)", "ement|data)")
NEW_BRANCH = r"git (?:checkout -[bB]|switch -[cC]|branch [^-\s])"
ONE_LINE = r"\A[^\n]+\n?\Z"


def after(changed, run: str = TEST) -> dict:
    return {"name": "runs_after", "changed": changed, "run": run}


def before(then: str, first: str = TEST) -> dict:
    return {"name": "runs_before", "first": first, "then": then}


def forbidden(command: str) -> dict:
    return {"name": "command_not_run", "command": command}


def new_branch(names: str) -> dict:
    unknown = r"\d*&?[<>]|&>|\S*[$`]"
    return forbidden(rf"git (?:checkout -[bB]|switch -[cC]|branch(?! -)) (?!{names}|{unknown})\S")


def on_branch(names: str) -> dict:
    return {"name": "commit_branch", "pattern": rf"^(?!{names}$)"}


def together(changed: str, also: str) -> dict:
    return {"name": "changes_together", "changed": changed, "also": also}


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        # headings that are orders
        ("### Never run `make bench`\nIt takes hours.", [forbidden(r"make bench(?!\S)")]),
        ("# Never run `git push`", [forbidden(PUSH)]),
        ("## 3. Always run `make test` before pushing", [before(PUSH)]),
        ("## Never run `make bench`\nUnless you are asked to.", []),
        ("## Never\n\nSome text.", []),
        # lists of what is forbidden
        (
            "### Forbidden Git operations\nThese destroy others' work:\n\n- `git clean` - all gone",
            [forbidden(r"git clean(?!\S)")],
        ),
        ("### Forbidden commands\nUse these instead:\n\n- `git status`", []),
        ("NEVER run: `make all`, `make x`", [forbidden(r"(?:make all(?!\S)|make x(?!\S))")]),
        ("**Never edit**: `gen/`", [{"name": "file_not_touched", "path": "gen/*"}]),
        (
            "Never run destructive commands (`git clean`, `make wipe`).",
            [forbidden(r"(?:git clean(?!\S)|make wipe(?!\S))")],
        ),
        # workflows, tables, parts of the repository
        (
            "## Workflow\n\n1. Make changes to files in `src/`\n2. Test them: `make test`",
            [after("src/*")],
        ),
        (
            "## Workflow\n\n1. Write the code\n2. Run `make test`\n3. Commit it\n4. Open a PR",
            [before(COMMIT)],
        ),
        ("## Adding a page\n\n1. Make changes\n2. `make test`\n3. Commit", []),
        ("## Workflow\n\n1. Make changes\n2. Look at it with `make serve`", []),
        ("## CI workflow (`ci.yml`)\n\n1. Lint with `make lint`\n2. Push the image", []),
        ("Follow these steps for all changes:\n\n```\ngit add .\ngit commit -m 'x'\n```", []),
        (
            "| Command | When |\n| --- | --- |\n| `make test` | Every code change |",
            [after(CODE)],
        ),
        ("| Command | When |\n| --- | --- |\n| `make test` | if you are unsure |", []),
        ("Before pushing:\n\n- Backend: `make test`", []),
        ("Python: run `make test` after every change.", [after("*.py")]),
        # occasions
        ("After code changes: `make test`", [after(CODE)]),
        ("For Rust changes, run `make test`.", [after("*.rs")]),
        ("Rust changes: run `make test`.", [after("*.rs")]),
        ("Run `make test` for any change in `app/`.", [after("app/*")]),
        ("Make sure all tests pass (`make test`) before pushing.", [before(PUSH)]),
        ("Format code with `make test` before presenting it to the user.", [after("*")]),
        ("You must run `make test` before you say you are done.", [after("*")]),
        ("Run `make test` before asking for human review.", [before(REQUEST)]),
        ("`make test` and `make x` must both pass before finishing.",
         [after("*"), after("*", r"make x(?!\S)")]),
        ("To release, run `make test` before pushing.", []),
        ("Commit only after `make test` passes.", [before(COMMIT)]),
        ("Only push once `make test` is green.", [before(PUSH)]),
        ("Run `make test` before `git push`.", [before(PUSH)]),
        ("On every commit, run `make test`.", [before(COMMIT)]),
        ("| If you change | Run |\n| --- | --- |\n| `src/**` | `make test` |", [after("src/*")]),
        ("### After making changes\n\n```\nmake test\n```", [after("*")]),
        ("### After cloning\n\n```\nmake test\n```", []),
        (
            "Follow these rules when opening pull requests:\n\n1. Run `make test` before pushing",
            [before(PUSH)],
        ),
        # Git
        ("Direct pushes to `main` are blocked.",
         [forbidden(r"git push(?=.*[ :+](?:refs/heads/)?main(?!\S))")]),
        ("Never make commits yourself.", [forbidden(COMMIT)]),
        ("Ensure that `.env` is not committed.", [{"name": "commit_excludes", "paths": ".env"}]),
        ("Never commit `a.log` files or `tmp/` folders.",
         [{"name": "commit_excludes", "paths": ["a.log", "tmp/*"]}]),
        # branches of commits
        ("Never commit directly to `main`.", [on_branch("main")]),
        ("Never commit to main or master.", [on_branch("(?:main|master)")]),
        ("Never work directly on the `main` branch.", [on_branch("main")]),
        ("Always work on a feature branch, never on `main`.", [on_branch("main")]),
        ("Commits to `main` are not allowed.", [on_branch("main")]),
        ("Don't:\n\n- Commit directly to main", [on_branch("main")]),
        ("Do not commit or push to `main`.",
         [forbidden(r"git push(?=.*[ :+](?:refs/heads/)?main(?!\S))"), on_branch("main")]),
        ("Never make changes in `lib`.", []),
        ("Never commit to `main` unless asked.", []),
        ("No commits on `release` branches.", []),
        # commits
        ("Commit messages start with `feat:`.",
         [{"name": "commit_message", "pattern": r"\A(?:feat)(?:\([^)\n]+\))?!?:"}]),
        ("Prefix all commit messages with `[docs]`.",
         [{"name": "commit_message", "pattern": r"\A\[docs\]"}]),
        ("Prefix all commit messages with `[component]`.", []),
        ("Prefix commits with `<area>:`.", []),
        ("Always include `Co-Authored-By: Robot <a@b.c>`.",
         [{"name": "commit_includes", "trailer": "(?i)^Co-Authored-By:"}]),
        ("Always include `name: value`.", []),
        ("Commit style: terse, subject-only.",
         [{"name": "commit_message", "pattern": ONE_LINE}]),
        ("One-line commit messages only.", [{"name": "commit_message", "pattern": ONE_LINE}]),
        ("All commits must be signed off (`git commit -s`).",
         [{"name": "commit_includes", "trailer": TRAILER}]),
        ("Always use `git commit -s`.", [{"name": "commit_includes", "trailer": TRAILER}]),
        ("Commit messages must start with a ticket key such as `AB-1`.",
         [{"name": "commit_message", "pattern": r"\A\W?[A-Z][A-Z0-9]+-\d"}]),
        ("Commit messages must start with a ticket number such as `TIDE-123:`.",
         [{"name": "commit_message", "pattern": r"\A\W?[A-Z][A-Z0-9]+-\d+\]?:"}]),
        ("Prefix every commit message with the ticket key, e.g. `[TIDE-123]`.",
         [{"name": "commit_message", "pattern": r"\A\W?[A-Z][A-Z0-9]+-\d"}]),
        ("Use the format `[area] summary` for commits.",
         [{"name": "commit_message", "pattern": r"\A\[[^\]\n]+\] \S"}]),
        ("## Commit format\n\n```\n<type>(<scope>): <summary>\n```",
         [{"name": "commit_message", "pattern": r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"}]),
        ('Never write "Made by a robot" in commit messages.',
         [{"name": "commit_message", "pattern": r"(?si)\A(?!.*Made by a robot)"}]),
        ("## Commits\n\n- Types: feat, fix or chore",
         [{"name": "commit_message", "pattern": r"\A(?:feat|fix|chore)(?:\([^)\n]+\))?!?:"}]),
        ("Absolutely no `eval()`.",
         [{"name": "code_not_written", "pattern": r"(?<![\w$])eval\(", "files": CODE}]),
        ("Never:\n\n- Commit, push, merge PRs",
         [forbidden(r"(?:git commit(?!\S)|git push(?!\S)|(?:gh pr merge|glab mr merge)(?!\S))")]),
        ("Never:\n\n- Commit, push, write poems", []),
        ("Never merge PRs.", [forbidden(r"(?:gh pr merge|glab mr merge)(?!\S)")]),
        ("Do not close issues.", [forbidden(r"gh issue close(?!\S)")]),
        ("Never comment on issues or PRs.",
         [forbidden(r"gh (?:issue|pr) (?:comment|review)(?!\S)")]),
        ("Commit subject lines must be 50 characters or less.",
         [{"name": "commit_message", "pattern": r"\A.{1,50}(?:\n|\Z)"}]),
        ("## Git\n\n- Limit the subject to 50 characters.",
         [{"name": "commit_message", "pattern": r"\A.{1,50}(?:\n|\Z)"}]),
        ("Use lowercase commit messages.",
         [{"name": "commit_message", "pattern": r"\A(?:[a-z]+(?:\([^)\n]+\))?!?: )?+[^A-Z]"}]),
        ("Don't add yourself as a co-author.",
         [{"name": "commit_message", "pattern": r"(?si)\A(?!.*co-authored-by:)"}]),
        # pull requests
        ("PR titles must be under 70 characters.",
         [{"name": "pull_request", "title": r"\A.{1,69}\Z"}]),
        ("Use `gh pr create --base dev`.", [{"name": "pull_request", "base": r"\Adev\Z"}]),
        ("Always target the `dev` branch (not `main`) when creating PRs",
         [{"name": "pull_request", "base": r"\Adev\Z"}]),
        ("## Pull requests\n\n- Submit against `dev`.",
         [{"name": "pull_request", "base": r"\Adev\Z"}]),
        ("Open PRs as drafts.", [{"name": "pull_request", "draft": True}]),
        ("PR descriptions must have the sections Why and How to test it.",
         [{"name": "pull_request", "sections": ["Why", "How to test it"]}]),
        ("Every PR must link an issue.",
         [{"name": "pull_request", "body": r"#\d|/issues/\d"}]),
        ("A PR must link an issue if there is one.", []),
        ("## Pull requests\n\n- Link issues with `Closes #1`",
         [{"name": "pull_request", "body": r"#\d|/issues/\d"}]),
        ("- Link issues with `Closes #1`", []),
        # files
        ("Don't write changeset files.", [{"name": "file_not_touched", "path": ".changeset/*"}]),
        ("Everything under `gen/` is generated. Do not edit by hand.",
         [{"name": "file_not_touched", "path": "gen/*"}]),
        ("Ask before editing `global.json`.",
         [{"name": "asks_before", "changed": "global.json", "asking": r"(?i)global\.json",
           "ordered": r"(?i)global\.json"}]),
        ("Do not touch `vendor/` without a good reason.", []),
        ("Never change global.json unless asked.",
         [{"name": "asks_before", "changed": "global.json", "asking": r"(?i)global\.json",
           "ordered": r"(?i)global\.json"}]),
        ("Never edit CLAUDE.md.", [{"name": "file_not_touched", "path": "CLAUDE.md"}]),
        ("Never edit generated files (A.md, .b, etc.).",
         [{"name": "file_not_touched", "path": "A.md"}]),
        ("Never work on anything inside the vendor/ folder.",
         [{"name": "file_not_touched", "path": "vendor/*"}]),
        ("Do not author generated output such as `dist/` or other build artifacts.",
         [{"name": "file_not_touched", "path": "dist/*"}]),
        ("Keep `a.json` and `lib/` intact so that the app starts.",
         [{"name": "file_not_touched", "path": "a.json"},
          {"name": "file_not_touched", "path": "lib/*"}]),
        ("You are working only inside the `web/` folder.",
         [{"name": "code_not_written", "pattern": r"\A", "files": ["*", "!web/*"]}]),
        ("Types are in `gen/*.ts` files (generated, don't edit)",
         [{"name": "file_not_touched", "path": "gen/*.ts"}]),
        ("Never write to `raw/`. Only ever write to `out/`.",
         [{"name": "file_not_touched", "path": "raw/*"}]),
        ("Never edit `a.py`. Only edit `a.py` in tests.", []),
        ("## Never\n\n- Change the Prisma schema",
         [{"name": "file_not_touched", "path": "*schema.prisma"}]),
        # quotations that are orders
        ("> **Never edit** `gen/`.", [{"name": "file_not_touched", "path": "gen/*"}]),
        ("> [!IMPORTANT]\n> Never edit `gen/`.", [{"name": "file_not_touched", "path": "gen/*"}]),
        ("> ⚠️ Never edit `gen/`.", [{"name": "file_not_touched", "path": "gen/*"}]),
        ("> Never edit `gen/`.", []),
        ("> [!NOTE]\n> See below.\n\nNow.\n\n> Never edit `gen/`.", []),
        ("Leave `vendor/` untouched.", [{"name": "file_not_touched", "path": "vendor/*"}]),
        ("Do not edit files outside `src/`.",
         [{"name": "code_not_written", "pattern": r"\A", "files": ["*", "!src/*"]}]),
        ("Only modify `a.py` and `b.py`.",
         [{"name": "code_not_written", "pattern": r"\A", "files": ["*", "!a.py", "!b.py"]}]),
        ("Only create `.ts` files.", []),
        ("All changes to `api/` require an update of `api.md`.", [together("api/*", "api.md")]),
        ("Add an entry to `CHANGELOG.md` for every change.", []),
        ("`a.json` and `b.json` must be kept in sync.",
         [together("a.json", "b.json"), together("b.json", "a.json")]),
        ("Any change to `a.py` must be reflected in `b.md`.", [together("a.py", "b.md")]),
        ("New texts need translations in both `en.json` and `de.json`.",
         [together("en.json", "de.json"), together("de.json", "en.json")]),
        # checks before and after
        ("Lint and tests must pass before committing.\n\n```\nmake test\n```", [before(COMMIT)]),
        ("Before calling a task done or opening a PR, run the gate: `make test`.", [after("*")]),
        ("Before calling a task done or renting a flat, run the gate: `make test`.", []),
        ("After any change to Go files in `api/`, run `make test`.", [after("api/*.go")]),
        ("After ANY change to Go files in `api/`, you MUST:\n1. Check: `make test`",
         [after("api/*.go")]),
        ("Run `make test` after making changes.", [after("*")]),
        ("See `apps/web/a.ts`.\n\nWeb changes: `make test`", [after("apps/web/*")]),
        ("See `web/a.ts` and `apps/web/b.ts`.\n\nWeb changes: `make test`", []),
        ("## Definition of done\n\n- [ ] `make test` passes", [after("*")]),
        ("**Verify before finishing**: run `./.ci/check.sh` and any relevant tests.",
         [after("*", r"\./\.ci/check\.sh(?!\S)")]),
        ("Always run `make test` at the root for automatic linting.", [after("*")]),
        ("Always run `make test` for releases.", []),
        ("Run npm test before committing.", [before(COMMIT, r"npm test(?!\S)")]),
        ("Run npm scripts before committing.", []),
        ("See `api/a.py`.\n\nRun `make test` before finishing API work.", [after("api/*")]),
        ("Run `make test` before finishing API work.", []),
        # replies
        ("Communication with the user: Thai", [{"name": "language", "code": "th"}]),
        ("Communication: be brief", []),
        ("Communicate with humans in Thai.", [{"name": "language", "code": "th"}]),
        # approval
        ("Ask before any destructive git operation (reset, force push).",
         [{"name": "asks_before",
           "command": r"git (?:reset(?=.* --hard)|clean(?=.* -\w*f)|branch -D"
           r"|push(?=.* (?:--force\S*|-f)(?!\S)))",
           "asking": r"(?i)\b(?:reset|clean|force|delet|discard|destructive|branch)",
           "ordered": r"(?i)\b(?:reset|clean|force|delet|discard|destructive|branch)"}]),
        ("Do not (without explicit permission):\n\n- Push to the remote",
         [{"name": "asks_before", "command": PUSH, "asking": r"(?i)\bpush",
           "ordered": r"(?i)\bpush"}]),
        ("Require human approval before changing code and before pushing.",
         [{"name": "asks_before", "command": PUSH, "asking": r"(?i)\bpush",
           "ordered": r"(?i)\bpush"}]),
        ("Do not push without explicit manual confirmation.",
         [{"name": "asks_before", "command": PUSH, "asking": r"(?i)\bpush",
           "ordered": r"(?i)\bpush"}]),
        # files and titles
        ("Do not reintroduce `lib/old.ts`; it is gone.",
         [{"name": "file_not_touched", "path": "lib/old.ts"}]),
        ("Use clear PR titles following Conventional Commits.",
         [{"name": "pull_request", "title": rf"\A{TYPES} \S"}]),
        ("Always prefix Python commands with `uv run`.", [forbidden(r"(?!uv run )python3?(?!\S)")]),
        # parts of a repository
        ("# App\n\n## Backend (`api/`)\n\nAfter any change, run `make test`.", [after("api/*")]),
        ("# App\n\n## Web (`web/app/`)\n\nNever use `eval(`.",
         [{"name": "code_not_written", "pattern": r"(?<![\w$])eval\(",
           "files": ["web/app/*", *CODE[1:]]}]),
        # branches
        ("Before creating a feature branch:\n```\ngit fetch\ngit switch -c x\n```",
         [before(NEW_BRANCH, r"git fetch(?!\S)")]),
        ("Before creating a branch: `git fetch && git switch -c x`",
         [before(NEW_BRANCH, r"git fetch(?!\S)")]),
        ("When committing, run `git add . && git commit`.", []),
        ("Before the first run:\n```\nmake seed\n```", []),
        # Conventional Commits
        ("Write commit messages using the Conventional Commits specification.",
         [{"name": "commit_message", "pattern": rf"\A{TYPES} \S"}]),
        ("Commit messages: short, prefixed with `fix:` or `feat:`.",
         [{"name": "commit_message", "pattern": r"\A(?:fix|feat)(?:\([^)\n]+\))?!?:"}]),
        ("## Commits\n\nTypes:\n\n- `feat`: new\n- `data`: tables",
         [{"name": "commit_message", "pattern": rf"\A{TYPES_AND_DATA} \S"}]),
        ("## Types\n\n- `feat`: a feature\n- `user`: a person", []),
        ("- Commitlint: conventional commit message validation\n"
         "  - Required format: `type(scope): summary`",
         [{"name": "commit_message", "pattern": r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"}]),
        ("Branch naming: feature/<topic>, fix/<ticket>",
         [new_branch("(?:feature|fix)/")]),
        ("## Branch names\n\n- `feature/<topic>`\n- `fix/<ticket>` for bugs",
         [new_branch("(?:feature|fix)/")]),
        ("## Branches\n\n### Naming convention:\n\n- `fix/<ticket>`", [new_branch("fix/")]),
        ("Always prefix branch names with `<author>-bot/` (e.g. `ann-bot/fix`).",
         [new_branch(r"[\w.]+-bot/")]),
        ("Create a new branch named feat/{name} before implementing a spec.",
         [new_branch("feat/")]),
        ("## For release `2.4.2`\n\nBranch:\n\n- `release/2.4.2`", []),
        ("- `main` and `dev` are protected branches. Do not push to them directly.",
         [forbidden(r"git push(?=.*[ :+](?:refs/heads/)?(?:main|dev)(?!\S))")]),
        ("Never rebase shared branches.", []),
        ("## Never\n\n- Force push or rebase shared branches",
         [forbidden(r"git push(?=.* (?:--force\S*|-f)(?!\S))")]),
        ("Commit messages must follow conventional format.",
         [{"name": "commit_message", "pattern": rf"\A{TYPES} \S"}]),
        ("## Commit messages\n\n- Valid scopes: `api`, `web`",
         [{"name": "commit_message", "pattern": r"\A[a-z]+(?:\((?:api|web)\))?!?:"}]),
        # tables
        ("See `apps/web/a.ts`.\n\n"
         "| Change type | Required gate |\n|---|---|\n| Frontend | `make test` |",
         [after("apps/web/*")]),
        ("| Change type | Required gate |\n|---|---|\n| Rust | `make test` |\n| Other | `make` |",
         [after("*.rs")]),
        ("See `apps/web`.\n\nWeb changes: `make test --filter=web`",
         [after("apps/web/*", r"make test --filter=web(?!\S)")]),
        ("Run `dev:web`, `pnpm --filter web test`.\n\nWeb changes: `make test`", []),
        # files
        ("Generated files are not hand-edited: `db/schema.ts`, `api/.gen/`.",
         [{"name": "file_not_touched", "path": "db/schema.ts"},
          {"name": "file_not_touched", "path": "api/.gen/*"}]),
        ("Keep `__version__` (in `a.py`) in sync with `version` in `b.toml`.",
         [together("b.toml", "a.py")]),
        (r"After modifying code, run `.\venv\graph.exe update` from the repository root.",
         [after(CODE, r"\.\\venv\\graph\.exe update(?!\S)")]),
        # tools and package managers
        ("Run Python commands with `uv` from `api/`.",
         [forbidden(r"(?!uv run )python3?(?!\S)")]),
        ("Avoid `grep`; use `rg` instead.", [forbidden(r"grep(?!\S)")]),
        ("Avoid `grep`; use `rg` unless it is missing.", []),
        ("Use `bun install` and `bun run` (never npm or yarn).",
         [forbidden(r"(?:npm(?!\S)|yarn(?!\S))")]),
        ("The package manager is bun, not npm.", [forbidden(r"npm(?!\S)")]),
        ("Never use `cat` to read files.",
         [{"name": "prefers", "use": r"(?i)(?:read|view)\w*\b", "rather_than": r"cat \S"}]),
        ("Never use `cat` to read secrets.", []),
        ("Always use `uv run` to run Python scripts.", [forbidden(r"(?!uv run )python3?(?!\S)")]),
    ],
)  # fmt: skip
def test_a_rule_in_other_words(text, specs):
    assert measures_of(text) == specs


def test_a_manager_that_a_project_uses_rules_out_the_others():
    for line in (
        "This project uses **pnpm**.",
        "Dependencies are installed with pnpm.",
        "Use Node `>=22` and `pnpm@9`.",
        "It uses `pnpm` for package management and builds.",
        "Use pnpm 11.8.0: `pnpm install`, `pnpm dev`.",
        "Runtime: Node.js 22; package manager: pnpm 11.",
        "**Package manager**: pnpm workspaces (pnpm 10, Node >=20 (or 24))",
        "**Package manager**: pnpm 9",
        "**Monorepo**: Turborepo + pnpm workspaces (package manager: pnpm)",
        "Use `pnpm install` for dependency installation.",
        "Install dependencies with `pnpm install` at the repository root.",
    ):
        (spec,) = measures_of(line)
        assert spec["command"].startswith("(?:npm (?:install"), line
    assert measures_of("This project uses npm workspaces.") == []


@pytest.mark.parametrize(
    ("line", "path", "keeps", "breaks"),
    [
        ("Read settings with `config()`, never direct `os.environ` access.", "a.py",
         "config()", "os.environ['A']"),
        ("Omit semicolons.", "a.ts", "let a = 1", "let a = 1;"),
        ("No trailing whitespace.", "a.py", "a = 1", "a = 1  "),
        ("Use `===`, never `==`.", "a.ts", "a === b", "a == b"),
        ("Use the base pipe (`|>`), not `%>%`.", "a.R", "x |> f()", "x %>% f()"),
        ("No empty catch blocks.", "a.ts", "catch (e) { log(e) }", "try { f() } catch (e) {}"),
        ("No `dynamic`.", "a.dart", "Object? a;", "dynamic a;"),
        ("Never leave TODO or FIXME comments.", "a.py", "# done", "# FIXME later"),
        ("Lines must not exceed 80 characters.", "a.py", "a" * 80, "a" * 81),
        ("Use `dayjs` instead of `moment`.", "a.ts", "import d from 'dayjs'",
         "import m from 'moment'"),
        ("There is still some `any`, do not add more.", "a.ts", "a: unknown", "a: any"),
        ("Never use inline imports - no `await import('./b.js')`.", "a.ts", "import b from './b'",
         "const b = await import('./b.js')"),
        ("Never use `alert` or `prompt`.", "a.ts", "dialog.prompt(x)", "prompt('x')"),
        ("Do not add `# noqa`.", "a.py", "a = 1", "import a  # noqa"),
        ("Never silence errors with `@ts-ignore`.", "a.ts", "a()", "// @ts-ignore\na()"),
        ("Always use `task { }`, never `async { }`.", "a.fs", "task { f }", "async { f }"),
        ("No hardcoded ANSI codes.", "a.py", 'red("a")', r'"\x1b[31m"'),
        ("Use absolute imports only.", "a.ts", "import a from '@/a'", "import a from '../a'"),
        ("Use `gap-*` instead of `space-x-*`.", "a.tsx", "gap-2", "space-x-2"),
        ("Never swallow exceptions with `except: pass`.", "a.py", "except E:\n    log()",
         "except E:\n    pass"),
        ("Never catch `Exception`.", "a.py", "except OSError:", "except Exception:"),
        ("Do not use `sys.path.insert`.", "a.py", "import sys", "sys.path.insert(0, '.')"),
        ("In MDX files, always use `<table>`, not pipe tables.", "a.mdx", "<table>", "| a | b |"),
        ("Use `const` instead of `function` for components", "a.tsx", "const A = () => 1",
         "export function App() {"),
        ("Use function, not const, for components.", "a.tsx", "function App() {",
         "const App = () => {"),
        ("No type assertions (`as X`).", "a.ts", "import a as B from 'b'", "let a = b as B"),
        ("No `todo!()`.", "a.rs", "done!()", 'todo!("x")'),
        ("No class components.", "a.tsx", "function A() {", "class A extends Component {"),
        ("Never use `it.only`.", "a.ts", "it('a')", "it.only('a')"),
        ("Use file-scoped namespaces.", "a.cs", "namespace A.B;", "namespace A.B {"),
        ("Never use `interface{}`.", "a.go", "type A interface { B() }", "var a interface{}"),
        ("Async state: Zustand (no Redux).", "a.ts", "import a from 'b'", "import a from 'redux'"),
        ("No f-strings in logging.", "a.py", 'log.info("%s", a)', 'logger.info(f"{a}")'),
        ("`src/core/` must not import from `src/ui/`.", "src/core/a.ts", "import b from './b'",
         "import b from '../ui/b'"),
        ("The domain layer must never import from the adapters layer.", "src/domain/a.py",
         "from app.domain import b", "from app.adapters.db import b"),
        ("- Parsing lives in `src/io/`. No serde imports anywhere else.", "src/a.rs",
         "use crate::a;", "use serde::Serialize;"),
        ("Rust: `snake_case` for functions, variables and modules", "a.rs", "fn a_b() {",
         "fn aB() {"),
        ("# Rust\n\n- `SCREAMING_SNAKE_CASE` for constants", "a.rs", "const A_B: u8 = 1;",
         "const ab: u8 = 1;"),
        ("PascalCase for types, traits, and enum variants", "a.rs", "trait Read {", "trait read {"),
        ("Use kebab-case for file names.", "src/a-b.ts", "1", None),
        ("Files: `snake_case.rs`; folders as you like", "a_b.rs", "1", None),
        ("Use the `@/` alias for internal imports.", "a.ts", "import a from './a'",
         "import a from '../a'"),
        ("Never use `fetch` inside a React component.", "a.jsx", "load()", "fetch('/a')"),
        ("Never use `System.out.println()` for application logging.", "a.java", "log.info(a)",
         "System.out.println(a)"),
        ("# TypeScript\n\nDo not use the `public` modifier.", "a.ts", "a: A", "public a: A"),
        ("Use `inject()` instead of constructor injection.", "a.ts", "a = inject(A)",
         "constructor(private a: A) {}"),
        ("`apps/web` must not depend on `@shop/db`.", "apps/web/a.ts", "import a from '@shop/ui'",
         "import a from '@shop/db'"),
        ("Never:\n\n- Use `any`, unsafe casts or `@ts-ignore` as shortcuts", "a.ts",
         "a: unknown", "// @ts-ignore"),
        ("Adhere to Prettier (single quotes, no semicolons and trailing commas).", "a.ts",
         "let a = 1", "let a = 1;"),
        ("Prettier: single quotes, semicolons, width 80", "a.ts", "a" * 80, "a" * 81),
        ("Indentation must be tabs.", "a.ts", "\ta", "    a"),
        ("# Python\n\nFollow PEP 8 and use type hints for all functions.", "a.py",
         "def f(a: int): ...", "def f(a): ..."),
        ("Named exports exclusively.", "a.ts", "export const a = 1", "export default a"),
        ("Leave NO todo's or gaps.", "a.py", "# done", "# TODO later"),
        ("Absolutely zero em-dashes in comments.", "a.py", "# a - b", "# a — b"),
        ("Never hard-code a hex value.", "a.css", "color: var(--a)", "color: #fff000"),
        ("Never hardcode colors in component files.", "a.tsx", "c={a}", "c='rgb(1, 2, 3)'"),
        ("Use `@render` for slots (instead of `<slot>`).", "a.svelte", "{@render a()}", "<slot />"),
        ("Don't use ngIf, but instead use @if.", "a.html", "@if (a)", "<a *ngIf='b'>"),
        ("Do not use Directory.SetCurrentDirectory as it has side effects.", "a.cs",
         "Directory.GetFiles(a)", "Directory.SetCurrentDirectory(a)"),
        ("- See `src/handlers/a.rs`.\n- Never use `unwrap()` in handlers.", "src/handlers/a.rs",
         "a?", "a.unwrap()"),
        ("# Python\n\nUse type hints for all functions.", "a.py",
         "def f(a: int, b=1): ...\n    def g(self): ...\ndef test_a(b): ...",
         "    def f(self, a, b: int): ..."),
        ("# Python\n\nType hints are required on all public functions.", "a.py",
         "def _f(a): ...", "async def f(a): ..."),
        ("# TypeScript\n\nUse explicit return types for all functions.", "a.ts",
         "function f(a: A): B {", "export function f(a: A) {"),
        ("# TypeScript\n\nUse explicit types for function parameters and return types.", "a.ts",
         "function f(a: A): B {", "export function f(a: A) {"),
        ("Python 3.11+, type hints everywhere (`from __future__ import annotations`).", "a.py",
         "def f(a: int): ...", "def f(a): ..."),
        ("Avoid enums; use maps instead.", "a.ts", "const a = {}", "enum A { B }"),
        ("Avoid the `any` type; use `unknown` when the type is uncertain.", "a.ts",
         "let a: unknown", "let a: any"),
        ("Use plain imports, avoid `export *`.", "a.ts", "export { a }", "export * from 'a'"),
        ("Use functional and declarative programming patterns; avoid classes.", "a.ts",
         'const a = "class b"', "export class A {}"),
        ("Interfaces prefixed with `I` (e.g., `IUser`).", "a.cs",
         "public interface IUser {", "public interface User {"),
        ("Do not prefix interfaces with `I`.", "a.ts",
         "interface Item {", "export interface IUser {"),
        ("4. C# / .NET style\n\n- Naming:\n  - Types and members: `PascalCase`", "a.cs",
         "class A {", "class a {"),
        ("| Element | Convention |\n|---|---|\n| Classes | PascalCase |", "a.py",
         "class A:", "class a:"),
        ("Do not set `maxDelay` back to `Infinity`.", "a.ts", "maxDelay: 0", "maxDelay: Infinity"),
        ("Must NOT set `standalone: true` inside Angular decorators.", "a.ts",
         "standalone: false", "  standalone: true,"),
        ("`from __future__ import annotations` at the top of every file.", "a.py",
         "from __future__ import annotations", "import a"),
    ],
)  # fmt: skip
def test_code_that_a_line_forbids_in_other_words(line, path, keeps, breaks):
    (measure,) = (build(spec) for spec in measures_of(line))
    assert measure.judge_turn(wrote(path, keeps)).value == 1
    if breaks is not None:
        assert measure.judge_turn(wrote(path, breaks)).value == 0


def test_a_file_with_a_name_in_another_case():
    (spec,) = measures_of("Use kebab-case for file names.")
    for path, value in (("src/myFile.ts", 0), ("src/my_file.ts", 0), ("src/[slug].tsx", 1)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


def test_the_language_of_files():
    for line in (
        "Use TypeScript for all new code.",
        "Write all code in TypeScript.",
        "**Language**: Use TypeScript for all logic (`src/` folder).",
        "No JavaScript files.",
    ):
        (spec,) = measures_of(line)
        for path, value in (("src/a/b.js", 0), ("src/a.jsx", 0), ("eslint.config.js", 1)):
            assert build(spec).judge_turn(wrote(path, "1")).value == value, (line, path)
        outside = build(spec).judge_turn(wrote("tools/a.js", "1")).value
        assert outside == ("src/" in line), line


def test_files_with_names_that_say_nothing():
    (spec,) = measures_of("No generic `utils.py` / `helpers.py` dump files.")
    for path, value in (("a/utils.py", 0), ("helpers.py", 0), ("a/string_utils.py", 1)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


def test_names_of_folders_inside_of_the_repository():
    for line in (
        "Use lowercase with dashes for directories (e.g., components/auth-wizard).",
        "- **Directories**: lowercase with dashes",
        "Folders: `kebab-case`",
    ):
        (spec,) = measures_of(line)
        for path, value in (
            ("src/authWizard/a.ts", 0),
            ("/Home/My_App/components/auth_wizard/a.ts", 0),
            ("/Home/My_App/components/auth-wizard/A.tsx", 1),
            ("src/__tests__/a.ts", 1),
        ):
            assert build(spec).judge_turn(wrote(path, "1")).value == value, (line, path)


def test_names_of_the_files_of_components():
    (spec,) = measures_of("Use PascalCase for React component file names (e.g., UserCard.tsx).")
    for path, value in (("src/components/userCard.tsx", 0), ("src/components/index.tsx", 1)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


def test_names_of_files_by_their_language():
    first, second = measures_of("Files: kebab-case for TypeScript, snake_case for Rust")
    for spec, path, value in ((first, "myFile.ts", 0), (second, "my-file.rs", 0)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path
    assert build(first).judge_turn(wrote("my_file.rs", "1")).value == 1


def test_a_name_of_a_file_in_the_folder_of_a_heading():
    (spec,) = measures_of("## Web (apps/web)\n\nConsistent file naming (kebab-case)")
    for path, value in (("apps/web/a/myFile.ts", 0), ("apps/api/myFile.ts", 1)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path


def test_forced_pushes_to_some_branches():
    (spec,) = measures_of("Never force-push to `main` or `next`.")
    pushes = ("git push -f origin next", 0), ("git push --force origin fix", 1)
    for command, value in pushes:
        turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),))
        assert build(spec).judge_turn(turn).value == value, command


def test_no_new_dependency_may_be_added():
    for line in ("No new dependencies.", "Do not install any packages."):
        (spec,) = measures_of(line)
        for command, value in (("npm install left-pad", 0), ("npm install", 1)):
            turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),))
            assert build(spec).judge_turn(turn).value == value, command


def test_signs_are_forbidden_in_commits_where_a_line_names_them():
    message, code = measures_of("No emojis in commits, issues or code.")
    assert (message["name"], code["name"]) == ("commit_message", "code_not_written")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": "git commit -m '🎉 new'"}),))
    assert build(message).judge_turn(turn).value == 0
    for line in ("No emojis in commit messages.", "No emojis in commits or commit messages."):
        assert measures_of(line) == [message]


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("Deprecated: never run `make bench`.", [forbidden(r"make bench(?!\S)")]),
        ("## Old code\n\n- Never edit `gen/`.", [{"name": "file_not_touched", "path": "gen/*"}]),
        ("## For contributors and maintainers\n\n- Never run `git push`.", [forbidden(PUSH)]),
        ("Run `make test` before committing any code changes.", [before(COMMIT)]),
        ("## Workflow\n\n1. Run `make test`, never skip it\n2. Commit", [before(COMMIT)]),
        ("Done? Run `make test` before committing.", [before(COMMIT)]),
    ],
)
def test_a_rule_beside_words_that_only_seem_to_limit_it(text, specs):
    assert measures_of(text) == specs


@pytest.mark.parametrize(
    "line",
    [
        "The commit is not signed by default.",
        "Ensure that errors are not swallowed.",
        "The build is blocked when tests fail.",
        "Install dependencies with npm before running the tests.",
        "We use uv for Python and pnpm for the frontend.",
        "Omit needless words.",
        "Omit the `id` field when creating a user.",
        "Use the `--draft` flag when you test.",
        "Do not start the server in tests.",
        "Keep `README.md` short and up to date.",
        "`a.ts` and `b.ts` are in sync already.",
        "Modules must not import each other.",
        "Do not import from other packages.",
        "TODO comments must have an issue number.",
        "Never leave a TODO without an owner.",
        "Use `snake_case` for column names.",
        "Use kebab-case for routes and query parameters.",
        "Use kebab-case for component files.",
        "The maximum line length of the CSV parser is 1000 characters.",
        "Emojis are welcome in commits.",
        "PR descriptions must include screenshots if the UI changed.",
        "Commit messages: short and clear",
        "Delete branches after merging.",
        "Never delete user data.",
        "Never delete tags from an image.",
        "Use Conventional Commits if possible.",
        "## Reading\n\n- [Conventional Commits](https://www.conventionalcommits.org)",
        "Run `make seed` before running the tests.",
        "For Rust changes see `docs/rust.md`.",
        "Never use sed to edit generated files.",
        "Never modify `main.ts` unless you know what you do.",
        "Ask before changing public APIs.",
        "No credits in the footer.",
        "Use `function` for generators, `const` for callbacks.",
        "Check that `git status` is clean.",
        "All tests pass (`npm test`) on CI.",
        "Only edit `lang/en.json` directly - other locales are translated elsewhere.",
        "Never use `prompt`.",
        "For debugging: `E2E_DEBUG=true` runs in-process (no Docker)",
        "Never use `script/tag-release`.",
        "Never ignore errors with `_`.",
        "Use `let`, not `var` (Swift).",
        # facts about code, and examples
        "`load` returns Rows, not `Row`.",
        "`load` is an `A`, not a `Foo.bar`.",
        "`Foo.bar`, not `Foo.baz`.",
        "Use clear names: `user => user.id`, not `u => u.id`.",
        "Never use `fn(name: string)`.",
        "Cursor rules: none found in this repository (no `.cursorrules`).",
        "Satellites via `/api/x` (no auth, `FORMAT=json`).",
        "No Prisma `enum` or `Decimal`.",
        # preferences
        "Avoid `any`.",
        "Avoid long functions, use helpers.",
        "Use small functions and avoid side effects.",
        # about a part of the repository or of the work, or about what is said
        "Backend: no `os.system`.",
        "Cross-package imports: use the name of the package, never relative paths.",
        "- Tooltips in the header bar: use `a.b`. Never use `c.d()`.",
        "## Adding a new page\n\n- Run `make test` before committing",
        "## How to write a plugin\n\n- Use `pathlib` instead of `os.path`",
        "## PR reviews\n\n- No em dashes",
        "Never use `--force`.",
        "Do not add runtime dependencies.",
        "No new dependencies unless they are small.",
        "- Using `a.x()` instead of `b.y()` (breaks the build)",
        "`main` is the last release - never merge directly",
        "PR descriptions must include Risks.",
        "The hook mends the message and the commit completes in one go - no `--no-verify`.",
        "# App\n\n## Backend (`api/`)\n\nAlways run `make test` before committing.",
        "## Releasing\n\n1. Bump the version.\n2. Open PRs against `stable`.",
        # of the past, of other people, quoted, or asked
        "The old rule was: never run `git push`.",
        "The rule used to be: never push to `main`.",
        "Previously: never run `make bench`.",
        "Old policy: indent with tabs.",
        "Deprecated: always run `make test` before committing.",
        "## Old workflow (don't follow)\n\n1. Run `make test`\n2. Commit",
        "Myth: commits must be signed off.",
        "Idea: open PRs as drafts.",
        "TODO: always run `make test` before committing.",
        "The error message reads: never edit `gen/`.",
        'Quote: "Always run `make test` before committing."',
        "## Workflow for maintainers\n\n1. Run `make test`\n2. Commit",
        "## Commit process (humans only)\n\n1. Run `make test`\n2. Commit",
        "Run `make test` before committing? No, CI does that.",
        "No default exports. Pages are the exception.",
        "Run `make test` before committing large changes.",
        # steps of a workflow that are not the agent's, or may be left out
        "## Workflow\n\n1. Ask the user to run `make test`\n2. Commit",
        "## Workflow\n\n1. `make test` is run by CI\n2. Commit",
        "## Workflow\n\n1. Skip `make test`\n2. Commit",
        "## Workflow\n\n1. Run `make test` (slow; skip it for docs)\n2. Commit",
    ],
)
def test_what_only_sounds_like_a_rule_drafts_none(line):
    assert measures_of(line) == []


def test_many_lines_alike_take_time_in_proportion_to_their_number(tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text("- a\n" + "Be kind\n" * 4000)
    start = time.process_time()
    text = suite_text([draft_lines(path)])
    # 0.6 s here; readers that search the file for each line, or compare names in pairs, take 60 s
    assert time.process_time() - start < 10
    assert "id: kind-4000" in text


@pytest.mark.parametrize(
    "line",
    [
        "Never hardcode `projectId`.",
        "Work exclusively on `feature/login`.",
        "Prefix commit messages with `package:`.",
        "Prefix commit messages with `TICKET-ID`.",
        "- Work on the `develop` branch; `main` is protected. Do not commit to it.",
        "Use TypeScript for all front-end code.",
        "The `docs/` folder is a site. It uses npm for package management.",
        "Don't commit, push, or rebase shared branches.",
    ],
)
def test_what_may_mean_something_narrower_is_no_rule(line):
    assert measures_of(line) == []


def test_what_is_named_exactly_is_a_rule_beside_it():
    (only,) = measures_of("Work only on the `web/` folder.")
    assert only["files"] == ["*", "!web/*"]
    (branch,) = measures_of("- The `main` branch is protected. Do not commit to it.")
    assert branch["pattern"] == "^(?!main$)"
    assert measures_of("Prefix commit messages with `cli:`.")
    assert measures_of("Never commit or push.")


def test_a_folder_that_is_named_after_a_parameter_has_no_case():
    (spec,) = measures_of("Use lowercase with dashes for directories.")
    for path, value in (("app/users/[userId]/page.tsx", 1), ("app/userPages/[id]/page.tsx", 0)):
        assert build(spec).judge_turn(wrote(path, "1")).value == value, path
