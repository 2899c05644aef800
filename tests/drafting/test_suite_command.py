"""`holdfast suite`: a suite drafted from a rules file, and a suite's measures on labelled turns.

The rules files here are ours; they have the lines that AGENTS.md files of public repositories have.
"""

import json
import time
from pathlib import Path

import pytest
import yaml
from agent_turns import asked, ran, said, wrote
from drafted_measures import measures_of
from refusals import refusal_in

from holdfast.cli import main
from holdfast.drafting import draft_file, suite_text
from holdfast.drafting.drafted_files import draft_lines
from holdfast.drafting.drafts import Undrafted
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import Element, read_statements
from holdfast.drift import load_suite
from holdfast.drift.cases import LabelledTurn
from holdfast.drift.rule_examples import score_labelled
from holdfast.measures import build

TYPE_CHECKING = """import a

if TYPE_CHECKING:
    import b

    from c import d
try:
    import e
except ImportError:
    import f
"""
RULES = [  # a line, a turn that follows it, one that breaks it
    ("Use pnpm, not npm or yarn.", ran("pnpm add x"), ran("yarn add x")),
    ("ONLY use uv, NEVER pip", ran("uv pip install x"), ran("python -m pip install x")),
    ("Do not use npm/yarn/pnpm.", ran("bun install"), ran("cd web && npm ci")),
    ("- Use `just test` instead of `cargo test`.", ran("just test"), ran("cargo test -p core")),
    ("Never run `git push --force`.", ran("git push"), ran("git push origin main --force")),
    ("You must never force-push.", ran("git push -u origin main"), ran("git push -f")),
    ("Never force-push to main.", ran("git push -f origin x"), ran("git push origin +main")),
    ("`kubectl delete` is off limits.", ran("kubectl get"), ran("kubectl delete pod a")),
    ("NEVER use `git add -A` or `git add .`!", ran("git add src"), ran("git add --all")),
    ("Do not use `rm -rf`", ran("rm -f x"), ran("sudo rm -r -f x")),
    ("Don't skip pre-commit hooks", ran("git commit -m x"), ran("git commit -n -m x")),
    ("## Do NOT\n\n- Use npm or yarn", ran("pnpm i"), ran("npm i")),
    ("Do not use `rm -rf`.", ran("rm -r x"), ran("rm --recursive --force x")),
    ("Never force push.", ran("git push origin main"), ran("git push origin +main")),
    ("Run `pytest` before committing.", ran("uv run python -m pytest && git commit -m x"),
     ran("git commit -m x")),
    ("- `/lib` (do not edit)", wrote("/home/me/shop/src/x.py"), wrote("/home/me/shop/lib/x.py")),
    ("Do not edit `/lib`.", wrote("library/x.py"), wrote("lib")),
    ("Never touch `.github`", wrote(".gitignore"), wrote(".github/workflows/ci.yml")),
    ("Do not touch `node_modules`.", wrote("src/x.js"), wrote("node_modules/a/x.js")),
    ("Never edit `*.{gen,pb}.ts`", wrote("a.ts"), wrote("src/a.pb.ts")),
    (
        "Always run `make test` before committing changes.",
        ran("make test", "git commit -m x"),
        ran("git commit -m x", "make test"),
    ),
    ("Before every commit, run `make lint`", ran("make lint; git commit"), ran("git commit -am x")),
    (
        "Before pushing, run:\n```bash\nmake lint  # fast\n```",
        ran("make lint", "git push"),
        ran("git push"),
    ),
    ("### Before committing\n1. Run `npm test`", ran("npm test && git commit"), ran("git commit")),
    ("Do not edit files in `vendor/`.", wrote("src/a.go"), wrote("vendor/a.go")),
    ("`src/gen/` is generated; do not edit it.", wrote("src/a.ts"), wrote("/app/src/gen/a.ts")),
    ("Commit messages follow Conventional Commits.", ran("git commit -m 'fix(api): it'"),
     ran("git commit -m 'Fixed it'")),
    ("Do not add Co-Authored-By trailers to commits", ran("git commit -m 'fix: it'"),
     ran("git commit -m 'fix: it\n\nCo-Authored-By: A <a@b.c>'")),
    ("Commits: keep the subject line under 20 characters", ran("git commit -m 'fix: it'"),
     ran("git commit -m 'fix: something that is too long'")),
    ("Always answer in German.", said("Das ist ein guter Gedanke, danke dafür."),
     said("That is a good thought, thank you.")),
    ("Restrict each reply to 4 words.", said("Here it is."), said("Here it is, as you asked.")),
    ("Limit your answers to 2 lines.", said("Here.\nIt is."), said("Here.\nIt\nis.")),
    ("Keep responses to 10 characters.", said("Here it is"), said("Here it is.")),
    ("Replies must be limited to 1-2 sentences.", said("Yes. No."), said("Yes. No. Yes.")),
    ("Keep replies under 5 words.", said("Here it is."), said("Here it is, as you asked me.")),
    ("Never use emojis.", said("Done."), said("Done 🎉")),
    ('End every reply with "Ciao!"', said("Bene. Ciao!"), said("Bene.")),
    ('Never use the words "simply" or "just"', said("Run it."), said("Simply run it.")),
    ("Before committing, make sure `tools/fmt.js` is run to format it.",
     ran("tools/fmt.js", "git commit -m x"), ran("git commit -m x")),
    ("- **Lint**: `yarn lint` - Run all linting before committing", ran("yarn lint; git commit"),
     ran("git commit")),
    ("Before submitting:\n- Run pytest (100% pass).", ran("pytest", "git push"), ran("git push")),
    ("Reply in at most one sentence.", said("It is done."), said("It is done. It works.")),
    ('Never say "as an AI".', said("I think so."), said("As an AI, I think so.")),
    ('Never include "Co-Authored-By: Claude" in commit messages.', ran("git commit -m 'fix: it'"),
     ran("git commit -m 'fix: it\n\nCo-Authored-By: Claude <a@b.c>'")),
    ("Stage files by name, not `git add -A` or `git add .`.", ran("git add src"),
     ran("git add -A")),
    ("You MUST not git commit files unless explicitly asked.", asked("Commit it.", "git commit"),
     asked("Fix it.", "git commit")),
    ("When pushing to a PR, make sure to never force push.", ran("git push"), ran("git push -f")),
    ("Do not create setup.py", wrote("pyproject.toml"),
     wrote("setup.py")),
    ("Never edit `config/project/` YAML files directly", wrote("config/project/a.php"),
     wrote("config/project/a.yaml")),
    ("The file `src/_version.py` is auto-generated and must not be committed.",
     wrote("a.py", "x", "git add a.py", "git commit -m x"),
     wrote("src/_version.py", "x", "git add src/_version.py", "git commit -m x")),
    ("Open a pull request (PR) against the `main` branch on GitHub.",
     ran("gh pr create --base main -t x -b y"), ran("gh pr create --base dev -t x -b y")),
    ("Tabs for indentation (not spaces)", wrote("a.ts", "\tx"), wrote("a.ts", "    x")),
    ("100 character line width", wrote("a.ts", "x" * 100), wrote("a.ts", "x" * 101)),
    ("In tests do not use `.ConfigureAwait(false)`", wrote("A.Tests/a.cs", "await X();"),
     wrote("A.Tests/a.cs", "await X().ConfigureAwait(false);")),
    ("## Testing\n\n- No `Task.Delay`", wrote("src/a.cs", "Task.Delay(1)"),
     wrote("tests/a.cs", "Task.Delay(1)")),
    ("Python: do NOT use `type X = Y`", wrote("a.py", "Name = int"),
     wrote("a.py", "type Name = int")),
    ("Never call `SetVariable(key, null)`", wrote("a.cs", "SetVariable(name, value)"),
     wrote("a.cs", "SetVariable(name, null)")),
    ("Do not use `datetime.now()`, use `datetime.now(timezone.utc)`",
     wrote("a.py", "datetime.now(timezone.utc)"), wrote("a.py", "datetime.now()")),
    ("No inline styles", wrote("a.twig", "<p class=x>"), wrote("a.twig", '<p style="x">')),
    ("Never use inline styles.", wrote("a.tsx", "<A style={styles.a} />"),
     wrote("a.tsx", "<A style={{ x: 1 }} />")),
    ("`gen/` and `out.exe` are built by CI — never commit them.",
     wrote("a.py", "x", "git add a.py", "git commit -m x"),
     wrote("out.exe", "x", "git add out.exe", "git commit -m x")),
    ("Do not change the application's dependencies without approval.",
     asked("Add zod.", "npm install zod"), asked("Fix it.", "npm install zod")),
    ("If you have modified any PHP files, you must run `vendor/bin/pint` before finalizing changes",
     wrote("a.php", "x", "vendor/bin/pint"), wrote("a.php")),
    ("### PR Title Format\n\n`<type>(<scope>): <title>`",
     ran("gh pr create -t 'fix(x): it' -b y"), ran("gh pr create -t 'Fix it' -b y")),
    ("- **4-space indentation** — no tabs", wrote("a.ps1", "    x"), wrote("a.ps1", "\tx")),
    ("Use explicit loops instead of `Array.zipWith3` (not available)",
     wrote("a.lean", "for x in y"), wrote("a.lean", "Array.zipWith3 x")),
    ("Prefer `rg` over `grep`.", ran("rg x"), ran("grep x .")),
    ("Never run `git push --force` unless you are asked to.", ran("git push"),
     asked("Fix it.", "git push --force")),
    ("Do not commit unless the user explicitly asks.", asked("Commit it.", "git commit -m x"),
     asked("Fix it.", "git commit -m x")),
    ("Never use `any`.", wrote("a.ts", "const a: string = b"), wrote("a.ts", "const a: any = b")),
    ("Use `pathlib` instead of `os.path`.", wrote("a.py", "Path(x)"),
     wrote("a.py", "os.path.join(x)")),
    ("No `console.log` in production code", wrote("a.ts", "log(x)"),
     wrote("a.ts", "console.log(x)")),
    ("Do not use `os.Exit()` outside of `main.go`.", wrote("main.go", "os.Exit(1)"),
     wrote("a.go", "os.Exit(1)")),
    ("Maximum line length: 20", wrote("a.py", "x" * 20), wrote("a.py", "x" * 21)),
    ("After changing `api.proto`, run `make gen`.", wrote("api.proto", "x", "make gen"),
     wrote("api.proto", "x")),
    ("Run `make lint` after every code change", wrote("a.py", "x", "make lint"),
     wrote("a.py", "x")),
    ("PRs target `develop`", ran("gh pr create -B develop -t x -b y"),
     ran("gh pr create -B main -t x -b y")),
    ("Pull request titles must follow Conventional Commits.",
     ran("gh pr create -t 'fix: it' -b y"), ran("gh pr create -t 'Fix it' -b y")),
    ("Commit messages: imperative mood, max 20 characters", ran("git commit -m 'Fix it'"),
     ran("git commit -m 'Fix something that is long'")),
    ("## Commits\n\n- Capitalize the subject line", ran("git commit -m 'Fix it'"),
     ran("git commit -m 'fix it'")),
    ("Never commit `.env` files", ran("git add a.py; git commit -m x"),
     ran("git add .env; git commit -m x")),
    ("### Before committing\n- Format: `make fmt` to fix the layout", ran("make fmt; git commit"),
     ran("git commit")),
    ("## Pre-commit checklist\n- `make lint` passes", ran("make lint; git commit"),
     ran("git commit")),
    ("All code must pass `make lint` before committing.", ran("make lint; git commit"),
     ran("git commit")),
    ("Run pre-commit hooks before pushing", ran("pre-commit run -a; git push"), ran("git push")),
    ("Never mark done until `make check` passes.", wrote("a.py", "x", "make check"),
     wrote("a.py", "x")),
    ("Before completing changes:\n1. `make lint` -- checks the style",
     wrote("a.py", "x", "make lint"), wrote("a.py", "x")),
    ("Never modify system files (`/etc`)", wrote("a.conf"), wrote("/etc/a.conf")),
    ("Don't commit or bump versions unless asked.", asked("Commit it.", "git commit -m x"),
     asked("Fix it.", "git commit -m x")),
    ("Do not bypass hooks with `--no-verify`.", ran("git commit -m x"),
     ran("git commit --no-verify -m x")),
    ("Every commit must be a simple one-liner.", ran("git commit -m 'Fix it'"),
     ran("git commit -m 'Fix it\n\nAll of it.'")),
    ("Use `<Img>` not `<img>`", wrote("a.tsx", "<Img src={x} />"), wrote("a.tsx", "<img src='x'>")),
    ("`#[allow(dead_code)]` is absolutely forbidden.", wrote("a.rs", "fn x() {}"),
     wrote("a.rs", "#[allow(dead_code)]")),
    ("Never push to `main`.", ran("git push origin x"), ran("git push origin main")),
    ("All PRs MUST target the `dev` branch, not `main`.", ran("gh pr create --base dev"),
     ran("gh pr create --base main")),
    ("Docs are changed in `docs/`, never by editing `a.typ`.", wrote("b.typ"), wrote("a.typ")),
    ("Use the tool rather than editing `tasks.json` directly.", wrote("a.json"),
     wrote("tasks.json")),
    ("When updating: do not edit `tasks.json` by hand.", wrote("a.json"), wrote("tasks.json")),
    ("Commit messages start with a meaningful emoji, and stay short.",
     ran("git commit -m '🎉 Add it'"), ran("git commit -m 'Add it'")),
    ('Before committing, run `python ctl.py guard T-1 -m "…" --allow <path>`.',
     ran("python ctl.py guard T-7", "git commit -m x"), ran("git commit -m x")),
    ("Conventional commits (feat, fix, docs)", ran("git commit -m 'feat: x'"),
     ran("git commit -m x")),
    ("Never leave TODOs, placeholders or gaps.", wrote("a.py"), wrote("a.py", "# TODO: this")),
    ("Never use `powershell.exe`; use `pwsh`.", ran("pwsh a.ps1"), ran("powershell.exe a.ps1")),
    ("Max 80 characters per line.", wrote("a.py"), wrote("a.py", "x" * 81)),
    ("Use pnpm.", ran("pnpm install"), ran("npm install")),
    ("Validate before handoff: `make lint`", wrote("a.py", "x", "make lint"), wrote("a.py")),
    ("The repository has two lock files, but NEVER run `npm install`.", ran("yarn add x"),
     ran("npm install x")),
    ("PR bodies must always include a `Notes:` section.", ran("gh pr create -b 'Notes: none'"),
     ran("gh pr create -b 'It works.'")),
    ("- `gen/`: Generated files. Don't edit directly, regenerate with `make gen`", wrote("a.py"),
     wrote("gen/a.py")),
    ("## Required Before Each Commit\n\n- Run `make lint` to find mistakes.",
     ran("make lint", "git commit -m x"), ran("git commit -m x")),
    ("Never deploy Azure resources without explicit authorization.",
     asked("Deploy it.", "az deployment group create"), asked("Go.", "az deployment group create")),
    ("Never push without explicit user request. Only when told, do so.",
     asked("Push it.", "git push"), asked("Fix it.", "git push")),
    ("Open a PR instead of pushing directly to `main`", ran("git push origin x"),
     ran("git push origin main")),
    ("Run `just fmt` as the last step before every commit.", ran("just fmt", "git commit -m x"),
     ran("git commit -m x")),
    ("Run `just test` before every commit, adding a report.", ran("just test", "git commit -m x"),
     ran("git commit -m x")),
    ("Do not run `nvm`/`fnm` or any version switcher.", ran("node -v"), ran("nvm use 20")),
    ("No em dashes.", wrote("a.md", "a - b"), wrote("a.md", "a — b")),
    ("**Generated files — do not hand-edit:** `a.mjs`", wrote("b.mjs"), wrote("a.mjs")),
    ("Do not modify agent skills or agent directories (`.agents/`).", wrote("a.md"),
     wrote(".agents/a.md")),
    ("Use `config()`, never `env()` outside config files.", wrote("config/a.php", "env('A')"),
     wrote("src/a.php", "env('A')")),
    ("Never hardcode hex/rgb values in components.", wrote("a.vue", "color: var(--a)"),
     wrote("a.vue", "color: #fff000")),
    ("Don't use `makeId()`, as `makeId()->x()` fails.", wrote("a.php", "makeKey('a')"),
     wrote("a.php", "makeId('a')")),
    ("After editing `a.json` or any file under `src/`, rebuild via `make all`",
     wrote("src/a.ts", "x", "make all"), wrote("src/a.ts")),
    ("Force-pushing to `main` is strictly forbidden.", ran("git push"),
     ran("git push -f origin main")),
    ("Direct pushes to `main` are not allowed.", ran("git push origin x"),
     ran("git push origin main")),
    ("Use ES modules (import/export) syntax, not CommonJS (require)", wrote("a.js", "import a"),
     wrote("a.js", "const a = require('b')")),
    ("No jQuery — use Alpine.js for interactivity.", wrote("a.js", "import a from 'alpinejs'"),
     wrote("a.js", "import $ from 'jquery'")),
    ("Use dayjs, not moment.", wrote("a.ts", "import a from 'dayjs'"),
     wrote("a.ts", "import a from 'moment/locale/de'")),
    ("Use httpx instead of requests.", wrote("a.py", "import httpx"),
     wrote("a.py", "import requests")),
    ("Import from `'./client'`, not `'@prisma/client'`.", wrote("a.ts", "import a from './client'"),
     wrote("a.ts", "import a from '@prisma/client'")),
    ("All imports must be at the top of the file.", wrote("a.py", "import os"),
     wrote("a.py", "def f():\n    import os")),
    ("No relative imports.", wrote("a.ts", "import a from '@/a'"),
     wrote("a.ts", "import a from '../a'")),
    ("No `using` statements — use `GlobalUsings.cs`.", wrote("a.cs", "// It is using it."),
     wrote("a.cs", "using System;")),
    ("Catch specific exceptions (`OSError`); never bare `except Exception`.",
     wrote("a.py", "except OSError:"), wrote("a.py", "except Exception:")),
    ("Never hardcode hex values in CSS rules or HTML style attributes.",
     wrote("a.css", "a {color: var(--a)}"), wrote("a.html", "<p style='color: #fff000'>")),
    ("Do not use npm or yarn to install packages.", ran("npm run x"), ran("yarn add x")),
    ("Do not run `vendor/bin/pint --test`, simply run `vendor/bin/pint`.", ran("vendor/bin/pint"),
     ran("vendor/bin/pint --test")),
    ("Do not use other web servers (`python -m http.server`, etc.).", ran("astro dev"),
     ran("python -m http.server 80")),
    ("Vanilla JS only — no framework, no build step, no npm", ran("node a.js"),
     ran("npm install x")),
    ("**Package manager**: bun (preferred over npm/yarn)", ran("bun add x"), ran("npm install x")),
    ("Branch naming: `feature/description`, `fix/description`", ran("git checkout -b fix/x"),
     ran("git checkout -b patch-1")),
    ("Always create branches with the prefix `bot/`.", ran("git switch -c bot/x"),
     ran("git switch -c x")),
    ("Branch names: `<type>/<description>`", ran("git branch a/b", "git branch -d c"),
     ran("git branch b")),
    ("Run `npm ci` before every push to verify it.", ran("npm ci", "git push"),
     ran("git push")),
    ("Run `cargo fmt` before committing any Rust code changes.", ran("cargo fmt; git commit"),
     ran("git commit")),
    ("Run `make test` prior to merging.", ran("make test", "gh pr merge 3"), ran("gh pr merge 3")),
    ("- **Validate before commit.** Run `make lint`.", ran("make lint", "git commit"),
     ran("git commit")),
    ("Before pushing, run:\n```\ndocker run --rm \\\n  img test\n```",
     ran("docker run --rm img test", "git push"), ran("git push")),
    ("When making changes, run these commands:\n- `make lint`", wrote("a.ts", "x", "make lint"),
     wrote("a.ts")),
    ("Always run these checks before declaring the task done:\n- **Run Clippy** (`cargo clippy`)",
     wrote("a.rs", "x", "cargo clippy"), wrote("a.rs")),
    ("Do not install or use new libraries without approval.", asked("Add zod.", "npm add zod"),
     asked("Fix it.", "npm add zod")),
    ("Never delete files, badges, or content without explicit user approval.",
     asked("Delete a.md.", "rm a.md"), asked("Fix it.", "rm a.md")),
    ("## PR titles\n\n- Title must start with a lowercase letter", ran("gh pr create -t 'fix: it'"),
     ran("gh pr create -t 'fix: It'")),
    ("Do not commit lock files or `reports/`.", wrote("a.py", "x", "git add a.py", "git commit"),
     wrote("reports/a", "x", "git add reports/a", "git commit -m x")),
    ("Never create `.js` files.", wrote("a.ts"), wrote("src/a.js")),
    ('Run `pytest -m "not slow"` before every commit.', ran("pytest -m 'not slow'", "git commit"),
     ran("pytest", "git commit")),
    ("After making Go changes, always run `go vet ./...` before committing.",
     ran("go vet ./...", "git commit"), ran("git commit")),
    ("Confirm `make test` succeeds locally before requesting review.",
     ran("make test", "gh pr create"), ran("gh pr create")),
    ("Before creating or updating a PR, run these:\n1. `make fmt` — the layout",
     ran("make fmt", "gh pr create"), ran("gh pr create")),
    ("After every change, run `just all`; if anything fails, fix it.",
     wrote("a.py", "x", "just all"), wrote("a.py")),
    ("Validation sequence before marking work complete: `make all`", wrote("a.py", "x", "make all"),
     wrote("a.py")),
    ("Every change must pass before claiming complete:\n```\nmake all\n```",
     wrote("a.py", "x", "make all"), wrote("a.py")),
    ("Open PRs targeting `staging` (not main)", ran("gh pr create -B staging"),
     ran("gh pr create -B main")),
    ("**Never amend commits** - make new ones", ran("git commit"), ran("git commit --amend")),
    ("Make new commits for fixes, never use `--amend`.", ran("git commit"),
     ran("git commit --amend")),
    ("**Branch:** `{type}/{number}`", ran("git checkout -b fix/7"), ran("git checkout -b seven")),
    ("Don't switch branches without permission.",
     asked("Switch to branch a.", "git switch a"), asked("Fix it.", "git switch a")),
    ("Never commit sensitive data (.env files, credentials)",
     wrote("a", "x", "git add a; git commit"),
     wrote(".env", "x", "git add .env; git commit -m x")),
    ("Never `mattn/go-sqlite3` (CGO).", wrote("a.go", 'import "modernc.org/sqlite"'),
     wrote("a.go", 'import "github.com/mattn/go-sqlite3"')),
    ("### NEVER USE\n- Redux/MobX (use Zustand)", wrote("a.ts", "import a from 'zustand'"),
     wrote("a.ts", "import a from 'mobx'")),
    ("### JavaScript\n- Maintain 2-space indentation", wrote("a.js", "  x"), wrote("a.js", "\tx")),
    ("Do not put `assert` statements in production code.",
     wrote("tests/test_a.py", "assert x"), wrote("src/a.py", "assert x")),
    ("No inline imports.", wrote("a.py", TYPE_CHECKING),
     wrote("a.py", f"{TYPE_CHECKING}\n\ndef f():\n    import b")),
    ("All imports must be at the top of the file.", wrote("a.py", TYPE_CHECKING),
     wrote("a.py", "def f():\n    from a import b")),
    ("Never import from `src/internal`.", wrote("a.ts", 'import x from "src/internals"'),
     wrote("a.ts", 'import x from "src/internal/db"')),
    *(
        ("Branch names must start with `feature/`.", ran(command), ran("git checkout -b x"))
        for command in (
            "git branch > x",
            "git branch 2>/dev/null",
            "git checkout -b $BRANCH",
            'git checkout -b "fix-$NAME"',
            "git branch feature/a",
        )
    ),
    ("No emojis in code or output", wrote("a.go", "x"), wrote("a.go", "🎉")),
    ("No requestAnimationFrame loops.", wrote("a.ts", "tick()"),
     wrote("a.ts", "requestAnimationFrame(tick)")),
    ("## Absolutely forbidden\n\n- setTimeout/setInterval (use `schedule`)",
     wrote("a.ts", "schedule(x)"), wrote("a.ts", "setInterval(x)")),
    ("## PR checklist\n\n- Lints clean: `make lint`.", ran("make lint", "gh pr create"),
     ran("gh pr create")),
    ("## Branch naming\n\n```\n<type>/<description>\n```", ran("git switch -c fix/a"),
     ran("git switch -c a")),
    ("Commit messages should reference issues.", ran("git commit -m 'Fix it (#7)'"),
     ran("git commit -m 'Fix it'")),
    ("Never create tags without approval.", asked("Tag it.", "git tag v1"),
     asked("Fix it.", "git tag v1")),
    ("所有输出文本（含回复、日志）**必须使用中文**。", said("今天天气很好，我们去公园散步吧。"),
     said("That is a good thought, thank you.")),
    ("始终使用中文回复。", said("今天天气很好，我们去公园散步吧。"),
     said("That is a good thought, thank you.")),
    ("Responda sempre em português.", said("Esta é uma boa ideia, muito obrigado por ela."),
     said("That is a good thought, thank you.")),
    ("Use German for all replies.", said("Das ist ein guter Gedanke, danke dafür."),
     said("That is a good thought, thank you.")),
    ("Replies must be in Simplified Chinese.", said("今天天气很好，我们去公园散步吧。"),
     said("That is a good thought, thank you.")),
    ("Never use exclamation marks in your replies.", said("Done."), said("Done!")),
    ("End every reply with a question.", said("Done. What next?"), said("Done.")),
    ("No emojis in chat.", said("Done."), said("Done 🎉")),
    ("Always lint the code before committing: `make lint`", ran("make lint; git commit -m x"),
     ran("git commit -m x")),
    ("Run the tests (`make test`) before every commit.", ran("make test; git commit -m x"),
     ran("git commit -m x")),
    ("Run the type checker before pushing (`npm run types`).", ran("npm run types", "git push"),
     ran("git push")),
    ("**Pre-commit checks:** `make lint`", ran("make lint; git commit -m x"),
     ran("git commit -m x")),
    ("Run the linter after every code change: `make lint`.", wrote("a.py", "x", "make lint"),
     wrote("a.py", "x")),
    ("Run the linter after every code change (`make lint`).", wrote("a.py", "x", "make lint"),
     wrote("a.py", "x")),
    ("Never merge to `main` yourself — wait for explicit human approval.",
     asked("Merge it.", "gh pr merge 7"), asked("Fix it.", "gh pr merge 7")),
    ("After edits, verify with `pnpm lint` before reporting done.",
     wrote("a.ts", "x", "pnpm lint"), wrote("a.ts", "x")),
    ("After making changes, run the type checker (`tsc --noEmit` or equivalent) before considering"
     " the task done.", wrote("a.ts", "x", "npx tsc --noEmit"), wrote("a.ts", "x")),
    ("Commits carry no co-author trailer.", ran("git commit -m 'fix: it'"),
     ran("git commit -m 'fix: it\n\nCo-Authored-By: A <a@b.c>'")),
    ("Do not directly import or call `encoding/json`.", wrote("a.go", 'import "fmt"'),
     wrote("a.go", 'import "encoding/json"')),
    ("**PR titles must be a valid Conventional Commit** — a check of CI rejects others.",
     ran("gh pr create -t 'fix: it' -b y"), ran("gh pr create -t 'Fix it' -b y")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "follows", "breaks"), RULES, ids=[row[0] for row in RULES])
