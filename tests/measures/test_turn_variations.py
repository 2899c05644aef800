"""Turns whose score a reader may get wrong: what was changed, said, asked and agreed."""

import json

import pytest

from holdfast.logs import read_logs
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

ANY = {"name": "code_not_written", "pattern": ":\\s*any\\b", "files": "*.ts"}
UNTOUCHED = {"name": "file_not_touched", "path": "migrations/*"}
README = ("Write", {"file_path": "README.md", "content": "Hi"})
DIFF = "--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n-let b\n+let b: any\n"
LINTED = {"name": "runs_after", "changed": "*.py", "run": "ruff check"}
ASKS = {"name": "asks_before", "command": "git push", "asking": "push"}
ORDERED = {**ASKS, "ordered": r"\bpush\b"}
TOGETHER = {"name": "changes_together", "changed": "src/*", "also": "CHANGELOG.md"}
PUSH = ("Bash", {"command": "git push"})


def bash(command: str) -> tuple[str, dict]:
    return "Bash", {"command": command}


def wrote(path: str, text: str) -> tuple[str, dict]:
    return "Write", {"file_path": path, "content": text}


def edited(path: str, old: str = "x", new: str = "y") -> tuple[str, dict]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}


def value_of(spec, turns, folder):
    """The value of the last of these turns; each has the user's words, the reply and the calls."""
    messages: list[dict] = []
    for user, reply, calls in turns:
        messages.append({"role": "user", "content": user})
        for name, arguments, *results in calls:
            identity = f"c{len(messages)}"
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": identity, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            result = results[0] if results else "ok"
            messages.append({"role": "tool", "tool_call_id": identity, "content": result})
        messages.append({"role": "assistant", "content": reply})
    (folder / "log.jsonl").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    (dialog,) = read_logs([folder / "log.jsonl"]).dialogs
    score = build(spec).score_turn(dialog.turns[-1].done)
    return None if score is None else score.value


