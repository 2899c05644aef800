"""Rules about what is changed together, and about the contents and the messages of commits."""

import pytest
from agent_turns import UNDECIDED, bash, call, did, judge, ran

from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn as Turn

# Changes that belong together


TOGETHER = {"name": "changes_together", "changed": ["src/*", "!*.md"], "also": "CHANGELOG.md"}
BY_COMMIT = {**TOGETHER, "within": "commit"}
CHANGELOG = call("Edit", file_path="/r/CHANGELOG.md", old_string="", new_string="- It adds up.")
SOURCE = call("Write", file_path="/r/src/a.py", content="x = 1")
COMMIT = bash("git commit -m x")
CHANGED_TOGETHER = [
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


@pytest.mark.parametrize(("rule", "turn", "score"), CHANGED_TOGETHER)
def test_files_that_are_changed_together(rule, turn, score):
    assert judge(rule, turn) == score


REASONS = [
    (TOGETHER, did(SOURCE), "/r/src/a.py was changed without 'CHANGELOG.md'"),
    (
        {**TOGETHER, "also": ["CHANGELOG.md", "NEWS"]},
        did(SOURCE),
        "/r/src/a.py was changed without 'CHANGELOG.md', 'NEWS'",
    ),
]


@pytest.mark.parametrize(("rule", "turn", "reason"), REASONS)
def test_the_reason_names_the_file_and_its_partner(rule, turn, reason):
    assert build(rule).score_turn(turn).reason == reason


# Files, trailers and messages


LOCK = {"name": "commit_includes", "paths": "uv.lock"}
NO_ENV = {"name": "commit_excludes", "paths": [".env", "*.env"]}
SIGNED = {"name": "commit_includes", "trailer": r"\ASigned-off-by: "}
UNSIGNED = {"name": "commit_excludes", "trailer": "Co-Authored-By: Claude"}
SIGN_OFF = "Signed-off-by: A <a@b.c>"
COMMIT_BY_CLAUDE = "git commit -m \"$(cat <<'EOF'\nfix: x\n\nCo-Authored-By: Claude <c@d>\nEOF\n)\""
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
    (SIGNED, ran(f"git commit -m x -m '{SIGN_OFF}'"), 1),
    (SIGNED, ran(f"git commit -m x --trailer '{SIGN_OFF}'"), 1),
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
    (UNSIGNED, ran(COMMIT_BY_CLAUDE), 0),
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


@pytest.mark.parametrize(("rule", "turn", "score"), COMMITS)
def test_the_contents_and_the_messages_of_commits(rule, turn, score):
    assert judge(rule, turn) == score


FEATURE_MESSAGE = {"name": "commit_message", "pattern": "^feat: "}


FROM_TOOLS_AND_FILES = [
    (FEATURE_MESSAGE, ran("cd /w && echo 'feat: x' > m.txt && git commit -F m.txt"), 1),
    (FEATURE_MESSAGE, ran("git commit -qF- <<'M'\nfeat: x\n\ny\nM"), 1),
    (FEATURE_MESSAGE, ran("git commit -F/dev/stdin <<'M'\nx\nM"), 0),
    (FEATURE_MESSAGE, did(call("mcp__git__git_commit", repo_path=".", message="wip")), 0),
    (FEATURE_MESSAGE, did(call("mcp__git__git_commit", repo_path=".", message="feat: x")), 1),
    (LOCK, did(call("git_commit", message="x", files=["uv.lock"])), 1),
    (LOCK, did(call("git_commit", message="x", files="uv.lock")), 1),
]


@pytest.mark.parametrize(("rule", "turn", "score"), FROM_TOOLS_AND_FILES)
def test_commits_by_tools_and_messages_from_files(rule, turn, score):
    assert judge(rule, turn) == score