def test_a_line_that_a_program_can_decide_becomes_one_rule_that_decides_it(line, follows, breaks):
    (spec,) = measures_of(line)
    measure = build(spec)
    good, bad = measure.score_turn(follows), measure.score_turn(breaks)
    assert (good is None or good.value > 0.99) and bad is not None and bad.value < 0.5


def test_a_line_with_several_commands_becomes_a_rule_for_each():
    specs = measures_of("Run `make lint` and `make test && make docs` before committing.")
    assert [spec["first"] for spec in specs] == [
        r"make lint(?!\S)",
        r"make test(?!\S)",
        r"make docs(?!\S)",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Avoid `grep`.", "preference"),
        ("Do not edit `/bin`.", "measure"),  # of the system, or of the repository
        ("Never modify `../shared`.", "measure"),  # logs have the whole path
        ("Never edit `!src/x.py`.", "measure"),
        ("Sign commits with `git commit -S`.", ""),  # by a key, which is no sign-off
        ("Pass `-s` to `make`.", "measure"),
        ("Never import `useRouter` from `next/router`.", "measure"),  # of which only one is meant
        ("Import `a` from `b`, not `c`, from `d`.", "measure"),
        ("Do not use lodash for new code.", ""),
        ("Never suppress ESLint warnings without a reason.", ""),
        ("The branch `feature/x` is old.", ""),
        ("No trailing spaces in commit messages.", ""),
        ("No emojis in commit hooks.", ""),
        ("Run `make test` before the final commit.", ""),
        ("Run `make test` before your first commit.", ""),
        ("Always use `git commit` with `-m`.", ""),
        ("Always run `pytest` with `-v`.", ""),
        ("Always use `pip install` with `-U`.", ""),
        ("Always pass `--verbose` to `pytest`.", ""),
        ("No requests in tests.", ""),
        ("**Branch:** `origin/main`", ""),
        ("Never use `src/legacy`.", ""),
        ("Never use camelCase for files.", ""),
        ("Never use camelCase.", "judge"),
        ("After every change, run `just all`, except in `docs/`.", ""),
        ("Never run `migrations/001.sql`.", "measure"),
        ("Imports must be at the top of the file in TypeScript.", ""),
        ("Pull requests are forbidden here.", ""),
        ("Use `git commit -s` only for releases.", "measure"),
        ("Sign off with 'Regards'.", ""),
        ("Call `fetch('api/apps')`, not `fetch('/api/apps')`.", "measure"),  # an example
        ("Use `fn({ name })`, not `fn(name: string)`.", "measure"),
        ("Never use `!important`. Refactor it. Exceptions to this are libraries.", "exception"),
        ("Run `npm run build` after changes.", "measure"),  # of what?
        ("- `main` deploys. Do not push directly.", ""),  # to where?
        ("No `active_sessions`, no `/list`, no topic routing.", "measure"),  # features
        ('Never `variant="default"/"secondary"`.', ""),
        ("`afl-cmin`: Do not use `@@`.", "measure"),
        ("Use `list[X]`, not `X | Y`.", "measure"),
        ("Never run `git push --force` unless the branch is yours.", "condition"),
        ("Never run `git push --force`. The only exception is a rebase.", "exception"),
        ("Do not use npm in the Python packages.", "judge"),
        ("When you release, never run `git push`.", "condition"),
        ("### If you are in CI\n- Never run `git push`", "condition"),
        ("Example:\n- Never run `git push`", "example"),
        ("```\nNever run `git push`\n```", "code"),
        ("| Never run `git push` |", "table"),
        ("> Never run `git push`", "quotation"),
        ("<!-- Never run `git push` -->", "comment"),
        ("<example>\nNever run `git push`\n</example>", "example"),
        ("---\ndescription: Never run `git push`\n---", "metadata"),
        ("# When to run `git push`", "heading"),
        ("Answer in the user's language.", "judge"),
        ("Answer in German or English.", "judge"),
        ("The server must answer in at most 2 lines.", "judge"),
        ("API responses must be in English.", "judge"),
        ("## API\n\n- Responses must be in English.", "judge"),
        ("Keep error messages under 10 words.", "judge"),
        ("Write user-facing messages in English.", ""),
        ('Never write "simply" in documentation.', "judge"),
        ("When the user asks, reply in at most 2 sentences.", ""),
        ("Check the branch before pushing `main`.", "measure"),
        ("After edits, verify with `pnpm lint`.", ""),  # of what?
        ("Never guess, ask the user.", "judge"),
        ("**Tests must pass** — `git push` is then safe.", ""),
        ("Run the linter after changing `a` or `b`.", ""),
        ("Never use `sed` to edit files.", "measure"),
        ("Do not use `any` when the type is known.", "condition"),
        ("Update the snapshots after changes.", "judge"),
        ("Run `make test` or `make check` before committing.", "measure"),
        ("Run `make <target>` before committing.", "measure"),
        ("Do not edit generated files.", "judge"),
        ("The server is written in Go.", "instruction"),
        ("For external builds, always run `make`, never `./test.py`.", ""),
        ("Run `make check` (or your own check) before committing.", "measure"),
        ("Never run `make ui` (or `next build`) while `make dev` is live.", ""),
        ("Prefer Conventional Commits where it helps.", "preference"),
        ("Platforms: `linux-64` only, no `osx-x86_64`.", "measure"),
        ("When making changes, run these commands from `app/`:", ""),
        ("### In `docs/`\n\n- Use yarn", ""),
        ("## Docs site\n\n- Use yarn", ""),
        ("## Writing style for commits\n\n- No semicolons, single quotes, 2-space indent", ""),
        ("**Generated files — do not hand-edit:** `b.ts` (edit this one freely)", ""),
        ("Do not:\n\n- Run `npm install`; run `pnpm install` instead.", ""),
        ("Reviewers may not speak German, so write comments in English.", ""),
        ("Never hand-write SQL rather than editing `schema.prisma`.", ""),
        ("You can run the script instead of editing `a.json` by hand.", ""),
        ("It is fine to open an issue instead of editing `README.md` directly.", ""),
        ("Hotfixes go straight in instead of pushing to `develop`.", ""),
    ],
)
def test_what_a_line_does_not_say_exactly_is_no_rule_and_has_a_reason(text, reason):
    drafts = [draft(statement) for statement in read_statements(text)]
    assert all(isinstance(result, Undrafted) for result in drafts)
    assert any(reason in result.reason for result in drafts)


