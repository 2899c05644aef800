"""The measures of agents' rules, on turns that keep a rule, break it, do not concern it, or do not
show whether it is kept.

Arguments of tools are as the agents document them: Claude Code's tools (docs.claude.com), Codex'
apply_patch (its prompt in github.com/openai/codex), Cline's replace_in_file (its prompt in
github.com/cline/cline), Gemini CLI's replace and write_file, opencode's edit and write, and the
text editor tool of Anthropic's API.
"""

import json

import pytest
from agent_turns import UNDECIDED, bash, judge, ran

from holdfast.cli import main
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall
from holdfast.records import read_run


def did(*calls: ToolCall) -> Turn:
    return Turn("", calls)


def call(tool: str, **arguments) -> ToolCall:
    return ToolCall(tool, arguments)


NO_PRINT = {"name": "code_not_written", "pattern": r"\bprint\(", "files": ["*.py", "!tests/*"]}
CODEX = """*** Begin Patch
*** Update File: app/a.py
@@ def f():
-    {old}
+    {new}
     return 1
*** Add File: notes.md
+print( is a function
*** End Patch"""
CLINE = "------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE\n"
AIDER = "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
DIFF = """diff --git a/app/a.py b/app/a.py
--- a/app/a.py
+++ b/app/a.py
@@ -1,2 +1,2 @@
 import os
-{old}
+{new}
"""
OLD, NEW = "print(x)", "log(x)"


def edits(old: str, new: str) -> list[Turn]:
    """A line of app/a.py replaced by another, by every tool."""
    path = "/repo/app/a.py"
    return [
        did(call("Edit", file_path=path, old_string=f"a\n{old}\nb", new_string=f"a\n{new}\nb")),
        did(call("MultiEdit", file_path=path, edits=[{"old_string": old, "new_string": new}])),
        did(call("apply_patch", input=CODEX.format(old=old, new=new))),
        did(call("replace_in_file", path="app/a.py", diff=CLINE.format(old=old, new=new))),
        did(call("edit_block", path="app/a.py", diff=AIDER.format(old=old, new=new))),
        did(call("replace", file_path=path, old_string=old, new_string=new)),
        did(call("edit", filePath=path, oldString=old, newString=new)),
        did(call("search_and_replace", path="app/a.py", search=old, replace=new)),
        did(call("mcp__fs__edit_file", path=path, edits=[{"oldText": old, "newText": new}])),
        did(call("str_replace_editor", command="str_replace", path=path, old_str=old, new_str=new)),
        did(call("shell", command=["apply_patch", CODEX.format(old=old, new=new)])),
        ran(f"apply_patch <<'EOF'\n{CODEX.format(old=old, new=new)}\nEOF"),
        ran(f"cd /repo && git apply <<'EOF'\n{DIFF.format(old=old, new=new)}EOF"),
        ran(f"patch -p1 <<'EOF'\n{DIFF.format(old=old, new=new)}EOF"),
    ]


def files(text: str) -> list[Turn]:
    """A file app/a.py written as a whole, by every tool."""
    path = "/repo/app/a.py"
    patch = f"*** Begin Patch\n*** Add File: app/a.py\n+{text}\n*** End Patch"
    diff = f"--- /dev/null\n+++ b/app/a.py\n@@ -0,0 +1 @@\n+{text}\n"
    return [
        did(call("Write", file_path=path, content=text)),
        did(call("write_to_file", path="app/a.py", content=text)),
        did(call("write_file", file_path=path, content=text)),
        did(call("write", filePath=path, content=text)),
        did(call("str_replace_editor", command="create", path=path, file_text=text)),
        did(call("apply_patch", patchText=patch)),
        ran(f"cat > app/a.py <<'EOF'\n{text}\nEOF"),
        ran(f"cat <<'EOF' > app/a.py\n{text}\nEOF"),
        ran(f"sudo tee app/a.py <<'EOF'\n{text}\nEOF"),
        ran(f"printf '%s\\n' '{text}' > app/a.py"),
        ran(f"bash -lc \"echo '{text}' > app/a.py\""),
        ran(f"git apply <<'EOF'\n{diff}EOF"),
    ]


@pytest.mark.parametrize("turn", [*edits(NEW, OLD), *files(OLD)])
def test_code_that_is_added_is_found_whatever_tool_wrote_it(turn):
    assert judge(NO_PRINT, turn) == 0
    assert judge({**NO_PRINT, "name": "code_written"}, turn) == 1


@pytest.mark.parametrize("turn", [*edits(OLD, NEW), *files(NEW)])
def test_code_that_is_removed_or_in_another_file_does_not_count(turn):
    assert judge(NO_PRINT, turn) == 1
    assert judge({**NO_PRINT, "name": "code_written"}, turn) == 0


