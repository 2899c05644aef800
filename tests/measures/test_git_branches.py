"""The branch of Git that commands run on, and the rules about it."""

import pytest
from agent_turns import UNDECIDED, bash, judge

from holdfast.logs import read_logs
from holdfast.measures.agent_acts.git.git_branches import branch_after, branch_in
from holdfast.measures.turns import AssistantTurn

NOT_MAIN = {"name": "commit_branch", "pattern": "^(?!main$)"}
FIX_ONLY = {"name": "commit_branch", "pattern": "^fix$"}
NO_PUSH = {"name": "command_not_run", "command": r"git push(?=.*[ :+](?:refs/heads/)?main(?!\S))"}
ON_MAIN = "[main 1a2b3c4] x\n 1 file changed"


def ran(*pairs, branch=""):
    """A turn of commands, each with what it printed."""
    calls = [bash(pair) if isinstance(pair, str) else bash(pair[0]) for pair in pairs]
    results = ["" if isinstance(pair, str) else pair[1] for pair in pairs]
    return AssistantTurn("", tuple(
        type(call)(call.name, call.arguments, result=result, branch=branch if n == 0 else "")
        for n, (call, result) in enumerate(zip(calls, results, strict=True))
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("git switch -c fix", "main", "fix"),
        ("git switch -C fix origin/main", "main", "fix"),
        ("git switch fix", "main", "fix"),
        ("git switch -", "main", ""),
        ("git switch --detach v1.2", "main", "HEAD"),
        ("git checkout -b fix/cart", "main", "fix/cart"),
        ("git checkout -B fix origin/main", "", "fix"),
        ("git checkout main", "", "main"),
        ("git checkout a.py", "main", "main"),
        ("git checkout .", "main", "main"),
        ("git checkout -- src", "main", "main"),
        ("git checkout main a.py", "fix", "fix"),
        ("git checkout 1a2b3c4d", "main", "HEAD"),
        ("git checkout HEAD~1", "main", "HEAD"),
        ("git checkout src/", "main", "main"),
        ("git checkout ..", "main", "main"),
        ("git checkout 7.2", "main", ""),  # a tag, or a branch
        ("git switch 7.2", "main", "7.2"),
        ("git switch deadbee", "main", "deadbee"),
        ("git checkout --track origin/fix", "main", "fix"),
        ("git checkout -t origin/fix", "main", "fix"),
        ("git branch -m fix", "main", "fix"),
        ("git branch -M main", "", "main"),
        ("git branch -m old new", "main", "main"),
        ("git branch -m old new", "old", "new"),
        ("git branch fix", "main", "main"),
        ("git branch -d fix", "main", "main"),
        ("git init -b trunk", "", "trunk"),
        ("gh pr checkout 7", "main", ""),
        ("git commit -m x", "main", "main"),
        ("git push", "main", "main"),
    ],
)
def test_the_branch_after_a_command(command, before, after):
    assert branch_after(command.split(), before) == after


@pytest.mark.parametrize(
    ("script", "output", "branch"),
    [
        ("git status", "On branch main\nnothing to commit", "main"),
        ("git status", "HEAD detached at 1a2b3c4\n", "HEAD"),
        ("git commit -m x", ON_MAIN, "main"),
        ("git commit -m x", "[fix/cart (root-commit) 1a2b3c4] x", "fix/cart"),
        ("git commit -m x", "[detached HEAD 1a2b3c4] x", "HEAD"),
        ("git switch fix", "Switched to branch 'fix'\n", "fix"),
        ("git checkout -b fix", "Switched to a new branch 'fix'", "fix"),
        ("git checkout main && git commit -m x", "Already on 'main'\n[main 1a2b3c4] x", "main"),
        ("git branch --show-current", "main\n", "main"),
        ("cd app && git rev-parse --abbrev-ref HEAD", "fix\n", "fix"),
        ("git branch", "  fix\n* main\n", "main"),
        ("git log --oneline", "1a2b3c4 On branch main", ""),
        ("git push", "Everything up-to-date", ""),
        ("git branch --show-current", "", ""),
    ],
)
def test_the_branch_that_git_prints(script, output, branch):
    assert branch_in(script, output) == branch