def test_statements_know_their_lines_labels_and_what_they_stand_under():
    text = (
        "# Guide\n\nSome prose that is wrapped over\ntwo lines. A second sentence.\n\n"
        "## Commits\n- **Style:** be [brief](x.md)\n  and *clear*. Use `a_b`.\n  - nested\n"
    )
    statements = read_statements(text)
    assert [(s.line, s.element, s.label, s.text) for s in statements] == [
        (1, Element.HEADING, "", "Guide"),
        (3, Element.SENTENCE, "", "Some prose that is wrapped over two lines."),
        (4, Element.SENTENCE, "", "A second sentence."),
        (6, Element.HEADING, "", "Commits"),
        (7, Element.SENTENCE, "Style", "be brief and clear."),
        (8, Element.SENTENCE, "", "Use `a_b`."),
        (9, Element.SENTENCE, "", "nested"),
    ]
    assert statements[-1].under == ("Guide", "Commits", "Style: be brief and clear. Use `a_b`.")


AGENTS = """\
# Rules: for agents\t

- Use pnpm, not npm.
- Be kind: \u201calways\u201d # really
- Use `pnpm`, not `npm`.
- Commit messages follow Conventional Commits.
"""


@pytest.fixture
def agents(tmp_path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text(AGENTS, encoding="utf-8")
    return path


def test_the_count_of_lines_without_a_rule_has_no_advice(tmp_path, capsys):
    prompt = tmp_path / "bot.txt"
    prompt.write_text(
        "You are Bruno, who answers guests of a hotel.\nNever use exclamation marks.\n"
        "If a guest asks for a late checkout, ask for the room number first.\n"
    )
    out = tmp_path / "bot.yaml"
    assert main(["suite", "init", str(prompt), "--out", str(out)]) == 0
    line = "lines without a rule: it applies only on certain occasions (1)."
    count, next_step, *_ = capsys.readouterr().err.splitlines()
    assert count.endswith(f"2 rules; {line}") and "holdfast drift" in next_step
    assert "occasions; write it yourself, with `when:`" in out.read_text()  # the draft has it


def test_the_drafted_suite_is_valid_and_lists_every_other_line(agents, capsys, tmp_path):
    out = tmp_path / "rules.yaml"
    assert main(["suite", "init", str(agents), "--out", str(out)]) == 0
    (case,) = load_suite(str(out), probed=False).cases
    assert case.system_prompt == AGENTS.strip()
    assert [(rule.id, rule.kind, rule.polarity) for rule in case.rules] == [
        ("pnpm-not-npm", "command", "prohibition"),
        ("commit-conventional-commits", "commit", "requirement"),
    ]
    text = out.read_text(encoding="utf-8")
    for comment in ("line 1: Rules", "line 3: Use pnpm", "line 4: Be kind", "as line 3"):
        assert comment in text
    assert "2 rules" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Never use `any` in TypeScript.", "never-any-in-typescript"),
        ("Never commit .env files.", "never-commit-env"),
        ("Use pnpm, not npm or yarn.", "pnpm-not-npm"),
        ("Do not edit files in `vendor/`.", "never-edit-in-vendor"),
        ("Run `make test` before committing.", "make-test-before-committing"),
        ("Never force-push.", "never-force-push"),
        ("Classes: PascalCase (e.g., `BookView`)", "classes-pascalcase-bookview"),
        ("Keep your replies to at most 60 words.", "at-most-60-words"),
        ('End every reply with "Linden Pharmacy"', "ends-with-linden-pharmacy"),
    ],
)
def test_the_id_of_a_rule_tells_its_sense(line, name, tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text(f"- {line}\n")
    assert [rule.id for rule in draft_file(path).rules] == [name]


@pytest.mark.parametrize(
    "push",
    "--force -f -fu -uf --force=x --force-with-lease --force-with-lease=main:a +main".split(),
)
def test_every_way_to_force_a_push_breaks_the_rule(push):
    (spec,) = measures_of("Never force-push.")
    assert build(spec).score_turn(ran(f"git push origin {push}")).value == 0


@pytest.mark.parametrize(
    "text",
    [
        "name: x\ncases:\n  - id: a\n    system_prompt: Never use emojis.\n",
        "cases:\n- system_prompt: Never use emojis.\n  probes: [Who are you?, Are you a bot?]\n",
        "cases:\n  - id: a\n    system_prompt: |\n      Never use emojis.\n   rules:\n",
        '{"cases": [{"id": "a", "system_prompt": "Never use emojis."}]}',
    ],
    ids=["block", "question marks in a list", "indented badly", "JSON"],
)
@pytest.mark.parametrize("command", [["suite", "init"], ["try", "--no-open", "--prompt"]])
def test_a_suite_is_no_rules_file(command, text, capsys, tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    assert main([*command, str(path)]) == 2
    refusal = refusal_in(capsys)
    assert "suite.yaml is a suite already" in refusal
    assert f"holdfast drift --suite {path}" in refusal


def test_a_prompt_about_a_file_of_cases_is_a_rules_file(tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("Never use emojis.\nReply with YAML:\ncases:\n  - id: a\n")
    assert [rule.id for rule in draft_file(path).rules] == ["never-emojis"]


def test_a_file_that_is_too_long_is_refused(capsys, tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("Never use emojis. " * 30_000)
    assert main(["suite", "init", str(path)]) == 2
    assert "540,000 characters" in refusal_in(capsys)


def test_a_long_paragraph_is_read_in_linear_time():
    sentences = [f"Be kind to guest {number}." for number in range(20_000)]
    start = time.process_time()
    statements = read_statements(" ".join(sentences))
    assert time.process_time() - start < 10
    assert [statement.text for statement in statements] == sentences
    assert statements[0].following == "Be kind to guest 1. Be kind to guest 2."


def test_a_sentence_of_many_abbreviations_is_read_in_linear_time():
    sentence = "e.g. 漢 " * 120_000
    start = time.process_time()
    (statement,) = read_statements(sentence)
    assert time.process_time() - start < 2
    assert statement.text == sentence.strip()


@pytest.mark.parametrize("line", ["the any " * 4000, "the any all " * 3000])
@pytest.mark.parametrize("start", ["", "Suppress ", "Force pushes to "])
def test_a_line_of_many_small_words_is_read_in_linear_time(start, line):
    started = time.process_time()
    measures_of(start + line)
    assert time.process_time() - started < 4


@pytest.mark.parametrize(
    "piece", ["never commit it (`.env`, ", "Branch: `a/b`, ", "setTimeout/", "a or "]
)
def test_a_line_of_many_clauses_is_read_in_little_time(piece):
    started = time.process_time()
    measures_of(f"Never {piece * 2000}")
    assert time.process_time() - started < 5


def test_a_line_that_needs_a_judge_has_a_rule_to_complete(tmp_path):
    path, out = tmp_path / "bot.md", tmp_path / "bot.yaml"
    path.write_text('Never use emojis. Be kind: "dear" #guest.\n')
    text = suite_text([draft_file(path)])
    head, mark, template = text.partition("      # - id: ")
    lines = (mark + template).splitlines()
    rule = [line.replace("      # ", "      ", 1) for line in lines[:3]]
    labels = ["        follows: [a, b, c, d]", "        breaks: [e, f, g, h]"]
    assert "follows" in lines[3] and "breaks" in lines[4]
    out.write_text("\n".join([head.rstrip(), *rule, *labels]))
    last = load_suite(str(out), probed=False).cases[0].rules[-1]
    assert last.id == "kind-dear-guest" and last.measure.judged


def test_a_bots_prompt_gets_questions_and_a_rules_file_none(agents, tmp_path):
    prompt = "You are Luna, a helper of Orchid.\nKeep replies under 60 words.\nNever use emojis.\n"
    (tmp_path / "bot.txt").write_text(prompt)
    for name in ("bot.txt", "AGENTS.md"):
        assert (
            main(["suite", "init", str(tmp_path / name), "--out", f"{tmp_path}/{name}.yaml"]) == 0
        )
    (case,) = load_suite(f"{tmp_path}/bot.txt.yaml").cases
    assert [(rule.kind, len(rule.probes)) for rule in case.rules] == [
        ("identity", 6),
        ("length", 6),
        ("tone", 6),
    ]
    # the rule about emojis reads words, and is yet one of every turn
    assert not any(rule.is_only_for_probes for rule in case.rules)
    assert "probes" not in (tmp_path / "AGENTS.md.yaml").read_text()


def test_a_file_is_overwritten_only_by_force(agents, capsys, tmp_path):
    out = tmp_path / "rules.yaml"
    out.write_text("mine")
    assert main(["suite", "init", str(agents), "--out", str(out)]) == 2
    assert "--force" in refusal_in(capsys) and out.read_text() == "mine"
    assert main(["suite", "init", str(agents), "--out", str(out), "--force"]) == 0
    assert load_suite(str(out), probed=False).cases


def test_a_bots_prompt_in_a_code_block_is_read_with_its_lines(tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("# The prompt\n\n```\nYou are a bot.\nNo emojis.\n```\n", encoding="utf-8")
    (rule,) = draft_file(path).rules
    assert (rule.statement.line, rule.draft.polarity) == (5, "prohibition")


@pytest.mark.parametrize(
    "before",
    [
        "You are a bot. Be kind.\n\nA guest once sent us this prompt of another hotel:",
        "Answer in one sentence.\n\nThis is the hotel's old notice:",
        "Notes for the staff.\n\nExample of a bad reply:",
        "Notes for the staff.\n\nAnswer with this text if you are closed:",
    ],
)
def test_a_code_block_that_a_prompt_quotes_is_not_read_as_the_prompt(before, tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text(f"{before}\n\n```\nNo emojis.\n{'We are closed today. ' * 20}\n```\n")
    assert not [rule for rule in draft_lines(path).rules if rule.draft.polarity == "prohibition"]


@pytest.mark.parametrize(
    "text",
    [
        "No bare `as` in new code. `as const` and test files are exempt.",
        "Tailwind v4 with no `tailwind.config` — the theme is in the styles.",
        "## Before committing\n\n- Run the simulator (optional): `./sim.sh`",
        "## After making changes\n\n- Run some tests if needed: `make test`",
    ],
)
def test_what_has_an_exception_or_is_a_fact_is_no_rule(text):
    assert not measures_of(text)


def test_what_to_run_instead_is_not_forbidden():
    (rule,) = measures_of("## Avoid\n\n- Running `npm install`. Run `pnpm install`.")
    (expected,) = measures_of("Never run `npm install`.")
    assert rule == expected


@pytest.mark.parametrize("path", ["config/a.ts", "src/config.ts", "vite.config.ts"])
def test_what_is_forbidden_outside_config_files_is_allowed_in_all_of_them(path):
    (rule,) = measures_of("Never use `process.env` outside config files.")
    assert build(rule).judge_turn(wrote(path, "process.env.A")) is None
    assert build(rule).judge_turn(wrote("src/a.ts", "process.env.A")).value == 0


def test_several_files_become_several_cases(agents, tmp_path):
    rules = tmp_path / ".cursorrules"
    rules.write_text("Never force-push.\x0b\x85\nNever use emojis 🎉 here: \x07")
    text = suite_text([draft_file(agents), draft_file(rules), draft_file(agents)])
    cases = yaml.safe_load(text)["cases"]
    assert [case["id"] for case in cases] == ["agents", "cursorrules", "agents-3"]
    assert cases[1]["system_prompt"] == rules.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "content", [None, b"", b" \n", b"\x89PNG\r\n\x1a\n\xff", b"a\0b", b"The sky is blue.\n"]
)
def test_a_file_that_has_no_rules_is_refused_in_a_sentence(content, capsys, tmp_path):
    path = tmp_path / "AGENTS.md"
    if content is not None:
        path.write_bytes(content)
    assert main(["suite", "init", str(path)]) == 2
    assert str(path) in refusal_in(capsys)


SUITE = """
cases:
  - id: bot
    system_prompt: Be brief, and never push.
    rules:
      - id: brief
        measure: {name: at_most_words, count: 3}
        follows: [All done., It works.]
        breaks: [It took me a while but it works.]
      - id: push
        measure: {name: command_not_run, command: git push}
        when: {user: release}
        follows:
          - {run: git status}
        breaks:
          - {run: [make, git push], reply: Done.}
          - {calls: [{tool: shell, arguments: {command: git push}}], user: Release it.}
      - {id: free, measure: one_sentence}
"""


def suite_test(tmp_path, capsys, text: str, *options: str) -> tuple[int, str]:
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    code = main(["suite", "test", str(path), *options])
    return code, capsys.readouterr().out


def test_measures_that_agree_with_every_label_pass(tmp_path, capsys):
    code, output = suite_test(tmp_path, capsys, SUITE, "--json")
    brief, push, free = json.loads(output)
    assert code == 0
    assert (brief["rule"], brief["follows"], brief["breaks"]) == ("bot/brief", 2, 1)
    assert (push["follows"], push["breaks"], push["recall"]["mean"]) == (1, 2, 1.0)
    # Clopper and Pearson, for two of two: the lower end is the square root of 0.025
    assert push["recall"]["low"] == pytest.approx(0.025**0.5, abs=0.01)
    assert free["precision"]["mean"] is None and not free["disagreements"]


def test_labelled_turns_that_are_equal_have_numbers_of_their_own(tmp_path, capsys):
    suite = """
cases:
  - id: bot
    system_prompt: x
    rules:
      - id: brief
        measure: one_sentence
        breaks: [Fine., Fine., Fine.]
"""
    code, output = suite_test(tmp_path, capsys, suite, "--json")
    (brief,) = json.loads(output)
    sources = [disagreement["source"] for disagreement in brief["disagreements"]]
    assert code == 1 and sources == ["breaks 1", "breaks 2", "breaks 3"]


def test_turns_scored_otherwise_than_labelled_are_named_and_exit_with_1(tmp_path, capsys):
    turns = tmp_path / "turns.jsonl"
    rows = [
        {"rule": "bot/brief", "label": "breaks", "reply": "Fine."},
        {"rule": "push", "label": "breaks", "run": "git pull"},
        {"rule": "push", "label": "breaks", "run": "git push", "user": "Hello"},
    ]
    turns.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, output = suite_test(tmp_path, capsys, SUITE, "--turns", str(turns), "--json")
    brief, push, _ = json.loads(output)
    assert code == 1
    assert brief["recall"]["mean"] == 0.5 and brief["precision"]["mean"] == 1.0
    assert [d["source"] for d in push["disagreements"]] == [
        f"{turns}, line 2",
        f"{turns}, line 3",
    ]
    assert [d["score"] for d in push["disagreements"]] == [1.0, None]
    code, table = suite_test(tmp_path, capsys, SUITE, "--turns", str(turns))
    assert code == 1 and "bot/free" in table and f"{turns}, line 2" in table


@pytest.mark.parametrize(
    "row",
    [
        {"rule": "nobody", "label": "breaks", "reply": "x"},
        {"rule": "brief", "label": "bad", "reply": "x"},
        {"rule": "brief", "label": "breaks", "text": "x"},
        [1],
    ],
)
def test_a_malformed_line_of_labelled_turns_is_refused(row, tmp_path, capsys):
    turns = tmp_path / "turns.jsonl"
    turns.write_text(json.dumps(row) + "\n")
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    assert main(["suite", "test", str(path), "--turns", str(turns)]) == 2
    assert refusal_in(capsys)


def test_a_suite_without_labels_and_options_of_the_other_action_are_refused(tmp_path, capsys):
    path = tmp_path / "suite.yaml"
    path.write_text("cases: [{id: a, system_prompt: x, measure: one_sentence}]")
    for words in (
        ["test", str(path)],
        ["test", str(path), str(path)],
        ["test", str(path), "--force"],
        ["test", str(tmp_path / "none.yaml")],
    ):
        assert main(["suite", *words]) == 2
        assert refusal_in(capsys)


def test_labelled_turns_are_checked_when_a_suite_is_read(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    rule = load_suite(str(path), probed=False).cases[0].rules[1]
    assert [labelled.follows for labelled in rule.labelled] == [True, False, False]
    without_measure = LabelledTurn(False, ran("git push"), "Hello")
    assert score_labelled(rule, without_measure) is None
    path.write_text(SUITE.replace("git status", "git push"))
    with pytest.raises(Exception, match="'follows'"):
        load_suite(str(path), probed=False)