NOTEBOOK = {"notebook_path": "a.ipynb", "cell_id": "1"}
CODE = [
    (NO_PRINT, ran("cat app/a.py", "grep -n 'print(' app/a.py"), None),
    (NO_PRINT, did(call("Read", file_path="app/a.py")), None),
    (NO_PRINT, did(call("Grep", pattern=r"print\(", path="app/a.py")), None),
    (NO_PRINT, did(call("str_replace_editor", command="view", path="app/a.py")), None),
    (NO_PRINT, did(call("Write", file_path="tests/test_a.py", content=OLD)), None),
    (NO_PRINT, did(call("Write", file_path="a.md", content=OLD)), None),
    (NO_PRINT, ran("rm app/a.py", "mv app/b.py app/c.py"), None),
    (NO_PRINT, ran("sed -i 's/log/print/' app/a.py"), UNDECIDED),
    (NO_PRINT, ran("sed -i 's/log/print/' README.md"), None),
    (NO_PRINT, ran("python make.py > app/a.py"), UNDECIDED),
    (NO_PRINT, ran('echo "$CODE" > app/a.py'), UNDECIDED),
    (NO_PRINT, ran("(cat head.txt; echo 'x = 1') > app/a.py"), UNDECIDED),
    (NO_PRINT, ran("git apply fix.patch"), UNDECIDED),
    (NO_PRINT, did(call("apply_patch", path="app/a.py", kind="update")), UNDECIDED),
    (NO_PRINT, did(call("apply_patch", path="app/a.py", kind="delete")), None),
    # a change that is not shown does not hide one that breaks the rule
    (NO_PRINT, ran("sed -i s/a/b/ app/a.py", f"echo '{OLD}' >> app/b.py"), 0),
    # the text of a file that looks like a patch or a command is that file's text
    (NO_PRINT, did(call("Write", file_path="a.md", content=CODEX.format(old="", new=OLD))), None),
    (NO_PRINT, ran("cat > run.sh <<'EOF'\necho 'print(1)' > app/a.py\nEOF"), None),
    (NO_PRINT, did(call("NotebookEdit", **NOTEBOOK, new_source=OLD)), None),
    ({**NO_PRINT, "files": "*.ipynb"}, did(call("NotebookEdit", **NOTEBOOK, new_source=OLD)), 0),
    ({**NO_PRINT, "files": "*.ipynb"}, did(call("NotebookEdit", **NOTEBOOK, new_source=NEW)), 1),
    # a line that moves within an edit is not written
    (NO_PRINT, did(call("Edit", file_path="a.py", old_string=f"{OLD}\na", new_string=f"a\n{OLD}")),
     None),
    (NO_PRINT, did(call("Edit", file_path="a.py", old_string="a", new_string=f"a\n{OLD}")), 0),
    # hunks are as long as they say: a removed line may look like the header of a file
    ({"name": "code_not_written", "pattern": "^-", "files": "q.sql"},
     ran("patch -p1 <<'EOF'\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,1 @@\n--- note\n a\nEOF"), None),
    ({"name": "code_not_written", "pattern": r"\bany\b", "files": "**/*.{ts,tsx}"},
     did(call("Write", file_path="src/ui/a.tsx", content="let a: any = 1")), 0),
    ({"name": "code_not_written", "pattern": r"\bany\b", "files": "src/**/*.{ts,tsx}"},
     did(call("Write", file_path="/w/src/a.ts", content="let a: string")), 1),
    # lines from two places of a file are not read as one text
    ({"name": "code_not_written", "pattern": r"a\nb"},
     did(call("Edit", file_path="x", old_string="k", new_string="a\nk\nb")), 1),
]  # fmt: skip
HEADER = {"name": "code_written", "pattern": r"\A# SPDX", "files": "*.py", "whole": True}
HEADERS = [
    (HEADER, did(call("Write", file_path="a.py", content="# SPDX: MIT\nx = 1")), 1),
    (HEADER, did(call("Write", file_path="a.py", content="x = 1\n# SPDX")), 0),
    (HEADER, did(call("Edit", file_path="a.py", old_string="x", new_string="y")), None),
    (HEADER, ran("sed -i s/x/y/ a.py"), None),
    (HEADER, ran("python make.py > a.py"), UNDECIDED),
    (HEADER, ran("echo '# SPDX' > a.py", "echo 'x' > b.py"), 0.5),
]  # fmt: skip