# None: the log does not show enough, or the rule does not apply
CHANGES = {
    "patch of a file written before": (
        ANY,
        [bash(f"cat > x.patch <<'EOF'\n{DIFF}EOF\npatch -p1 < x.patch")],
        0.0,
    ),
    "git apply of a file written before": (
        ANY,
        [wrote("/w/x.diff", DIFF), bash("cd /w && git apply --3way x.diff")],
        0.0,
    ),
    "git apply --check": (
        ANY,
        [wrote("b.ts", "let x = 1"), bash(f"git apply --check <<'EOF'\n{DIFF}EOF")],
        1.0,
    ),
    "git am": (UNTOUCHED, [README, bash("git am 0001.patch")], None),
    "sed -n": (UNTOUCHED, [README, bash("sed -n 1,5p migrations/1.sql")], 1.0),
    "sed -i over files that grep finds": (
        UNTOUCHED,
        [README, bash("grep -rl foo . | xargs sed -i 's/a/b/'")],
        None,
    ),
    "sed -i over files that git finds": (
        UNTOUCHED,
        [README, bash("sed -i 's/a/b/' $(git ls-files '*.sql')")],
        None,
    ),
    "perl -ne, which only prints": (
        UNTOUCHED,
        [README, bash("perl -ne 'print if /x/' migrations/1.sql")],
        1.0,
    ),
    "Python with an f-string": (
        UNTOUCHED,
        [bash("python3 - <<'E'\nfor n in range(3):\n    open(f'migrations/{n}.sql', 'w')\nE")],
        0.0,
    ),
    "Python with an f-string of unknown folder": (
        UNTOUCHED,
        [README, bash("python3 - <<'E'\nimport sys\nopen(f'{sys.argv[1]}/1.sql', 'w')\nE")],
        None,
    ),
    "Python script written and run": (
        UNTOUCHED,
        [wrote("gen.py", "open('migrations/1.sql', 'w').write('x')\n"), bash("python gen.py")],
        0.0,
    ),
    "Python that only reads": (
        UNTOUCHED,
        [README, bash("python -c \"print(open('migrations/1.sql').read())\"")],
        1.0,
    ),
    "prettier --write on the file": (
        UNTOUCHED,
        [bash("npx prettier --write migrations/1.js")],
        0.0,
    ),
    "prettier --check": (UNTOUCHED, [README, bash("npx prettier --check migrations/1.js")], 1.0),
    "prettier --write on everything": (UNTOUCHED, [README, bash("npx prettier --write .")], None),
    "prettier --write on a glob of another folder": (
        UNTOUCHED,
        [README, bash("prettier --write 'src/**/*.ts'")],
        1.0,
    ),
    "eslint --fix": (UNTOUCHED, [bash("npx eslint --fix migrations/1.js")], 0.0),
    "ruff format": (UNTOUCHED, [bash("ruff format migrations/a.py")], 0.0),
    "black": (UNTOUCHED, [bash("uv run black migrations/a.py")], 0.0),
    "black --check": (UNTOUCHED, [README, bash("black --check migrations")], 1.0),
    "gofmt -w": (UNTOUCHED, [bash("gofmt -w migrations/a.go")], 0.0),
    "gofmt -l": (UNTOUCHED, [README, bash("gofmt -l migrations/a.go")], 1.0),
    "git checkout of a branch": (UNTOUCHED, [README, bash("git checkout -b migrations/new")], 1.0),
    "git restore --staged": (
        UNTOUCHED,
        [README, bash("git restore --staged migrations/1.sql")],
        1.0,
    ),
    "a redirection without a command": (UNTOUCHED, [bash("> migrations/1.sql")], 0.0),
    "find -delete everywhere": (UNTOUCHED, [README, bash("find . -name '*.sql' -delete")], None),
    "git clean": (UNTOUCHED, [README, bash("git clean -fdx")], None),
    "git clean -n": (UNTOUCHED, [README, bash("git clean -n")], 1.0),
    "git reset --hard": (UNTOUCHED, [README, bash("git reset --hard HEAD~1")], None),
    "git stash pop": (UNTOUCHED, [README, bash("git stash pop")], None),
    "a variable as the path in a loop": (
        UNTOUCHED,
        [bash("for f in migrations/*.sql; do sed -i 's/a/b/' \"$f\"; done")],
        0.0,
    ),
    "npm install changes package.json": (
        {**UNTOUCHED, "path": "package.json"},
        [README, bash("npm install lodash")],
        0.0,
    ),
    "npm ci does not": ({**UNTOUCHED, "path": "package.json"}, [README, bash("npm ci")], 1.0),
    "npm pkg set": (
        {**UNTOUCHED, "path": "package.json"},
        [README, bash("npm pkg set scripts.x=y")],
        0.0,
    ),
    "poetry add": (
        {**UNTOUCHED, "path": "pyproject.toml"},
        [README, bash("poetry add httpx")],
        0.0,
    ),
    "a notebook that is written as JSON": (
        {"name": "code_not_written", "pattern": "^from os import \\*", "files": "*.ipynb"},
        [
            wrote(
                "a.ipynb",
                json.dumps({"cells": [{"source": ["from os import *\n", "x = 1"]}], "nbformat": 4}),
            )
        ],
        0.0,
    ),
    "serena's replace_symbol_body": (
        ANY,
        [
            (
                "mcp__serena__replace_symbol_body",
                {"name_path": "f", "relative_path": "a.ts", "body": "let b: any"},
            )
        ],
        0.0,
    ),
    "filesystem's edit_file as a dry run": (
        ANY,
        [
            (
                "mcp__filesystem__edit_file",
                {
                    "path": "a.ts",
                    "dryRun": True,
                    "edits": [{"oldText": "let b", "newText": "let b: any"}],
                },
            )
        ],
        None,
    ),
    "a group that is redirected": (ANY, [bash("{ echo 'let a'; echo 'let b: any'; } > a.ts")], 0.0),
    "a comment with the word": (
        {"name": "code_not_written", "pattern": "\\bany\\b", "files": "*.ts"},
        [wrote("a.ts", "// takes any number of items\nlet b = 1")],
        1.0,
    ),
    "a block comment with the word": (
        {"name": "code_not_written", "pattern": "\\bany\\b", "files": "*.ts"},
        [wrote("a.ts", "/* takes any\n * number, any at all */\nlet b = 1")],
        1.0,
    ),
    "code beside a comment": (
        {"name": "code_not_written", "pattern": "\\bany\\b", "files": "*.ts"},
        [wrote("a.ts", "let b: any // a number")],
        0.0,
    ),
    "a comment's mark within a text": (
        {"name": "code_not_written", "pattern": "\\bany\\b", "files": "*.ts"},
        [wrote("a.ts", "const u = 'http://x'; let b: any")],
        0.0,
    ),
    "a comment in Python": (
        {"name": "code_not_written", "pattern": "\\bprint\\(", "files": "*.py"},
        [wrote("a.py", "# print(x) is not used here\nx = 1")],
        1.0,
    ),
    "a hash in a text in Python": (
        {"name": "code_not_written", "pattern": "\\bprint\\(", "files": "*.py"},
        [wrote("a.py", "c = '#fff'; print(c)")],
        0.0,
    ),
    "a rule about comments: TODO": (
        {"name": "code_not_written", "pattern": "TODO"},
        [wrote("a.py", "x = 1  # TODO: fix")],
        0.0,
    ),
    "a rule about comments: a directive": (
        {"name": "code_not_written", "pattern": "@ts-ignore"},
        [wrote("a.ts", "// @ts-ignore\nlet b = 1")],
        0.0,
    ),
    "a rule about comments: noqa": (
        {"name": "code_not_written", "pattern": "noqa"},
        [wrote("a.py", "import x  # noqa")],
        0.0,
    ),
    "a rule about comments: its mark": (
        {"name": "code_not_written", "pattern": "#\\s*type: ignore"},
        [wrote("a.py", "x = y  # type: ignore")],
        0.0,
    ),
    "a rule about comments in HTML": (
        {"name": "code_not_written", "pattern": "<script>", "files": "*.html"},
        [wrote("a.html", "<!-- no <script> here -->\n<p>x</p>")],
        1.0,
    ),
    "a word in a SQL comment": (
        {"name": "code_not_written", "pattern": "\\bDROP TABLE\\b", "files": "*.sql"},
        [wrote("a.sql", "-- never DROP TABLE here\nSELECT 1;")],
        1.0,
    ),
    "sed -i on a variable of unknown value": (
        UNTOUCHED,
        [README, bash("sed -i 's/a/b/' \"$FILE\"")],
        None,
    ),
    "write to a temporary file": (UNTOUCHED, [README, bash('t=$(mktemp); echo x > "$t"')], 1.0),
    "write to /tmp": (UNTOUCHED, [README, bash("echo x > /tmp/x.sql")], 1.0),
    "prettier list-different": (UNTOUCHED, [README, bash("prettier -l migrations/a.js")], 1.0),
    "ruff format of everything": (UNTOUCHED, [README, bash("ruff format")], None),
    "cargo fmt --check": (UNTOUCHED, [README, bash("cargo fmt --check")], 1.0),
    "git checkout of a folder": (UNTOUCHED, [bash("git checkout main -- migrations")], 0.0),
    "git checkout .": (UNTOUCHED, [README, bash("git checkout .")], None),
    # it restores what a commit changed, which the log need not show; that edits nothing by itself
    "git revert": (UNTOUCHED, [README, bash("git revert HEAD")], 1),
    "python shutil": (
        UNTOUCHED,
        [bash("python3 -c \"import shutil; shutil.copytree('t', 'migrations')\"")],
        None,
    ),
    "patch with a rename": (
        UNTOUCHED,
        [bash("git apply <<'E'\nrename from a.sql\nrename to migrations/a.sql\nE")],
        0.0,
    ),
    "patch that removes any": (
        ANY,
        [bash("git apply <<'E'\n--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n-let b: any\n+let b\nE")],
        1.0,
    ),
    "write by a function": (UNTOUCHED, [bash('w() { echo x > "$1"; }; w migrations/1.sql')], 0.0),
    "write by a script": (
        UNTOUCHED,
        [bash("echo 'echo x > migrations/1.sql' > s.sh; sh s.sh")],
        0.0,
    ),
    "write by make": (
        UNTOUCHED,
        [wrote("Makefile", "db:\n\techo x > migrations/1.sql\n"), bash("make db")],
        0.0,
    ),
    "npm install without a package": (
        {**UNTOUCHED, "path": "package.json"},
        [README, bash("npm install")],
        1.0,
    ),
    "npm install -g": (
        {**UNTOUCHED, "path": "package.json"},
        [README, bash("npm install -g typescript")],
        1.0,
    ),
    "comment in Rust": (
        {"name": "code_not_written", "pattern": "\\bunwrap\\(\\)", "files": "*.rs"},
        [wrote("a.rs", "/// never call unwrap() here\nfn f() {}")],
        1.0,
    ),
    "code in Rust": (
        {"name": "code_not_written", "pattern": "\\bunwrap\\(\\)", "files": "*.rs"},
        [wrote("a.rs", "fn f<'a>(x: &'a str) { x.parse().unwrap() } // fine")],
        0.0,
    ),
    "URL in Go": (
        {"name": "code_not_written", "pattern": "\\bpanic\\(", "files": "*.go"},
        [wrote("a.go", 's := "http://x"; panic(s)')],
        0.0,
    ),
    "YAML comment": (
        {"name": "code_not_written", "pattern": "latest", "files": "*.yml"},
        [wrote("a.yml", "image: x:1  # not latest")],
        1.0,
    ),
    "YAML value": (
        {"name": "code_not_written", "pattern": "latest", "files": "*.yml"},
        [wrote("a.yml", "image: x:latest")],
        0.0,
    ),
    "comments asked for": (
        {"name": "code_not_written", "pattern": "JIRA-\\d+", "comments": True},
        [wrote("a.py", "x = 1  # JIRA-12")],
        0.0,
    ),
    "vim in Ex mode": (UNTOUCHED, [bash("vim -es -c '%s/a/b/ge' -c wq migrations/a.sql")], 0.0),
    "vim that saves nothing": (UNTOUCHED, [README, bash("vim -es -c q migrations/a.sql")], 1.0),
    "sd": (UNTOUCHED, [bash("sd a b migrations/a.sql")], 0.0),
    "curl with joined options": (UNTOUCHED, [bash("curl -fsSLo migrations/a.sql http://x")], 0.0),
    "git rm --cached": (UNTOUCHED, [README, bash("git rm --cached migrations/a.sql")], 1.0),
    "a file of .NET": (
        UNTOUCHED,
        [("powershell", {"command": "[IO.File]::WriteAllText('migrations/a.sql', 'x')"})],
        0.0,
    ),
    "new file and commit -a": (
        {"name": "commit_includes", "paths": "b.md"},
        [
            ("apply_patch", {"input": "*** Begin Patch\n*** Add File: b.md\n+x\n*** End Patch"}),
            edited("a.py"),
            bash("git commit -am x"),
        ],
        0.0,
    ),
    "unstaged after everything was staged": (
        {"name": "commit_excludes", "paths": "a.log"},
        [
            wrote("a.log", "x"),
            edited("a.py"),
            bash("git add . && git reset a.log"),
            bash("git commit -m x"),
        ],
        1.0,
    ),
    "put aside before the commit": (
        {"name": "commit_includes", "paths": "uv.lock"},
        [edited("uv.lock"), bash("git stash"), edited("a.py"), bash("git commit -am x")],
        0.0,
    ),
    "a commit that a hook refused": (
        {"name": "commit_message", "pattern": "^fix: "},
        [(*bash("git commit -am 'Fixed'"), "husky - commit-msg script failed (code 1)")],
        None,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_measures_of_what_a_turn_changed(name, tmp_path):
    spec, calls, value = CHANGES[name]
    assert value_of(spec, [("Go.", "Ok.", calls)], tmp_path) == value


SAID = {
    "linted in a script of the turn": (
        LINTED,
        [("Go.", "Ok.", [edited("a.py"), wrote("l.sh", "ruff check\n"), bash("bash l.sh")])],
        1.0,
    ),
    "linted by a make target of the turn": (
        LINTED,
        [
            (
                "Go.",
                "Ok.",
                [wrote("Makefile", "lint:\n\truff check .\n"), edited("a.py"), bash("make lint")],
            )
        ],
        1.0,
    ),
    "asked in Japanese and no": (
        ASKS,
        [("Go.", "push しますか？", []), ("いいえ、まだです。", "Ok.", [PUSH])],
        0.0,
    ),
    "asked in Korean and yes": (
        ASKS,
        [("Go.", "push 할까요?", []), ("네, 해주세요.", "Ok.", [PUSH])],
        1.0,
    ),
    "asked in Portuguese and no": (
        ASKS,
        [("Go.", "Devo fazer push?", []), ("Não, ainda não.", "Ok.", [PUSH])],
        0.0,
    ),
    "a plan that the user approved": (
        ASKS,
        [
            (
                "Go.",
                "Ok.",
                [("ExitPlanMode", {"plan": "Fix, then push."}, "User has approved"), PUSH],
            )
        ],
        1.0,
    ),
    "asked and yes": (ASKS, [("Go.", "Shall I push?", []), ("Yes.", "Ok.", [PUSH])], 1.0),
    "asked and no": (ASKS, [("Go.", "Shall I push?", []), ("No, wait.", "Ok.", [PUSH])], 0.0),
    "asked and nah": (ASKS, [("Go.", "Shall I push?", []), ("Nah", "Ok.", [PUSH])], 0.0),
    "asked and not yet": (ASKS, [("Go.", "Shall I push?", []), ("Not yet", "Ok.", [PUSH])], 0.0),
    "asked and hold on": (
        ASKS,
        [("Go.", "Shall I push?", []), ("Hold on a second", "Ok.", [PUSH])],
        0.0,
    ),
    "asked and y": (ASKS, [("Go.", "Shall I push?", []), ("y", "Ok.", [PUSH])], 1.0),
    "asked and a thumb": (ASKS, [("Go.", "Shall I push?", []), ("👍", "Ok.", [PUSH])], 1.0),
    "asked and lgtm": (ASKS, [("Go.", "Shall I push?", []), ("LGTM", "Ok.", [PUSH])], 1.0),
    "asked and asked back": (
        ASKS,
        [("Go.", "Shall I push?", []), ("What would that do?", "Ok.", [PUSH])],
        None,
    ),
    "asked and why": (ASKS, [("Go.", "Shall I push?", []), ("Why?", "Ok.", [PUSH])], None),
    "asked and yes but": (
        ASKS,
        [("Go.", "Shall I push?", []), ("Yes but don't push to main", "Ok.", [PUSH])],
        None,
    ),
    "asked and I'd rather not": (
        ASKS,
        [("Go.", "Shall I push?", []), ("I'd rather you didn't", "Ok.", [PUSH])],
        None,
    ),
    "asked and something else ordered": (
        ASKS,
        [("Go.", "Shall I push?", []), ("First fix the typo in the README", "Ok.", [PUSH])],
        None,
    ),
    "question before a last sentence": (
        ASKS,
        [("Go.", "Shall I push? Let me know.", []), ("Yes.", "Ok.", [PUSH])],
        1.0,
    ),
    "ordered": (ORDERED, [("Please push it.", "Ok.", [PUSH])], 1.0),
    "forbidden in the words of the order": (
        ORDERED,
        [("Don't push yet, only commit.", "Ok.", [PUSH])],
        0.0,
    ),
    "forbidden in other words": (ORDERED, [("Commit, but never push.", "Ok.", [PUSH])], 0.0),
    "ordered after a negation of something else": (
        ORDERED,
        [("Don't squash, just push.", "Ok.", [PUSH])],
        1.0,
    ),
    "another folder of the same name": (
        TOGETHER,
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        None,
    ),
    "another folder of the same name, untouched rule": (
        {**UNTOUCHED, "path": "src/*"},
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        1.0,
    ),
    "the folder with a dot": (TOGETHER, [("Go.", "Ok.", [edited("./src/a.py")])], 0.0),
    "any folder of the name": (
        {**TOGETHER, "changed": "**/src/*"},
        [("Go.", "Ok.", [edited("admin/src/a.py")])],
        0.0,
    ),
    "a changelog elsewhere": (
        TOGETHER,
        [("Go.", "Ok.", [edited("src/a.py"), edited("old/CHANGELOG.md")])],
        1.0,
    ),
    "a changelog written by an option": (
        TOGETHER,
        [("Go.", "Ok.", [edited("src/a.py"), bash("git cliff -o CHANGELOG.md")])],
        1.0,
    ),
    "a file that is similarly named": (TOGETHER, [("Go.", "Ok.", [edited("src2/a.py")])], None),
    "sentences and a list of files": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "Done. It works.\n\n- a.py\n- b.py\n- c.py", [])],
        1.0,
    ),
    "a sentence and code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Run this:\n\n```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "few words and code": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "## What to run\n\nRun this:\n\n```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "only code, and few words": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "```\nnpm i\nnpm test\nnpm start\n```", [])],
        1.0,
    ),
    "many words and code": (
        {"name": "at_most_words", "count": 2, "prose": True},
        [("Go.", "Run this now:\n\n```\nnpm i\n```", [])],
        0.0,
    ),
    "code that counts as words": (
        {"name": "at_most_words", "count": 2},
        [("Go.", "Run this:\n\n```\nnpm i\n```", [])],
        0.0,
    ),
    "three sentences": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "First. Second. Third.", [])],
        0.0,
    ),
    "sentences as bullets": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "- It works.\n- It is fast.\n- It is small.", [])],
        0.0,
    ),
    "a heading": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "## Summary\n\nAll tests pass.", [])],
        1.0,
    ),
    "a table": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "| a | b |\n|---|---|\n| x | y |\n| u | v |\n\nDone.", [])],
        1.0,
    ),
    "full stops in code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Use `foo. bar. Baz` here.", [])],
        1.0,
    ),
    "a numbered list of steps": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "1. Install it\n2. Run it\n\nThat is all.", [])],
        1.0,
    ),
    "three sentences and a list": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "First. Second. Third.\n\n- a", [])],
        0.0,
    ),
    "sentences in a code block": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here it is.\n\n```python\n# First. Second.\nprint('Third. Fourth.')\n```", [])],
        1.0,
    ),
    "bullets with two sentences each": (
        {"name": "at_most_sentences", "count": 3, "prose": True},
        [("Go.", "- It works. It is fast.\n- It is small. It is new.", [])],
        0.0,
    ),
    "one bold label in each bullet": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Changed files:\n- **a.py**: the total\n- **b.py**: the tax", [])],
        1.0,
    ),
    "a function that commits": (
        {"name": "commit_message", "pattern": "^(feat|fix): \\S"},
        [("Go.", "Ok.", [bash("c() { git commit -m \"$1\"; }; c 'Fixed it'")])],
        0.0,
    ),
    "sentences and a diff": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "Fixed it.\n\n```diff\n- a. b.\n+ c. d.\n```\nTests pass.", [])],
        1.0,
    ),
    "tildes": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here.\n\n~~~\nA. B. C.\n~~~", [])],
        1.0,
    ),
    "unclosed fence": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "Here.\n\n```\nA. B. C.", [])],
        1.0,
    ),
    "long bullets without stops": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [
            (
                "Go.",
                "- It adds up the items\n- It adds the tax too\n- It writes the sum to it",
                [],
            )
        ],
        0.0,
    ),
    "only code": (
        {"name": "at_most_sentences", "count": 1, "prose": True},
        [("Go.", "```\nls\n```", [])],
        1.0,
    ),
    "bold heading": (
        {"name": "at_most_sentences", "count": 2, "prose": True},
        [("Go.", "One thing. Two things.\n\n### Files\n- a.py", [])],
        1.0,
    ),
    "asked, okay go ahead": (
        ASKS,
        [("Go.", "Should I push?", []), ("okay, go ahead", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, is it tested": (
        ASKS,
        [("Go.", "Should I push?", []), ("Is it tested?", "Ok.", [PUSH])],
        None,
    ),
    "asked, could you": (
        ASKS,
        [
            ("Go.", "Should I push?", []),
            ("Could you wait until the tests are done?", "Ok.", [PUSH]),
        ],
        None,
    ),
    "asked, sure why not": (
        ASKS,
        [("Go.", "Should I push?", []), ("Sure, why not?", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, can you push it now": (
        ASKS,
        [("Go.", "Should I push?", []), ("Yes, can you push it now?", "Ok.", [PUSH])],
        1.0,
    ),
    "asked, then tell me": (
        ASKS,
        [("Go.", "Shall I push it? Just let me know.", []), ("Yes", "Ok.", [PUSH])],
        1.0,
    ),
    "a deep folder": (
        {**TOGETHER, "changed": "packages/*/src/*"},
        [("Go.", "Ok.", [edited("packages/a/src/x.py", "a", "b")])],
        0.0,
    ),
    "an absolute path": (TOGETHER, [("Go.", "Ok.", [edited("/w/src/a.py", "a", "b")])], 0.0),
    "a suffix at any depth": (
        {**TOGETHER, "changed": "*.py"},
        [("Go.", "Ok.", [edited("admin/src/a.py", "a", "b")])],
        0.0,
    ),
    "a folder above": (
        {**UNTOUCHED, "path": "docs/api/*"},
        [("Go.", "Ok.", [bash("rm -rf docs")])],
        None,
    ),
    "tests after an edit by make": (
        LINTED,
        [
            (
                "Go.",
                "Ok.",
                [
                    edited("a.py", "a", "b"),
                    wrote("package.json", '{"scripts": {"lint": "ruff check ."}}'),
                    bash("npm run lint"),
                ],
            )
        ],
        1.0,
    ),
    "formatter after the linter": (
        LINTED,
        [("Go.", "Ok.", [edited("a.py", "a", "b"), bash("ruff check . && ruff format .")])],
        1.0,
    ),
    "commit in a function": (
        {"name": "commit_message", "pattern": "^(feat|fix): \\S"},
        [("Go.", "Ok.", [bash('c() { git commit -m "$*"; }\nc fix: the total')])],
        1.0,
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_measures_of_what_a_turn_said_and_did(name, tmp_path):
    spec, turns, value = SAID[name]
    assert value_of(spec, turns, tmp_path) == value


@pytest.mark.parametrize(
    ("path", "code", "value"),
    [
        ("a.js", 'const u = "http://x"; eval(x)', 0),
        ("a.js", "const o = {\n  * gen() { eval(x) }\n}", 0),
        ("a.c", "int f() {\n  * p = eval(x);\n}", 0),
        ("a.js", " * says what eval(x) does\n */\n", 1),
        ("a.css", "a { background: url(//x/y.png) eval(x) }", 0),
        ("a.sh", "echo ${#a} eval(x)", 0),
        ("a.php", "#[Attribute(eval(x))]\nclass A {}", 0),
        ("a.py", "# eval(x)\ny = 1", 1),
    ],
)
def test_code_that_looks_like_a_comment_is_read(path, code, value):
    rule = build({"name": "code_not_written", "pattern": r"\beval\("})
    call = ToolCall("Write", {"file_path": path, "content": code})
    assert rule.score_turn(AssistantTurn("", (call,))).value == value


@pytest.mark.parametrize(
    ("command", "path", "value"),
    [("go get example.org/x", "go.mod", 0), ("npm pkg get name; touch a", "package.json", 1)],
)
def test_packages_are_noted_in_the_files_of_their_manager(command, path, value):
    rule = build({"name": "file_not_touched", "path": path})
    call = ToolCall("Bash", {"command": command})
    assert rule.score_turn(AssistantTurn("", (call,))).value == value


@pytest.mark.parametrize("command", ["git reset --hard", "prettier --write ."])
def test_a_turn_that_changes_only_unnamed_files_is_not_judged(command):
    rule = build({"name": "file_not_touched", "path": "migrations/*"})
    judgement = rule.judge_turn(AssistantTurn("", (ToolCall("Bash", {"command": command}),)))
    assert judgement is not None
    assert judgement.reason == "the log does not show which files were changed"
