"""Turns whose changes a reader may get wrong: by patches, scripts, tools and moves of files."""

import json

import pytest
from logged_turns import bash, edited, value_of_last_turn, wrote

from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

ANY = {"name": "code_not_written", "pattern": ":\\s*any\\b", "files": "*.ts"}


UNTOUCHED = {"name": "file_not_touched", "path": "migrations/*"}


README = ("Write", {"file_path": "README.md", "content": "Hi"})


DIFF = "--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n-let b\n+let b: any\n"


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
    assert value_of_last_turn(spec, [("Go.", "Ok.", calls)], tmp_path) == value


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