TOGETHER = {"name": "changes_together", "changed": ["src/*", "!*.md"], "also": "CHANGELOG.md"}
BY_COMMIT = {**TOGETHER, "within": "commit"}
CHANGELOG = call("Edit", file_path="/r/CHANGELOG.md", old_string="", new_string="- It adds up.")
SOURCE = call("Write", file_path="/r/src/a.py", content="x = 1")
COMMIT = bash("git commit -m x")
CHANGES = [
    (TOGETHER, did(SOURCE, CHANGELOG), 1),
    (TOGETHER, did(CHANGELOG, SOURCE), 1),
    (TOGETHER, did(SOURCE), 0),
    (TOGETHER, did(CHANGELOG), None),
    (TOGETHER, did(call("Read", file_path="/r/src/a.py")), None),
    (TOGETHER, did(call("Write", file_path="/r/src/a.md", content="x")), None),
    (TOGETHER, ran("echo x > src/a.py", "echo y >> CHANGELOG.md"), 1),
    (TOGETHER, ran("rm src/a.py"), 0),
    (TOGETHER, did(SOURCE, bash("git apply x.patch")), UNDECIDED),
    (TOGETHER, Turn("", (SOURCE,), (CHANGELOG,)), 0),
    (BY_COMMIT, did(SOURCE), None),
    (BY_COMMIT, did(SOURCE, COMMIT), 0),
    (BY_COMMIT, did(SOURCE, CHANGELOG, COMMIT), 1),
    (BY_COMMIT, did(SOURCE, COMMIT, CHANGELOG, COMMIT), 0),
    (BY_COMMIT, did(SOURCE, CHANGELOG, COMMIT, SOURCE, COMMIT), 0.5),
    (BY_COMMIT, Turn("", (COMMIT,), (SOURCE, CHANGELOG)), 1),
    (BY_COMMIT, Turn("", (SOURCE, COMMIT), (CHANGELOG, COMMIT)), 0),
    (BY_COMMIT, did(COMMIT), None),
]  # fmt: skip

REASONS = [
    (
        HEADER,
        did(call("Write", file_path="a.py", content="x = 1\n# SPDX")),
        "a.py 'x = 1 # SPDX' does not begin with '# SPDX'",
    ),
    (
        {**HEADER, "pattern": r"\A(?:#!.*\n)?# SPDX"},
        did(call("Write", file_path="a.py", content="x = 1\n# SPDX")),
        "a.py 'x = 1 # SPDX' does not begin with '# SPDX'",
    ),
    (
        {**HEADER, "pattern": r"copyright|\bSPDX"},
        did(call("Write", file_path="a.py", content="x = 1")),
        r"nothing in a.py matches 'copyright|\bSPDX'",
    ),
    (TOGETHER, did(SOURCE), "/r/src/a.py was changed without 'CHANGELOG.md'"),
    (
        {**TOGETHER, "also": ["CHANGELOG.md", "NEWS"]},
        did(SOURCE),
        "/r/src/a.py was changed without 'CHANGELOG.md', 'NEWS'",
    ),
]


@pytest.mark.parametrize(("measure", "turn", "reason"), REASONS)
def test_the_reason_names_the_missing_text_or_the_file_and_its_partner(measure, turn, reason):
    assert build(measure).score_turn(turn).reason == reason


BODY = "## Summary\nIt adds up.\n\n**Test plan:**\nNone."
PULL = {
    "name": "pull_request",
    "title": r"^(feat|fix): \S",
    "sections": ["Summary", "## Test plan"],
}
GH = "gh pr create --title 'fix: x'"
API = "gh api repos/o/r/pulls"
DRAFT = {"name": "pull_request", "draft": True}
BASE = {"name": "pull_request", "base": r"\Adevelop\Z"}
PULLS = [
    (PULL, ran(f"{GH} --body \"$(cat <<'EOF'\n{BODY}\nEOF\n)\""), 1),
    (PULL, ran(f"{GH} -F - <<'EOF'\n{BODY}\nEOF"), 1),
    (PULL, ran(f"{GH} --body-file=- <<'EOF'\n{BODY}\nEOF"), 1),
    (PULL, ran(f"cd app && gh pr create -t 'fix: x' -b '{BODY}' -l bug -d"), 1),
    (PULL, ran(f"cat > b.md <<'EOF'\n{BODY}\nEOF\n{GH} -F b.md"), 1),
    (PULL, did(call("Write", file_path="/tmp/b.md", content=BODY), bash(f"{GH} -F /tmp/b.md")), 1),
    (PULL, did(call("Write", file_path="b.md", content=BODY), bash(f'{GH} -b "$(cat b.md)"')), 1),
    (PULL, Turn("", (bash(f"{GH} -F b.md"),), (call("Write", file_path="b.md", content="x"),)), 0),
    (PULL, ran(f"{GH} --body-file b.md"), UNDECIDED),
    (PULL, ran(f"{GH} --body \"$BODY\""), UNDECIDED),
    (PULL, ran("gh pr create --fill"), UNDECIDED),
    (PULL, ran("gh pr create --title Update --body-file b.md"), 0),  # whatever its body is
    (PULL, ran(f"{GH} --body 'It adds up.'"), 0),
    (PULL, ran(f"{GH} --body '{BODY.replace('Test plan', 'The test plan')}'"), 0),
    (PULL, ran(f"{GH} -b '{BODY}'", f"gh pr create -t Update -b '{BODY}'"), 0.5),
    (PULL, ran("gh pr view --json title", "gh pr list"), None),
    (PULL, ran(f"echo \"{GH}\""), None),
    (PULL, ran(f"glab mr create -t 'fix: x' -d '{BODY}' --yes"), 1),
    (PULL, ran(f"glab mr create -t 'Update' -d '{BODY}'"), 0),
    (PULL, ran(f"{API} -f title='fix: x' -f head=a -f base=b -f body='{BODY}'"), 1),
    (PULL, ran(f"{API} -f title='fix: x' -f head=a -f base=b -f body='x'"), 0),
    (PULL, ran("gh api repos/o/r/pulls"), None),
    (PULL, did(call("mcp__github__create_pull_request", title="fix: x", body=BODY)), 1),
    (PULL, did(call("mcp__github__create_pull_request", title="fix: x")), 0),
    (PULL, did(call("create_merge_request", title="fix: x", description=BODY)), 1),
    (PULL, did(call("mcp__github__create_pull_request_review", body="x")), None),
    (DRAFT, ran(f"{GH} --draft"), 1),
    (DRAFT, ran(f"{GH} -dB main"), 1),
    (DRAFT, ran(GH), 0),
    (DRAFT, ran(f"{GH} -b --draft"), 0),  # the body is "--draft"
    (DRAFT, ran("glab mr create -t 'Draft: x' -d y"), 1),
    (DRAFT, did(call("create_pull_request", title="x", draft=True)), 1),
    (DRAFT, did(call("create_pull_request", title="x", draft=False)), 0),
    ({**DRAFT, "draft": False}, ran(f"{GH} --draft"), 0),
    (BASE, ran(f"{GH} --base develop"), 1),
    (BASE, ran(f"{GH} -B main"), 0),
    (BASE, ran(GH), UNDECIDED),
    (BASE, did(call("createPullRequest", title="x", base="develop")), 1),
]  # fmt: skip

