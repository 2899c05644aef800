"""The branch of Git that commands run on, and the rules about it."""

import json
from dataclasses import replace

import pytest
from agent_turns import UNDECIDED, bash, did, judge

from holdfast.logs import read_logs
from holdfast.measures.agent_acts.git.git_branches import branch_after, branch_in

NOT_MAIN = {"name": "commit_branch", "pattern": "^(?!main$)"}
FIX_ONLY = {"name": "commit_branch", "pattern": "^fix$"}
NO_PUSH = {"name": "command_not_run", "command": r"git push(?=.*[ :+](?:refs/heads/)?main(?!\S))"}
ON_MAIN = "[main 1a2b3c4] x\n 1 file changed"


def printed(command, output):
    """A call of Bash, and what the command printed."""
    return replace(bash(command), result=output)


def turn_of(*calls, branch=""):
    """A turn of calls; a text is a command that printed nothing.

    Args:
        branch: the branch that the log names with the first call.
    """
    first, *others = (printed(call, "") if isinstance(call, str) else call for call in calls)
    return did(replace(first, branch=branch), *others)


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


# a turn, and its score
COMMITS = {
    "a commit on main": (turn_of(printed("git commit -m x", ON_MAIN)), 0),
    "a commit on another branch": (turn_of(printed("git commit -m x", "[fix 1a2b3c4] x")), 1),
    "a commit on a branch that is not shown": (turn_of("git commit -m x"), UNDECIDED),
    "a commit on the branch that the log names": (turn_of("git commit -m x", branch="main"), 0),
    "a branch first": (turn_of("git switch -c fix && git commit -m x", branch="main"), 1),
    "a branch first, in a call of its own": (
        turn_of("git checkout -b fix", "git commit -m x", branch="main"),
        1,
    ),
    "back on main": (turn_of("git switch -c fix", "git switch main && git commit -m x"), 0),
    "a switch that failed": (
        turn_of(
            printed("git switch fix", "fatal: invalid reference: fix"),
            "git commit -m x",
            branch="main",
        ),
        UNDECIDED,
    ),
    "one of two commits": (
        turn_of(
            printed("git commit -m x", ON_MAIN),
            printed("git switch -c fix && git commit -m y", "[fix 1a2b3c5] y"),
        ),
        0.5,
    ),
    "another repository": (
        turn_of(
            printed("git -C ../web status", "On branch main\n"), "git commit -qm x", branch="fix"
        ),
        UNDECIDED,
    ),
    "a switch in another repository": (
        turn_of("git -C ../web switch main", "git commit -qm x", branch="fix"),
        UNDECIDED,
    ),
    "a commit in another repository": (
        turn_of("git -C ../web commit -qm x", branch="main"),
        UNDECIDED,
    ),
    "a commit in a work tree": (
        turn_of("cd .worktrees/fix && git commit -qm x", branch="main"),
        UNDECIDED,
    ),
    "a commit that is shown, in a work tree": (
        turn_of(printed("cd ../web && git commit -m x", ON_MAIN), branch="fix"),
        0,
    ),
    "a commit in a folder of the repository": (
        turn_of("cd web && git commit -qm x", branch="main"),
        0,
    ),
    "a commit in a container": (
        turn_of("docker exec web git commit -qm x", branch="main"),
        UNDECIDED,
    ),
    "no commit": (turn_of("git status", branch="main"), None),
    "a commit that a hook refused": (
        turn_of(
            printed("git commit -m x", "husky - pre-commit hook exited with code 1"), branch="main"
        ),
        None,
    ),
    "a status before": (turn_of(printed("git status", "On branch main\n"), "git commit -qm x"), 0),
    "a commit without a branch": (
        turn_of(printed("git commit -m x", "[detached HEAD 1a2b3c4] x")),
        1,
    ),
}


@pytest.mark.parametrize(("turn", "score"), COMMITS.values(), ids=COMMITS)
def test_a_rule_about_the_branch_of_commits(turn, score):
    assert judge(NOT_MAIN, turn) == score


@pytest.mark.parametrize(
    ("turn", "score"),
    [
        pytest.param(
            turn_of(
                printed("git checkout src", "Updated 2 paths from the index\n"),
                "git commit -qm x",
                branch="fix",
            ),
            UNDECIDED,
            id="a folder restored",
        ),
        pytest.param(
            turn_of(
                printed("git checkout -- a.py", "error: no such path"),
                "git commit -qm x",
                branch="fix",
            ),
            1,
            id="a file restored",
        ),
    ],
)
def test_the_branch_is_in_doubt_after_a_checkout_of_a_name_alone(turn, score):
    assert judge(FIX_ONLY, turn) == score


PUSHES = {
    "a push of main by name": (turn_of("git push origin main"), 0),
    "a push on main": (turn_of("git push", branch="main"), 0),
    "a push on main to a remote": (turn_of("git push origin", branch="main"), 0),
    "a push of HEAD": (turn_of("git push origin HEAD", branch="main"), 0),
    "a push of HEAD to another branch": (turn_of("git push origin HEAD:fix", branch="main"), 1),
    "a push on another branch": (turn_of("git push -u origin", branch="fix"), 1),
    "a push that Git reports": (
        turn_of(printed("git push", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main\n")),
        0,
    ),
    "a push that the server rejected": (
        turn_of(printed("git push", " ! [rejected]        main -> main (fetch first)\n")),
        0,
    ),
    "a push after a pull of main": (
        turn_of(
            printed(
                "git pull && git push",
                "From github.com:a/b\n   1a2b3c4..5d6e7f8  main -> origin/main\n"
                "To github.com:a/b\n   1a2b3c4..5d6e7f8  fix -> fix\n",
            ),
            branch="fix",
        ),
        1,
    ),
    "a push of a new branch": (
        turn_of(printed("git push", " * [new branch]      fix -> fix\n"), branch="main"),
        1,
    ),
    "a push of tags": (turn_of("git push --tags", branch="main"), 1),
    "a commit and a push": (turn_of(printed("git commit -m x", ON_MAIN), "git push"), 0),
}


@pytest.mark.parametrize(("turn", "score"), PUSHES.values(), ids=PUSHES)
def test_a_rule_against_pushes_to_main(turn, score):
    assert judge(NO_PUSH, turn) == score


def test_the_branch_of_a_session_is_known_until_a_command_changes_it(tmp_path):
    """Claude Code logs the branch with each line; Codex only that of the beginning."""

    def line(kind, name, parent, content, branch):
        message = {"role": kind, "content": content}
        fields = {"uuid": name, "parentUuid": parent, "sessionId": "s", "cwd": "/a"}
        return {**fields, "type": kind, "message": message, "gitBranch": branch}

    def use(number, command):
        block = {"type": "tool_use", "id": f"t{number}", "name": "Bash"}
        return [{**block, "input": {"command": command}}]

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