# the rule, the turn, and the score
RULES = {
    "a commit on main": (NOT_MAIN, ran(("git commit -m x", ON_MAIN)), 0),
    "a commit on another branch": (NOT_MAIN, ran(("git commit -m x", "[fix 1a2b3c4] x")), 1),
    "a commit on a branch that is not shown": (NOT_MAIN, ran("git commit -m x"), UNDECIDED),
    "a commit on the branch that the log names": (NOT_MAIN, ran("git commit -m x", branch="main"),
                                                  0),
    "a branch first": (NOT_MAIN, ran("git switch -c fix && git commit -m x", branch="main"), 1),
    "a branch first, in a call of its own": (NOT_MAIN, ran(
        "git checkout -b fix", "git commit -m x", branch="main"), 1),
    "back on main": (NOT_MAIN, ran("git switch -c fix", "git switch main && git commit -m x"), 0),
    "a switch that failed": (NOT_MAIN, ran(
        ("git switch fix", "fatal: invalid reference: fix"), "git commit -m x", branch="main"),
        UNDECIDED),
    "one of two commits": (NOT_MAIN, ran(
        ("git commit -m x", ON_MAIN), ("git switch -c fix && git commit -m y", "[fix 1a2b3c5] y")),
        0.5),
    "a folder restored": (FIX_ONLY, ran(
        ("git checkout src", "Updated 2 paths from the index\n"), "git commit -qm x", branch="fix"),
        UNDECIDED),
    "a file restored": (FIX_ONLY, ran(
        ("git checkout -- a.py", "error: no such path"), "git commit -qm x", branch="fix"), 1),
    "another repository": (NOT_MAIN, ran(
        ("git -C ../web status", "On branch main\n"), "git commit -qm x", branch="fix"), UNDECIDED),
    "a switch in another repository": (NOT_MAIN, ran(
        "git -C ../web switch main", "git commit -qm x", branch="fix"), UNDECIDED),
    "a commit in another repository": (NOT_MAIN, ran(
        "git -C ../web commit -qm x", branch="main"), UNDECIDED),
    "a commit in a work tree": (NOT_MAIN, ran(
        "cd .worktrees/fix && git commit -qm x", branch="main"), UNDECIDED),
    "a commit that is shown, in a work tree": (NOT_MAIN, ran(
        ("cd ../web && git commit -m x", ON_MAIN), branch="fix"), 0),
    "a commit in a folder of the repository": (NOT_MAIN, ran(
        "cd web && git commit -qm x", branch="main"), 0),
    "a commit in a container": (NOT_MAIN, ran(
        "docker exec web git commit -qm x", branch="main"), UNDECIDED),
    "no commit": (NOT_MAIN, ran("git status", branch="main"), None),
    "a commit that a hook refused": (NOT_MAIN, ran(
        ("git commit -m x", "husky - pre-commit hook exited with code 1"), branch="main"), None),
    "a status before": (NOT_MAIN, ran(("git status", "On branch main\n"), "git commit -qm x"), 0),
    "a commit without a branch": (NOT_MAIN, ran(("git commit -m x", "[detached HEAD 1a2b3c4] x")),
                                  1),
    "a push of main by name": (NO_PUSH, ran("git push origin main"), 0),
    "a push on main": (NO_PUSH, ran("git push", branch="main"), 0),
    "a push on main to a remote": (NO_PUSH, ran("git push origin", branch="main"), 0),
    "a push of HEAD": (NO_PUSH, ran("git push origin HEAD", branch="main"), 0),
    "a push of HEAD to another branch": (NO_PUSH, ran("git push origin HEAD:fix", branch="main"),
                                         1),
    "a push on another branch": (NO_PUSH, ran("git push -u origin", branch="fix"), 1),
    "a push that Git reports": (NO_PUSH, ran(
        ("git push", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main\n")), 0),
    "a push that the server rejected": (NO_PUSH, ran(
        ("git push", " ! [rejected]        main -> main (fetch first)\n")), 0),
    "a push after a pull of main": (NO_PUSH, ran(
        ("git pull && git push", "From github.com:a/b\n   1a2b3c4..5d6e7f8  main -> origin/main\n"
         "To github.com:a/b\n   1a2b3c4..5d6e7f8  fix -> fix\n"), branch="fix"), 1),
    "a push of a new branch": (NO_PUSH, ran(
        ("git push", " * [new branch]      fix -> fix\n"), branch="main"), 1),
    "a push of tags": (NO_PUSH, ran("git push --tags", branch="main"), 1),
    "a commit and a push": (NO_PUSH, ran(("git commit -m x", ON_MAIN), "git push"), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rules_about_branches(name):
    spec, turn, expected = RULES[name]
    assert judge(spec, turn) == expected


def test_the_branch_of_a_session_is_known_until_a_command_changes_it(tmp_path):
    """Claude Code logs the branch with each line; Codex only that of the beginning."""
    import json

    def line(kind, name, parent, content, branch):
        message = {"role": kind, "content": content}
        fields = {"uuid": name, "parentUuid": parent, "sessionId": "s", "cwd": "/a"}
        return {**fields, "type": kind, "message": message, "gitBranch": branch}

    def use(number, command):
        return [{"type": "tool_use", "id": f"t{number}", "name": "Bash",
                 "input": {"command": command}}]  # fmt: skip

    rows = [
        line("user", "u1", None, "Hi", "main"),
        line("assistant", "a1", "u1", use(1, "git switch -c fix"), "main"),
        line("assistant", "a2", "a1", use(2, "git commit -m x"), "main"),
        line("user", "u2", "a2", "Go on", "main"),
        line("assistant", "a3", "u2", use(3, "git commit -m y"), "main"),
        line("assistant", "a4", "a3", use(4, "git commit -m z"), "trunk"),
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (dialog,) = read_logs([path]).dialogs
    branches = [call.branch for turn in dialog.turns for call in turn.done.calls]
    assert branches == ["main", "fix", "fix", "trunk"]