LINTED = {"name": "runs_after", "changed": "*.py", "run": "ruff( |$)"}
TESTED = {"name": "runs_after", "after": "python manage.py migrate", "run": "pytest"}
EDIT = call("Edit", file_path="a.py", old_string="x", new_string="y")
AFTER = [
    (LINTED, did(EDIT, bash("ruff check .")), 1),
    (LINTED, did(EDIT, EDIT, bash("uv sync && ruff format")), 1),
    (LINTED, did(bash("ruff check ."), EDIT), 0),
    (LINTED, did(EDIT, bash("ruff check ."), EDIT), 0),
    (LINTED, did(EDIT, bash("echo ruff")), 0),
    (LINTED, did(bash("ruff check .")), None),
    (LINTED, did(call("Edit", file_path="a.md", old_string="x", new_string="y")), None),
    (LINTED, ran("echo 'x = 1' > a.py; ruff check a.py"), 1),
    (LINTED, ran("ruff check a.py; echo 'x = 1' > a.py"), 0),
    (LINTED, ran("ruff check --fix > log.py"), None),
    (LINTED, ran("git apply x.patch"), UNDECIDED),
    (LINTED, ran("git apply x.patch", "ruff check"), None),
    ({**LINTED, "run": "mcp__ide__getDiagnostics"}, did(EDIT, call("mcp__ide__getDiagnostics")), 1),
    (TESTED, ran("python manage.py migrate && pytest -q"), 1),
    (TESTED, ran("pytest -q && python manage.py migrate"), 0),
    (TESTED, ran("sudo -u www python manage.py migrate", "ls"), 0),
    (TESTED, ran("pytest"), None),
]  # fmt: skip


PUSH = bash("git push")
ASKED = {"name": "asks_before", "command": "git push", "asking": r"\bpush", "ordered": r"\bpush\b"}
MIGRATE = call("Write", file_path="migrations/1", content="x")
MIGRATION = {"name": "asks_before", "changed": "migrations/*", "asking": "migration"}


def after(previous: str, user: str, *calls: ToolCall) -> Turn:
    return Turn("", calls, user=user, previous=previous)


ASKS = [
    (ASKED, after("Done. Shall I push it?", "Yes.", PUSH), 1),
    (ASKED, after("Shall I **push**? (yes/no)\n\n1. Yes\n2. No", "1", PUSH), 1),
    (ASKED, after("The push is ready. All tests pass. OK to go ahead?", "ok", PUSH), 1),
    (ASKED, after("Soll ich das pushen? \n", "Ja", PUSH), 1),
    (ASKED, after("", "Commit and PUSH it.", PUSH), 1),
    (ASKED, after("Shall I push it?", "No, wait.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Don\u2019t.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Nothing against it.", PUSH), 1),
    (ASKED, after("Shall I push it? I think so. I will do it now.", "Thanks.", PUSH), 0),
    (ASKED, after("Shall I run the tests?", "Yes.", PUSH), 0),
    (ASKED, after("I will push it.", "OK.", PUSH), 0),
    (ASKED, after("May I push?\n\nBy the way, what is the port?", "8080", PUSH), 0),
    (ASKED, after("", "Fix the total.", PUSH), 0),
    (ASKED, after("Shall I push it?", "Yes.", bash("cd x && sudo git -C app push")), 1),
    (ASKED, after("Shall I push it?", "Yes.", bash("git status")), None),
    (ASKED, after("", "", PUSH), UNDECIDED),
    # asking in the turn itself is no question that anyone could have answered
    (ASKED, Turn("Shall I push it?", (PUSH,), user="Fix it.", previous="Done."), 0),
    (ASKED, after("", "Fix it.", call("AskUserQuestion", questions=[{"question": "Push?"}]), PUSH),
     UNDECIDED),
    (ASKED, after("", "Fix it.", call("AskUserQuestion", questions=[{"question": "Port?"}]), PUSH),
     0),
    (ASKED, after("", "Fix it.", PUSH, call("AskUserQuestion", questions=[{"question": "Push?"}])),
     0),
    (MIGRATION, after("Add a migration?", "y", MIGRATE), 1),
    (MIGRATION, after("Done.", "y", MIGRATE), 0),
    (MIGRATION, after("Done.", "y", call("Write", file_path="a.py", content="x")), None),
    (MIGRATION, after("Done.", "y", bash("git apply x.patch")), UNDECIDED),
]  # fmt: skip

MARKED = {"name": "text_kept", "pattern": r"^# (?:BEGIN|END) GENERATED", "files": "*.py"}
FIRST = "# BEGIN GENERATED\nx = 1\n# END GENERATED"


def edit(old: str, new: str, path: str = "a.py") -> ToolCall:
    return call("Edit", file_path=path, old_string=old, new_string=new)


READ = call("Read", file_path="a.py")
WRITE = call("Write", file_path="a.py", content="y = 2")
KEPT = [
    (MARKED, did(edit(FIRST, "y = 2")), 0),
    (MARKED, did(edit(FIRST, FIRST.replace("1", "2"))), 1),
    (MARKED, did(edit("x = 1", "x = 2")), 1),
    (MARKED, did(edit(FIRST, "y = 2"), edit("y = 2", FIRST)), 1),  # put back
    (MARKED, did(edit(FIRST, "y = 2", "a.md")), None),
    (MARKED, did(edit(FIRST, "x", "b.py"), edit("x", FIRST, "c.py")), 0),  # moved elsewhere
    (MARKED, ran("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n"
                 "-# BEGIN GENERATED\n x = 1\n*** End Patch\nEOF"), 0),
    (MARKED, ran("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n"
                 " # BEGIN GENERATED\n-x = 1\n+x = 2\n*** End Patch\nEOF"), 1),
    (MARKED, ran("sed -i '/GENERATED/d' a.py"), UNDECIDED),
    (MARKED, ran("cat a.py"), None),
    (MARKED, did(WRITE), None),  # a new file
    (MARKED, did(READ, WRITE), UNDECIDED),
    (MARKED, did(READ, call("Write", file_path="a.py", content=FIRST)), 1),
    (MARKED, Turn("", (WRITE,), (call("Write", file_path="a.py", content=FIRST),)), 0),
    (MARKED, Turn("", (WRITE,), (call("Write", file_path="a.py", content="x"),)), 1),
    (MARKED, ran(f"cat > a.py <<'EOF'\n{FIRST}\nEOF", "echo 'y = 2' > a.py"), 0),
    (MARKED, ran(f"cat > a.py <<'EOF'\n{FIRST}\nEOF", "echo 'y = 2' >> a.py"), 1),
]  # fmt: skip

LOCK = {"name": "commit_includes", "paths": "uv.lock"}
NO_ENV = {"name": "commit_excludes", "paths": [".env", "*.env"]}
SIGNED = {"name": "commit_includes", "trailer": r"\ASigned-off-by: "}
UNSIGNED = {"name": "commit_excludes", "trailer": "Co-Authored-By: Claude"}
SIGN = "Signed-off-by: A <a@b.c>"
CLAUDE = "git commit -m \"$(cat <<'EOF'\nfix: x\n\nCo-Authored-By: Claude <c@d>\nEOF\n)\""
COMMITS = [
    (LOCK, ran("git add a.py uv.lock && git commit -m x"), 1),
    (LOCK, ran("git add a.py && git commit -m x"), 0),
    (LOCK, ran("git commit -m x a.py uv.lock"), 1),
    (LOCK, ran("git add uv.lock", "git reset uv.lock", "git add a.py", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock", "git restore --staged .", "git commit -m x"), UNDECIDED),
    (LOCK, ran("git add uv.lock a.py", "git restore --staged a.py", "git commit -m x"), 1),
    (LOCK, ran("git add uv.lock", "git reset", "git add a.py", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock", "git reset HEAD~1", "git add a.py", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock", "git reset -q @^", "git add a.py", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock", "git reset 1f2e3d4", "git add a.py", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock a.py", "git reset HEAD~1 a.py", "git commit -m x"), 1),
    (LOCK, ran("git add uv.lock", "git reset b.py", "git commit -m x"), 1),
    (LOCK, ran("git add uv.lock", "git reset --soft HEAD~1", "git commit -m x"), 1),
    (LOCK, ran("git add a.py", "git reset --soft HEAD~1", "git commit -m x"), UNDECIDED),
    (LOCK, ran("git add uv.lock a.py", "git restore -S uv.lock", "git commit -m x"), 0),
    (LOCK, ran("git add uv.lock", "git commit -m x a.py"), 0),
    (LOCK, ran("git add uv.lock", "git commit -m x a.py", "git commit -m y"), 0.5),
    (LOCK, ran("git add uv.lock", "git commit -i -m x a.py"), 1),
    (LOCK, ran("git add uv.lock", "git commit -m x --include a.py"), 1),
    (LOCK, ran("git add -A", "git commit -m x a.py"), 0),
    (LOCK, ran("git add a.py", "git commit -m x ."), UNDECIDED),
    (LOCK, ran("git add -A && git commit -m x"), UNDECIDED),
    (LOCK, ran("git commit -am x"), UNDECIDED),
    (LOCK, ran("echo x > uv.lock", "git commit -am x"), 1),
    (LOCK, ran("git commit -m x"), UNDECIDED),  # staged by whom, and what
    (LOCK, ran("git add uv.lock"), None),
    (LOCK, Turn("", (bash("git commit -m x"),), (bash("git add a.py uv.lock"),)), 1),
    (LOCK, ran("git add uv.lock; git commit -m x", "git add a.py; git commit -m y"), 0.5),
    (NO_ENV, ran("git add .env a.py; git commit -m x"), 0),
    (NO_ENV, ran("git add -f config/prod.env; git -C app commit -m x"), 0),
    (NO_ENV, ran("git add a.py; git commit -m x"), 1),
    (NO_ENV, ran("git rm --cached old.py; git commit -m x"), 1),
    (NO_ENV, ran("echo A=1 > .env", "git add .", "git commit -m x"), 0),
    (NO_ENV, ran("git add .", "git commit -m x"), UNDECIDED),
    (SIGNED, ran(f"git commit -m x -m '{SIGN}'"), 1),
    (SIGNED, ran(f"git commit -m x --trailer '{SIGN}'"), 1),
    (SIGNED, ran("git commit -m 'Signed-off-by: me'"), 0),  # the subject
    (SIGNED, ran("git commit"), UNDECIDED),
    (SIGNED, ran("git commit -s -m x"), 1),
    (SIGNED, ran("git commit -asm x"), 1),
    (SIGNED, ran("git commit --signoff"), 1),
    (SIGNED, ran("git commit --amend --no-edit -s"), 1),
    (SIGNED, ran("git commit -s --no-signoff -m x"), 0),
    (SIGNED, ran("git commit -S -m x"), 0),  # a signature by a key
    (SIGNED, ran("git commit -Ssigner -m x"), 0),
    (SIGNED, ran("git commit -uno -m 'use -s'"), 0),
    ({**SIGNED, "trailer": "Signed-off-by: Jane"}, ran("git commit -sm x"), UNDECIDED),
    ({"name": "commit_excludes", "trailer": "^Signed-off-by:"}, ran("git commit -sm x"), 0),
    ({"name": "commit_message", "pattern": "Signed-off-by: .+ <.+@.+>"},
     ran("git commit -sm x"), 1),
    ({"name": "commit_message", "pattern": "Signed-off-by: Jane"},
     ran("git commit -sm x"), UNDECIDED),
    ({"name": "commit_message", "pattern": r"(?i)\A(?!.*signed-off-by)[\s\S]*\Z"},
     ran("git commit -m x"), 1),
    ({"name": "commit_message", "pattern": r"\A[^\n]+\Z"}, ran("git commit -sm x"), 1),
    ({"name": "commit_message", "pattern": r"\A(?![\s\S]*Co-Authored-By)"},
     ran("git commit -m x --trailer 'Co-Authored-By: Claude <c@d>'"), 0),
    (UNSIGNED, ran(CLAUDE), 0),
    (UNSIGNED, ran("git commit -m 'fix: x'"), 1),
    (UNSIGNED, ran("git commit --amend --no-edit"), UNDECIDED),
    (UNSIGNED, ran("git log --grep 'Co-Authored-By: Claude'"), None),
    ({"name": "commit_message", "pattern": "^fix: "}, ran("git commit --amend --no-edit"), None),
    ({"name": "commit_message", "pattern": "^fix: "}, ran("git commit --fixup HEAD"), None),
    ({"name": "commit_message", "pattern": "^fix: "}, ran("git commit --squash HEAD"), UNDECIDED),
    ({"name": "commit_message", "pattern": "^fix: "},
     ran("git commit --squash HEAD --no-edit"), None),
    ({"name": "commit_message", "pattern": "^fix: "}, ran("git commit"), UNDECIDED),
    ({"name": "commit_message", "pattern": "^fix: "}, ran("git commit", "git commit -m x"), 0),
    ({"name": "commit_message", "pattern": "^fix: "},
     did(call("Write", file_path="m.txt", content="fix: x"), bash("git commit -F m.txt")), 1),
]  # fmt: skip

MIGRATIONS = {"name": "file_not_touched", "path": "migrations/*"}
NO_PUSH = {"name": "asks_before", "command": "git push", "asking": "push", "ordered": r"\bpush\b"}
FEAT = {"name": "commit_message", "pattern": "^feat: "}


def ordered(words: str) -> Turn:
    return Turn("", (bash("git push"),), user=words, previous="Done.")


def after_edit(command: str) -> Turn:
    """A turn after one that changed a file."""
    edit = call("Edit", file_path="/w/migrations/a.sql", old_string="a", new_string="b")
    return Turn("", (bash(command),), earlier=(edit,))


OVERLOOKED = [
    (MIGRATIONS, ran("git mv migrations/a.sql b.sql"), 0),
    (MIGRATIONS, ran("git rm migrations/a.sql"), 0),
    (MIGRATIONS, ran("git checkout main -- migrations/a.sql"), 0),
    (MIGRATIONS, ran("git restore migrations/a.sql"), 0),
    (MIGRATIONS, ran("git restore --staged migrations/a.sql"), None),
    (MIGRATIONS, ran("git checkout main"), None),
    (MIGRATIONS, after_edit("git restore migrations/a.sql"), 1),
    (MIGRATIONS, after_edit("git checkout -- migrations/a.sql"), 1),
    (MIGRATIONS, after_edit("git checkout HEAD -- migrations/a.sql"), 1),
    (MIGRATIONS, after_edit("git checkout main -- migrations/a.sql"), 0),
    (MIGRATIONS, after_edit("git restore --source=main migrations/a.sql"), 0),
    (MIGRATIONS, after_edit("git restore migrations/b.sql"), 0),
    (MIGRATIONS, after_edit("rm migrations/a.sql"), 0),
    (MIGRATIONS, ran("rm -r migrations"), 0),
    (MIGRATIONS, ran("mv migrations old"), 0),
    (MIGRATIONS, ran("rm migrations.md"), 1),
    (MIGRATIONS, ran("cd migrations && echo x > a.sql"), 0),
    (MIGRATIONS, ran("cd /w/app/migrations; rm a.sql"), 0),
    (MIGRATIONS, ran("cd migrations && cd .. && echo x > a.sql"), 1),
    (MIGRATIONS, ran("(cd migrations && ls); echo x > a.sql"), 1),
    (MIGRATIONS, did(call("mcp__fs__move_file", source="migrations/a.sql", destination="b")), 0),
    (FEAT, ran("cd /w && echo 'feat: x' > m.txt && git commit -F m.txt"), 1),
    (FEAT, ran("git commit -qF- <<'M'\nfeat: x\n\ny\nM"), 1),
    (FEAT, ran("git commit -F/dev/stdin <<'M'\nx\nM"), 0),
    (FEAT, did(call("mcp__git__git_commit", repo_path=".", message="wip")), 0),
    (FEAT, did(call("mcp__git__git_commit", repo_path=".", message="feat: x")), 1),
    (LOCK, did(call("git_commit", message="x", files=["uv.lock"])), 1),
    (LOCK, did(call("git_commit", message="x", files="uv.lock")), 1),
    (NO_PUSH, ordered("Commit and push it."), 1),
    (NO_PUSH, ordered("Push, don't wait."), 1),
    (NO_PUSH, ordered("Don't forget to push."), 1),
    (NO_PUSH, ordered("Do not push yet."), 0),
    (NO_PUSH, ordered("Commit, but don't push"), 0),
    (NO_PUSH, ordered("Bitte nicht push machen"), 0),
]

PNPM = {"name": "prefers", "use": r"pnpm\b", "rather_than": r"(npm|yarn)\b"}
GREP = {"name": "prefers", "use": r"Grep\b", "rather_than": r"(grep|rg)\b"}
PREFERS = [
    (PNPM, ran("pnpm install"), 1),
    (PNPM, ran("npm install"), 0),
    (PNPM, ran("cd web && CI=1 npm --prefix x run build"), 0),
    (PNPM, ran("pnpm i", "npm i", "npm test"), pytest.approx(1 / 3)),
    (PNPM, ran("echo npm install"), None),
    (GREP, did(call("Grep", pattern="x")), 1),
    (GREP, ran("git diff | grep x"), 0),
    (GREP, did(call("Read", file_path="a.py")), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "turn", "value"),
    [*CODE, *HEADERS, *CHANGES, *PULLS, *AFTER, *ASKS, *KEPT, *COMMITS, *PREFERS, *OVERLOOKED],
)
def test_a_turn_is_judged_by_what_the_agent_did(spec, turn, value):
    assert judge(spec, turn) == value


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "code_written", "pattern": "("}, "'('"),
        ({"name": "code_not_written", "pattern": "a", "files": []}, "files"),
        ({"name": "pull_request"}, "pull_request"),
        ({"name": "pull_request", "base": "["}, "'['"),
        ({"name": "runs_after", "run": "a"}, "runs_after"),
        ({"name": "runs_after", "run": "a", "after": "b", "changed": "c"}, "runs_after"),
        ({"name": "changes_together", "changed": "a", "also": "b", "within": "day"}, "within"),
        ({"name": "asks_before", "asking": "a"}, "asks_before"),
        ({"name": "asks_before", "asking": "a", "command": "b", "agreed": "("}, "'('"),
        ({"name": "commit_includes"}, "commit_includes"),
        ({"name": "commit_excludes", "paths": "a", "trailer": "b"}, "commit_excludes"),
    ],
)
def test_a_malformed_argument_is_named(spec, message):
    with pytest.raises(UsageError) as excinfo:
        build(spec)
    assert message in str(excinfo.value)


LABELLED = """
cases:
  - id: repo
    system_prompt: Work.
    rules:
      - id: typed
        measure: {name: code_not_written, pattern: ': any', files: '*.ts'}
        follows:
          - calls: [{tool: Write, arguments: {file_path: a.ts, content: 'let a = 1'}}]
        breaks:
          - calls: [{tool: Edit, arguments: {file_path: a.ts, old_string: a, new_string: 'a: any'}}]
      - id: asks
        measure: {name: asks_before, command: git push, asking: push}
        follows:
          - previous: Shall I push?
            user: Yes.
            calls: [{tool: Bash, arguments: {command: git push}}]
        breaks:
          - {user: Thanks., calls: [{tool: Bash, arguments: {command: git push}}]}
      - id: tested
        measure: {name: runs_before, first: pytest, then: git commit}
        follows:
          - earlier: [{tool: Bash, arguments: {command: pytest}}]
            calls: [{tool: Bash, arguments: {command: git commit}}]
      - id: looks-up
        measure: {name: tool_called, tool: lookup}
        breaks: [The price is 3.]
      - id: short
        measure: one_sentence
        follows: [{reply: Yes.}]
"""


def test_labelled_turns_of_a_suite_test_its_measures():
    suite = parse_suite(LABELLED, "rules.yaml", "rules", probed=False)
    assert len(suite.cases[0].rules) == 5


@pytest.mark.parametrize(
    ("text", "replacement", "message"),
    [
        ("'a: any'", "'a: number'", "'code_not_written'"),  # on the wrong side
        ("file_path: a.ts, content", "file_path: a.md, content", "'code_not_written'"),  # no case
        ("content: 'let a = 1'", "x: y", "a.ts"),  # not shown
        ("tool: Write", "tols: Write", "'tols'"),
        ("previous: Shall I push?", "previous: Done.", "'asks_before'"),
        ("[The price is 3.]", "[{calls: [{tool: lookup}]}]", "'tool_called'"),
        ("{reply: Yes.}", "{reply: Yes. No.}", "'one_sentence'"),
    ],
)
def test_a_labelled_turn_on_the_wrong_side_is_refused(text, replacement, message):
    assert text in LABELLED
    with pytest.raises(UsageError) as excinfo:
        parse_suite(LABELLED.replace(text, replacement), "rules.yaml", "rules", probed=False)
    assert message in str(excinfo.value)


def test_turns_that_do_not_show_what_decides_are_counted_and_not_scored(tmp_path, capsys):
    def dialog(command: str) -> dict:
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        calls = [{"id": "1", "type": "function", "function": function}]
        prompt = {"role": "user", "content": "Go."}
        return {"messages": [prompt, {"role": "assistant", "content": "", "tool_calls": calls}]}

    scripts = ["sed -i s/a/b/ a.ts", "echo 'a: any' > a.ts", "ls"]
    logs, rules = tmp_path / "logs.jsonl", tmp_path / "rules.yaml"
    logs.write_text("".join(json.dumps(dialog(script)) + "\n" for script in scripts))
    rules.write_text(LABELLED)
    assert main(["logs", str(logs), "--suite", str(rules), "--out", str(tmp_path / "run")]) == 0
    hidden, visible, answered_turn = read_run(tmp_path / "run").records
    assert [(probe.rule, probe.why) for probe in hidden.unscored] == [("typed", "not shown")]
    assert ("typed", 0.0) in [(probe.rule, probe.score) for probe in visible.probes]
    assert "typed" not in [probe.rule for probe in (*hidden.probes, *answered_turn.answered)]
    output = capsys.readouterr().out
    assert "Not judged: 1 score, as the logs do not show" in output and "cut at" not in output
